//! Defines how a plan is carried out: a stream at a time, all its runs in parallel.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use isotherm_core::parameters::{Parameters, REFERENCE_THREADS, Scale};
use isotherm_core::{Bytes, PageSize, TierId};
use isotherm_machine::Profile;
use isotherm_sim::{Experiment, FastSize, Loaded, Testbed, load_workload};
use rayon::prelude::*;

use crate::figures::Settings;
use crate::key::{BenchKey, RunKey, StreamKey};
use crate::outcome::Outcome;
use crate::plan::Plan;

/// How far a plan has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The workload whose stream is next.
    pub workload: &'a str,
    /// Streams done.
    pub stream: usize,
    /// Streams in all.
    pub streams: usize,
    /// Accesses replayed over all runs, about.
    pub done: u64,
    /// The same of the whole plan.
    pub total: u64,
}

/// A run's numbers, or in one line why there are none.
type RunStats = Result<Outcome, String>;

/// What came of a plan's runs.
#[derive(Debug, Default)]
pub struct Results {
    outcomes: BTreeMap<RunKey, RunStats>,
    /// Every run that was asked for and is not there.
    asked: RefCell<BTreeSet<RunKey>>,
    /// What was computed without a run, by what it was computed from.
    pub(crate) computed: RefCell<BTreeMap<String, Result<f64, String>>>,
    /// Whether nothing is to be computed.
    pub(crate) dry: bool,
}

impl Results {
    pub(crate) fn dry() -> Self {
        Self { dry: true, ..Self::default() }
    }

    pub(crate) fn asked(self) -> BTreeSet<RunKey> {
        self.asked.into_inner()
    }

    /// A run's numbers.
    pub(crate) fn outcome(&self, key: &RunKey) -> Result<&Outcome, String> {
        match self.outcomes.get(key) {
            Some(outcome) => outcome.as_ref().map_err(Clone::clone),
            None => {
                self.asked.borrow_mut().insert(key.clone());
                Err("not run".into())
            }
        }
    }

    /// The runs that were asked for in vain since the last call.
    pub(crate) fn rest(&mut self) -> Plan {
        Plan { runs: std::mem::take(self.asked.get_mut()) }
    }

    /// Adds what came of further runs.
    pub(crate) fn extend(&mut self, further: Self) {
        self.outcomes.extend(further.outcomes);
    }
}

/// What a stream costs, about, in accesses: it is generated, and replayed for each run.
fn weight(stream: &StreamKey, runs: usize) -> u64 {
    let all = isotherm_workloads::find(&stream.workload).map_or(u64::MAX, |workload| workload.accesses);
    stream.accesses.min(all) * (runs as u64 + 4)
}

