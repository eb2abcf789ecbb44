//! The table for the terminal.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Row, Table, TableStyle};
use isotherm_core::Bytes;
use isotherm_machine::MachineSummary;
use isotherm_sim::{LongRun, Report, Round, RunResult};

use crate::columns::{Cell, Column, headings, narrow, texts};
use crate::facts;
use crate::format::{count, counted, shortened, wrapped};
use crate::verdict::{self, Verdict};

/// Columns of a run: all of them in the page, [`NARROW`] on the terminal.
pub(crate) const RUN: [Column<RunResult>; 18] = [
    ("policy", |run| run.policy.as_str().into()),
    ("fast tier", |run| Cell::size(run.fast_bytes).shown_as(fast_tier(&run.fast, run.fast_bytes))),
    ("hits", |run| {
        let hits = Cell::percent(run.hit_ratio);
        let marked = format!("{}{hits}", if run.beats_oracle { "*" } else { "" });
        hits.shown_as(marked)
    }),
    ("final", |run| Cell::percent(run.final_hit_ratio)),
    ("oracle", |run| Cell::percent(run.oracle_hit_ratio)),
    ("belady", |run| Cell::percent(run.belady_hit_ratio)),
    ("slowdown", |run| Cell::factor(run.slowdown)),
    ("modelled time", |run| Cell::time(run.modelled_ns)),
    ("sampling", |run| Cell::time(run.parts.sampling)),
    ("moving", |run| Cell::time(run.parts.moving)),
    ("deciding", |run| Cell::time(run.parts.deciding)),
    ("promoted", |run| Cell::count(run.promotions)),
    ("demoted", |run| Cell::count(run.demotions)),
    ("moved", |run| Cell::size(run.bytes_moved)),
    ("samples", |run| Cell::count(run.samples)),
    ("lost", |run| Cell::count(run.samples_lost)),
    ("metadata", |run| Cell::size(run.metadata_bytes)),
    ("tiering CPU", |run| Cell::time(run.tiering_cpu_ns)),
];
/// Columns of hits: of the whole run, and of its last quarter.
const HITS: std::ops::Range<usize> = 2..4;
/// Columns that a terminal has room for.
const NARROW: [&str; 7] = ["policy", "fast tier", "hits", "belady", "slowdown", "moved", "tiering CPU"];
/// The same on a machine of more than two tiers.
const NARROW_TIERS: [&str; 7] =
    ["policy", "fast tier", "by tier, %", "belady", "slowdown", "moved", "tiering CPU"];
/// The same where one of them holds compressed pages.
const NARROW_COMPRESSED: [&str; 7] =
    ["policy", "fast tier", "by tier, %", "stored", "slowdown", "moved", "tiering CPU"];
/// The same for runs of several rounds.
const NARROW_LONG: [&str; 7] = ["policy", "fast tier", "long run", "pays back", "hits", "slowdown", "moved"];
/// Columns of a round there: the policy is in the heading.
const NARROW_ROUND: [&str; 6] = ["round", "time", "slowdown", "hits", "promoted", "demoted"];

/// Column that a run on more than two tiers has beside the others: the accesses that each tier served.
const BY_TIER: Column<RunResult> = ("by tier, %", |run| {
    let all = run.tier_accesses.iter().sum::<u64>().max(1) as f64;
    let share = |&accesses: &u64| format!("{:.0}", 100.0 * accesses as f64 / all);
    let shares: Vec<String> = run.tier_accesses.iter().map(share).collect();
    Cell::percent(run.hit_ratio).shown_as(shares.join("/"))
});

/// Columns that a run has beside these where a tier holds compressed pages: faults on them, and the largest
/// memory that they took.
const COMPRESSED: [Column<RunResult>; 2] =
    [("swap-ins", |run| Cell::count(run.swap_ins)), ("stored", |run| Cell::size(run.stored_bytes))];

/// Columns that a run of several rounds has beside the others.
pub(crate) const LONG: [Column<RunResult>; 2] = [
    ("long run", |run| long(run).map_or_else(Cell::unknown, |long| Cell::factor(long.slowdown))),
    ("pays back", |run| long(run).map_or_else(Cell::unknown, |long| facts::payback(run, long))),
];

/// A run, one of its rounds, and the round's number from 1.
pub(crate) type Numbered<'a> = (&'a RunResult, u64, Round);

/// Returns the columns of a round.
pub(crate) fn round_columns<'a>() -> [Column<Numbered<'a>>; 8] {
    [
        ("policy", |(run, ..)| run.policy.as_str().into()),
        ("fast tier", |(run, ..)| Cell::size(run.fast_bytes).shown_as(shortened(&run.fast, 20))),
        ("round", |(_, number, _)| Cell::digits(*number)),
        ("time", |(.., round)| Cell::time(round.modelled_ns)),
        ("slowdown", |(.., round)| Cell::factor(round.slowdown).shown_as(format!("{:.3}", round.slowdown))),
        ("hits", |(.., round)| Cell::percent(round.hit_ratio)),
        ("promoted", |(.., round)| Cell::count(round.promotions)),
        ("demoted", |(.., round)| Cell::count(round.demotions)),
    ]
}

