"use strict";
// Pictures of live tiering over time.

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

function over(data, values) {
  return values.map((y, index) => ({ x: data.seconds[index], y }));
}

// Draws lines over `data.seconds`, which are since the start, or before now from `data.from` on.
function drawOverSeconds(figure, data, lines, y, rules = []) {
  const [start, end] = [data.from ?? 0, data.seconds[data.seconds.length - 1]];
  if (!(data.seconds.length > 1 && end > start)) return markEmpty(figure, "The run was too short for a timeline.");
  const unit = timeUnit(end - start);
  const x = {
    title: `time ${data.from === undefined ? "since the start" : "before now"} (${unit.name})`,
    min: start,
    max: end,
    ticks: niceTicks(start / unit.seconds, end / unit.seconds, 8).map((tick) => tick * unit.seconds),
    format: (value) => plain.format(value / unit.seconds),
  };
  const when = (value) => `${plain.format(value / unit.seconds)} ${unit.name}`;
  return plot(figure, { x, y, lines, rules, when });
}

// Draws the memory on each tier, one above the other, the fast one at the bottom.
function drawResidency(figure, data) {
  let below = data.seconds.map(() => 0);
  const lines = data.resident.map((tier, index) => {
    const base = below;
    below = tier.map((value, moment) => value + base[moment]);
    const name = index === 0 ? "fast tier" : `tier ${index}`;
    return { name, points: over(data, below), base, colour: `var(--tier${Math.min(index, 3)})`, width: 1.5 };
  });
  const most = Math.max(0, ...below);
  if (!(most > 0)) return markEmpty(figure, "No memory was seen.");
  const unit = byteUnit(most);
  const limit = data.fast_limit;
  const rule = { y: limit, name: data.limit_name || "fast limit", colour: "var(--ink)", dash: "7 4" };
  const ticks = niceTicks(0, most / unit.bytes, 5).map((tick) => tick * unit.bytes);
  const format = (value) => plain.format(value / unit.bytes);
  const y = { title: `resident (${unit.name}), one above the other`, zero: true, ticks, format, tell: bytes };
  return drawOverSeconds(figure, data, lines, y, limit > 0 && limit <= most ? [rule] : []);
}

function drawRatio(figure, data) {
  if (data.hits.every((value) => value === null)) return markEmpty(figure, "No access was counted.");
  const lines = [{ name: "hit ratio", points: over(data, data.hits), colour: "var(--tier0)", width: 1.5 }];
  const y = { title: "share of accesses", min: 0, max: 1, format: (value) => percent(value, 0), tell: (value) => percent(value) };
  return drawOverSeconds(figure, data, lines, y);
}

// Draws events per second, as the mean over each interval: a step as wide as the interval.
function drawRates(figure, data, rates, title) {
  const lines = rates
    .filter(({ values }, index) => index === 0 || values.some((value) => value))
    .map(({ values, sign = 1, ...line }) => ({
      ...line,
      points: over(data, values.map((value) => (value === null ? null : sign * value))),
      step: true,
      width: 1.5,
    }));
  const format = (value) => compact.format(Math.abs(value));
  drawOverSeconds(figure, data, lines, { title, zero: true, format });
}
