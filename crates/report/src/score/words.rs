//! The scoreboard in words and cells, the same in Markdown and HTML.

use isotherm_score::{
    Cell, EffectScore, Gain, Judged, Metric, PaperScore, Proof, Row, Scoreboard, Scored, System, Tally,
    Updated, Verdict,
};

use crate::format::{count, list};

/// Head of the summary.
pub(super) const SUMMARY: [&str; 9] = [
    "paper",
    "orderings",
    "kept",
    "tie",
    "not kept",
    "exempt by the paper",
    "not yet",
    "not comparable",
    "too short",
];
/// Head of an effect's table.
pub(super) const EFFECT: [&str; 4] = ["system", "as above", "switched", "difference"];
/// Head of gathered figures.
pub(super) const GAINS: [&str; 5] = ["figure", "paper", "ours", "ours / paper", "cases"];

/// Returns a row per paper, and one for all.
pub(super) fn summary(board: &Scoreboard) -> Vec<Vec<String>> {
    let row = |name: &str, tally: Tally| {
        let unjudged = [tally.not_yet, tally.not_comparable, tally.too_short];
        let all = tally.judged() + tally.exempt + unjudged.iter().sum::<usize>();
        let numbers =
            [[all, tally.kept, tally.tie, tally.not_kept, tally.exempt].as_slice(), &unjudged].concat();
        std::iter::once(name.to_owned()).chain(numbers.iter().map(usize::to_string)).collect()
    };
    let papers = board.papers.iter().map(|paper| row(&paper.title, paper.tally));
    papers.chain([row("all", board.tally)]).collect()
}

/// Returns the whole in a sentence.
pub(super) fn verdict(board: &Scoreboard) -> String {
    let Tally { kept, tie, not_yet, not_comparable, too_short, .. } = board.tally;
    let judged = board.tally.judged();
    format!(
        "{kept} of {judged} orderings kept, {tie} ties; {not_yet} not yet judged, {not_comparable} not \
         comparable, {too_short} too short."
    )
}

/// Says what was run, and how to run it again.
pub(super) fn provenance(board: &Scoreboard) -> String {
    let mode = if board.quick { " --quick" } else { "" };
    let seed = if board.seed == 1 { String::new() } else { format!(" --seed {}", board.seed) };
    let quick = if board.quick {
        " This is the quick run: shorter streams, fewer sizes, and policies that had less time to learn."
    } else {
        ""
    };
    let partial = if board.partial { " It is a part of the scoreboard only." } else { "" };
    format!("Isotherm {}, `isotherm score{mode}{seed}`, seed {}.{quick}{partial}", board.version, board.seed)
}

/// Formats a number with three digits.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if value.is_infinite() {
        "not reached".into()
    } else if value.is_nan() {
        "-".into()
    } else if size >= 10_000.0 {
        count(value as u64)
    } else {
        let decimals = if size >= 100.0 { 0 } else { 1 + usize::from(size < 10.0) + usize::from(size < 0.1) };
        format!("{value:.decimals$}")
    }
}

fn about(value: f64, about: bool) -> String {
    format!("{}{}", if about { "~" } else { "" }, number(value))
}

/// Returns the head of a comparison's table.
pub(super) fn columns(comparison: &Scored) -> Vec<String> {
    let fixed = ["workload", "fast tier", "order"].map(str::to_owned);
    let systems = comparison.systems.iter().map(|system| system.title.clone());
    fixed
        .into_iter()
        .chain(systems)
        .chain(["accesses, footprint, scale (times), windows".to_owned()])
        .collect()
}

/// Column of the verdicts on a row's orderings.
pub(super) const ORDER: usize = 2;

