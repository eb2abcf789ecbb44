//! Data of the page's scripts: the report in columns, aggregated to a bounded size.

use std::collections::BTreeMap;
use std::fmt::Write;

use isotherm_policies::registry::BASELINE;
use isotherm_sim::{Heatmap, Held, InputSummary, Interval, Report, RunResult};
use serde_json::{Value, json};

use super::ranking::Split;
use super::{MAX_TEXT, colours, reduce};
use crate::facts;
use crate::format::shortened;
use crate::verdict;

/// Runs in pictures and tables; the JSON output holds all.
pub(super) const MAX_RUNS: usize = 300;
/// Points over time of all runs together.
const MAX_POINTS: usize = 24_000;
const MAX_POINTS_PER_RUN: usize = 200;
const MAX_GAUGES: usize = 6;
const MAX_COLUMNS: usize = 192;
const MAX_ROWS: usize = 128;
/// Columns of the picture of what is fast.
const FAST_COLUMNS: usize = 60;
/// Runs that have such a picture.
const MAX_FAST: usize = 100;
/// Objects beside the heatmap.
const MAX_OBJECTS: usize = 200;
/// Policies over time that are shown at first.
const CHOSEN: usize = 5;

/// Aggregates the report: runs refer to policies and sizes by index.
pub(super) fn page(report: &Report, shown: &[RunResult], bytes: &[u64]) -> Value {
    let mut policies: Vec<&str> = Vec::new();
    for run in shown {
        if !policies.contains(&run.policy.as_str()) {
            policies.push(&run.policy);
        }
    }
    let limits = facts::limits();
    let size_of = |run: &RunResult| bytes.iter().position(|&bytes| bytes == run.fast_bytes.0);
    let size = |&bytes: &u64| {
        let named = shown.iter().find(|run| run.fast_bytes.0 == bytes);
        json!({ "bytes": bytes, "label": named.map(|run| shortened(&run.fast, 20)) })
    };
    let oracle = |&bytes: &u64| {
        let timeline = shown.iter().filter(|run| run.fast_bytes.0 == bytes).map(|run| &run.timeline);
        let longest = timeline.max_by_key(|timeline| timeline.len());
        let points = longest.map(|timeline| reduce::intervals(timeline, MAX_POINTS_PER_RUN));
        let share = |point: &Interval| rounded(point.oracle_hits as f64 / point.accesses.max(1) as f64);
        points.map(|points| points.iter().map(share).collect::<Vec<_>>())
    };
    let limit = (MAX_POINTS / shown.len().max(1)).min(MAX_POINTS_PER_RUN);
    let run = |(index, run): (usize, &RunResult)| {
        let is_limit = limits.contains(&run.policy.as_str());
        let fast = (index < MAX_FAST && !is_limit).then(|| fast(&report.input.heatmap, &run.fast_cells));
        json!({
            "policy": policies.iter().position(|policy| *policy == run.policy),
            "size": size_of(run),
            "slowdown": rounded(Split::of(run).slowdown),
            "fast": fast.flatten(),
            "timeline": (!is_limit).then(|| timeline(&run.timeline, limit)),
        })
    };
    let about = verdict::subject(report);
    json!({
        // Runs of several rounds differ in how many were simulated.
        "accesses": (!shown.iter().any(|run| run.long_run.is_some())).then_some(report.input.accesses),
        "footprint": report.input.footprint_bytes.0,
        "policies": policies,
        "colours": policies.iter().map(|policy| colours::colour(policy)).collect::<Vec<_>>(),
        "bounds": limits,
        "chosen": chosen(report, shown),
        "best": about.map(|run| &run.policy),
        "sizes": bytes.iter().map(size).collect::<Value>(),
        "oracle": bytes.iter().map(oracle).collect::<Value>(),
        "size": about.and_then(size_of).unwrap_or(0),
        "runs": shown.iter().enumerate().map(run).collect::<Vec<_>>(),
        "heatmap": heat(&report.input, MAX_COLUMNS, MAX_ROWS),
    })
}

/// Returns the policies that pictures show at first: without tiering, what the verdict is about, and the
/// fastest of the others at that size.
fn chosen<'a>(report: &Report, shown: &'a [RunResult]) -> Vec<&'a str> {
    let limits = facts::limits();
    let about = verdict::subject(report).map(|run| (run.fast_bytes, run.policy.as_str()));
    let size = about.map(|(size, _)| size).or_else(|| shown.first().map(|run| run.fast_bytes));
    let mut ranked: Vec<_> = shown
        .iter()
        .filter(|run| Some(run.fast_bytes) == size && !limits.contains(&run.policy.as_str()))
        .map(|run| (Split::of(run).slowdown, run.policy.as_str()))
        .collect();
    let first = |name: &str| name == BASELINE || about.is_some_and(|(_, about)| about == name);
    ranked.sort_by(|one, other| first(other.1).cmp(&first(one.1)).then(one.0.total_cmp(&other.0)));
    let mut chosen: Vec<&str> = ranked.into_iter().map(|(_, name)| name).collect();
    chosen.dedup();
    chosen.truncate(CHOSEN);
    chosen
}