impl Plan {
    /// Carries the plan out. A run that fails is a result too: it says why.
    pub fn run(&self, progress: &mut dyn FnMut(Progress<'_>)) -> Results {
        let mut streams: BTreeMap<&StreamKey, Vec<&RunKey>> = BTreeMap::new();
        for run in &self.runs {
            streams.entry(&run.bench.stream).or_default().push(run);
        }
        let total = streams.iter().map(|(stream, runs)| weight(stream, runs.len())).sum();
        let (mut results, mut done) = (Results::default(), 0);
        let count = streams.len();
        for (index, (stream, runs)) in streams.into_iter().enumerate() {
            progress(Progress { workload: &stream.workload, stream: index, streams: count, done, total });
            done += weight(stream, runs.len());
            let outcomes = match run_stream(stream, &runs) {
                Ok(outcomes) => outcomes,
                Err(why) => vec![Err(why); runs.len()],
            };
            results.outcomes.extend(runs.into_iter().cloned().zip(outcomes));
        }
        results
    }
}

/// Sets every setting as a paper gives it, the preset first: it would undo the others. `N*fast` is N for each of the
/// `fast` pages of the fast tier, which is of this run and not of the paper's.
pub(crate) fn apply(parameters: &mut Parameters, settings: &Settings, fast: u64) -> Result<(), String> {
    let (preset, others): (Vec<_>, Vec<_>) = settings.iter().partition(|(key, _)| key.as_str() == "preset");
    preset.into_iter().chain(others).try_for_each(|(key, value)| {
        let set = match value.strip_suffix("*fast").map(str::parse::<u64>) {
            None => parameters.set_as_published(key, value),
            Some(Ok(each)) => parameters.set(key, &(each * fast).to_string()),
            Some(Err(_)) => return Err(format!("{key}: '{value}' is no multiple of the fast tier")),
        };
        set.map_err(|error| error.to_string())
    })
}

pub(crate) fn load(key: &StreamKey) -> Result<Loaded, String> {
    let workload = isotherm_workloads::find(&key.workload).map_err(|error| error.to_string())?;
    let mut parameters = workload.parameters();
    apply(&mut parameters, &key.set, 0)?;
    let page_size = if key.huge { PageSize::Huge } else { PageSize::Base };
    let mut go_on = |_| ControlFlow::Continue(());
    let mut loaded = load_workload(workload, parameters, page_size, key.seed, key.accesses, &mut go_on)
        .map_err(|error| error.to_string())?;
    if let Some((machine, set)) = &key.own_pace {
        let profile = machine_of(machine, set)?;
        loaded.input.stream = loaded.input.stream.at_own_pace(&profile, TierId(1));
    }
    Ok(loaded)
}

pub(crate) fn profile(key: &BenchKey) -> Result<Profile, String> {
    machine_of(&key.machine, &key.machine_set)
}

fn machine_of(name: &str, set: &Settings) -> Result<Profile, String> {
    let mut profile = Profile::builtin(name).map_err(|error| error.to_string())?;
    for (path, value) in set {
        profile.set(path, value).map_err(|error| error.to_string())?;
    }
    profile.check().map_err(|error| error.to_string())?;
    Ok(profile)
}

/// By how much a run is smaller than the paper's.
pub(crate) fn scale(key: &BenchKey, loaded: &Loaded) -> Result<Scale, String> {
    match (key.scale, &key.reference) {
        (Some(by), _) => Ok(Scale { footprint: by.into(), time: by.into() }),
        (None, Some(reference)) => {
            let bytes: Bytes =
                reference.parse().map_err(|error: isotherm_core::ParseUnitError| error.to_string())?;
            Ok(loaded.input.scale(bytes, key.reference_threads.map_or(REFERENCE_THREADS, f64::from)))
        }
        (None, None) => Ok(loaded.scale),
    }
}

/// Generates a stream and replays it for each of `runs`; the results are in their order.
fn run_stream(stream: &StreamKey, runs: &[&RunKey]) -> Result<Vec<RunStats>, String> {
    let loaded = load(stream)?;
    let stores = loaded.input.stream.accesses.iter().map(|access| u64::from(access.store)).sum::<u64>();
    let program_bytes = 64 * (loaded.input.stream.accesses.len() as u64 + stores);
    let keys: Vec<&BenchKey> =
        runs.iter().map(|run| &run.bench).collect::<BTreeSet<_>>().into_iter().collect();
    let profiles = keys.iter().map(|key| profile(key)).collect::<Result<Vec<_>, _>>()?;
    let scales = keys.iter().map(|key| scale(key, &loaded)).collect::<Result<Vec<_>, _>>()?;
    let experiments: Vec<Experiment<'_>> = keys
        .iter()
        .zip(profiles.iter().zip(scales))
        .map(|(key, (profile, scale))| Experiment {
            policies: Vec::new(),
            sizes: Vec::new(),
            profile,
            machine: profile.summary(),
            seed: key.seed,
            scale,
            intervals: key.intervals,
            version: "",
        })
        .collect();
    let benches = experiments
        .par_iter()
        .map(|experiment| Testbed::new(&loaded.input, experiment).map_err(|error| error.to_string()))
        .collect::<Result<Vec<_>, _>>()?;
    let bench_of = |run: &RunKey| keys.iter().position(|&key| *key == run.bench).map(|index| &benches[index]);
    let ran = |run: &&RunKey| {
        let bench = bench_of(run).ok_or("no such machine")?;
        run_one(bench, &loaded, run, program_bytes)
    };
    Ok(runs.par_iter().map(ran).collect())
}

fn run_one(bench: &Testbed<'_>, loaded: &Loaded, run: &RunKey, program_bytes: u64) -> RunStats {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let entry = isotherm_policies::find(&run.policy).map_err(|error| text(&error))?;
    let size = FastSize::parse(&run.fast).map_err(|error| text(&error))?;
    let fast = size.pages(&loaded.input.stream).map_err(|error| text(&error))?;
    let mut parameters = entry.parameters();
    apply(&mut parameters, &run.set, fast.0)?;
    let result = bench.run(entry, &parameters, fast).map_err(|error| text(&error))?;
    Ok(Outcome::new(&result, bench.all_fast_ends().iter().map(|end| end.0).collect(), program_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hybridtier(key: &str, value: &str) -> Result<Parameters, String> {
        let mut parameters =
            isotherm_policies::find("hybridtier").map_err(|error| error.to_string())?.parameters();
        apply(&mut parameters, &Settings::from([(key.into(), value.into())]), 100)?;
        parameters.scale(Scale { footprint: 10.0, time: 10.0 });
        Ok(parameters)
    }

    #[test]
    fn a_papers_value_is_scaled_and_one_for_each_fast_page_is_not() {
        let bytes = hybridtier("filter_bytes", "16*fast").expect("a size").size("filter_bytes");
        assert_eq!(bytes.0, 1600);
        let revisit = hybridtier("revisit", "10s").expect("a duration").duration("revisit");
        assert_eq!(revisit.0, 1_000_000_000);
        assert!(hybridtier("filter_bytes", "many*fast").is_err_and(|error| error.contains("filter_bytes")));
    }
}
