//! Reads a result of any verb as facts on its input and runs with figures.

use isotherm_core::{Bytes, Nanos};
use isotherm_policies::registry::BASELINE;
use serde::Serialize;
use serde_json::Value;

use super::CompareError;
use crate::format::{count, factor, percent, printable, shortened};

/// Characters of a fact that are shown.
const SHOWN: usize = 60;

/// The verb that made a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Simulation,
    Sizing,
    LiveRun,
    LabRun,
}

impl Kind {
    fn of(root: &Value) -> Option<Self> {
        let has = |pointer: &str| root.pointer(pointer).is_some();
        match () {
            () if has("/runs") && has("/input/name") => Some(Self::Simulation),
            () if has("/policies") && has("/budget") => Some(Self::Sizing),
            () if has("/policy") && has("/tiers") => Some(Self::LiveRun),
            () if has("/runs/0/tiering") => Some(Self::LabRun),
            () => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Simulation => "simulation",
            Self::Sizing => "sizing",
            Self::LiveRun => "live run",
            Self::LabRun => "lab run",
        }
    }
}

/// A result, as it stands in its file.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) file: String,
    pub(super) kind: Kind,
    pub(super) root: Value,
}

/// One policy of a result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Run {
    pub(super) policy: String,
    /// The size of the fast tier as it was asked for; empty where the kind has none.
    pub(super) fast: String,
    #[serde(skip)]
    pub(super) value: Value,
}

impl Run {
    /// Returns the policy, or the baseline for the lab's run without tiering.
    pub(super) fn policy(&self) -> &str {
        if self.policy == "none" { BASELINE } else { &self.policy }
    }

    /// Returns policy and size as in a sentence.
    pub(super) fn name(&self) -> String {
        let policy = shortened(&printable(&self.policy), SHOWN);
        if self.fast.is_empty() { policy } else { format!("{policy} {}", shortened(&self.fast, 20)) }
    }
}

/// Something that went into a result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fact {
    /// Name, with its group before the first dot if it has one: `machine.tier.1.latency`.
    pub(super) name: String,
    pub(super) value: Value,
    /// Whether a real machine told it, a little different each time.
    found: bool,
}

/// Facts by the places in which the kinds of results tell them.
const FACTS: [(&str, &[&str]); 19] = [
    ("isotherm", &["/version"]),
    ("binary", &["/manifest/binary", "/runs/*/manifest/binary"]),
    ("input", &["/input/name", "/program", "/runs/*/program"]),
    ("contents", &["/manifest/input", "/runs/*/manifest/input"]),
    ("policy", &["/policy"]),
    ("machine", &["/manifest/machine", "/machine/name", "/runs/*/machine"]),
    ("kernel", &["/manifest/kernel", "/runs/*/kernel"]),
    ("free DRAM", &["/manifest/free_dram_bytes", "/runs/*/manifest/free_dram_bytes"]),
    ("page size", &["/input/page_size", "/page_size", "/runs/*/page_size", "/runs/*/engine/page_size"]),
    ("seed", &["/input/seed", "/seed", "/runs/*/engine/seed"]),
    ("scale", &["/input/scale", "/scale", "/runs/*/engine/scale"]),
    ("scale of times", &["/input/time_scale", "/time_scale", "/runs/*/engine/time_scale"]),
    ("accesses", &["/input/accesses"]),
    ("threads", &["/input/threads"]),
    ("footprint", &["/input/footprint_bytes"]),
    ("budget", &["/budget"]),
    ("rounds", &["/length/rounds", "/runs/*/long_run/rounds"]),
    ("shadow", &["/shadow"]),
    ("start", &["/runs/*/start"]),
];

/// Facts that a real machine tells, and the share by which they differ without meaning.
const FOUND: [&str; 3] = ["free DRAM", "scale", "scale of times"];
const NEAR: f64 = 0.05;

/// Groups of facts, by the places of their maps.
const GROUPS: [(&str, &[&str]); 4] = [
    ("library", &["/manifest/policy_libraries", "/runs/*/manifest/policy_libraries"]),
    ("option", &["/manifest/options", "/runs/*/manifest/options"]),
    ("input", &["/input/parameters"]),
    ("origin", &["/input/provenance"]),
];

/// Returns the first of the places that holds anything; `/runs/*` is any run.
fn first<'a>(root: &'a Value, pointers: &[&str]) -> Option<&'a Value> {
    let there = |value: &'a Value, pointer: &str| value.pointer(pointer).filter(|value| !value.is_null());
    pointers.iter().find_map(|pointer| match pointer.strip_prefix("/runs/*") {
        Some(rest) => list(root, "/runs").iter().find_map(|run| there(run, rest)),
        None => there(root, pointer),
    })
}

