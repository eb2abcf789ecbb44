"use strict";
// Draws one heatmap for each workload of the page.

JSON.parse(byId("data").textContent).forEach(({ heatmap, accesses }, index) =>
  drawHeatmap(byId(`workload-${index}`), heatmap, accesses),
);
