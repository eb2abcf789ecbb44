"use strict";
// Line pictures in SVG, whose colours are the page's: they follow light, dark and print by themselves.

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 4 });

function percent(ratio, digits = 1) {
  return ratio === null ? "-" : `${(ratio * 100).toFixed(digits)} %`;
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 100 && value % 1 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

// Returns the colour, dash and mark of a policy, the same in every picture. Bounds are grey and dashed.
const boundDashes = { "all-slow": "1 4", oracle: "7 4", "paying-oracle": "7 4 1 4", belady: "2 3", "all-fast": "12 4" };
function policyStyle(data, index) {
  const number = data.colours[index];
  if (number === null) return { colour: "var(--bound)", dash: boundDashes[data.policies[index]] || "7 4", width: 1.3 };
  return { colour: `var(--p${number})`, dash: ["", "8 3", "3 2"][Math.floor(number / 8) % 3], mark: number % 4 };
}

function escaped(text) {
  return String(text).replaceAll(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

function tag(name, attributes, content = "") {
  const written = Object.entries(attributes)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([key, value]) => ` ${key}="${escaped(value)}"`);
  return `<${name}${written.join("")}>${content}</${name}>`;
}

function text(x, y, content, attributes = {}) {
  return tag("text", { x: x.toFixed(1), y: y.toFixed(1), ...attributes }, escaped(content));
}

const pen = document.createElement("canvas").getContext("2d");
function textWidth(content) {
  pen.font = getComputedStyle(document.body).font.replace(/[\d.]+px/, "12px");
  return pen.measureText(content).width;
}

// Returns the next of 1, 2, 5, 10 ... of a power of ten.
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * 0.999);
}

function niceTicks(min, max, count) {
  const step = niceStep(Math.max((max - min) / count, Number.MIN_VALUE)) || 1;
  const first = Math.ceil(min / step - 1e-9);
  const last = Math.floor(max / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => (first + index) * step);
}

// Moves labels apart so that each has `gap` of room, within `low` to `high`; returns where they are.
function spread(wanted, gap, low, high) {
  const order = wanted.map((y, index) => ({ y, index })).sort((one, other) => one.y - other.y);
  order.forEach((one, place) => {
    one.y = Math.max(one.y, place ? order[place - 1].y + gap : low);
  });
  for (let place = order.length - 1; place >= 0; place -= 1) {
    const most = place + 1 < order.length ? order[place + 1].y - gap : high;
    order[place].y = Math.min(order[place].y, most);
  }
  const placed = [];
  order.forEach(({ y, index }) => {
    placed[index] = y;
  });
  return placed;
}

