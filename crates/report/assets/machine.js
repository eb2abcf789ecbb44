"use strict";
// The live page: asks the daemon each second, and keeps the past hour of one group.

// The columns of a moment, as the daemon sends them: sums since its start but for time, share and tiers.
const MOMENT = ["seconds", "share", "fast_hits", "hits", "promotions", "demotions", "reclaimed", "samples", "saved_s", "spent_s", "tier0", "tier1", "tier2", "tier3"];
const MOST_MOMENTS = 1024;
// Seconds that are kept, seconds of which each moment is kept, and seconds between two older ones.
const [SPAN, RECENT, FAR] = [3600, 300, 10];
const HEAT_EVERY_S = 20;
const MOST_WARNINGS = 50;

// Moments of one group in one typed array. What is left out changes no sum.
class Past {
  constructor() {
    this.values = new Float64Array(MOST_MOMENTS * MOMENT.length);
    this.length = 0;
  }

  at(index, name) {
    return this.values[index * MOMENT.length + MOMENT.indexOf(name)];
  }

  end() {
    return this.length ? this.at(this.length - 1, "seconds") : 0;
  }

  add(moment) {
    if (moment[0] <= this.end()) return;
    if (this.length === MOST_MOMENTS) this.thin();
    this.values.set(moment, this.length * MOMENT.length);
    this.length += 1;
  }

  thin() {
    const now = this.end();
    let [kept, last] = [0, -Infinity];
    for (let index = 0; index < this.length; index += 1) {
      const time = this.at(index, "seconds");
      const old = now - time > RECENT;
      if (now - time > SPAN || (old && time - last < FAR)) continue;
      last = time;
      this.values.copyWithin(kept * MOMENT.length, index * MOMENT.length, (index + 1) * MOMENT.length);
      kept += 1;
    }
    this.length = kept;
  }

  // Returns the indices of the moments of the past hour.
  indices() {
    const all = Array.from({ length: this.length }, (_, index) => index);
    return all.filter((index) => this.end() - this.at(index, "seconds") <= SPAN);
  }
}

let past = new Past();
let chosen = "";
// The daemon that the past is of, by its start, and the time of the heatmap.
let [started, heatAt] = [0, -Infinity];

