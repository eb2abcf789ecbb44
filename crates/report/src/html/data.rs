//! Data of the page's scripts: the report in columns, aggregated to a bounded size.

use std::collections::BTreeMap;

use isotherm_sim::{InputSummary, Interval, Region, Report, RunResult};
use serde_json::{Value, json};

use super::{MAX_TEXT, reduce};
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
const MAX_REGIONS: usize = 20;

/// Aggregates the report: runs refer to policies and sizes by index.
pub(super) fn page(report: &Report) -> Value {
    let shown = &report.runs[..report.runs.len().min(MAX_RUNS)];
    let mut policies: Vec<&str> = Vec::new();
    for run in shown {
        if !policies.contains(&run.policy.as_str()) {
            policies.push(&run.policy);
        }
    }
    let mut sizes: Vec<_> = shown.iter().map(|run| (run.fast_bytes.0, shortened(&run.fast, 20))).collect();
    sizes.sort_by_key(|&(bytes, _)| bytes);
    sizes.dedup_by_key(|&mut (bytes, _)| bytes);
    let size = |(bytes, label): &(u64, String)| json!({ "bytes": bytes, "label": label });
    let size_of = |run: &RunResult| sizes.iter().position(|&(bytes, _)| bytes == run.fast_bytes.0);
    let limit = (MAX_POINTS / shown.len().max(1)).min(MAX_POINTS_PER_RUN);
    let run = |run: &RunResult| {
        json!({
            "policy": policies.iter().position(|policy| *policy == run.policy),
            "size": size_of(run),
            "hits": rounded(run.hit_ratio),
            "oracle": rounded(run.oracle_hit_ratio),
            "belady": rounded(run.belady_hit_ratio),
            "slowdown": rounded(run.slowdown),
            "timeline": timeline(&run.timeline, limit),
        })
    };
    json!({
        // Runs of several rounds differ in how many were simulated.
        "accesses": (!shown.iter().any(|run| run.long_run.is_some())).then_some(report.input.accesses),
        "footprint": report.input.footprint_bytes.0,
        "policies": policies,
        "bounds": facts::limits(),
        "sizes": sizes.iter().map(size).collect::<Value>(),
        "size": verdict::subject(report).and_then(size_of).unwrap_or(0),
        "runs": shown.iter().map(run).collect::<Vec<_>>(),
        "heatmap": heat(&report.input, MAX_COLUMNS, MAX_ROWS),
        "cdf": reduce::curve(&report.input.page_cdf),
        "regions": sites(report),
    })
}

/// Returns a run over time, in columns; `x` is the share of accesses replayed at the end of each interval.
fn timeline(intervals: &[Interval], limit: usize) -> Value {
    let points = reduce::intervals(intervals, limit);
    let all: u64 = points.iter().map(|point| point.accesses).sum();
    let ends = points.iter().scan(0, |end, point| {
        *end += point.accesses;
        Some(rounded(*end as f64 / all as f64))
    });
    let column = |value: fn(&Interval) -> f64| points.iter().map(value).map(rounded).collect::<Vec<_>>();
    let counts = |count: fn(&Interval) -> u64| points.iter().map(count).collect::<Vec<_>>();
    let gauges = gauges(points.iter().map(|point| point.gauges.iter().map(|(&name, &value)| (name, value))));
    json!({
        "x": ends.collect::<Vec<_>>(),
        "seconds": column(|point| point.end_ns.as_seconds()),
        "hits": column(|point| point.hits as f64 / point.accesses as f64),
        "oracle": column(|point| point.oracle_hits as f64 / point.accesses as f64),
        "promotions": counts(|point| point.promotions),
        "demotions": counts(|point| point.demotions),
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
    })
}

/// Returns the largest allocation sites, and the rest as one.
fn sites(report: &Report) -> Vec<Value> {
    let site = |name: String, regions: &[Region]| {
        let sum = |part: fn(&Region) -> u64| regions.iter().map(part).sum::<u64>();
        let (bytes, accesses) = (sum(|region| region.bytes.0), sum(|region| region.accesses));
        json!({ "name": name, "bytes": bytes, "accesses": accesses })
    };
    let (first, rest) = report.input.regions.split_at(report.input.regions.len().min(MAX_REGIONS));
    let named = first.chunks(1).map(|region| site(shortened(&region[0].name, MAX_TEXT), region));
    let others = (!rest.is_empty()).then(|| site(format!("{} others", rest.len()), rest));
    named.chain(others).collect()
}

/// Rounds to four decimals: more cannot be seen and cost bytes.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
