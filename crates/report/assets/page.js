"use strict";
// Every page: tables that sort by a heading and save themselves as CSV; what fails says so.

function byId(id) {
  return document.getElementById(id);
}

function showError(error) {
  const place = byId("errors");
  place.hidden = false;
  place.textContent += `This page failed to draw: ${error && error.message ? error.message : error}. `;
}

window.addEventListener("error", (event) => showError(event.message));

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

const words = new Intl.Collator("en", { numeric: true });

// Returns what a cell sorts by: its exact number, or its text.
function valueOf(cell) {
  return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent.trim();
}

// Orders two cells; what has no number comes last, whatever the direction.
function compareCells(one, other, numbers, sign) {
  const [a, b] = [valueOf(one), valueOf(other)];
  if (!numbers) return sign * words.compare(String(a), String(b));
  const known = [typeof a === "number", typeof b === "number"];
  if (known[0] && known[1]) return sign * (a - b);
  return Number(known[1]) - Number(known[0]);
}

// Sorts by a column: numbers from the largest down at first, texts from A.
function sortTable(table, column) {
  const heads = [...table.tHead.rows[0].cells];
  const head = heads[column];
  const numbers = "unit" in head.dataset;
  const before = head.getAttribute("aria-sort");
  const descending = before ? before === "ascending" : numbers;
  heads.forEach((one) => one.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const cell = (row) => row.cells[column];
  rows.sort((one, other) => compareCells(cell(one), cell(other), numbers, descending ? -1 : 1));
  body.append(...rows);
}

// Returns the table as it is sorted, in exact numbers; headings name their unit.
function csvOf(table) {
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const line = (cells) => cells.map((cell) => quoted(String(cell))).join(",");
  const heading = (head) => head.textContent.trim() + (head.dataset.unit ? ` (${head.dataset.unit})` : "");
  const rows = [...table.tBodies[0].rows].map((row) => line([...row.cells].map(valueOf)));
  return [line([...table.tHead.rows[0].cells].map(heading)), ...rows, ""].join("\r\n");
}

function saveCsv(table, name) {
  const address = URL.createObjectURL(new Blob([csvOf(table)], { type: "text/csv" }));
  element("a", { href: address, download: `isotherm-${name}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

document.querySelectorAll("table.data").forEach((table) => {
  if (table.tBodies[0].rows.length < 2) return;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = element("button", { type: "button", title: "Sort" }, ...head.childNodes);
    button.addEventListener("click", () => sortTable(table, column));
    head.replaceChildren(button);
  });
  const title = table.closest("section, details")?.querySelector("h2")?.firstChild?.textContent || "table";
  const name = title.trim().toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  const button = element("button", { type: "button", className: "csv", title: "Save this table" }, "CSV");
  button.addEventListener("click", () => saveCsv(table, name));
  table.parentElement.before(button);
});
