"use strict";
// The picture of a sizing: slowdown against size of the fast tier, with intervals, budget and recommended
// sizes.

const boundDashes = { "all-slow": [1, 5], oracle: [7, 4], belady: [2, 3], "all-fast": [12, 4] };

// Returns a policy's curve, its interval as a band, its recommended size and its knee.
function sizedLines(data, sized, index) {
  const share = (size) => size / data.footprint;
  const stroke = policyColour(data, index);
  const points = (part) => sized.curve.map((point) => ({ x: share(point.fast_bytes), y: point[part] - 1 }));
  const curve = points("slowdown");
  if (sized.bound) {
    const dashes = { borderDash: boundDashes[sized.policy] || [7, 4], borderWidth: 1.5 };
    return [line(sized.policy, curve, stroke, dashes)];
  }
  const edge = { borderWidth: 0, unnamed: true };
  const marks = [];
  const mark = (place, slowdown, style) => {
    const point = [{ x: share(place), y: slowdown - 1 }];
    const name = `${sized.policy} ${style.what}`;
    marks.push(line(name, point, stroke, { unnamed: true, showLine: false, ...style }));
  };
  if (sized.recommended) {
    const filled = sized.outcome === "confirmed" ? stroke : colour("--surface");
    const style = { what: "recommended", pointRadius: 8, pointBackgroundColor: filled, pointBorderWidth: 2 };
    mark(sized.recommended.fast_bytes, sized.recommended.slowdown, style);
  }
  if (sized.knee) {
    const style = { what: "knee", pointStyle: "rectRot", pointRadius: 7, pointBorderWidth: 2 };
    mark(sized.knee.fast_bytes, sized.knee.slowdown, style);
  }
  return [
    ...marks,
    line(sized.policy, curve, stroke, { pointRadius: 2.5 }),
    line(`${sized.policy} low`, points("low"), stroke, edge),
    line(`${sized.policy} high`, points("high"), stroke, {
      ...edge,
      fill: "-1",
      backgroundColor: `${stroke}26`,
    }),
  ];
}

function across(name, value, least, stroke, more) {
  const ends = [
    { x: least, y: value },
    { x: 1, y: value },
  ];
  return line(name, ends, stroke, more);
}

function drawSizes(figure, data) {
  const places = data.sized.flatMap((sized) => sized.curve.map((point) => point.fast_bytes / data.footprint));
  if (!places.length) return markEmpty(figure, "Nothing was sized.");
  const least = Math.min(...places);
  const lines = data.sized.flatMap((sized, index) => sizedLines(data, sized, index));
  const fixed = [across("budget", data.budget, least, colour("--alarm"), { borderDash: [9, 4] })];
  if (!data.policies.includes("all-slow")) {
    const dashes = { borderDash: boundDashes["all-slow"], borderWidth: 1.5 };
    fixed.push(across("all-slow", data.all_slow - 1, least, colour("--muted"), dashes));
  }
  const x = axis("fast tier, as a share of the footprint", null, {
    axis: { type: "logarithmic", min: least * 0.92, max: 1.08 },
  });
  x.afterBuildTicks = (scale) => {
    const doublings = Array.from({ length: 7 }, (_, step) => 2 ** (step - 6));
    scale.ticks = doublings.filter((value) => value >= least * 0.92).map((value) => ({ value }));
  };
  const fraction = (value) => (value < 1 ? `1/${Math.round(1 / value)}` : "all");
  x.ticks.callback = (value) => [fraction(value), bytes(value * data.footprint)];
  const named = (set) => !set.unnamed;
  const shown = plugins(
    true,
    (item) => `${item.dataset.label}: ${percent(item.parsed.y)}`,
    (items) => items.slice(0, 1).map((item) => `${bytes(item.parsed.x * data.footprint)} fast`),
  );
  shown.legend.labels.filter = (entry, all) => named(all.datasets[entry.datasetIndex]);
  shown.tooltip.filter = (item) => named(item.dataset) || item.dataset.what !== undefined;
  const y = axis("slowdown against all memory fast", (value) => percent(value, 0));
  drawChart(
    figure,
    "line",
    { datasets: [...fixed, ...lines] },
    {
      interaction: { mode: "nearest", axis: "x", intersect: false },
      scales: { x, y: { ...y, suggestedMin: 0 } },
      plugins: shown,
    },
  );
}

keepDrawn((data) => ({ pictures: () => [() => drawSizes(figureOf("size"), data)] }));
