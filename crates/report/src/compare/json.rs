//! A comparison as JSON.

use serde::Serialize;

use super::judge::{Judged, judge};
use super::read::{FIGURES, Figure, Kind, Run, Unit};
use super::{Comparison, Difference, Pair};
use crate::to_json;

#[derive(Serialize)]
struct Told<'a> {
    version: &'static str,
    verdict: Judged,
    a: Side<'a>,
    b: Side<'a>,
    inputs: &'a [Difference],
    runs: Vec<Both<'a>>,
    only_a: &'a [String],
    only_b: &'a [String],
}

#[derive(Serialize)]
struct Side<'a> {
    file: &'a str,
    kind: Kind,
}

#[derive(Serialize)]
struct Both<'a> {
    a: &'a Run,
    b: &'a Run,
    figures: Vec<Values>,
}

impl<'a> Both<'a> {
    fn of(pair: &'a Pair) -> Self {
        let figures = FIGURES.iter().filter_map(|figure| Values::of(figure, pair)).collect();
        Self { a: &pair.a, b: &pair.b, figures }
    }
}

#[derive(Serialize)]
struct Values {
    name: &'static str,
    unit: Unit,
    a: Option<f64>,
    b: Option<f64>,
    change: Option<f64>,
}

impl Values {
    /// Returns a figure of both runs, if one of them tells it.
    fn of(figure: &Figure, pair: &Pair) -> Option<Self> {
        let [a, b] = [&pair.a, &pair.b].map(|run| (figure.get)(&run.value));
        let change = a.zip(b).and_then(|(a, b)| figure.unit.change(a, b));
        a.or(b).map(|_| Self { name: figure.name, unit: figure.unit, a, b, change })
    }
}

/// Returns the comparison as one JSON object on one line, as `docs/reference/compare.schema.json` describes
/// it.
pub fn compare_json(comparison: &Comparison) -> String {
    let [a, b] =
        comparison.outcomes.each_ref().map(|outcome| Side { file: &outcome.file, kind: outcome.kind });
    to_json(&Told {
        version: env!("CARGO_PKG_VERSION"),
        verdict: judge(comparison),
        a,
        b,
        inputs: &comparison.inputs,
        runs: comparison.pairs.iter().map(Both::of).collect(),
        only_a: &comparison.only[0],
        only_b: &comparison.only[1],
    })
}
