//! Turns results into the scoreboard.

use crate::effect::effect;
use crate::evidence::{self, Paragraphs};
use crate::figures::{Comparison, EVERY, Paper, Settings, Stat, Value, WorkloadRef};
use crate::judge::{MIN_MARGIN, noise, orderings};
use crate::metric::Metric;
use crate::request::Request;
use crate::run::Results;
use crate::scoreboard::{Cell, Gain, PaperScore, Row, RunFacts, Scoreboard, Scored, System, Tally, Verdict};
use crate::values::Values;

pub fn score(request: &Request, results: &Results, version: &str) -> Scoreboard {
    let paragraphs = evidence::all();
    let papers: Vec<PaperScore> =
        request.papers.iter().map(|paper| score_paper(request, paper, results, &paragraphs)).collect();
    Scoreboard {
        version: version.into(),
        quick: request.mode.quick,
        partial: request.partial,
        seed: request.mode.seed,
        tally: papers.iter().map(|paper| paper.tally).fold(Tally::default(), Tally::plus),
        papers,
    }
}

fn score_paper(request: &Request, paper: &Paper, results: &Results, paragraphs: &Paragraphs) -> PaperScore {
    let noise = if request.noise { noise_by_metric(request, paper, results) } else { Vec::new() };
    let margin = |metric| {
        let measured = noise.iter().find(|(of, _)| *of == metric).map_or(0.0, |(_, spread)| *spread);
        measured.max(MIN_MARGIN)
    };
    let comparisons: Vec<Scored> = paper
        .comparison
        .iter()
        .map(|comparison| {
            let values = Values::of(paper, comparison, request.mode, results);
            scored(&values, comparison, margin(comparison.metric), paragraphs)
        })
        .collect();
    let effects = paper.effect.iter().map(|one| effect(paper, one, request.mode, results)).collect();
    PaperScore {
        name: paper.name.clone(),
        title: paper.title.clone(),
        machine: paper.machine.clone(),
        sizes: paper.sizes.clone(),
        after: paper.after,
        after_why: paper.after_why.clone(),
        tally: comparisons.iter().map(|comparison| comparison.tally).fold(Tally::default(), Tally::plus),
        noise,
        comparisons,
        effects,
    }
}

fn noise_by_metric(request: &Request, paper: &Paper, results: &Results) -> Vec<(Metric, f64)> {
    let mut metrics: Vec<Metric> = paper.comparison.iter().map(|comparison| comparison.metric).collect();
    metrics.sort_unstable();
    metrics.dedup();
    let told =
        |metric: &Metric| !matches!(metric, Metric::Adaptation | Metric::Agreement) && !metric.computed();
    let measure = |metric: Metric| {
        let comparison = paper.comparison.iter().find(|comparison| comparison.metric == metric)?;
        let values = Values::new(paper, metric, request.mode, results);
        Some((metric, noise(&Values { after: comparison.after(paper), ..values })?))
    };
    metrics.into_iter().filter(told).filter_map(measure).collect()
}

fn scored(values: &Values<'_>, comparison: &Comparison, margin: f64, paragraphs: &Paragraphs) -> Scored {
    let runnable = comparison.not_yet.is_none();
    let rows = if runnable { rows(values, comparison) } else { Vec::new() };
    let gains = if runnable { gains(values, comparison) } else { Vec::new() };
    let (orderings, evidence) =
        if runnable { orderings(values, comparison, margin, paragraphs) } else { Default::default() };
    let mut tally = Tally::default();
    orderings.iter().for_each(|judged| tally.count(judged.verdict));
    if !runnable {
        tally.count(Verdict::NotYet);
    }
    Scored {
        id: comparison.id.clone(),
        place: comparison.place.clone(),
        title: comparison.title.clone(),
        metric: comparison.metric,
        machine: values.machine.into(),
        huge: comparison.huge,
        after: values.after,
        margin,
        note: comparison.note.clone(),
        not_yet: comparison.not_yet.clone(),
        updated: None,
        systems: comparison.systems.iter().map(|id| system(values.paper, id)).collect(),
        rows,
        gains,
        orderings,
        evidence,
        tally,
    }
}

fn with_settings(name: &str, settings: &Settings) -> String {
    let settings = settings.iter().map(|(key, value)| format!(" {key}={value}"));
    format!("{name}{}", settings.collect::<String>())
}

fn system(paper: &Paper, id: &str) -> System {
    let known = paper.system.get(id);
    System {
        id: id.into(),
        title: known.map_or_else(|| id.to_owned(), |system| system.title.clone()),
        policy: known.map_or_else(String::new, |system| with_settings(&system.policy, &system.set)),
        why: known.map_or_else(String::new, |system| system.why.clone()),
    }
}

fn rows(values: &Values<'_>, comparison: &Comparison) -> Vec<Row> {
    let sizes = comparison.sizes(values.mode.quick);
    let cases =
        comparison.workloads.iter().flat_map(|workload| sizes.iter().map(move |size| (workload, size)));
    cases.map(|(workload, size)| row(values, comparison, workload, size)).collect()
}

fn row(values: &Values<'_>, comparison: &Comparison, workload: &str, size: &str) -> Row {
    let ours = values.paper.workload.get(workload);
    let cells = comparison.systems.iter().map(|system| cell(values, comparison, system, workload, size));
    let cells: Vec<Cell> = cells.collect();
    let find = |system: &String| values.outcome(system, workload, size).ok();
    let runs = || comparison.systems.iter().filter_map(find).filter(|_| !values.metric.computed());
    let run = runs().next().map(|outcome| RunFacts {
        accesses: outcome.accesses,
        footprint_bytes: outcome.footprint,
        fast_bytes: outcome.fast,
        scale: outcome.scale,
        time_scale: outcome.time_scale,
        windows: runs().filter_map(|outcome| outcome.windows).reduce(f64::min),
    });
    Row {
        workload: workload.into(),
        ours: ours.map_or_else(String::new, |ours| described(ours, values.mode.quick)),
        size: size.into(),
        fast: ours.and_then(|ours| ours.sizes.get(size)).cloned().unwrap_or_default(),
        why: ours.map_or_else(String::new, |ours| ours.why.clone()),
        run,
        cells,
    }
}

