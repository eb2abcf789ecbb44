"use strict";
// Draws one heatmap for each workload of the page.

window.addEventListener("error", (event) => showError(event.message));
try {
  const pictures = JSON.parse(document.getElementById("data").textContent);
  const redraw = () =>
    pictures.forEach(({ heatmap, accesses }, index) =>
      drawHeatmap(document.getElementById(`workload-${index}`), heatmap, accesses),
    );
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  redraw();
} catch (error) {
  showError(error);
}
