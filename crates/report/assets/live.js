"use strict";
// Pictures of a live run over time.

const tooShort = "The run was too short for a timeline.";

// Returns the largest unit that a duration in seconds fills.
function timeUnit(seconds) {
  const units = [
    { name: "h", seconds: 3600 },
    { name: "min", seconds: 60 },
  ];
  return units.find((unit) => seconds >= 5 * unit.seconds) || { name: "s", seconds: 1 };
}

function byteUnit(most) {
  const power = Math.max(0, Math.min(4, Math.floor(Math.log2(Math.max(1, most)) / 10)));
  return { name: ["B", "KiB", "MiB", "GiB", "TiB"][power], bytes: 1024 ** power };
}

// Returns the horizontal axis, and the format of a moment.
function timeAxis(data) {
  const end = data.seconds[data.seconds.length - 1];
  const unit = timeUnit(end);
  const x = axis(`time since the start (${unit.name})`, (value) => plain.format(value / unit.seconds), {
    axis: { type: "linear", min: 0, max: end },
    ticks: { stepSize: niceStep(end / unit.seconds / 8) * unit.seconds, includeBounds: false },
  });
  const when = (items) =>
    items.slice(0, 1).map((item) => `${plain.format(item.parsed.x / unit.seconds)} ${unit.name}`);
  return { x, when };
}

// Returns the next of 1, 2, 5, 10 ... of a power of ten.
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least);
}

// Returns a line of the known values. A value between two unknown ones is a point: a line would not show it.
function timeLine(data, label, values, stroke, more = {}) {
  const unknown = (index) => (values[index] ?? null) === null;
  const alone = values.map((_, index) => (unknown(index - 1) && unknown(index + 1) ? 2 : 0));
  const points = values.map((y, index) => ({ x: data.seconds[index], y }));
  return line(label, points, stroke, { borderWidth: 1.5, pointRadius: alone, ...more });
}

function drawOverSeconds(figure, data, lines, y, format) {
  const isLong = data.seconds.length > 1 && data.seconds[data.seconds.length - 1] > 0;
  if (!isLong) return markEmpty(figure, tooShort);
  const { x, when } = timeAxis(data);
  drawTimeline(figure, lines, { x, y }, format, when);
}

// Draws the memory on each tier, one above the other, the fast one at the bottom.
function drawResidency(figure, data) {
  const totals = data.seconds.map((_, index) =>
    data.resident.reduce((sum, tier) => sum + tier[index], 0),
  );
  const most = Math.max(...totals);
  if (!(most > 0)) return markEmpty(figure, "No memory was seen.");
  const unit = byteUnit(most);
  const series = colours("--series");
  const areas = data.resident.map((tier, index) => {
    const stroke = series[index % series.length];
    const values = tier.map((value) => value / unit.bytes);
    const fill = index === 0 ? "origin" : "-1";
    const style = { fill, backgroundColor: `${stroke}66`, stack: "tiers" };
    return timeLine(data, tierName(index), values, stroke, style);
  });
  const limit = data.fast_limit;
  if (limit !== null && limit > 0 && limit <= most) {
    const values = data.seconds.map(() => limit / unit.bytes);
    const style = { ...dashed, stack: "limit" };
    areas.push(timeLine(data, "fast limit at the end", values, colour("--ink"), style));
  }
  const y = { ...axis(`resident (${unit.name})`, (value) => plain.format(value)), stacked: true, min: 0 };
  drawOverSeconds(figure, data, areas, y, (value) => bytes(value * unit.bytes));
}

function tierName(index) {
  return index === 0 ? "tier 0 (fast)" : `tier ${index}`;
}

function drawRatio(figure, data) {
  if (data.hits.every((value) => value === null)) return markEmpty(figure, "No access was counted.");
  const hits = timeLine(data, "hit ratio", data.hits, colours("--series")[0]);
  const y = { ...axis("share of accesses", ratioFormat.tick), ...ratioFormat.range };
  drawOverSeconds(figure, data, [hits], y, ratioFormat.format);
}

// Draws events per second, as the mean over each interval: a step as wide as the interval.
function drawRates(figure, data, rates, title) {
  const lines = rates
    .filter(({ values }, index) => index === 0 || values.some((value) => value))
    .map(({ label, values, sign = 1, stroke, dash }) =>
      timeLine(
        data,
        label,
        values.map((value) => (value === null ? null : sign * value)),
        stroke,
        { stepped: "after", ...(dash && { borderDash: dash }) },
      ),
    );
  const absolute = (value) => compact.format(Math.abs(value));
  drawOverSeconds(figure, data, lines, { ...axis(title, absolute), beginAtZero: true }, absolute);
}

// Draws the memory that takes each share of the accesses.
function drawHotSet(figure, data) {
  const most = Math.max(0, ...data.hot.map((share) => share.bytes));
  if (!most) return markEmpty(figure, "No access was sampled.");
  const unit = byteUnit(most);
  const format = (value) => bytes(value * unit.bytes);
  const bars = {
    label: "memory",
    data: data.hot.map((share) => share.bytes / unit.bytes),
    backgroundColor: colours("--series")[0],
    maxBarThickness: 70,
  };
  drawChart(
    figure,
    "bar",
    { labels: data.hot.map((share) => percent(share.accesses, 0)), datasets: [bars] },
    {
      layout: { padding: { top: 16 } },
      scales: {
        x: { ...axis("share of the sampled accesses", null), grid: { display: false }, ticks: {} },
        y: { ...axis(`hottest memory (${unit.name})`, (value) => plain.format(value)), min: 0 },
      },
      plugins: {
        ...plugins(false, (item) => format(item.parsed.y)),
        "bar-values": { format },
      },
    },
  );
}

function drawLiveGauge(figure, data, name) {
  const lines = [timeLine(data, name, data.gauges[name], colours("--series")[0], { stepped: "before" })];
  const y = { ...axis(name, (value) => compact.format(value)), ...gaugeRange(lines) };
  drawOverSeconds(figure, data, lines, y, (value) => plain.format(value));
}

function livePictures(data, gauges) {
  const series = colours("--series");
  const moves = [
    { label: "promotions", values: data.promotions, stroke: series[0] },
    { label: "demotions", values: data.demotions, sign: -1, stroke: series[1] },
    { label: "reclaimed by the kernel", values: data.reclaimed, sign: -1, stroke: series[2], dash: [4, 3] },
  ];
  const samples = [{ label: "samples", values: data.samples, stroke: series[0] }];
  return [
    () => drawResidency(figureOf("residency"), data),
    () => drawRatio(figureOf("hits"), data),
    () => drawRates(figureOf("moves"), data, moves, "pages per second"),
    () => drawHotSet(figureOf("hot-set"), data),
    () => drawRates(figureOf("samples"), data, samples, "samples per second"),
    ...gauges.map((name) => () => drawLiveGauge(figureOf(`gauge-${name}`), data, name)),
  ];
}

keepDrawn((data) => {
  const names = Object.keys(data.gauges);
  const gauges = addGaugeFigures(figureOf("gauges"), names, "As reported at each moment.");
  return { pictures: () => livePictures(data, gauges) };
});
