"use strict";
// Parts of every picture: colours of the page's style, number formats, and the mark that it has drawn.

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function colours(name) {
  return colour(name)
    .split(",")
    .map((one) => one.trim());
}

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

function figureOf(id) {
  return document.getElementById(id);
}

// Marks a figure as drawn once something is on its canvas: an empty picture must not pass for a drawn one.
function markDrawn(figure, points) {
  const canvas = figure.querySelector("canvas");
  if (figure.dataset.drawn === "true" || !canvas.width || !canvas.height) return;
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let inked = 0;
  for (let alpha = 3; alpha < pixels.length; alpha += 4) inked += pixels[alpha] > 0;
  if (inked === 0) return;
  figure.dataset.points = points;
  figure.dataset.inked = inked;
  figure.dataset.drawn = "true";
}

// Puts the reason in place of a missing picture.
function markEmpty(figure, why) {
  const place = figure.querySelector(".empty") || document.createElement("p");
  place.className = "empty";
  place.textContent = why;
  figure.append(place);
  figure.querySelector(".plot").hidden = true;
  figure.dataset.drawn = "empty";
}

// Clears a figure, whose previous picture may have been empty.
function clearFigure(figure) {
  figure.querySelector(".empty")?.remove();
  figure.querySelector(".plot").hidden = false;
  delete figure.dataset.drawn;
}

function showError(error) {
  const place = figureOf("errors");
  place.hidden = false;
  place.textContent += `This page failed to draw: ${error && error.message ? error.message : error}. `;
}

// Draws a page's pictures from its data, and again when the colour scheme or an input changes. `prepare`
// returns the inputs and the functions that draw the pictures; one that fails leaves the others.
function keepDrawn(prepare) {
  window.addEventListener("error", (event) => showError(event.message));
  try {
    const { inputs = [], pictures } = prepare(JSON.parse(figureOf("data").textContent));
    const redraw = () =>
      pictures().forEach((draw) => {
        try {
          draw();
        } catch (error) {
          showError(error);
        }
      });
    inputs.forEach((input) => input.addEventListener("change", redraw));
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    redraw();
  } catch (error) {
    showError(error);
  }
}