async function ask(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

// Returns the values in the form that the pictures of live runs take, with times before now.
function series() {
  const indices = past.indices();
  const now = past.end();
  const values = (name) => indices.map((index) => past.at(index, name));
  const seconds = values("seconds").map((time) => time - now);
  const change = (name) => {
    const list = values(name);
    return list.map((value, place) => (place ? Math.max(0, value - list[place - 1]) : null));
  };
  const rate = (name) => change(name).map((value, place) => (place ? value / (seconds[place] - seconds[place - 1]) : null));
  const [fast, all] = [change("fast_hits"), change("hits")];
  const tiers = ["tier0", "tier1", "tier2", "tier3"].map(values);
  return {
    seconds,
    from: seconds[0],
    resident: tiers.filter((tier, place) => place < 2 || tier.some((value) => value)),
    fast_limit: past.length ? past.at(past.length - 1, "share") : 0,
    limit_name: "share now",
    hits: all.map((count, place) => (count ? fast[place] / count : null)),
    promotions: rate("promotions"),
    demotions: rate("demotions"),
    reclaimed: rate("reclaimed"),
    saved: values("saved_s"),
    spent: values("spent_s"),
  };
}

// Whether the reader is looking at the values in a picture.
function busy(id) {
  return byId(id).querySelector(".plot").matches(":hover, :focus-visible");
}

function drawAll() {
  const data = series();
  const moves = [
    { name: "promoted", values: data.promotions, colour: "var(--tier0)" },
    { name: "demoted", values: data.demotions, sign: -1, colour: "var(--tier1)" },
    { name: "reclaimed", values: data.reclaimed, sign: -1, colour: "var(--tier2)", dash: "4 3" },
  ];
  const books = [
    { name: "saved at most", points: over(data, data.saved), colour: "var(--tier0)", width: 1.5 },
    { name: "spent", points: over(data, data.spent), colour: "var(--tier1)", width: 1.5 },
  ];
  const seconds = { title: "seconds since the daemon's start", zero: true, format: compact.format, tell: (value) => `${value.toFixed(2)} s` };
  const pictures = {
    residency: (figure) => drawResidency(figure, data),
    hits: (figure) => drawRatio(figure, data),
    moves: (figure) => drawRates(figure, data, moves, "pages in a second: up, and down below zero"),
    books: (figure) => drawOverSeconds(figure, data, books, seconds),
  };
  Object.entries(pictures).forEach(([id, draw]) => busy(id) || draw(byId(id)));
}

// Draws the heatmap; `programs` gives processes their names.
function drawHeat(map, now, programs) {
  if (busy("heatmap")) return;
  const names = new Map(programs.map((program) => [`process ${program.pid}`, `${program.command} (${program.pid})`]));
  const shown = {
    ...map,
    seconds: map.seconds.map((time) => (time ?? now) - now),
    objects: map.objects.map(([name, ...rest]) => [names.get(name) || name, ...rest]),
  };
  drawHeatmap(byId("heatmap"), shown, 0, { columns: map.columns, rows: map.rows, cells: map.fast });
}

// Fills a table: numbers have a class, `row.chosen` marks a row.
function fill(id, rows) {
  const cell = (content, column) => element("td", { className: column >= 2 ? "n" : "" }, content);
  const made = rows.map((row) => element("tr", { className: row.chosen ? "best" : "" }, ...row.cells.map(cell)));
  byId(id).tBodies[0].replaceChildren(...made);
}

function sum(list) {
  return list.reduce((all, value) => all + value, 0);
}

function seconds(nanoseconds) {
  return `${(nanoseconds / 1e9).toFixed(2)} s`;
}

// Memory on every tier but the fast one: "4 GiB", or "4 GiB + 1 GiB" of three tiers; then what is in swap.
function slower(tiers, swapped) {
  const slow = tiers.length ? tiers.map(bytes) : [bytes(0)];
  return (swapped ? [...slow, `${bytes(swapped)} swapped`] : slow).join(" + ");
}

function groupCells(group) {
  const [fast = 0, ...slow] = group.resident_bytes;
  return [
    group.name,
    ["pinned", "excluded"].includes(group.mode) ? group.mode : group.policy,
    String(group.programs.length),
    bytes(group.share_bytes),
    bytes(group.protect_bytes),
    group.limit_bytes === null ? "none" : bytes(group.limit_bytes),
    bytes(fast),
    slower(slow, group.swapped_bytes),
    percent(group.hit_ratio),
    group.moves_per_s.toFixed(0),
    seconds(group.engine_ns + group.observing_ns),
    seconds(group.saved_ns),
  ];
}

function programCells(program) {
  const [fast = 0, ...slow] = program.resident_bytes;
  const accesses = program.refused ? "not tiered" : plain.format(program.accesses);
  return [program.command, program.cgroup, String(program.pid), bytes(fast), slower(slow, program.swapped_bytes), accesses];
}

function showGroups(status) {
  const fast = sum(status.groups.map((group) => group.resident_bytes[0] || 0));
  const cpu = (100 * status.cpu_ns) / Math.max(1, status.time_ns);
  document.querySelector(".answer").textContent =
    `${bytes(fast)} of ${bytes(status.fast_bytes)} of fast memory in use by ${status.groups.length} groups; ` +
    `the daemon takes ${cpu.toFixed(2)} % of one processor.` +
    (status.shadow ? " Shadow tiers: nothing moves." : "");
  const names = status.groups.map((group) => group.name);
  const select = byId("group");
  if (names.join() !== [...select.options].map((option) => option.value).join()) {
    select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
    if (!names.includes(chosen)) choose(names[0] || "");
    select.value = chosen;
  }
  fill("groups", status.groups.map((group) => ({ cells: groupCells(group), chosen: group.name === chosen })));
  const warnings = status.groups.flatMap((group) => group.warnings.map((warning) => `${group.name}: ${warning}`));
  const log = status.log && status.log.failure ? [`log: ${status.log.directory}: ${status.log.failure}`] : [];
  const told = [...status.rivals, ...log, ...warnings].slice(0, MOST_WARNINGS);
  byId("warnings").replaceChildren(...(told.length ? told : ["None."]).map((one) => element("li", {}, one)));
}

function choose(name) {
  chosen = name;
  past = new Past();
  heatAt = -Infinity;
}

// Asks for what is new, and shows it.
async function look() {
  const status = await ask("status.json");
  if (status.started_unix_s !== started) {
    started = status.started_unix_s;
    choose(chosen);
  }
  showGroups(status);
  const group = status.groups.find((one) => one.name === chosen);
  fill("programs", (group ? group.programs : []).map((program) => ({ cells: programCells(program) })));
  if (!group) return;
  const [name, mine] = [encodeURIComponent(chosen), past];
  const { moments } = await ask(`history.json?group=${name}&since=${past.end()}`);
  // The reader may have chosen another group meanwhile.
  if (mine !== past) return;
  moments.forEach((moment) => past.add(moment));
  drawAll();
  const now = status.time_ns / 1e9;
  if (now - heatAt >= HEAT_EVERY_S) {
    heatAt = now;
    const map = await ask(`heat.json?group=${name}`);
    if (mine === past) drawHeat(map, now, group.programs);
  }
}

async function keepLooking() {
  try {
    if (!document.hidden) await look();
  } catch (error) {
    document.querySelector(".answer").textContent = `The daemon does not answer (${error.message}).`;
  }
  setTimeout(keepLooking, 1000);
}

byId("group").addEventListener("change", (event) => {
  choose(event.target.value);
  look().catch(() => {});
});
keepLooking();
