"use strict";
// The page of a simulation: one size of the fast tier at a time, and the policies that the reader chose.

function runsAt(data, size) {
  return data.runs.filter((run) => run.size === size && run.timeline);
}

function chosenPolicies() {
  return new Set([...byId("choice").querySelectorAll("input:checked")].map((input) => Number(input.value)));
}

function line(data, policy, points, more = {}) {
  return { name: data.policies[policy], points, ...policyStyle(data, policy), ...more };
}

function drawRanking(size) {
  byId("ranking").querySelectorAll("[data-size]").forEach((table) => {
    table.hidden = Number(table.dataset.size) !== size;
  });
}

function overlayRuns(data, size) {
  return data.runs.filter((run) => run.size === size && run.fast);
}

// Fills the choice of policies that tell what is fast, and keeps the one chosen before.
function fillOverlay(data, size) {
  const choice = byId("overlay");
  const before = choice.value || data.best;
  const names = overlayRuns(data, size).map((run) => data.policies[run.policy]);
  choice.replaceChildren(new Option("no policy", ""), ...names.map((name) => new Option(name, name)));
  choice.value = names.includes(before) ? before : names[0] || "";
  choice.parentElement.hidden = !names.length;
}

function drawMemory(data, size) {
  const name = byId("overlay").value;
  const run = overlayRuns(data, size).find((one) => data.policies[one.policy] === name);
  drawHeatmap(byId("heatmap"), data.heatmap, data.accesses, run?.fast);
}

// Draws slowdown against size: chosen policies, and the bounds in grey. One size is no curve.
function drawCurve(data) {
  const figure = byId("curve");
  figure.hidden = data.sizes.length < 2;
  if (figure.hidden) return;
  const share = (size) => Math.min(1, data.sizes[size].bytes / data.footprint);
  const chosen = chosenPolicies();
  const bound = (policy) => data.bounds.includes(data.policies[policy]) && data.policies[policy] !== "all-fast";
  const lines = data.policies.flatMap((_, policy) => {
    if (!chosen.has(policy) && !bound(policy)) return [];
    const runs = data.runs.filter((run) => run.policy === policy);
    const points = runs.map((run) => ({ x: share(run.size), y: run.slowdown })).sort((a, b) => a.x - b.x);
    return [line(data, policy, points, bound(policy) ? {} : { marks: 3.2 })];
  });
  if (!lines.length) return markEmpty(figure, "No policy is chosen.");
  const label = (value) => data.sizes.find((size) => Math.abs(Math.min(1, size.bytes / data.footprint) - value) < 1e-9);
  const edges = [share(0), share(data.sizes.length - 1)];
  plot(figure, {
    x: {
      title: "fast tier, and its share of the footprint",
      log: true,
      lines: 2,
      min: edges[0] * 0.9,
      max: edges[1] * 1.1,
      ticks: data.sizes.map((_, size) => share(size)),
      format: (value) => [label(value)?.label || "", percent(value)],
    },
    y: { title: "slowdown", format: (value) => `${plain.format(value)}x`, tell: (value) => `${value.toFixed(3)}x` },
    lines,
    rules: [{ y: 1, name: "all fast", colour: "var(--bound)", dash: "12 4" }],
    when: (value) => `${percent(value)} of the footprint fast`,
  });
}

// Returns points over the share of the accesses replayed.
function over(timeline, values) {
  return values.map((y, index) => ({ x: Math.min(1, (index + 1) * timeline.step), y }));
}

function sharesAxis(data) {
  const lines = data.accesses ? 2 : 1;
  const format = (value) => [percent(value, 0), ...(data.accesses ? [compact.format(value * data.accesses)] : [])];
  return { title: `misses replayed: share${lines > 1 ? ", count" : ""}`, min: 0, max: 1, lines, format };
}

function untilShare(value) {
  return `until ${percent(value)} of the misses`;
}

function drawHits(data, size) {
  const figure = byId("over-time");
  const chosen = chosenPolicies();
  const runs = runsAt(data, size).filter((run) => chosen.has(run.policy) && run.timeline.hits.length);
  if (!runs.length) return markEmpty(figure, "No chosen policy has a timeline.");
  const lines = runs.map((run) => line(data, run.policy, over(run.timeline, run.timeline.hits)));
  const oracle = data.oracle[size];
  if (oracle?.some((share) => share > 0)) {
    const points = over({ step: 1 / oracle.length }, oracle);
    lines.push({ name: "interval oracle", points, colour: "var(--bound)", dash: "7 4", width: 1.3 });
  }
  plot(figure, {
    x: sharesAxis(data),
    y: { title: "hit ratio", min: 0, max: 1, format: (value) => percent(value, 0), tell: (value) => percent(value) },
    lines,
    when: untilShare,
  });
}

const counts = { "pages promoted": "promotions", "pages demoted": "demotions", "samples taken": "samples" };

function internalNames(data) {
  const gauges = new Set(data.runs.flatMap((run) => Object.keys(run.timeline?.gauges || {})));
  return [...Object.keys(counts), ...[...gauges].sort()];
}

function drawInternals(data, size) {
  const [figure, name] = [byId("internals"), byId("number").value];
  const chosen = chosenPolicies();
  const values = (run) => (counts[name] ? run.timeline[counts[name]] : run.timeline.gauges[name]);
  const runs = runsAt(data, size).filter((run) => chosen.has(run.policy) && values(run)?.some((value) => value));
  if (!runs.length) return markEmpty(figure, `No chosen policy has ${name} at this size.`);
  const lines = runs.map((run) => line(data, run.policy, over(run.timeline, values(run)), { step: true }));
  const whole = lines.every((one) => one.points.every(({ y }) => Number.isInteger(y ?? 0)));
  const title = counts[name] ? `${name} in each interval` : name;
  const format = (value) => compact.format(value);
  plot(figure, { x: sharesAxis(data), y: { title, zero: true, whole, format, tell: plain.format }, lines, when: untilShare });
}

// Offers every policy as a box to tick, the first ones ticked.
function fillChoice(data) {
  data.policies.forEach((name, policy) => {
    if (data.bounds.includes(name)) return;
    const input = element("input", { type: "checkbox", value: policy, checked: data.chosen.includes(name) });
    const swatch = element("i");
    swatch.style.background = policyStyle(data, policy).colour;
    byId("choice").append(element("label", {}, input, swatch, name));
  });
}

{
  const data = JSON.parse(byId("data").textContent);
  const size = byId("size");
  data.sizes.forEach((one, index) => size.add(new Option(`${one.label} (${bytes(one.bytes)})`, index)));
  size.value = data.size;
  size.parentElement.hidden = data.sizes.length < 2;
  fillChoice(data);
  byId("number").append(...internalNames(data).map((name) => new Option(name, name)));
  const chosenSize = () => Number(size.value);
  const drawChosen = () => {
    drawCurve(data);
    drawHits(data, chosenSize());
    drawInternals(data, chosenSize());
  };
  const drawAll = () => {
    drawRanking(chosenSize());
    fillOverlay(data, chosenSize());
    drawMemory(data, chosenSize());
    drawChosen();
  };
  size.addEventListener("change", drawAll);
  byId("overlay").addEventListener("change", () => drawMemory(data, chosenSize()));
  byId("choice").addEventListener("change", drawChosen);
  byId("number").addEventListener("change", () => drawInternals(data, chosenSize()));
  drawAll();
}
