//! Data of the page's scripts: the report in columns, aggregated to a bounded size.

use std::collections::BTreeMap;

use isotherm_sim::{InputSummary, Interval, Report, RunResult};
use serde::Serialize;

use super::{MAX_TEXT, reduce};
use crate::facts;
use crate::format::shortened;

/// Runs in pictures and tables; the JSON output holds all.
pub(super) const MAX_RUNS: usize = 300;
/// Points over time of all runs together.
const MAX_POINTS: usize = 24_000;
const MAX_POINTS_PER_RUN: usize = 200;
const MAX_GAUGES: usize = 6;
const MAX_COLUMNS: usize = 192;
const MAX_ROWS: usize = 128;
const MAX_REGIONS: usize = 20;

#[derive(Serialize)]
pub(super) struct Page {
    accesses: u64,
    footprint: u64,
    /// Policies in the order of the runs.
    policies: Vec<String>,
    bounds: Vec<&'static str>,
    /// Sizes of the fast tier, ascending.
    sizes: Vec<Size>,
    /// Index of the size that the answer is about.
    size: usize,
    runs: Vec<Run>,
    heatmap: Heat,
    cdf: Vec<(f64, f64)>,
    regions: Vec<Site>,
}

#[derive(Serialize)]
struct Size {
    label: String,
    bytes: u64,
}

#[derive(Serialize)]
struct Run {
    policy: usize,
    size: usize,
    hits: f64,
    oracle: f64,
    belady: f64,
    slowdown: f64,
    timeline: Timeline,
}

/// A run over time, in columns.
#[derive(Serialize)]
struct Timeline {
    /// Share of accesses replayed at the end of each interval.
    x: Vec<f64>,
    seconds: Vec<f64>,
    hits: Vec<f64>,
    oracle: Vec<f64>,
    promotions: Vec<u64>,
    demotions: Vec<u64>,
    gauges: BTreeMap<&'static str, Vec<Option<f64>>>,
}

/// A heatmap for the pages' scripts.
#[derive(Serialize)]
pub(crate) struct Heat {
    columns: usize,
    rows: usize,
    accesses_per_column: u64,
    bytes_per_row: f64,
    /// As text: JSON numbers lose digits above 2^53.
    addresses: Vec<String>,
    counts: Vec<u64>,
}

#[derive(Serialize)]
struct Site {
    name: String,
    bytes: u64,
    accesses: u64,
}

/// Aggregates the report.
pub(super) fn page(report: &Report) -> Page {
    let shown = &report.runs[..report.runs.len().min(MAX_RUNS)];
    let mut policies: Vec<String> = Vec::new();
    for run in shown {
        if !policies.contains(&run.policy) {
            policies.push(run.policy.clone());
        }
    }
    let mut sizes: Vec<Size> =
        shown.iter().map(|run| Size { label: shortened(&run.fast, 20), bytes: run.fast_bytes.0 }).collect();
    sizes.sort_by_key(|size| size.bytes);
    sizes.dedup_by_key(|size| size.bytes);
    let size_of = |run: &RunResult| sizes.iter().position(|size| size.bytes == run.fast_bytes.0).unwrap_or(0);
    let limit = (MAX_POINTS / shown.len().max(1)).min(MAX_POINTS_PER_RUN);
    let runs = shown.iter().map(|run| Run {
        policy: policies.iter().position(|policy| *policy == run.policy).unwrap_or(0),
        size: size_of(run),
        hits: rounded(run.hit_ratio),
        oracle: rounded(run.oracle_hit_ratio),
        belady: rounded(run.belady_hit_ratio),
        slowdown: rounded(run.slowdown),
        timeline: timeline(&run.timeline, limit),
    });
    Page {
        accesses: report.input.accesses,
        footprint: report.input.footprint_bytes.0,
        bounds: facts::limits(),
        size: facts::subject(report).map_or(0, size_of),
        runs: runs.collect(),
        heatmap: heat(&report.input, MAX_COLUMNS, MAX_ROWS),
        cdf: reduce::curve(&report.input.page_cdf),
        regions: sites(report),
        policies,
        sizes,
    }
}

fn timeline(intervals: &[Interval], limit: usize) -> Timeline {
    let points = reduce::intervals(intervals, limit);
    let all: u64 = points.iter().map(|point| point.accesses).sum();
    let ends = points.iter().scan(0, |end, point| {
        *end += point.accesses;
        Some(rounded(*end as f64 / all as f64))
    });
    let share = |hits: fn(&Interval) -> u64| {
        points.iter().map(move |point| rounded(hits(point) as f64 / point.accesses as f64))
    };
    Timeline {
        x: ends.collect(),
        seconds: points.iter().map(|point| rounded(point.end_ns.as_seconds())).collect(),
        hits: share(|point| point.hits).collect(),
        oracle: share(|point| point.oracle_hits).collect(),
        promotions: points.iter().map(|point| point.promotions).collect(),
        demotions: points.iter().map(|point| point.demotions).collect(),
        gauges: gauges(points.iter().map(|point| point.gauges.iter().map(|(&name, &value)| (name, value)))),
    }
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

/// Returns the input's heatmap in at most `columns` by `rows` cells.
pub(crate) fn heat(input: &InputSummary, columns: usize, rows: usize) -> Heat {
    let grid = reduce::grid(&input.heatmap, columns, rows);
    let pages = input.heatmap.pages_per_row * input.heatmap.rows as f64;
    let page_bytes = if pages > 0.0 { input.footprint_bytes.0 as f64 / pages } else { 0.0 };
    Heat {
        columns: grid.columns,
        rows: grid.rows,
        accesses_per_column: grid.accesses_per_column,
        bytes_per_row: (grid.pages_per_row * page_bytes).round(),
        addresses: grid.addresses.iter().map(|address| format!("{address:#x}")).collect(),
        counts: grid.counts,
    }
}

/// Returns the largest allocation sites, and the rest as one.
fn sites(report: &Report) -> Vec<Site> {
    let site = |name: String, regions: &[isotherm_sim::Region]| Site {
        name,
        bytes: regions.iter().map(|region| region.bytes.0).sum(),
        accesses: regions.iter().map(|region| region.accesses).sum(),
    };
    let (first, rest) = report.input.regions.split_at(report.input.regions.len().min(MAX_REGIONS));
    let mut sites: Vec<_> = first
        .iter()
        .map(|region| site(shortened(&region.name, MAX_TEXT), std::slice::from_ref(region)))
        .collect();
    if !rest.is_empty() {
        sites.push(site(format!("{} others", rest.len()), rest));
    }
    sites
}

/// Rounds to four decimals: more cannot be seen and cost bytes.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