fn list<'a>(root: &'a Value, pointer: &str) -> &'a [Value] {
    root.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl Outcome {
    /// Reads a result from the text of its file.
    pub(super) fn read(file: &str, text: &str) -> Result<Self, CompareError> {
        let expected = "expected what `--json` or `--summary` of simulate, size, run, attach or lab wrote";
        let refused = |what: String| CompareError(format!("{file}: {what}: {expected}"));
        let root: Value =
            serde_json::from_str(text).map_err(|error| refused(format!("no JSON ({error})")))?;
        let kind = Kind::of(&root).ok_or_else(|| refused("not a result".into()))?;
        Ok(Self { file: file.into(), kind, root })
    }

    /// Returns the policies that it tells of.
    pub(super) fn runs(&self) -> Vec<Run> {
        let run = |policy: &str, value: &Value| Run {
            policy: text(value, policy),
            fast: text(value, "fast"),
            value: value.clone(),
        };
        match self.kind {
            Kind::Simulation => list(&self.root, "/runs").iter().map(|value| run("policy", value)).collect(),
            Kind::Sizing => list(&self.root, "/policies").iter().map(|value| run("policy", value)).collect(),
            Kind::LiveRun => vec![run("policy", &self.root)],
            Kind::LabRun => list(&self.root, "/runs").iter().map(|value| run("tiering", value)).collect(),
        }
    }

    /// Returns what went into it, in a fixed order.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let real = matches!(self.kind, Kind::LiveRun | Kind::LabRun);
        let fact = |name: String, value: &Value| {
            let found = real && FOUND.contains(&name.as_str());
            Fact { name, value: value.clone(), found }
        };
        let mut facts = vec![fact("kind".into(), &self.kind.name().into())];
        for (name, pointers) in FACTS {
            facts.extend(first(&self.root, pointers).map(|value| fact(name.into(), value)));
        }
        let mut group = |group: &str, map: Option<&Value>| {
            let entries = map.and_then(Value::as_object).into_iter().flatten();
            facts.extend(entries.map(|(key, value)| fact(format!("{group}.{key}"), value)));
        };
        for (name, pointers) in GROUPS {
            group(name, first(&self.root, pointers));
        }
        let mut known: Vec<String> = Vec::new();
        for run in self.runs() {
            if !known.contains(&run.policy) {
                group(&run.policy, first(&run.value, &["/parameters", "/engine/parameters"]));
                known.push(run.policy);
            }
        }
        let numbers = list(&self.root, "/machine/numbers").iter();
        facts.extend(
            numbers.map(|number| fact(format!("machine.{}", text(number, "path")), &number["value"])),
        );
        let sources: Vec<_> =
            list(&self.root, "/sources").iter().map(|source| text(source, "name")).collect();
        if !sources.is_empty() {
            facts.push(fact("sources".into(), &sources.join(", ").into()));
        }
        facts
    }

    /// Returns what it is, in a few words.
    pub(super) fn title(&self) -> String {
        let facts = self.facts();
        let of = |word: &str, name: &str| {
            let fact = facts.iter().find(|fact| fact.name == name);
            fact.map_or_else(String::new, |fact| format!(" {word} {}", fact.shown()))
        };
        format!("{}: {}{}{}", printable(&self.file), self.kind.name(), of("of", "input"), of("on", "machine"))
    }

    /// Returns the result's own advice, in the words of a sentence; `None` where it gives none.
    pub(super) fn advice(&self) -> Option<String> {
        let verdict = self.root.get("verdict")?;
        match (verdict["advice"].as_str()?, verdict["policy"].as_str()) {
            ("tier", Some(policy)) => Some(format!("use {}", shortened(&printable(policy), SHOWN))),
            ("do-not-tier", _) => Some("do not tier".into()),
            _ => None,
        }
    }

    /// Returns why a live run saw too little to tell; `None` if it did not, and for other kinds.
    pub(super) fn doubt(&self, least: u64) -> Option<String> {
        if self.kind != Kind::LiveRun {
            return None;
        }
        if self.root["missing"].is_object() {
            return Some("too little was seen to tell its hit ratio".into());
        }
        let seen: u64 = list(&self.root, "/tiers").iter().filter_map(|tier| tier["hits"].as_u64()).sum();
        (seen < least).then(|| format!("{seen} accesses seen do not tell"))
    }
}

