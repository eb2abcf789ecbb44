// A made-up daemon for tests of the live page: two groups with a program of a hostile name. Its state follows
// from `second`.
var second = 0;

function groupAt(name, share) {
  const hot = Math.round(second * 1000 * share);
  return {
    name,
    mode: "tiered",
    policy: "isotherm",
    protect_bytes: 2 ** 30,
    limit_bytes: name === "batch" ? null : 2 ** 32,
    weight: 1,
    share_bytes: 3 * 2 ** 30,
    resident_bytes: [2 ** 30 + second * 2 ** 18, 5 * 2 ** 30],
    hits: [hot, second * 1000 - hot],
    hit_ratio: share,
    hit_ratio_bounds: [share - 0.02, share + 0.02],
    traffic: { promotions: second * 40, demotions: second * 35, reclaimed: 0, bytes_moved: 0, refused: {} },
    moves_per_s: 75,
    samples: second * 1000,
    lost: 0,
    running_ns: second * 4e9,
    observing_ns: second * 1e7,
    engine_ns: second * 2e7,
    saved_ns: second * 9e8,
    engine_bytes: 2 ** 24,
    sources: ["hint-faults"],
    programs: [
      { pid: 4711, command: "<img src=x onerror=alert(1)>", cgroup: `/${name}.slice`, resident_bytes: [2 ** 30, 5 * 2 ** 30], accesses: 12345, refused: null },
      { pid: 4712, command: "worker", cgroup: `/${name}.slice`, resident_bytes: [0, 2 ** 20], accesses: 0, refused: "it is tiered already" },
    ],
    warnings: second > 1 ? ["accessed-bits: the kernel is late"] : [],
  };
}

function momentAt(time) {
  const now = second;
  second = time;
  const group = groupAt("database", 0.9);
  second = now;
  return [
    time, group.share_bytes, group.hits[0], time * 1000, time * 40, time * 35, 0, time * 1000, time * 0.9, time * 0.03,
    ...group.resident_bytes, 0, 0,
  ];
}

function heatNow() {
  const [columns, rows] = [Math.min(180, Math.max(2, Math.floor(second / 20))), 128];
  const count = (index) => Math.floor(index / columns) < 20 ? 900 : Math.floor(index / columns) % 7;
  return {
    columns,
    rows,
    seconds: [Math.max(0, second - 20 * columns), second],
    bytes_per_row: 2 ** 22,
    addresses: Array.from({ length: rows }, (_, row) => `0x${(2 ** 46 + row * 2 ** 22).toString(16)}`),
    counts: Array.from({ length: columns * rows }, (_, index) => count(index)),
    fast: Array.from({ length: columns * rows }, (_, index) => (index < 40 * columns ? "p" : "a")).join(""),
    objects: [["process 4711", 120, 18000], ["process 4712", 8, 0]],
  };
}

window.fetch = async (path) => {
  const since = Number(new URLSearchParams(path.split("?")[1] || "").get("since"));
  const answer = () => {
    if (path === "status.json") {
      const groups = [groupAt("database", 0.9), groupAt("batch", 0.4)];
      return { started_unix_s: 1, time_ns: second * 1e9, shadow: false, fast_bytes: 2 ** 33, cpu_ns: second * 1e7, left_alone: 3, groups, rivals: [] };
    }
    if (path.startsWith("heat.json?group=")) return heatNow();
    const moments = [];
    for (let time = Math.max(1, since + 1); time <= second; time += 1) moments.push(momentAt(time));
    return { moments };
  };
  return { ok: true, json: async () => JSON.parse(JSON.stringify(answer())) };
};
