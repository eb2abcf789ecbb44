"use strict";
// Pictures of the memory that was replayed: its pages and its allocation sites.

function drawCdf(figure, data, logarithmic) {
  if (data.cdf.length < 2) return markEmpty(figure, "No accesses were counted by page.");
  const points = data.cdf.filter(([x]) => x > 0 || !logarithmic).map(([x, y]) => ({ x, y }));
  const shares = data.sizes
    .map((size) => ({ label: size.label, share: size.bytes / data.footprint }))
    .filter(({ share }) => share < 1);
  const sizes = shares.map(({ label, share }) =>
    line(
      label,
      [
        { x: share, y: 0 },
        { x: share, y: 1 },
      ],
      colour("--muted"),
      { ...dashed, named: true },
    ),
  );
  const curve = line("hottest pages", points, colours("--series")[0], {
    fill: "origin",
    backgroundColor: `${colours("--series")[0]}22`,
  });
  const x = axis("share of pages, hottest first", (value) => `${plain.format(value * 100)} %`, {
    axis: { type: logarithmic ? "logarithmic" : "linear", max: 1 },
    ticks: { maxTicksLimit: 8 },
  });
  drawChart(
    figure,
    "line",
    { datasets: [curve, ...sizes] },
    {
      interaction: { mode: "nearest", axis: "x", intersect: false },
      scales: { x, y: { ...axis("share of accesses", hitRatio.tick), min: 0, max: 1 } },
      plugins: plugins(
        false,
        (item) =>
          `the hottest ${percent(item.parsed.x, 2)} of pages take ${percent(item.parsed.y)} of accesses`,
        () => "",
      ),
    },
  );
}

function drawRegions(figure, data) {
  if (!data.regions.length) return markEmpty(figure, "The input does not tell allocation sites.");
  const total = (part) =>
    Math.max(
      1,
      data.regions.reduce((sum, region) => sum + region[part], 0),
    );
  const [accesses, memory] = [total("accesses"), total("bytes")];
  const cut = (name) => (name.length > 24 ? `${name.slice(0, 23)}…` : name);
  const set = (label, part, whole, fill) => ({
    label,
    data: data.regions.map((region) => region[part] / whole),
    backgroundColor: fill,
  });
  const datasets = [
    set("share of misses", "accesses", accesses, colours("--series")[1]),
    set("share of memory", "bytes", memory, colour("--muted")),
  ];
  const detail = ({ dataIndex, dataset, parsed }) => {
    const region = data.regions[dataIndex];
    const amount =
      dataset.label === "share of misses" ? `${compact.format(region.accesses)} misses` : bytes(region.bytes);
    return `${dataset.label}: ${percent(parsed.x)} (${amount})`;
  };
  drawChart(
    figure,
    "bar",
    { labels: data.regions.map((region) => cut(region.name)), datasets },
    {
      indexAxis: "y",
      scales: { x: { ...axis("share", hitRatio.tick), min: 0 }, y: { grid: { display: false } } },
      plugins: {
        ...plugins(true, detail, (items) =>
          items.slice(0, 1).map((item) => data.regions[item.dataIndex].name),
        ),
        legend: { position: "bottom", labels: { boxWidth: 14, boxHeight: 10 } },
      },
    },
  );
}
