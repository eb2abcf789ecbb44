"use strict";
// Pictures of each policy's results at each size of the fast tier.

// Draws one measure of every policy: lines over the sizes of the fast tier, or bars at one size.
function drawBySize(figure, data, measure) {
  if (!data.runs.length) return markEmpty(figure, "Nothing was run.");
  if (data.sizes.length === 1) return drawBars(figure, data, measure);
  const share = (size) => Math.min(1, data.sizes[size].bytes / data.footprint);
  const point = (run, value) => ({ x: share(run.size), y: value });
  const curve = (runs, value) =>
    runs.map((run) => point(run, value(run))).sort((one, other) => one.x - other.x);
  const lines = data.policies.flatMap((name, policy) => {
    const runs = data.runs.filter((run) => run.policy === policy && !isBound(data, run));
    return runs.length
      ? [line(name, curve(runs, measure.value), policyColour(data, policy), { pointRadius: 3.5 })]
      : [];
  });
  const limits = measure.limits(data).map(([name, points, dash]) =>
    line(
      name,
      points.map(([size, value]) => ({ x: share(size), y: value })),
      colour("--muted"),
      { borderDash: dash, borderWidth: 1.5 },
    ),
  );
  const [smallest, largest] = [share(0), share(data.sizes.length - 1)];
  const x = axis("fast tier, as a share of the footprint", null, {
    axis: { type: "logarithmic", min: smallest * 0.85, max: largest * 1.18 },
  });
  x.afterBuildTicks = (scale) => {
    scale.ticks = data.sizes.map((_, size) => ({ value: share(size) }));
  };
  x.ticks.callback = (value, index) => [(data.sizes[index] || {}).label, percent(value)];
  const label = (item) => `${item.dataset.label}: ${measure.format(item.parsed.y)}`;
  const title = (items) => items.slice(0, 1).map((item) => `${percent(item.parsed.x)} of the footprint fast`);
  drawChart(
    figure,
    "line",
    { datasets: [...lines, ...limits] },
    {
      interaction: { mode: "x", intersect: false },
      scales: { x, y: { ...axis(measure.title, measure.tick), ...measure.range } },
      plugins: plugins(true, label, title),
    },
  );
}

function drawBars(figure, data, measure) {
  const labels = data.runs.map((run) => data.policies[run.policy]);
  const values = data.runs.map(measure.value);
  const fill = data.runs.map((run) => policyColour(data, run.policy));
  measure.limits(data).forEach(([name, points]) => {
    if (labels.includes(name) || !points.length) return;
    labels.push(name);
    values.push(points[0][1]);
    fill.push(colour("--muted"));
  });
  const sets = [{ label: measure.title, data: values, backgroundColor: fill, maxBarThickness: 70 }];
  drawChart(
    figure,
    "bar",
    { labels, datasets: sets },
    {
      layout: { padding: { top: 16 } },
      scales: {
        x: { grid: { display: false } },
        y: { ...axis(measure.title, measure.tick), ...measure.range, min: 0 },
      },
      plugins: {
        ...plugins(false, (item) => measure.format(item.parsed.y)),
        "bar-values": { format: measure.format },
      },
    },
  );
}

// Returns one point for each size, from any run of that size.
function perSize(data, value) {
  return data.sizes.flatMap((_, size) => {
    const run = data.runs.find((one) => one.size === size && value(one) !== null);
    return run ? [[size, value(run)]] : [];
  });
}

function boundRuns(data, name, value) {
  return data.runs
    .filter((run) => data.policies[run.policy] === name)
    .map((run) => [run.size, value(run)])
    .sort((one, other) => one[0] - other[0]);
}

const hitRatio = {
  title: "hit ratio",
  value: (run) => run.hits,
  ...ratioFormat,
  limits: (data) => [
    ["belady", perSize(data, (run) => run.belady), [2, 3]],
    ["oracle", perSize(data, (run) => run.oracle), [7, 4]],
    ["all-slow", perSize(data, () => 0), [1, 5]],
  ],
};

const slowdown = {
  title: "time / time with all memory fast",
  value: (run) => run.slowdown,
  format: (value) => (value === null ? "-" : value.toFixed(2)),
  tick: (value) => value.toFixed(2),
  range: { grace: "5%" },
  limits: (data) => [
    ["all-slow", boundRuns(data, "all-slow", (run) => run.slowdown), [1, 5]],
    ["oracle", boundRuns(data, "oracle", (run) => run.slowdown), [7, 4]],
    ["belady", boundRuns(data, "belady", (run) => run.slowdown), [2, 3]],
    ["all-fast", perSize(data, () => 1), [12, 4]],
  ],
};
