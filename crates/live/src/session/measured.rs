//! Figures of what sources cost and find on this machine, by which a session chooses among them.
//!
//! `make sources` runs the program with the planted hot set under every source and writes the file. Without
//! it, sources are taken in the order in which [`candidates`](super::candidates::candidates) lists them.

use std::cmp::Ordering;
use std::path::Path;

use isotherm_core::Signals;
use isotherm_linux::LinuxError;
use isotherm_linux::files::Tree;
use serde_json::Value;

use super::candidates::Candidate;

const FILE: &str = "/var/lib/isotherm/sources.json";

/// Figures of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    pub name: String,
    /// Share of the program's processor time that it lost to the source.
    pub cost: f64,
    /// Share of the planted hot set that was found.
    pub found: f64,
}

/// Reads the figures below `root`; none where nothing was measured.
pub(super) fn read(root: &Path) -> Result<Vec<Measured>, LinuxError> {
    let expected = "figures of sources, as `make sources` writes them";
    Ok(Tree::new(root).parsed_if_there(FILE, expected, parse)?.unwrap_or_default())
}

fn parse(text: &str) -> Option<Vec<Measured>> {
    let file: Value = serde_json::from_str(text).ok()?;
    let share = |source: &Value, of: &str| source[of].as_f64().filter(|share| (0.0..=1.0).contains(share));
    let measured = |source: &Value| {
        let name = source["name"].as_str()?.to_owned();
        Some(Measured { name, cost: share(source, "cost")?, found: share(source, "found")? })
    };
    file["sources"].as_array()?.iter().map(measured).collect()
}

/// Puts the candidates that were measured in the order of their worth, at the places that they hold among the
/// others: first those that lack fewest of the `needs`, then those that cost at most `budget`, and of these
/// the one that finds most.
pub(super) fn order<'a>(
    candidates: Vec<Candidate<'a>>,
    needs: Signals,
    measured: &[Measured],
    budget: f64,
) -> Vec<Candidate<'a>> {
    let of = |candidate: &Candidate<'_>| measured.iter().find(|measured| measured.name == candidate.name);
    let places: Vec<bool> = candidates.iter().map(|candidate| of(candidate).is_some()).collect();
    let (mut known, others): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|candidate| of(candidate).is_some());
    let lacks = |candidate: &Candidate<'_>| needs.missing(candidate.offers).count();
    known.sort_by(|one, other| {
        let worth = of(one).zip(of(other)).map(|(one, other)| compare(one, other, budget));
        lacks(one).cmp(&lacks(other)).then(worth.unwrap_or(Ordering::Equal))
    });
    let (mut known, mut others) = (known.into_iter(), others.into_iter());
    places.into_iter().filter_map(|place| if place { known.next() } else { others.next() }).collect()
}

fn compare(one: &Measured, other: &Measured, budget: f64) -> Ordering {
    let [first, second] = [one, other].map(|measured| measured.cost > budget);
    let worth = match first {
        true => one.cost.total_cmp(&other.cost),
        false => other.found.total_cmp(&one.found).then(one.cost.total_cmp(&other.cost)),
    };
    first.cmp(&second).then(worth)
}

/// Says why a source was chosen: what it was measured to find and to cost, and the others. `None` if it was
/// not measured.
pub(super) fn why(chosen: &str, measured: &[Measured]) -> Option<String> {
    let (own, others): (Vec<_>, Vec<_>) = measured.iter().partition(|measured| measured.name == chosen);
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let own = own.first()?;
    let (found, cost) = (percent(own.found), percent(own.cost));
    let mut text =
        format!("measured here, it found {found} of a planted hot set for {cost} of the program's time");
    for other in others {
        text += &format!("; {}: {} for {}", other.name, percent(other.found), percent(other.cost));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use isotherm_core::Signal;

    use super::*;

    fn measured(name: &str, cost: f64, found: f64) -> Measured {
        Measured { name: name.into(), cost, found }
    }

    fn ordered(needs: Signals, measured: &[Measured], budget: f64) -> Vec<&'static str> {
        let loads = Signals::NONE.with(Signal::LoadSamples);
        let list = [
            ("pmu", loads.with(Signal::StoreSamples)),
            ("hint-faults", loads.with(Signal::StoreSamples)),
            ("idle-pages", loads),
            ("device", Signals::NONE.with(Signal::DeviceHotPages)),
            ("damon", loads),
        ];
        let candidate =
            |(name, offers)| Candidate { name, offers, open: Box::new(|| Err(LinuxError::Ended(0))) };
        let candidates = list.into_iter().map(candidate).collect();
        order(candidates, needs, measured, budget).iter().map(|candidate| candidate.name).collect()
    }

    #[test]
    fn what_finds_most_within_the_budget_comes_first() {
        let loads = Signals::NONE.with(Signal::LoadSamples);
        let figures = |damon: f64| {
            let others = [measured("hint-faults", 0.02, 0.7), measured("idle-pages", 0.004, 0.6)];
            [&others[..], &[measured("damon", damon, 0.9)]].concat()
        };
        let listed = ["pmu", "hint-faults", "idle-pages", "device", "damon"];
        assert_eq!(ordered(loads, &[], 0.02), listed, "nothing was measured");
        let best = ["pmu", "damon", "hint-faults", "device", "idle-pages"];
        assert_eq!(ordered(loads, &figures(0.01), 0.02), best);
        assert_eq!(
            ordered(loads, &figures(0.03), 0.02),
            ["pmu", "hint-faults", "idle-pages", "device", "damon"]
        );
        assert_eq!(
            ordered(loads, &figures(0.03), 0.001),
            ["pmu", "idle-pages", "hint-faults", "device", "damon"]
        );
        // A source that lacks a signal would need another beside it.
        assert_eq!(ordered(loads.with(Signal::StoreSamples), &figures(0.01), 0.02)[1], "hint-faults");
    }

    #[test]
    fn equal_finds_go_to_the_cheaper_source() {
        let loads = Signals::NONE.with(Signal::LoadSamples);
        let figures = [measured("hint-faults", 0.01, 0.7), measured("damon", 0.002, 0.7)];
        assert_eq!(ordered(loads, &figures, 0.02), ["pmu", "damon", "idle-pages", "device", "hint-faults"]);
    }

    #[test]
    fn the_file_is_read_or_told() {
        let root = tempfile::tempdir().expect("a directory");
        assert!(read(root.path()).expect("nothing measured").is_empty());
        let path = root.path().join(&FILE[1..]);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        let text =
            r#"{"memory_bytes": 4294967296, "sources": [{"name": "damon", "cost": 0.004, "found": 0.5}]}"#;
        std::fs::write(&path, text).expect("written");
        assert_eq!(read(root.path()).expect("figures"), [measured("damon", 0.004, 0.5)]);
        for wrong in ["", "{}", &text.replace("0.004", "4"), &text.replace("found", "fund")] {
            std::fs::write(&path, wrong).expect("written");
            let error = read(root.path()).expect_err("no figures").to_string();
            assert!(error.contains("as `make sources` writes them"), "{error}");
        }
    }

    #[test]
    fn the_reason_names_the_figures() {
        let figures = [measured("hint-faults", 0.012, 0.83), measured("damon", 0.004, 0.511)];
        let text = "measured here, it found 83.0 % of a planted hot set for 1.2 % of the program's time; damon: 51.1 % for 0.4 %";
        assert_eq!(why("hint-faults", &figures).as_deref(), Some(text));
        assert_eq!(why("pmu", &figures), None);
    }
}
