"use strict";
// Draws one heatmap for each workload of the page.

keepDrawn((workloads) => ({
  pictures: () =>
    workloads.map(
      ({ heatmap, accesses }, index) =>
        () =>
          drawHeatmap(figureOf(`workload-${index}`), heatmap, accesses),
    ),
}));