impl Fact {
    /// Returns whether the other says the same, or nearly the same of what a machine told.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let near = |one: f64, other: f64| (one - other).abs() <= NEAR * one.max(other);
        let numbers = self.value.as_f64().zip(other.value.as_f64()).filter(|_| self.found && other.found);
        numbers.map_or(self.value == other.value, |(one, other)| near(one, other))
    }

    /// Returns the group, if the name has one.
    pub(super) fn group(&self) -> Option<&str> {
        self.name.split_once('.').map(|(group, _)| group)
    }

    /// Returns the value for readers.
    pub(super) fn shown(&self) -> String {
        let words = |words: &[Value]| words.iter().map(plain).collect::<Vec<_>>().join(" ");
        let text = match (&self.value, self.value.as_u64()) {
            (_, Some(bytes)) if matches!(self.name.as_str(), "footprint" | "free DRAM") => {
                Bytes(bytes).to_string()
            }
            (Value::Array(list), _) => words(list),
            (value, _) => plain(value),
        };
        shortened(&printable(&text), SHOWN)
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Unit {
    Factor,
    Share,
    Ns,
    Bytes,
    Count,
}

impl Unit {
    pub(super) fn shown(self, value: f64) -> String {
        match self {
            Self::Factor => factor(value),
            Self::Share => percent(value),
            Self::Ns => Nanos(value as u64).to_string(),
            Self::Bytes => Bytes(value as u64).to_string(),
            Self::Count => count(value as u64),
        }
    }

    /// Returns the second value against the first: shares by their difference, others relative to the first.
    pub(super) fn change(self, from: f64, to: f64) -> Option<f64> {
        match self {
            Self::Share => Some(to - from),
            _ if from == to => Some(0.0),
            _ => Some(to / from - 1.0).filter(|change| change.is_finite()),
        }
    }

    pub(super) fn shown_change(self, change: Option<f64>) -> String {
        match (self, change) {
            (_, None) => "-".into(),
            (_, Some(0.0)) => "same".into(),
            (Self::Share, Some(change)) => format!("{:+.1} points", 100.0 * change),
            (_, Some(change)) => format!("{:+.1} %", 100.0 * change),
        }
    }
}

/// Whether less or more of a figure is better; `None` where neither is.
pub(super) type Good = Option<std::cmp::Ordering>;

/// A number of a run that several kinds of results tell.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) good: Good,
    pub(super) get: fn(&Value) -> Option<f64>,
}

const LESS: Good = Some(std::cmp::Ordering::Less);
const MORE: Good = Some(std::cmp::Ordering::Greater);

/// Name of the figure that all kinds but sizings tell.
pub(super) const HITS: &str = "hit ratio";
/// Name of the figure of bytes copied.
pub(super) const MOVED: &str = "moved";

/// Figures; of those that tell better from worse, the first decides.
pub(super) const FIGURES: [Figure; 16] = [
    figure("DRAM needed", Unit::Bytes, LESS, |run| number(run, &["/recommended/fast_bytes"])),
    figure("long run", Unit::Factor, LESS, |run| number(run, &["/long_run/slowdown"])),
    figure("slowdown", Unit::Factor, LESS, |run| number(run, &["/slowdown"])),
    figure("modelled time", Unit::Ns, LESS, |run| number(run, &["/modelled_ns", "/measured/modelled_ns"])),
    figure("slowdown at most", Unit::Factor, LESS, |run| number(run, &["/slowdown_at_most"])),
    figure(HITS, Unit::Share, MORE, |run| number(run, &["/hit_ratio", "/measured/hit_ratio"])),
    figure("final hit ratio", Unit::Share, MORE, |run| number(run, &["/final_hit_ratio"])),
    figure("slowdown there", Unit::Factor, None, |run| number(run, &["/recommended/slowdown"])),
    figure("fast memory", Unit::Bytes, None, |run| number(run, &["/fast_bytes", "/tiers/0/capacity_bytes"])),
    figure("footprint", Unit::Bytes, None, |run| number(run, &["/footprint_bytes"])),
    figure("promoted", Unit::Count, None, |run| {
        number(run, &["/promotions", "/traffic/promotions", "/engine/traffic/promotions"])
            .or_else(|| number(run, &["/counts/damon/promoted", "/counts/promoted"]))
    }),
    figure("demoted", Unit::Count, None, demoted),
    figure(MOVED, Unit::Bytes, None, |run| {
        number(run, &["/bytes_moved", "/traffic/bytes_moved", "/engine/traffic/bytes_moved"])
    }),
    figure("samples", Unit::Count, None, |run| number(run, &["/measured/samples/taken", "/samples"])),
    figure("metadata", Unit::Bytes, None, |run| {
        number(run, &["/metadata_bytes", "/engine/metadata_bytes", "/engine/engine/metadata_bytes"])
    }),
    figure("tiering CPU", Unit::Ns, None, |run| {
        number(run, &["/tiering_cpu_ns", "/engine/cpu_ns", "/engine/engine/cpu_ns"])
    }),
];

const fn figure(name: &'static str, unit: Unit, good: Good, get: fn(&Value) -> Option<f64>) -> Figure {
    Figure { name, unit, good, get }
}

fn number(run: &Value, pointers: &[&str]) -> Option<f64> {
    first(run, pointers)?.as_f64()
}

/// Returns the pages demoted by name and, in the lab, those of the kernel's reclaim.
fn demoted(run: &Value) -> Option<f64> {
    let named = ["/demotions", "/traffic/demotions", "/engine/traffic/demotions", "/counts/damon/demoted"];
    let (named, reclaimed) = (number(run, &named), number(run, &["/counts/demoted"]));
    named.or(reclaimed.map(|_| 0.0)).map(|pages| pages + reclaimed.unwrap_or(0.0))
}
