"use strict";
// Pictures of runs over time at one size of the fast tier.

// Draws lines over the accesses replayed, with the modelled time of the first line in the tooltip.
function drawOverTime(figure, data, lines, title, format, tick, range = {}) {
  const x = axis(
    "accesses replayed: share, count",
    (value) => [percent(value, 0), ...(data.accesses ? [compact.format(value * data.accesses)] : [])],
    { axis: { type: "linear", min: 0, max: 1 }, ticks: { maxTicksLimit: 11 } },
  );
  const when = (items) =>
    items
      .slice(0, 1)
      .map(
        (item) =>
          `until ${percent(item.parsed.x)} of accesses ` +
          `(${plain.format(item.raw.seconds)} s of modelled time)`,
      );
  drawTimeline(figure, lines, { x, y: { ...axis(title, tick), ...range } }, format, when);
}

function over(timeline, values, sign = 1) {
  return timeline.x.map((x, index) => ({
    x,
    y: values[index] === null ? null : sign * values[index],
    seconds: timeline.seconds[index],
  }));
}

function runsOver(data, size) {
  return data.runs.filter((run) => run.size === size && run.timeline.x.length && !isBound(data, run));
}

function drawHitsOverTime(figure, data, size) {
  const runs = runsOver(data, size);
  if (!runs.length) return markEmpty(figure, "No run has a timeline.");
  const lines = runs.map((run) =>
    line(data.policies[run.policy], over(run.timeline, run.timeline.hits), policyColour(data, run.policy)),
  );
  const oracle = line("oracle", over(runs[0].timeline, runs[0].timeline.oracle), colour("--muted"), dashed);
  drawOverTime(figure, data, [...lines, oracle], "hit ratio", hitRatio.format, hitRatio.tick, hitRatio.range);
}

// Draws promotions above zero and demotions below, in one colour per policy.
function drawMigrations(figure, data, size) {
  const moving = (run) => [...run.timeline.promotions, ...run.timeline.demotions].some((moves) => moves > 0);
  const candidates = runsOver(data, size);
  if (!candidates.length) return markEmpty(figure, "No run has a timeline.");
  const runs = candidates.some(moving) ? candidates.filter(moving) : candidates.slice(0, 1);
  const lines = runs.flatMap((run) => {
    const stroke = policyColour(data, run.policy);
    const step = { stepped: "after", borderWidth: 1.5 };
    return [
      line(
        `${data.policies[run.policy]} promotions`,
        over(run.timeline, run.timeline.promotions),
        stroke,
        step,
      ),
      line(`${data.policies[run.policy]} demotions`, over(run.timeline, run.timeline.demotions, -1), stroke, {
        ...step,
        borderDash: [4, 3],
      }),
    ];
  });
  const intervals = Math.max(1, runs[0].timeline.x.length);
  const interval = data.accesses ? `${compact.format(data.accesses / intervals)} accesses` : "an interval";
  const absolute = (value) => compact.format(Math.abs(value));
  drawOverTime(figure, data, lines, `pages moved in ${interval}`, absolute, absolute);
}

function drawGauge(figure, data, size, name) {
  const runs = runsOver(data, size).filter((run) => run.timeline.gauges[name]);
  if (!runs.length) return markEmpty(figure, "No policy at this size shows it.");
  const lines = runs.map((run) =>
    line(
      data.policies[run.policy],
      over(run.timeline, run.timeline.gauges[name]),
      policyColour(data, run.policy),
      { stepped: "before" },
    ),
  );
  drawOverTime(
    figure,
    data,
    lines,
    name,
    (value) => plain.format(value),
    (value) => compact.format(value),
    gaugeRange(lines),
  );
}