// Returns the mark of a policy's points: circle, square, diamond or triangle.
function markAt(x, y, kind, size, attributes) {
  const corners = [
    null,
    [[-1, -1], [1, -1], [1, 1], [-1, 1]],
    [[0, -1.35], [1.35, 0], [0, 1.35], [-1.35, 0]],
    [[0, -1.3], [1.2, 1], [-1.2, 1]],
  ][kind || 0];
  if (!corners) return tag("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: size, ...attributes });
  const points = corners.map(([a, b]) => `${(x + a * size).toFixed(1)},${(y + b * size).toFixed(1)}`);
  return tag("polygon", { points: points.join(" "), ...attributes });
}

const sizes = new ResizeObserver((entries) =>
  entries.forEach(({ target }) => target.painted !== target.clientWidth && redraw(target)),
);

function redraw(place) {
  place.painted = place.clientWidth;
  if (place.clientWidth < 60) return;
  try {
    place.paint(place);
  } catch (error) {
    showError(error);
  }
}

// Has a figure painted now, whenever its width changes, and when it is unfolded.
function keepPainted(figure, paint) {
  const place = figure.querySelector(".plot");
  place.paint = paint;
  redraw(place);
  sizes.observe(place);
}

// Puts the reason in place of a missing picture.
function markEmpty(figure, why) {
  keepPainted(figure, (place) => {
    place.replaceChildren(element("p", { className: "empty" }, why));
    figure.dataset.drawn = "empty";
  });
}

// Returns the functions from values to pixels, and the ticks.
function scaleOf(axis, values, from, to, count) {
  let [min, max] = [axis.min ?? Math.min(...values), axis.max ?? Math.max(...values)];
  if (axis.zero) [min, max] = [Math.min(0, min), Math.max(0, max)];
  if (!(max > min)) max = min + (Math.abs(min) || 1);
  if (axis.max === undefined && !axis.log) max += (max - min) * 0.05;
  if (axis.min === undefined && !axis.log && min !== 0) min -= (max - min) * 0.05;
  const along = axis.log ? Math.log : (value) => value;
  const place = (value) => from + ((along(value) - along(min)) / (along(max) - along(min))) * (to - from);
  let ticks = (axis.ticks || niceTicks(min, max, count)).filter((value) => value >= min * 0.9999 && value <= max * 1.0001);
  if (axis.whole) ticks = ticks.filter(Number.isInteger);
  return { place, ticks, min, max };
}

function pathOf(line, x, y, start) {
  let [path, down, before] = ["", false, start];
  line.points.forEach((point) => {
    if (point.y === null) {
      down = false;
    } else {
      const [px, py] = [x(point.x).toFixed(1), y(point.y).toFixed(1)];
      if (line.step) path += `${down ? "L" : "M"}${x(before).toFixed(1)} ${py}H${px}`;
      else path += `${down ? "L" : "M"}${px} ${py}`;
      down = true;
    }
    before = point.x;
  });
  return path;
}

function areaOf(line, x, y) {
  const known = line.points.map((point, index) => ({ ...point, base: line.base[index] })).filter((one) => one.y !== null);
  const to = (list, key) => list.map((one) => `${x(one.x).toFixed(1)} ${y(one[key]).toFixed(1)}`).join("L");
  return known.length ? `M${to(known, "y")}L${to([...known].reverse(), "base")}Z` : "";
}

// A value between two unknown ones is a point: a line would not show it.
function alone(points, index) {
  const unknown = (at) => (points[at]?.y ?? null) === null;
  return points[index].y !== null && unknown(index - 1) && unknown(index + 1);
}

function paintLine(line, x, y, start) {
  const style = { stroke: line.colour, "stroke-dasharray": line.dash, "stroke-width": line.width || 2 };
  const parts = [];
  if (line.base) parts.push(tag("path", { d: areaOf(line, x, y), fill: line.colour, class: line.faint ? "faint" : "area" }));
  if (!line.faint) parts.push(tag("path", { d: pathOf(line, x, y, start), class: "line", ...style }));
  line.points.forEach((point, index) => {
    if (!line.marks && !alone(line.points, index)) return;
    if (point.y === null) return;
    const filled = line.hollow ? "var(--page)" : line.colour;
    parts.push(markAt(x(point.x), y(point.y), line.mark, line.marks || 2, { fill: filled, stroke: line.colour }));
  });
  return parts.join("");
}

function sample(line, x, y) {
  const style = { class: "line", stroke: line.colour, "stroke-dasharray": line.dash, "stroke-width": line.width || 2 };
  const drawn = tag("path", { d: `M${x} ${y}H${x + 20}`, ...style });
  return drawn + (line.marks ? markAt(x + 10, y, line.mark, 3, { fill: line.colour }) : "");
}

// Draws lines. `spec` has axes `x` and `y` (title, format, min, max, log, ticks, zero, whole), `lines` (name,
// points, colour, dash, width, step, base, faint, mark, marks, hollow, unnamed), `rules` (y, name, colour),
// and `when`, the title of what is shown at a place.
function plot(figure, spec) {
  keepPainted(figure, (place) => paintPlot(figure, place, spec));
}

function paintPlot(figure, place, spec) {
  const named = [...spec.lines, ...(spec.rules || [])].filter((line) => !line.unnamed);
  const [width, height] = [place.clientWidth, place.clientHeight];
  const wide = width >= 520 && named.length > 1;
  const values = (axis) => spec.lines.flatMap((line) => line.points.map((point) => point[axis])).filter((one) => one !== null);
  const ys = [...values("y"), ...(spec.rules || []).map((rule) => rule.y)];
  const bottom = height - (spec.x.lines === 2 ? 58 : 44);
  const y = scaleOf(spec.y, ys, bottom, 26, Math.max(3, Math.floor(height / 55)));
  const left = Math.max(...y.ticks.map((tick) => textWidth(spec.y.format(tick))), 20) + 12;
  const labels = wide ? Math.min(170, Math.max(...named.map((line) => textWidth(line.name))) + 34) : 14;
  const x = scaleOf(spec.x, values("x"), left, width - labels, Math.max(2, Math.floor((width - left - labels) / 80)));
  const parts = [text(2, 12, spec.y.title, { class: "title" })];
  y.ticks.forEach((tick) => {
    const at = y.place(tick);
    parts.push(tag("path", { d: `M${left} ${at.toFixed(1)}H${width - labels}`, class: "grid" }));
    parts.push(text(left - 6, at + 4, spec.y.format(tick), { "text-anchor": "end" }));
  });
  const right = width - labels;
  let free = -Infinity;
  x.ticks.forEach((tick) => {
    const lines = [].concat(spec.x.format(tick));
    const half = Math.max(...lines.map(textWidth)) / 2;
    const at = x.place(tick);
    const middle = Math.min(Math.max(at, half), width - half);
    parts.push(tag("path", { d: `M${at.toFixed(1)} ${bottom}v5`, class: "tick" }));
    if (middle - half < free + 8) return;
    free = middle + half;
    lines.forEach((line, row) => parts.push(text(middle, bottom + 18 + 14 * row, line, { "text-anchor": "middle" })));
  });
  parts.push(text((left + right) / 2, height - 4, spec.x.title, { class: "title", "text-anchor": "middle" }));
  parts.push(tag("path", { d: `M${left} ${bottom}H${right}`, class: "tick" }));
  (spec.rules || []).forEach((rule) => {
    const at = y.place(rule.y).toFixed(1);
    parts.push(tag("path", { d: `M${left} ${at}H${right}`, class: "line", stroke: rule.colour, "stroke-dasharray": rule.dash }));
  });
  parts.push(...spec.lines.map((line) => paintLine(line, x.place, y.place, x.min)));
  if (wide) parts.push(endLabels(named, y.place, right, bottom));
  const picture = tag("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describe(figure, named) }, parts.join(""));
  place.innerHTML = `${picture}<div class="cursor" hidden></div><div class="tip" hidden></div>`;
  legend(figure, wide ? [] : named.length > 1 ? named : []);
  point(place, spec, { x, left, right, bottom });
  figure.dataset.points = spec.lines.reduce((sum, line) => sum + line.points.length, 0);
  figure.dataset.drawn = "true";
}

function describe(figure, named) {
  return `${figure.querySelector("b").textContent}: ${named.map((line) => line.name).join(", ")}`;
}

// Writes each line's name at its end.
function endLabels(named, y, right, bottom) {
  const last = (points) => points.findLast((point) => point.y !== null)?.y ?? 0;
  // Lines that meet at the end keep the order of their starts.
  const end = (line) => line.y ?? last(line.points) + 0.03 * (last([...line.points].reverse()) - last(line.points));
  const room = Math.floor((bottom - 14) / 14);
  const shown = named.slice(0, room);
  const places = spread(shown.map((line) => y(end(line))), 14, 20, bottom);
  return shown
    .map((line, index) => sample(line, right + 6, places[index]) + text(right + 30, places[index] + 4, line.name))
    .join("");
}

// Lists the lines below a picture that has no room for names at their ends.
function legend(figure, lines) {
  figure.querySelector("ul.key")?.remove();
  if (!lines.length) return;
  const items = lines.map((line) => {
    const item = element("li", { innerHTML: `<svg width="24" height="12">${sample(line, 2, 6)}</svg>` });
    item.append(line.name);
    return item;
  });
  figure.append(element("ul", { className: "key" }, ...items));
}

// Shows the values at the pointer, or at the place that the arrow keys choose.
function point(place, spec, box) {
  const [cursor, tip] = [place.querySelector(".cursor"), place.querySelector(".tip")];
  const told = spec.lines.filter((line) => !line.untold);
  const all = [...new Set(told.flatMap((line) => line.points.map((one) => one.x)))].sort((a, b) => a - b);
  let index = -1;
  const show = (next) => {
    index = Math.max(0, Math.min(all.length - 1, next));
    if (!all.length) return;
    const at = box.x.place(all[index]);
    const rows = told.flatMap((line) => {
      const found = line.points.find((one) => one.x === all[index]);
      return found && found.y !== null ? [{ line, y: found.y }] : [];
    });
    rows.sort((one, other) => other.y - one.y);
    const values = rows.slice(0, 14).map(({ line, y }) => `${line.name}: ${spec.y.tell ? spec.y.tell(y) : spec.y.format(y)}`);
    tip.textContent = [spec.when(all[index]), ...values].join("\n");
    cursor.hidden = tip.hidden = false;
    cursor.style.cssText = `left:${at}px;top:20px;height:${box.bottom - 20}px`;
    tip.style.left = `${Math.max(0, Math.min(at + 12, place.clientWidth - tip.offsetWidth))}px`;
    tip.style.top = "24px";
  };
  const hide = () => {
    cursor.hidden = tip.hidden = true;
  };
  place.tabIndex = 0;
  place.onpointermove = (event) => {
    const at = event.clientX - place.getBoundingClientRect().left;
    let nearest = 0;
    all.forEach((value, one) => {
      if (Math.abs(box.x.place(value) - at) < Math.abs(box.x.place(all[nearest]) - at)) nearest = one;
    });
    show(nearest);
  };
  place.onpointerleave = place.onblur = hide;
  place.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") hide();
    if (!step) return;
    event.preventDefault();
    show(index + step);
  };
}
