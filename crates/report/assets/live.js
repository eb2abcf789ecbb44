"use strict";
// The pictures of one live run.

function drawGauge(data, name) {
  const line = { name, points: over(data, data.gauges[name]), colour: "var(--tier0)", step: true, width: 1.5 };
  const whole = data.gauges[name].every((value) => Number.isInteger(value ?? 0));
  const y = { title: name, zero: true, whole, format: (value) => compact.format(value), tell: plain.format };
  drawOverSeconds(byId(`gauge-${name}`), data, [line], y);
}

{
  const data = JSON.parse(byId("data").textContent);
  drawResidency(byId("residency"), data);
  drawRatio(byId("hits"), data);
  const moves = [
    { name: "promoted", values: data.promotions, colour: "var(--tier0)" },
    { name: "demoted", values: data.demotions, sign: -1, colour: "var(--tier1)" },
    { name: "reclaimed", values: data.reclaimed, sign: -1, colour: "var(--tier2)", dash: "4 3" },
  ];
  drawRates(byId("moves"), data, moves, "pages in a second: up, and down below zero");
  drawRates(byId("samples"), data, [{ name: "samples", values: data.samples, colour: "var(--tier0)" }], "samples in a second");
  Object.keys(data.gauges).forEach((name) => drawGauge(data, name));
}