fn described(ours: &WorkloadRef, quick: bool) -> String {
    let mut settings = ours.set.clone();
    if quick {
        settings.extend(ours.quick.clone());
    }
    let machine = ours.machine.iter().map(|(path, value)| (format!("machine.{path}"), value.clone()));
    settings.extend(machine);
    let name = if ours.name == EVERY { "every workload" } else { &ours.name };
    with_settings(name, &settings) + if ours.own_pace { ", each thread at its own pace" } else { "" }
}

fn cell(values: &Values<'_>, comparison: &Comparison, system: &str, workload: &str, size: &str) -> Cell {
    let here = |value: &&Value| {
        value.system == system
            && value.workload.as_deref() == Some(workload)
            && value.size.as_deref() == Some(size)
            && value.baseline.is_none()
            && value.stat.is_none()
    };
    let printed = comparison.values.iter().find(here);
    let ours = values.value(system, workload, size);
    Cell {
        system: system.into(),
        paper: printed.map(|value| value.value / comparison.divide.unwrap_or(1.0)),
        about: printed.is_some_and(|value| value.about),
        missing: ours.as_ref().err().map(ToString::to_string),
        ours: ours.ok(),
    }
}

/// Gathers the figures that are no cells: of one system against another, or over several cases.
fn gains(values: &Values<'_>, comparison: &Comparison) -> Vec<Gain> {
    let sizes = comparison.sizes(values.mode.quick);
    let in_mode = |value: &&Value| value.size.as_ref().is_none_or(|size| sizes.contains(size));
    let gathered = comparison.values.iter().filter(|value| value.baseline.is_some() || value.stat.is_some());
    gathered.filter(in_mode).map(|value| gain(values, comparison, value, sizes)).collect()
}

fn gain(values: &Values<'_>, comparison: &Comparison, value: &Value, sizes: &[String]) -> Gain {
    let workloads = value.workload.as_ref().map_or(comparison.workloads.as_slice(), std::slice::from_ref);
    let sizes = value.size.as_ref().map_or(sizes, std::slice::from_ref);
    let cases: Vec<_> =
        workloads.iter().flat_map(|workload| sizes.iter().map(move |size| (workload, size))).collect();
    let known: Vec<f64> =
        cases.iter().filter_map(|(workload, size)| case(values, comparison, value, workload, size)).collect();
    let words = [
        value.system.clone(),
        value.baseline.as_ref().map_or_else(String::new, |of| format!("over {of}")),
        value.workload.as_ref().map_or_else(String::new, |workload| format!("on {workload}")),
        value.size.as_ref().map_or_else(String::new, |size| format!("at {size}")),
        value.stat.map_or("", stat_words).into(),
    ];
    Gain {
        words: words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "),
        unit: match (value.baseline.is_some(), value.factor) {
            (true, true) => "times",
            (true, false) => "% better",
            (false, _) => "",
        }
        .into(),
        paper: value.value / if value.baseline.is_some() { 1.0 } else { comparison.divide.unwrap_or(1.0) },
        about: value.about,
        ours: gather(value.stat.unwrap_or(Stat::Mean), &known),
        cases: (known.len(), cases.len()),
    }
}

fn case(
    values: &Values<'_>,
    comparison: &Comparison,
    value: &Value,
    workload: &str,
    size: &str,
) -> Option<f64> {
    let of = |system: &str| values.value(system, workload, size).ok();
    let ours = of(&value.system);
    let Some(baseline) = &value.baseline else { return ours };
    let other = if baseline == "best" {
        let others = comparison.systems.iter().filter(|system| **system != value.system);
        let known: Vec<f64> = others.filter_map(|system| of(system)).collect();
        known.into_iter().reduce(|one, two| if values.metric.advantage(one, two) > 1.0 { one } else { two })
    } else {
        of(baseline)
    };
    let ratio = values.metric.advantage(ours?, other?);
    Some(if value.factor { ratio } else { 100.0 * (ratio - 1.0) })
}

fn stat_words(stat: Stat) -> &'static str {
    match stat {
        Stat::Mean => "(mean)",
        Stat::Geomean => "(geometric mean)",
        Stat::Max => "(most)",
        Stat::Min => "(least)",
    }
}

/// Gathers percentages; a geometric mean is that of the factors that they stand for.
fn gather(stat: Stat, known: &[f64]) -> Option<f64> {
    let count = known.len() as f64;
    match stat {
        _ if known.is_empty() => None,
        Stat::Mean => Some(known.iter().sum::<f64>() / count),
        Stat::Geomean => {
            let logarithms = known.iter().map(|percent| (1.0 + percent / 100.0).ln());
            Some(100.0 * ((logarithms.sum::<f64>() / count).exp() - 1.0))
        }
        Stat::Max => known.iter().copied().reduce(f64::max),
        Stat::Min => known.iter().copied().reduce(f64::min),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_gathered_as_the_paper_does() {
        let known = [0.0, 300.0];
        assert_eq!(gather(Stat::Mean, &known), Some(150.0));
        assert!((gather(Stat::Geomean, &known).expect("two cases") - 100.0).abs() < 1e-9);
        assert_eq!((gather(Stat::Max, &known), gather(Stat::Min, &known)), (Some(300.0), Some(0.0)));
        assert_eq!(gather(Stat::Mean, &[]), None);
    }
}