/// Returns a row of a comparison's table.
pub(super) fn cells(comparison: &Scored, row: &Row) -> Vec<String> {
    let run = row.run.as_ref().map_or("-".to_owned(), |run| {
        let (scale, times) = (count(run.scale as u64), count(run.time_scale as u64));
        let windows = run.windows.map_or_else(String::new, |windows| format!(", {}", number(windows)));
        format!("{}, {}, {scale} ({times}){windows}", count(run.accesses), run.footprint_bytes)
    });
    let fixed =
        [row.ours.clone(), format!("{} = {}", row.size, row.fast), tallied(verdicts(comparison, row))];
    let systems = row.cells.iter().map(cell);
    fixed.into_iter().chain(systems).chain([run]).collect()
}

/// Returns `paper → ours (ratio)`.
fn cell(cell: &Cell) -> String {
    let paper = cell.paper.map(|paper| about(paper, cell.about));
    let ours = cell.ours.map_or_else(|| missing(cell.missing.as_deref()), number);
    match (paper, cell.ratio()) {
        (Some(paper), Some(ratio)) => format!("{paper} → {ours} ({ratio:.2})"),
        (Some(paper), None) => format!("{paper} → {ours}"),
        (None, _) => ours,
    }
}

/// Returns the words in place of our figure. Row and column say which workload or policy is missing.
pub(super) fn missing(why: Option<&str>) -> String {
    let why = why.unwrap_or("not run");
    if why.starts_with("workload ") || why.starts_with("policy ") {
        "not yet".into()
    } else if why.starts_with("not comparable") {
        "not comparable".into()
    } else {
        format!("failed: {why}")
    }
}

/// Counts the verdicts on a row's orderings.
pub(super) fn verdicts(comparison: &Scored, row: &Row) -> Tally {
    let mut tally = Tally::default();
    let here = |judged: &&Judged| judged.workload == row.workload && judged.size == row.size;
    comparison.orderings.iter().filter(here).for_each(|judged| tally.count(judged.verdict));
    tally
}

/// Returns `5 kept, 1 tie`.
pub(super) fn tallied(tally: Tally) -> String {
    let parts = [
        (tally.kept, "kept"),
        (tally.tie, "tie"),
        (tally.not_kept, "not kept"),
        (tally.exempt, "exempt"),
        (tally.not_yet, "not yet"),
        (tally.not_comparable, "not comparable"),
        (tally.too_short, "too short"),
    ];
    let said = parts.iter().filter(|(number, _)| *number > 0);
    let said: Vec<String> = said.map(|(number, word)| format!("{number} {word}")).collect();
    if said.is_empty() { "-".into() } else { said.join(", ") }
}

/// Returns the cells of a figure over cases.
pub(super) fn gain(gain: &Gain) -> [String; 5] {
    let unit = if gain.unit.is_empty() { String::new() } else { format!(" {}", gain.unit) };
    let ratio = gain.ours.map(|ours| ours / gain.paper).filter(|ratio| ratio.is_finite());
    [
        gain.words.clone(),
        format!("{}{unit}", about(gain.paper, gain.about)),
        gain.ours.map_or("not yet".into(), |ours| format!("{}{unit}", number(ours))),
        ratio.map_or("-".into(), |ratio| format!("{ratio:.2}")),
        format!("{} of {}", gain.cases.0, gain.cases.1),
    ]
}

/// Says what the table of a comparison measures, and under which conditions.
pub(super) fn conditions(comparison: &Scored) -> String {
    let huge = if comparison.huge { ", pages of 2 MiB" } else { "" };
    let after = if comparison.after > 0.0 && !comparison.metric.computed() {
        format!(", without the first {:.0} % of the run", comparison.after * 100.0)
    } else {
        String::new()
    };
    let direction = if comparison.metric.higher_is_better() { "higher" } else { "lower" };
    let updated = comparison.updated.as_ref().map_or_else(String::new, updated);
    format!(
        "{}: {direction} is better. Machine {}{huge}{after}. A tie is within {:.1} %.{updated}",
        comparison.metric.words(),
        comparison.machine,
        comparison.margin * 100.0
    )
}

/// Says that a part was run later than the rest.
pub(super) fn updated(updated: &Updated) -> String {
    format!(" Run by itself on {} with Isotherm {}.", updated.date, updated.version)
}

