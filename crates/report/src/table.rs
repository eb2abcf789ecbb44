//! Defines the table that people read on a terminal.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use isotherm_core::Bytes;
use isotherm_sim::{Report, RunResult};

use crate::facts;
use crate::format::{count, counted, factor, percent, wrapped};

const HEADER: [&str; 14] = [
    "policy",
    "fast tier",
    "hits",
    "final",
    "loads",
    "oracle",
    "belady",
    "slowdown",
    "promoted",
    "demoted",
    "moved",
    "samples",
    "metadata",
    "tiering CPU",
];

/// One line between header and runs, nothing else.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Notes wrap at this width; the table itself is about 140 columns wide.
const WIDTH: usize = 120;

/// The report as text: what was run, a row a run, and notes. It has no colours, so `NO_COLOR` needs no care, and the
/// same width everywhere, so that it can be redirected and compared.
pub fn table(report: &Report) -> String {
    let mut text = head(report);
    if report.runs.is_empty() {
        text.push_str("no run\n");
        return text;
    }
    text.push('\n');
    text.push_str(&aligned(&HEADER, report.runs.iter().map(row), 2));
    text.push('\n');
    for note in facts::answer(report).into_iter().chain(facts::notes(report)) {
        text.push_str(&noted(&note));
    }
    text
}

/// Rows under a header, from column `numbers` on to the right.
pub(crate) fn aligned<R: Into<comfy_table::Row>>(
    header: &[&str],
    rows: impl Iterator<Item = R>,
    numbers: usize,
) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    rows.for_each(|row| {
        table.add_row(row);
    });
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if index >= numbers {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // Padding to the right of the last column is nobody's.
    table.to_string().lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn head(report: &Report) -> String {
    let input = &report.input;
    let threads = counted(input.threads as u64, "thread", "threads");
    let lines = [
        ("input", format!("{} {}", input.kind, input.name)),
        (
            "accesses",
            format!(
                "{} missed the last-level cache, {} instructions, {threads}",
                count(input.accesses),
                count(input.instructions)
            ),
        ),
        ("footprint", input.footprint_bytes.to_string()),
        ("machine", format!("{}: {}", report.machine.name, report.machine.title)),
        ("scale, seed", format!("{} (times {}), {}", input.scale, input.time_scale, input.seed)),
    ];
    named(&lines)
}

/// Names and values in two columns.
pub(crate) fn named(lines: &[(&str, String)]) -> String {
    lines.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:<12} {value}");
        text
    })
}

fn row(run: &RunResult) -> [String; 14] {
    let mark = if run.beats_oracle { "*" } else { "" };
    let lost =
        if run.samples_lost > 0 { format!(" ({} lost)", count(run.samples_lost)) } else { String::new() };
    [
        run.policy.clone(),
        fast_tier(&run.fast, run.fast_bytes),
        format!("{mark}{}", percent(run.hit_ratio)),
        percent(run.final_hit_ratio),
        percent(run.load_hit_ratio),
        percent(run.oracle_hit_ratio),
        percent(run.belady_hit_ratio),
        factor(run.slowdown),
        count(run.promotions),
        count(run.demotions),
        quantity(run.bytes_moved.0, run.bytes_moved),
        format!("{}{lost}", count(run.samples)),
        quantity(run.metadata_bytes.0, run.metadata_bytes),
        quantity(run.tiering_cpu_ns.0, run.tiering_cpu_ns),
    ]
}

/// The quantity with its unit; a bare 0 for none, which is easier to pass over.
fn quantity(value: u64, shown: impl ToString) -> String {
    if value == 0 { "0".into() } else { shown.to_string() }
}

/// How the size was asked for and what it came to; once where both read alike.
fn fast_tier(asked: &str, bytes: Bytes) -> String {
    let size = bytes.to_string();
    if asked == size { size } else { format!("{asked} ({size})") }
}

/// The note in lines of at most [`WIDTH`] columns, the first with a dash before it.
pub(crate) fn noted(note: &str) -> String {
    wrapped("- ", note, WIDTH)
}