/// Returns a run over time, in columns; each interval but the last is a share of `step` of the accesses.
fn timeline(intervals: &[Interval], limit: usize) -> Value {
    let points = reduce::intervals(intervals, limit);
    let all: u64 = points.iter().map(|point| point.accesses).sum();
    let step = points.first().map_or(1.0, |point| point.accesses as f64 / all.max(1) as f64);
    let hits = |point: &Interval| rounded(point.hits as f64 / point.accesses.max(1) as f64);
    let counts = |count: fn(&Interval) -> u64| points.iter().map(count).collect::<Vec<_>>();
    let gauges = gauges(points.iter().map(|point| point.gauges.iter().map(|(&name, &value)| (name, value))));
    json!({
        "step": step,
        "hits": points.iter().map(hits).collect::<Vec<_>>(),
        "promotions": counts(|point| point.promotions),
        "demotions": counts(|point| point.demotions),
        "samples": counts(|point| point.samples),
        "gauges": gauges,
    })
}

/// Returns the policies' numbers at a series of moments, in columns of equal length, at most [`MAX_GAUGES`].
pub(crate) fn gauges(
    moments: impl ExactSizeIterator<Item = impl Iterator<Item = (&'static str, f64)>>,
) -> BTreeMap<&'static str, Vec<Option<f64>>> {
    let length = moments.len();
    let mut columns = BTreeMap::new();
    for (index, moment) in moments.enumerate() {
        for (name, value) in moment {
            columns.entry(name).or_insert_with(|| vec![None; length])[index] = Some(rounded(value));
        }
    }
    columns.into_iter().take(MAX_GAUGES).collect()
}

/// Returns the input's heatmap in at most `columns` by `rows` cells, with addresses as texts, because JSON
/// numbers lose digits above 2^53.
pub(crate) fn heat(input: &InputSummary, columns: usize, rows: usize) -> Value {
    let grid = reduce::grid(&input.heatmap, columns, rows);
    let pages = input.heatmap.pages_per_row * input.heatmap.rows as f64;
    let page_bytes = if pages > 0.0 { input.footprint_bytes.0 as f64 / pages } else { 0.0 };
    json!({
        "columns": grid.columns,
        "rows": grid.rows,
        "accesses_per_column": grid.accesses_per_column,
        "bytes_per_row": (grid.pages_per_row * page_bytes).round(),
        "addresses": grid.addresses.iter().map(|address| format!("{address:#x}")).collect::<Vec<_>>(),
        "counts": grid.counts,
        "objects": objects(&input.heatmap.objects, grid.pages_per_row),
    })
}

/// Returns what rows hold, from the lowest address up: name, height in rows, accesses. Of many objects those
/// with the fewest accesses lose their names.
fn objects(objects: &[Held], pages_per_row: f64) -> Vec<Value> {
    let mut accesses: Vec<u64> = objects.iter().map(|held| held.accesses).collect();
    accesses.sort_unstable_by(|one, other| other.cmp(one));
    let least = accesses.get(MAX_OBJECTS).copied();
    let mut kept: Vec<Held> = Vec::new();
    for held in objects {
        let name = if least.is_some_and(|least| held.accesses <= least) { "" } else { &held.name };
        match kept.last_mut() {
            Some(last) if last.name == name => {
                last.pages += held.pages;
                last.accesses += held.accesses;
            }
            _ => kept.push(Held { name: name.into(), ..*held }),
        }
    }
    let row = |held: &Held| {
        json!([shortened(&held.name, MAX_TEXT), rounded(held.pages as f64 / pages_per_row), held.accesses])
    };
    kept.iter().map(row).collect()
}

/// Returns what was fast in each cell, row by row: a letter from `a` for nothing to `p` for all of its pages,
/// and how often it repeats. `None` where that is not known.
fn fast(map: &Heatmap, cells: &[u8]) -> Option<Value> {
    if cells.is_empty() || cells.len() != map.columns * map.rows {
        return None;
    }
    let wide = reduce::merge_factor(map.columns, FAST_COLUMNS);
    let mean = |cells: &[u8]| {
        let sum: usize = cells.iter().map(|&cell| usize::from(cell)).sum();
        (b'a' + ((sum * 15 + cells.len() * 127) / (cells.len() * 255)) as u8) as char
    };
    let letters: Vec<char> = cells.chunks(map.columns).flat_map(|row| row.chunks(wide).map(mean)).collect();
    let mut text = String::new();
    for alike in letters.chunk_by(|one, other| one == other) {
        text.push(alike[0]);
        if alike.len() > 1 {
            let _ = write!(text, "{}", alike.len());
        }
    }
    Some(json!({ "columns": map.columns.div_ceil(wide), "rows": map.rows, "cells": text }))
}

/// Rounds to four decimals: more cannot be seen and cost bytes.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_cells_are_letters_and_repeats() {
        let map = Heatmap { columns: 4, rows: 2, ..Heatmap::default() };
        let fast = fast(&map, &[0, 0, 255, 128, 255, 255, 255, 255]).expect("a cell each");
        assert_eq!(fast["cells"], "a2pip4");
        assert_eq!(super::fast(&map, &[]), None);
    }

    #[test]
    fn of_many_objects_the_least_accessed_are_one() {
        let held = |number: u64| Held { name: number.to_string(), pages: 2, accesses: number };
        let all: Vec<Held> = (0..1000).map(held).collect();
        let rows = objects(&all, 4.0);
        assert_eq!(rows.len(), MAX_OBJECTS + 1);
        assert_eq!(rows[0], json!(["", 400.0, (0..800).sum::<u64>()]));
        assert_eq!(rows[1], json!(["800", 0.5, 800]));
    }
}
