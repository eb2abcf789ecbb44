"use strict";
// Draws every picture from the data in the page, again when the size or the colour scheme changes.

function addSizes(data) {
  const choice = figureOf("size");
  data.sizes.forEach((size, index) => choice.add(new Option(`${size.label} (${bytes(size.bytes)})`, index)));
  choice.value = data.size;
  return choice;
}

function pictures(data, gauges) {
  const size = Number(figureOf("size").value);
  return [
    () => drawBySize(figureOf("hits"), data, hitRatio),
    () => drawBySize(figureOf("slowdown"), data, slowdown),
    () => drawHitsOverTime(figureOf("hits-over-time"), data, size),
    () => drawMigrations(figureOf("migrations"), data, size),
    ...gauges.map((name) => () => drawGauge(figureOf(`gauge-${name}`), data, size, name)),
    () => drawHeatmap(figureOf("heatmap"), data.heatmap, data.accesses),
    () => drawCdf(figureOf("cdf"), data, figureOf("logarithmic").checked),
    () => drawRegions(figureOf("regions"), data),
  ];
}

keepDrawn((data) => {
  const names = new Set(data.runs.flatMap((run) => Object.keys(run.timeline.gauges)));
  const gauges = addGaugeFigures(figureOf("gauges"), names, "At the end of each interval.");
  return { inputs: [addSizes(data), figureOf("logarithmic")], pictures: () => pictures(data, gauges) };
});
