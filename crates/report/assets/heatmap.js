"use strict";
// Accesses by time and address: cells on a canvas of one pixel each, axes and names around it in SVG. Time is
// counted in misses, or in seconds where the map has `seconds`: those of its first and last column.

function ramp(name) {
  const list = getComputedStyle(document.documentElement).getPropertyValue(name).split(",");
  return list.map((hex) => [1, 3, 5].map((at) => parseInt(hex.trim().slice(at, at + 2), 16)));
}

// Returns the place of a count on a ramp: logarithmic from 1 to the maximum, its first colour for 0 alone.
function onRamp(colours, count, maximum) {
  if (count === 0) return colours[0];
  const share = maximum > 1 ? Math.log(count) / Math.log(maximum) : 1;
  const at = 1 + share * (colours.length - 2);
  const low = Math.min(Math.floor(at), colours.length - 2);
  return mixed(colours[low], colours[low + 1], at - low);
}

function mixed(one, other, share) {
  return one.map((part, channel) => part + (other[channel] - part) * share);
}

// Returns the share that is fast of each cell, row by row, from letters and their repeats.
function fastCells(fast) {
  const cells = [];
  for (const [, letter, repeats] of fast.cells.matchAll(/([a-p])(\d*)/g)) {
    const share = (letter.charCodeAt(0) - 97) / 15;
    for (let left = Number(repeats || 1); left > 0; left -= 1) cells.push(share);
  }
  return cells;
}

function shareAt(map, fast, cells, row, column) {
  if (!cells) return 1;
  const fastRow = Math.floor((row * fast.rows) / map.rows);
  return cells[fastRow * fast.columns + Math.floor((column * fast.columns) / map.columns)];
}

function paintCells(canvas, map, fast) {
  canvas.width = map.columns;
  canvas.height = map.rows;
  const [hot, cold] = [ramp("--heat"), ramp("--cold")];
  const maximum = map.counts.reduce((most, count) => Math.max(most, count), 1);
  const pixels = new ImageData(map.columns, map.rows);
  const cells = fast && fastCells(fast);
  map.counts.forEach((count, index) => {
    const [row, column] = [Math.floor(index / map.columns), index % map.columns];
    const share = shareAt(map, fast, cells, row, column);
    const colour = mixed(onRamp(cold, count, maximum), onRamp(hot, count, maximum), share);
    pixels.data.set([...colour, 255], 4 * ((map.rows - 1 - row) * map.columns + column));
  });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return maximum;
}

// Returns the objects with their rows, and those that are named beside them: at most twelve, the most
// accessed ones that take a hundredth of the misses or of the rows.
function objectsOf(map, height) {
  let row = 0;
  const objects = map.objects.map(([name, rows, accesses]) => {
    const object = { name, from: row, to: row + rows, accesses };
    row += rows;
    return object;
  });
  const all = objects.reduce((sum, one) => sum + one.accesses, 0) || 1;
  const matters = (one) => one.name && (one.accesses >= all / 100 || one.to - one.from >= row / 100);
  const named = objects.filter(matters).sort((one, other) => other.accesses - one.accesses);
  return { objects, all, named: named.slice(0, Math.min(12, Math.floor(height / 15))) };
}

// Returns a file's name without its folders, cut to so many pixels.
function shortName(name, room) {
  let short = name.startsWith("/") ? name.slice(name.lastIndexOf("/") + 1) : name;
  if (textWidth(short) <= room) return short;
  while (short && textWidth(`${short}…`) > room) short = short.slice(0, -1);
  return `${short}…`;
}

// Returns the name of what is counted.
function counted(map) {
  return map.seconds ? "sampled accesses" : "misses";
}

// Returns the time at a share of the map's width.
function minutesAt(map, share) {
  const [from, to] = map.seconds;
  return ((from + share * (to - from)) / 60).toFixed(1);
}

function heatAxes(map, total, box) {
  const parts = [text(2, 12, "offset in memory", { class: "title" })];
  const y = (row) => box.bottom - (row / map.rows) * (box.bottom - box.top);
  const ticks = Math.min(8, map.rows);
  for (let tick = 0; tick < ticks; tick += 1) {
    const row = Math.floor((tick * map.rows) / ticks);
    parts.push(text(box.left - 6, y(row) + 1, bytes(row * map.bytes_per_row), { "text-anchor": "end" }));
    if (box.wide && !map.objects.length) parts.push(text(box.right + 8, y(row) + 1, map.addresses[row] || ""));
  }
  const steps = box.right - box.left > 500 ? 10 : 4;
  for (let tick = 0; tick <= steps; tick += 1) {
    const x = box.left + (tick / steps) * (box.right - box.left);
    const anchor = tick === 0 ? "start" : tick === steps ? "end" : "middle";
    const label = map.seconds ? minutesAt(map, tick / steps) : percent(tick / steps, 0);
    parts.push(text(x, box.bottom + 17, label, { "text-anchor": anchor }));
    if (total && !map.seconds) parts.push(text(x, box.bottom + 31, compact.format((total * tick) / steps), { "text-anchor": anchor }));
  }
  const replayed = total ? "misses replayed: share, count" : "misses replayed, in the last round";
  const title = map.seconds ? "time before now (min)" : replayed;
  parts.push(text((box.left + box.right) / 2, box.bottom + 48, title, { "text-anchor": "middle", class: "title" }));
  if (box.wide) parts.push(objectNames(map, y, box));
  return parts.join("");
}

