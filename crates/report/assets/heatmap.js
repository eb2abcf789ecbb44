"use strict";
// Draws accesses by time and address: the charting library has no heatmap.

// Returns the colour scale: logarithmic from 1 to the maximum, the first colour for 0 alone.
function heatScale(maximum) {
  const ramp = colours("--heat").map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return (count) => {
    if (count === 0) return ramp[0];
    const share = maximum > 1 ? Math.log(count) / Math.log(maximum) : 1;
    const at = 1 + share * (ramp.length - 2);
    const low = Math.min(Math.floor(at), ramp.length - 2);
    return ramp[low].map((part, channel) => part + (ramp[low + 1][channel] - part) * (at - low));
  };
}

// Returns the cells as an image of one pixel per cell, the lowest address at the bottom.
function heatImage(map, scale) {
  const image = document.createElement("canvas");
  image.width = map.columns;
  image.height = map.rows;
  const pixels = new ImageData(map.columns, map.rows);
  map.counts.forEach((count, index) => {
    const row = map.rows - 1 - Math.floor(index / map.columns);
    const at = 4 * (row * map.columns + (index % map.columns));
    pixels.data.set([...scale(count), 255], at);
  });
  image.getContext("2d").putImageData(pixels, 0, 0);
  return image;
}

// Returns the layout in CSS pixels. Narrow pages have no room for addresses at the right; pointing at a cell
// shows them.
function heatLayout(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const wide = width >= 640;
  return { width, height, wide, left: 74, top: 22, right: width - (wide ? 122 : 12), bottom: height - 104 };
}

function heatAxes(pen, box, map, total) {
  pen.fillStyle = colour("--muted");
  pen.strokeStyle = colour("--line");
  pen.strokeRect(box.left, box.top, box.right - box.left, box.bottom - box.top);
  pen.textAlign = "left";
  pen.fillText("offset", 4, 12);
  if (box.wide) pen.fillText("address", box.right + 8, 12);
  const rowTicks = Math.min(8, map.rows);
  for (let tick = 0; tick < rowTicks; tick += 1) {
    const row = Math.floor((tick * map.rows) / rowTicks);
    const y = box.bottom - (row / map.rows) * (box.bottom - box.top);
    pen.textAlign = "right";
    pen.fillText(bytes(row * map.bytes_per_row), box.left - 6, y);
    pen.textAlign = "left";
    if (box.wide) pen.fillText(map.addresses[row] || "", box.right + 8, y);
  }
  const parts = box.wide ? 10 : 4;
  for (let tick = 0; tick <= parts; tick += 1) {
    const x = box.left + (tick / parts) * (box.right - box.left);
    pen.textAlign = tick === 0 ? "left" : tick === parts ? "right" : "center";
    pen.fillText(percent(tick / parts, 0), x, box.bottom + 14);
    pen.fillText(compact.format((total * tick) / parts), x, box.bottom + 29);
  }
  pen.textAlign = "center";
  pen.fillText("accesses replayed: share, count", (box.left + box.right) / 2, box.bottom + 47);
}

function heatLegend(pen, box, scale, maximum) {
  const [left, width, top] = [box.left, Math.min(420, box.right - box.left), box.bottom + 64];
  for (let x = 0; x < width; x += 1) {
    pen.fillStyle = `rgb(${scale(maximum ** (x / width)).join()})`;
    pen.fillRect(left + x, top, 1.5, 12);
  }
  pen.fillStyle = `rgb(${scale(0).join()})`;
  pen.fillRect(left - 22, top, 14, 12);
  pen.strokeStyle = colour("--line");
  pen.strokeRect(left - 22, top, 14, 12);
  pen.fillStyle = colour("--muted");
  pen.textAlign = "center";
  pen.fillText("0", left - 15, top + 24);
  for (let ten = 1; ten <= maximum; ten *= 10) {
    const x = left + (maximum > 1 ? Math.log(ten) / Math.log(maximum) : 0) * width;
    if (x < left + width - 48) pen.fillText(compact.format(ten), x, top + 24);
  }
  pen.textAlign = "right";
  pen.fillText(compact.format(maximum), left + width, top + 24);
  pen.textAlign = "left";
  if (box.wide) pen.fillText("accesses in a cell (logarithmic)", left + width + 12, top + 7);
}

// Fits the canvas to its place and the screen, and draws everything.
function paintHeatmap(figure, map, total) {
  const canvas = figure.querySelector("canvas");
  const box = heatLayout(canvas);
  if (box.right - box.left < 40) return;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(box.width * ratio);
  canvas.height = Math.round(box.height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const maximum = map.counts.reduce((most, count) => Math.max(most, count), 1);
  const scale = heatScale(maximum);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(heatImage(map, scale), box.left, box.top, box.right - box.left, box.bottom - box.top);
  heatAxes(pen, box, map, total);
  heatLegend(pen, box, scale, maximum);
  markDrawn(figure, map.counts.length);
}

// Describes the cell under the pointer.
function heatTip(figure, map, tip, event) {
  const canvas = figure.querySelector("canvas");
  const box = heatLayout(canvas);
  const edge = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - edge.left, event.clientY - edge.top];
  const column = Math.floor(((x - box.left) / (box.right - box.left)) * map.columns);
  const row = Math.floor(((box.bottom - y) / (box.bottom - box.top)) * map.rows);
  tip.hidden = !(column >= 0 && column < map.columns && row >= 0 && row < map.rows);
  if (tip.hidden) return;
  const from = column * map.accesses_per_column;
  const high = bytes(map.bytes_per_row);
  tip.textContent = [
    `${plain.format(map.counts[row * map.columns + column])} accesses`,
    `${map.addresses[row] || "?"}, offset ${bytes(row * map.bytes_per_row)}, ${high} high`,
    `accesses ${compact.format(from)} to ${compact.format(from + map.accesses_per_column)}`,
  ].join("\n");
  tip.style.left = `${Math.max(0, Math.min(x + 14, box.width - tip.offsetWidth))}px`;
  tip.style.top = `${y + 14}px`;
}

function drawHeatmap(figure, map, total) {
  if (!map.counts.length) return markEmpty(figure, "No accesses were counted by address.");
  paintHeatmap(figure, map, total);
  if (figure.querySelector(".tip")) return;
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  figure.querySelector(".plot").append(tip);
  const canvas = figure.querySelector("canvas");
  canvas.addEventListener("pointermove", (event) => heatTip(figure, map, tip, event));
  canvas.addEventListener("pointerleave", () => {
    tip.hidden = true;
  });
  new ResizeObserver(() => paintHeatmap(figure, map, total)).observe(figure.querySelector(".plot"));
}
