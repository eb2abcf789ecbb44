"use strict";
// Parts of every chart: lines, axes, legends and colours on top of the charting library.

const drawnCharts = new Map();

// Tells the page that a chart is on its canvas; runs after every draw.
const drawnMark = {
  id: "drawn-mark",
  afterDraw(chart) {
    const points = chart.data.datasets.reduce((sum, set) => sum + set.data.length, 0);
    markDrawn(chart.canvas.closest("figure"), points);
  },
};

// Writes each bar's value at its end.
const barValues = {
  id: "bar-values",
  afterDatasetsDraw(chart, _, options) {
    if (!options.format) return;
    const pen = chart.ctx;
    pen.fillStyle = colour("--ink");
    pen.textAlign = "center";
    pen.textBaseline = "bottom";
    chart.getDatasetMeta(0).data.forEach((bar, index) => {
      pen.fillText(options.format(chart.data.datasets[0].data[index]), bar.x, bar.y - 3);
    });
  },
};

// Writes a vertical line's name beside its upper end.
const lineNames = {
  id: "line-names",
  afterDatasetsDraw(chart) {
    const pen = chart.ctx;
    pen.fillStyle = colour("--muted");
    pen.textAlign = "right";
    pen.textBaseline = "top";
    chart.data.datasets.forEach((set, index) => {
      const end = chart.getDatasetMeta(index).data[1];
      if (set.named && end) pen.fillText(set.label, end.x - 4, end.y + 4 + 15 * (index - 1));
    });
  },
};

function drawChart(figure, type, data, options) {
  const before = drawnCharts.get(figure.id);
  if (before) before.destroy();
  clearFigure(figure);
  Chart.defaults.color = colour("--muted");
  Chart.defaults.borderColor = colour("--line");
  Chart.defaults.font.family = "system-ui, sans-serif";
  const common = { animation: false, maintainAspectRatio: false, interaction: { intersect: false } };
  const configuration = {
    type,
    data,
    options: { ...common, ...options },
    plugins: [drawnMark, barValues, lineNames],
  };
  drawnCharts.set(figure.id, new Chart(figure.querySelector("canvas"), configuration));
}

function line(label, data, stroke, more = {}) {
  return {
    label,
    data,
    borderColor: stroke,
    backgroundColor: stroke,
    borderWidth: 2,
    pointRadius: 0,
    parsing: false,
    ...more,
  };
}

const dashed = { borderDash: [7, 4], borderWidth: 1.5 };

function axis(title, format, more = {}) {
  return {
    title: { display: true, text: title },
    ticks: { callback: format, maxRotation: 0, ...more.ticks },
    ...more.axis,
  };
}

function plugins(legend, label, title) {
  // A box without height is a line, drawn with the line's own dashes.
  return {
    legend: { display: legend, position: "bottom", labels: { boxWidth: 26, boxHeight: 0 } },
    tooltip: { callbacks: { label, title } },
  };
}

const ratioFormat = {
  format: (value) => percent(value),
  tick: (value) => percent(value, 0),
  range: { min: 0, max: 1 },
};

// Draws lines over a common horizontal axis; the tooltip shows all of them at one place, under a title.
function drawTimeline(figure, lines, scales, format, title) {
  drawChart(
    figure,
    "line",
    { datasets: lines },
    {
      interaction: { mode: "index", intersect: false },
      scales,
      plugins: plugins(true, (item) => `${item.dataset.label}: ${format(item.parsed.y)}`, title),
    },
  );
}

// Levels and thresholds are whole numbers: no ticks between them.
function wholeSteps(scale) {
  scale.options.ticks.precision = 0;
}

// Returns the vertical axis of gauges.
function gaugeRange(lines) {
  const whole = lines.every((one) => one.data.every(({ y }) => Number.isInteger(y ?? 0)));
  return { beginAtZero: true, ...(whole && { afterDataLimits: wholeSteps }) };
}

// Adds one figure for each gauge, the hot threshold first; returns their order.
function addGaugeFigures(place, names, when) {
  const ordered = [...names].sort((one, other) => (other === "hot-threshold") - (one === "hot-threshold"));
  ordered.forEach((name) => {
    const figure = document.createElement("figure");
    figure.id = `gauge-${name}`;
    figure.innerHTML =
      '<figcaption><b></b><span></span></figcaption><div class="plot"><canvas></canvas></div>';
    figure.querySelector("b").textContent =
      name === "hot-threshold" ? "Hot threshold over time" : `${name} over time`;
    figure.querySelector("span").textContent = when;
    place.append(figure);
  });
  return ordered;
}

// Returns a policy's colour, the same in every picture; bounds are grey.
function policyColour(data, policy) {
  const real = data.policies.filter((name) => !data.bounds.includes(name));
  const all = colours("--series");
  const place = real.indexOf(data.policies[policy]);
  return place < 0 ? colour("--muted") : all[place % all.length];
}

function isBound(data, run) {
  return data.bounds.includes(data.policies[run.policy]);
}