/// Returns our names for the systems, with the reasons for their settings.
pub(super) fn systems(systems: &[System]) -> String {
    let said = systems.iter().map(|system| {
        let why = if system.why.is_empty() { String::new() } else { format!(" ({})", system.why) };
        format!("{}: `{}`{why}", system.title, system.policy)
    });
    format!("{}.", said.collect::<Vec<_>>().join("; "))
}

/// Orderings that are not kept for one reason.
pub(super) struct Failed<'a> {
    /// The reason.
    pub(super) evidence: Option<&'a Proof>,
    /// Pairs of systems, and the cases of each.
    pairs: Vec<(String, Vec<String>)>,
}

impl Failed<'_> {
    /// Returns a line per pair: `FreqTier > TPP: cdn 1:32 (0.95) and cdn 1:8 (0.90)`.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.pairs.iter().map(|(pair, cases)| format!("{pair}: {}", list(cases)))
    }
}

/// Returns how much better ours is, and the probes: `(0.80; hits 2.02, tiering free 1.12)`.
fn measured(judged: &Judged) -> String {
    let tried = judged.tried.iter().filter_map(|one| Some((one, one.advantage?)));
    let tried: Vec<String> = tried.map(|(one, by)| format!("{} {by:.2}", one.what)).collect();
    let tried = if tried.is_empty() { String::new() } else { format!("; {}", tried.join(", ")) };
    judged.advantage.map_or(String::new(), |by| format!(" ({by:.2}{tried})"))
}

/// Returns the orderings that are not kept, by reason.
pub(super) fn failed(comparison: &Scored) -> Vec<Failed<'_>> {
    let title = |id: &String| {
        let known = comparison.systems.iter().find(|system| system.id == *id);
        known.map_or_else(|| id.clone(), |system| system.title.clone())
    };
    let mut found: Vec<Failed<'_>> = Vec::new();
    for judged in comparison.orderings.iter().filter(|judged| judged.verdict == Verdict::NotKept) {
        let pair = format!("{} > {}", title(&judged.better), title(&judged.than));
        let case = format!("{} {}{}", judged.workload, judged.size, measured(judged));
        let evidence = comparison.proof(judged);
        let place = found.iter().position(|known| known.evidence == evidence);
        let place = place.unwrap_or_else(|| {
            found.push(Failed { evidence, pairs: Vec::new() });
            found.len() - 1
        });
        let pairs = &mut found[place].pairs;
        match pairs.iter_mut().find(|(known, _)| *known == pair) {
            Some((_, cases)) => cases.push(case),
            None => pairs.push((pair, vec![case])),
        }
    }
    found
}

/// Returns a row per system of an effect.
pub(super) fn effect(effect: &EffectScore) -> Vec<[String; 4]> {
    let row = |row: &isotherm_score::EffectRow| {
        let cell = |value: Option<f64>| value.map_or_else(|| missing(row.missing.as_deref()), number);
        let difference = row.with.zip(row.without).map(|(with, without)| without - with);
        let sign = |by: f64| format!("{}{}", if by > 0.0 { "+" } else { "" }, number(by));
        [row.system.clone(), cell(row.with), cell(row.without), difference.map_or("-".into(), sign)]
    };
    effect.rows.iter().map(row).collect()
}

/// Says how a paper's runs are measured.
pub(super) fn paper(paper: &PaperScore) -> String {
    let spread = |(metric, spread): &(Metric, f64)| format!("{} {:.1} %", metric.words(), spread * 100.0);
    let noise: Vec<String> = paper.noise.iter().map(spread).collect();
    let noise = if noise.is_empty() {
        "Noise over seeds was not measured".to_owned()
    } else {
        format!("Spread over three seeds: {}", noise.join("; "))
    };
    format!(
        "Machine `{}`. Sizes: {} Left out of each run: the first {:.0} % ({}). {noise}.",
        paper.machine,
        paper.sizes,
        paper.after * 100.0,
        paper.after_why
    )
}