// Writes what the rows hold beside them, with its share of the misses.
function objectNames(map, y, box) {
  const { named, all } = objectsOf(map, box.bottom - box.top);
  if (!named.length) return "";
  const places = spread(named.map((one) => y((one.from + one.to) / 2)), 15, box.top + 6, box.bottom - 4);
  return [text(box.right + 30, 12, `holds, share of ${map.seconds ? "accesses" : "misses"}`, { class: "title" })]
    .concat(
      named.map((one, index) => {
        const [low, high] = [y(one.from), y(one.to)];
        const middle = (low + high) / 2;
        const bracket = `M${box.right + 4} ${high.toFixed(1)}h4V${low.toFixed(1)}h-4M${box.right + 8} ${middle.toFixed(1)}`;
        const share = percent(one.accesses / all);
        const name = shortName(one.name, box.room - 34 - textWidth(` ${share}`));
        const label = text(box.right + 30, places[index] + 4, `${name} ${share}`);
        const title = tag("title", {}, escaped(one.name));
        const leader = `L${box.right + 26} ${places[index].toFixed(1)}`;
        return tag("g", {}, title + tag("path", { d: bracket + leader, class: "bracket" }) + label);
      }),
    )
    .join("");
}

function heatLegend(figure, map, maximum, fast) {
  const scale = (name, label) => `<li>${label} <i class="ramp ${name}"></i></li>`;
  const list = element("ul", { className: "key" });
  list.innerHTML =
    `<li>${counted(map)} in a cell, logarithmic: 1 to ${compact.format(maximum)}</li>` +
    scale("hot", fast ? "fast" : "") +
    (fast ? scale("cold", "slow") : "") +
    '<li><i class="ramp none"></i> none</li>';
  figure.querySelector("ul.key")?.remove();
  figure.append(list);
}

// Draws a heatmap: `total` is the number of accesses of the whole, where it is one replay; `fast` tells what
// was fast.
function drawHeatmap(figure, map, total, fast) {
  if (!map.counts.length) return markEmpty(figure, "No accesses were counted by address.");
  keepPainted(figure, (place) => {
    const [width, height] = [place.clientWidth, place.clientHeight];
    const wide = width >= 640;
    const right = width - (wide ? (map.objects.length ? 240 : 116) : 12);
    const box = { wide, left: 74, top: 22, right, room: width - right, bottom: height - 54 };
    const label = `${figure.querySelector("b").textContent}: ${map.columns} by ${map.rows} cells`;
    const axes = tag("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, heatAxes(map, total, box));
    place.innerHTML = `${axes}<canvas></canvas><div class="cell" hidden></div><div class="tip" hidden></div>`;
    const canvas = place.querySelector("canvas");
    canvas.style.cssText = `left:${box.left}px;top:${box.top}px;width:${box.right - box.left}px;height:${box.bottom - box.top}px`;
    const maximum = paintCells(canvas, map, fast);
    heatLegend(figure, map, maximum, fast);
    pointCells(place, map, fast, box);
    figure.dataset.points = map.counts.length;
    figure.dataset.drawn = "true";
  });
}

// Describes the cell at the pointer, or the one that the arrow keys choose.
function pointCells(place, map, fast, box) {
  const [mark, tip] = [place.querySelector(".cell"), place.querySelector(".tip")];
  const cells = fast && fastCells(fast);
  const { objects } = objectsOf(map, 0);
  const [wide, high] = [(box.right - box.left) / map.columns, (box.bottom - box.top) / map.rows];
  let at = { row: 0, column: -1 };
  const show = (row, column) => {
    const inside = column >= 0 && column < map.columns && row >= 0 && row < map.rows;
    mark.hidden = tip.hidden = !inside;
    if (!inside) return;
    at = { row, column };
    const [x, y] = [box.left + column * wide, box.bottom - (row + 1) * high];
    mark.style.cssText = `left:${x}px;top:${y}px;width:${wide}px;height:${high}px`;
    const from = column * map.accesses_per_column;
    const holds = objects.find((one) => one.from <= row + 0.5 && row + 0.5 < one.to)?.name;
    tip.textContent = [
      `${plain.format(map.counts[row * map.columns + column])} ${counted(map)}`,
      ...(fast ? [`${percent(shareAt(map, fast, cells, row, column), 0)} of its memory fast`] : []),
      ...(holds ? [holds] : []),
      `${map.addresses[row] || "?"}, offset ${bytes(row * map.bytes_per_row)}, ${bytes(map.bytes_per_row)} high`,
      map.seconds
        ? `${minutesAt(map, (column + 0.5) / map.columns)} min`
        : `misses ${compact.format(from)} to ${compact.format(from + map.accesses_per_column)}`,
    ].join("\n");
    tip.style.left = `${Math.max(0, Math.min(x + 14, place.clientWidth - tip.offsetWidth))}px`;
    tip.style.top = `${Math.max(0, Math.min(y + 14, place.clientHeight - tip.offsetHeight))}px`;
  };
  const hide = () => {
    mark.hidden = tip.hidden = true;
  };
  place.tabIndex = 0;
  place.onpointermove = (event) => {
    const edge = place.getBoundingClientRect();
    const column = Math.floor((event.clientX - edge.left - box.left) / wide);
    show(Math.floor((box.bottom - (event.clientY - edge.top)) / high), column);
  };
  place.onpointerleave = place.onblur = hide;
  place.onkeydown = (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, 0], ArrowDown: [-1, 0] }[event.key];
    if (event.key === "Escape") hide();
    if (!step) return;
    event.preventDefault();
    const within = (value, most) => Math.max(0, Math.min(most - 1, value));
    show(within(at.row + step[0], map.rows), within(at.column + step[1], map.columns));
  };
}

// A canvas does not follow the page's colours: paint it again when they change.
["(prefers-color-scheme: dark)", "print"].forEach((query) =>
  window.matchMedia(query).addEventListener("change", () =>
    document.querySelectorAll(".plot:has(canvas)").forEach(redraw),
  ),
);
