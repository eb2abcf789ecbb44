"use strict";
// Draws every picture from the data in the page, again when the size or the colour scheme changes.

function figureOf(id) {
  return document.getElementById(id);
}

// One figure for each gauge that any policy shows, the hot threshold first.
function addGauges(data) {
  const names = new Set(data.runs.flatMap((run) => Object.keys(run.timeline.gauges)));
  const ordered = [...names].sort((one, other) => (other === "hot-threshold") - (one === "hot-threshold"));
  ordered.forEach((name) => {
    const figure = document.createElement("figure");
    figure.id = `gauge-${name}`;
    figure.innerHTML =
      '<figcaption><b></b>At the end of each interval.</figcaption><div class="plot"><canvas></canvas></div>';
    figure.querySelector("b").textContent =
      name === "hot-threshold" ? "Hot threshold over time" : `${name} over time`;
    figureOf("gauges").append(figure);
  });
  return ordered;
}

function addSizes(data) {
  const choice = figureOf("size");
  data.sizes.forEach((size, index) => choice.add(new Option(`${size.label} (${bytes(size.bytes)})`, index)));
  choice.value = data.size;
  return choice;
}

function drawAll(data, gauges) {
  const size = Number(figureOf("size").value);
  const pictures = [
    () => drawBySize(figureOf("hits"), data, hitRatio),
    () => drawBySize(figureOf("slowdown"), data, slowdown),
    () => drawHitsOverTime(figureOf("hits-over-time"), data, size),
    () => drawMigrations(figureOf("migrations"), data, size),
    ...gauges.map((name) => () => drawGauge(figureOf(`gauge-${name}`), data, size, name)),
    () => drawHeatmap(figureOf("heatmap"), data.heatmap, data.accesses),
    () => drawCdf(figureOf("cdf"), data, figureOf("logarithmic").checked),
    () => drawRegions(figureOf("regions"), data),
  ];
  pictures.forEach((draw) => {
    try {
      draw();
    } catch (error) {
      showError(error);
    }
  });
}

window.addEventListener("error", (event) => showError(event.message));
try {
  const data = JSON.parse(figureOf("data").textContent);
  const gauges = addGauges(data);
  const redraw = () => drawAll(data, gauges);
  addSizes(data).addEventListener("change", redraw);
  figureOf("logarithmic").addEventListener("change", redraw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  redraw();
} catch (error) {
  showError(error);
}