/// Returns a run's rounds with their numbers, at most `most`: the last one and, of the others, ever fewer.
pub(crate) fn rounds(run: &RunResult, most: usize) -> impl Iterator<Item = Numbered<'_>> {
    let each = long(run).map_or(&[][..], |long| &long.each);
    let shown = move |number: usize| number == each.len() || each.len() <= most || number.is_power_of_two();
    let numbered = each.iter().enumerate().map(|(index, &round)| (index + 1, round));
    numbered.filter(move |&(number, _)| shown(number)).map(move |(number, round)| (run, number as u64, round))
}

fn long(run: &RunResult) -> Option<&LongRun> {
    run.long_run.as_ref()
}

/// Returns the columns of a report's runs: all of them, or those that the terminal has room for.
pub(crate) fn columns(report: &Report, all: bool) -> Vec<Column<RunResult>> {
    let tiers = report.runs.iter().any(|run| run.tier_accesses.len() > 2);
    let compressed = report.runs.iter().any(|run| run.stored_bytes.0 > 0);
    let by_tier = [&[BY_TIER][..usize::from(tiers)], if compressed { &COMPRESSED } else { &[] }].concat();
    if report.runs.iter().all(|run| run.long_run.is_none()) {
        let every = [&RUN[..HITS.end], &by_tier, &RUN[HITS.end..]].concat();
        let shown = match (compressed, tiers) {
            (true, _) => &NARROW_COMPRESSED,
            (false, true) => &NARROW_TIERS,
            (false, false) => &NARROW,
        };
        return if all { every } else { narrow(&every, shown) };
    }
    // The long run takes the place of the last quarter.
    let every =
        [&RUN[..HITS.start], &LONG, &RUN[HITS.start..=HITS.start], &by_tier, &RUN[HITS.end..]].concat();
    if all { every } else { narrow(&every, &NARROW_LONG) }
}

/// Rounds of the answer's run that the terminal lists at most.
const ROUNDS: usize = 12;

/// One line between header and runs, nothing else.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Columns of a usual terminal, which tables fit and at which notes wrap.
const WIDTH: usize = 80;

/// Returns the report as text: the verdict, the input, a row per run, and notes.
///
/// The text has no colours, so `NO_COLOR` needs no care, and the same width everywhere, so that it can be
/// redirected and compared.
pub fn table(report: &Report) -> String {
    let input = &report.input;
    let threads = counted(input.threads as u64, "thread", "threads");
    let (accesses, instructions) = (count(input.accesses), count(input.instructions));
    let mut text = verdict::simulated(report).map_or_else(String::new, |verdict| answered(&verdict) + "\n");
    text += &named(&[
        ("input", format!("{} {}", input.kind, input.name)),
        (
            "accesses",
            format!("{accesses} missed the last-level cache, {instructions} instructions, {threads}"),
        ),
        ("footprint", input.footprint_bytes.to_string()),
        ("machine", machine(&report.machine)),
        ("scale, seed", format!("{} (times {}), {}", input.scale, input.time_scale, input.seed)),
    ]);
    if report.runs.is_empty() {
        return text + "no run\n";
    }
    let columns = columns(report, false);
    let rows = report.runs.iter().map(|run| texts(&columns, run));
    let _ = writeln!(text, "\n{}", aligned(&headings(&columns), rows, 2));
    if let Some(run) = verdict::subject(report).filter(|run| run.long_run.is_some()) {
        let columns = narrow(&round_columns(), &NARROW_ROUND);
        let rows = rounds(run, ROUNDS).map(|round| texts(&columns, &round));
        let _ = writeln!(text, "{} {}\n{}", run.policy, run.fast, aligned(&headings(&columns), rows, 0));
    }
    text.extend(facts::notes(report).iter().map(|note| noted(note)));
    text
}

/// Returns the machine's name and title.
pub(crate) fn machine(machine: &MachineSummary) -> String {
    format!("{}: {}", machine.name, machine.title)
}

/// Lays out rows under a header; columns from `numbers` on are aligned to the right.
pub(crate) fn aligned<R: Into<Row>>(
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
    // The last column needs no padding to its right.
    table.to_string().lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Lays out names and values in two columns.
pub(crate) fn named(lines: &[(&str, String)]) -> String {
    lines.iter().map(|(name, value)| wrapped(&format!("{name:<12} "), value, WIDTH)).collect()
}

/// Returns the verdict as the first lines of a text.
pub(crate) fn answered(verdict: &Verdict) -> String {
    wrapped("", &verdict.text(), WIDTH)
}

/// Returns the size as asked for and in bytes, or once where both read alike.
fn fast_tier(asked: &str, bytes: Bytes) -> String {
    let size = bytes.to_string();
    if asked == size { size } else { format!("{} ({size})", shortened(asked, 20)) }
}

/// Wraps a note at [`WIDTH`] columns, with a dash before its first line.
pub(crate) fn noted(note: &str) -> String {
    wrapped("- ", note, WIDTH)
}
