//! Carries a plan out, one stream at a time with all its runs in parallel.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use isotherm_core::parameters::{Parameters, REFERENCE_THREADS, Scale};
use isotherm_core::{Bytes, PageSize, TierId};
use isotherm_machine::Profile;
use isotherm_sim::{
    AllFast as Known, Experiment, FastSize, Length, Loaded, SimulateError, Testbed, load_workload,
    replay_memory,
};
use isotherm_workloads::Workload;
use rayon::prelude::*;

use crate::figures::Settings;
use crate::key::{RunKey, StreamKey, TestbedKey};
use crate::outcome::{AllFast, Outcome};
use crate::stalls::Truths;

#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    pub workload: &'a str,
    pub stream: usize,
    pub streams: usize,
    /// Approximate accesses replayed so far, over all runs.
    pub done: u64,
    pub total: u64,
}

/// Windows of its slowest control loop that a policy has in a judged run.
pub(crate) const WINDOWS: u64 = 60;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Default)]
pub struct Results {
    /// Each run's outcome, or one line that says why it is missing.
    outcomes: BTreeMap<RunKey, Result<Outcome, String>>,
    /// Every run that was asked for and is missing.
    asked: RefCell<BTreeSet<RunKey>>,
    /// Values computed without a run, by their arguments.
    pub(crate) computed: RefCell<BTreeMap<String, Result<f64, String>>>,
    /// Times of streams with all memory fast, by testbeds without their seed and the costs of tiering.
    all_fast: BTreeMap<TestbedKey, Known>,
    /// Stalls with all memory slow.
    pub(crate) truths: Truths,
    pub(crate) dry: bool,
}

impl Results {
    pub(crate) fn dry() -> Self {
        Self { dry: true, ..Self::default() }
    }

    pub(crate) fn asked(self) -> BTreeSet<RunKey> {
        self.asked.into_inner()
    }

    #[cfg(test)]
    pub(crate) fn of(outcomes: impl Iterator<Item = (RunKey, Outcome)>) -> Self {
        Self { outcomes: outcomes.map(|(key, outcome)| (key, Ok(outcome))).collect(), ..Self::default() }
    }

    pub(crate) fn outcome(&self, key: &RunKey) -> Result<&Outcome, String> {
        match self.outcomes.get(key) {
            Some(outcome) => outcome.as_ref().map_err(Clone::clone),
            None => {
                self.asked.borrow_mut().insert(key.clone());
                Err("not run".into())
            }
        }
    }

    pub(crate) fn rest(&mut self) -> Plan {
        Plan { runs: std::mem::take(self.asked.get_mut()) }
    }

    pub(crate) fn extend(&mut self, further: Self) {
        self.outcomes.extend(further.outcomes);
        self.all_fast.extend(further.all_fast);
    }
}

/// Returns a stream's approximate cost in accesses: one generation, and one replay per run.
fn weight(stream: &StreamKey, runs: usize) -> u64 {
    let all = isotherm_workloads::find(&stream.workload).map_or(u64::MAX, |workload| workload.accesses);
    stream.accesses.min(all) * (runs as u64 + 4)
}

/// The runs that a request needs, each once.
#[derive(Debug)]
pub struct Plan {
    pub(crate) runs: BTreeSet<RunKey>,
}

impl Plan {
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    pub fn streams(&self) -> usize {
        self.runs.iter().map(|run| &run.testbed.stream).collect::<BTreeSet<_>>().len()
    }

    /// Returns about how much memory the largest of its streams takes, with its runs.
    ///
    /// # Errors
    /// A stream whose workload refuses its settings.
    pub fn memory(&self) -> Result<Bytes, Failure> {
        let streams: BTreeSet<&StreamKey> = self.runs.iter().map(|run| &run.testbed.stream).collect();
        let memory = |key: &StreamKey| -> Result<u64, Failure> {
            let (workload, parameters) = key.workload()?;
            let footprint = workload.build(&parameters, key.seed)?.footprint();
            let pages = footprint.0 >> key.page_size().shift();
            let replay = replay_memory(key.accesses, pages, rayon::current_num_threads() as u64);
            Ok(workload.memory(&parameters, footprint).0.saturating_add(replay.0))
        };
        streams.into_iter().try_fold(Bytes(0), |most, key| Ok(most.max(Bytes(memory(key)?))))
    }

    /// Runs all; `before` are results of other runs.
    pub fn run(&self, before: &Results, progress: &mut dyn FnMut(Progress<'_>)) -> Results {
        let mut streams: BTreeMap<&StreamKey, Vec<&RunKey>> = BTreeMap::new();
        for run in &self.runs {
            streams.entry(&run.testbed.stream).or_default().push(run);
        }
        let total = streams.iter().map(|(stream, runs)| weight(stream, runs.len())).sum();
        let (mut results, mut done) = (Results::default(), 0);
        let mut all_fast = before.all_fast.clone();
        let count = streams.len();
        for (index, (stream, runs)) in streams.into_iter().enumerate() {
            progress(Progress { workload: &stream.workload, stream: index, streams: count, done, total });
            done += weight(stream, runs.len());
            let outcomes = match run_stream(stream, &runs, &mut all_fast) {
                Ok(outcomes) => outcomes,
                Err(why) => vec![Err(why.to_string()); runs.len()],
            };
            results.outcomes.extend(runs.into_iter().cloned().zip(outcomes));
        }
        results.all_fast = all_fast;
        results
    }
}

/// Applies a paper's settings, the preset first because it would undo the others. `N*fast` is N for each of
/// the `fast` pages of this run's fast tier, which is not scaled.
pub(crate) fn apply(parameters: &mut Parameters, settings: &Settings, fast: u64) -> Result<(), Failure> {
    let (preset, others): (Vec<_>, Vec<_>) = settings.iter().partition(|(key, _)| key.as_str() == "preset");
    preset.into_iter().chain(others).try_for_each(|(key, value)| {
        match value.strip_suffix("*fast").map(str::parse::<u64>) {
            None => parameters.set_as_published(key, value)?,
            Some(Ok(each)) => parameters.set(key, &(each * fast).to_string())?,
            Some(Err(_)) => return Err(format!("{key}: '{value}' is no multiple of the fast tier").into()),
        }
        Ok(())
    })
}

impl StreamKey {
    fn workload(&self) -> Result<(&'static Workload, Parameters), Failure> {
        let workload = isotherm_workloads::find(&self.workload)?;
        let mut parameters = workload.parameters();
        apply(&mut parameters, &self.set, 0)?;
        Ok((workload, parameters))
    }

    fn page_size(&self) -> PageSize {
        if self.huge { PageSize::Huge } else { PageSize::Base }
    }
}

pub(crate) fn load(key: &StreamKey) -> Result<Loaded, Failure> {
    let (workload, parameters) = key.workload()?;
    let mut go_on = |_| ControlFlow::Continue(());
    let mut loaded =
        load_workload(workload, parameters, key.page_size(), key.seed, key.accesses, &mut go_on)?;
    if let Some((machine, set)) = &key.own_pace {
        let profile = machine_of(machine, set)?;
        loaded.input.stream = loaded.input.stream.at_own_pace(&profile, TierId(1));
    }
    Ok(loaded)
}

pub(crate) fn profile(key: &TestbedKey) -> Result<Profile, Failure> {
    machine_of(&key.machine, &key.machine_set)
}

fn machine_of(name: &str, set: &Settings) -> Result<Profile, Failure> {
    let mut profile = Profile::builtin(name)?;
    for (path, value) in set {
        profile.set(path, value)?;
    }
    profile.check()?;
    Ok(profile)
}

pub(crate) fn scale(key: &TestbedKey, loaded: &Loaded) -> Result<Scale, Failure> {
    match (key.scale, &key.reference) {
        (Some(by), _) => Ok(Scale { footprint: by.into(), time: by.into() }),
        (None, Some(reference)) => Ok(loaded
            .input
            .scale(reference.parse()?, key.reference_threads.map_or(REFERENCE_THREADS, f64::from))),
        (None, None) => Ok(loaded.scale),
    }
}

/// Generates a stream and replays it for each of `runs`; the results are in their order.
/// Adds to `all_fast` what is not known there yet.
fn run_stream(
    stream: &StreamKey,
    runs: &[&RunKey],
    all_fast: &mut BTreeMap<TestbedKey, Known>,
) -> Result<Vec<Result<Outcome, String>>, Failure> {
    let loaded = load(stream)?;
    let keys: Vec<&TestbedKey> =
        runs.iter().map(|run| &run.testbed).collect::<BTreeSet<_>>().into_iter().collect();
    let profiles = keys.iter().map(|key| profile(key)).collect::<Result<Vec<_>, _>>()?;
    let scales = keys.iter().map(|key| scale(key, &loaded)).collect::<Result<Vec<_>, _>>()?;
    let experiments: Vec<Experiment<'_>> = keys
        .iter()
        .zip(profiles.iter().zip(scales))
        .map(|(key, (profile, scale))| Experiment {
            policies: Vec::new(),
            sizes: Vec::new(),
            profile,
            seed: key.seed,
            scale,
            intervals: key.intervals,
            version: "",
            stop: None,
        })
        .collect();
    let mut unknown: BTreeMap<TestbedKey, &Experiment<'_>> =
        keys.iter().map(|key| key.all_fast()).zip(&experiments).collect();
    unknown.retain(|key, _| !all_fast.contains_key(key));
    let measured = unknown.into_par_iter().map(|(key, experiment)| {
        let testbed = Testbed::new(&loaded.input, experiment)?;
        let testbed = match length(&key) {
            Some(length) => testbed.lengthened(length)?,
            None => testbed,
        };
        Ok((key, testbed.all_fast()))
    });
    all_fast.extend(measured.collect::<Result<Vec<_>, SimulateError>>()?);
    let testbed = |(key, experiment): (&&TestbedKey, _)| {
        let known = all_fast.get(&key.all_fast()).cloned().ok_or("no such machine")?;
        Ok(Testbed::beside(&loaded.input, experiment, length(key), known)?)
    };
    let testbeds = keys.iter().zip(&experiments).map(testbed).collect::<Result<Vec<_>, Failure>>()?;
    let run = |run: &&RunKey| {
        let testbed = keys.iter().position(|&key| *key == run.testbed).map(|index| &testbeds[index]);
        let outcome = run_one(testbed.ok_or("no such machine")?, &loaded, run);
        outcome.map_err(|error| error.to_string())
    };
    let outcomes = runs.par_iter().map(run).collect();
    // Later streams need the memory.
    all_fast.values_mut().for_each(Known::forget_lookups);
    Ok(outcomes)
}

fn length(key: &TestbedKey) -> Option<Length> {
    key.rounds.map(|accesses| Length::Loops { loops: WINDOWS, accesses })
}

fn run_one(testbed: &Testbed<'_>, loaded: &Loaded, run: &RunKey) -> Result<Outcome, Failure> {
    let entry = isotherm_policies::find(&run.policy)?;
    let fast = FastSize::parse(&run.fast)?.pages(&loaded.input.stream)?;
    let mut parameters = entry.parameters();
    apply(&mut parameters, &run.set, fast.0)?;
    let result = testbed.run(entry, &parameters, fast)?;
    Ok(Outcome::new(&result, &AllFast { ends: testbed.all_fast_ends(), long: testbed.all_fast_long() }))
}

#[cfg(test)]
mod tests {
    use isotherm_core::parameters::Value;
    use isotherm_core::{Bytes, Nanos};

    use super::*;

    fn hybridtier(key: &str, value: &str) -> Result<Parameters, Failure> {
        let mut parameters = isotherm_policies::find("hybridtier")?.parameters();
        apply(&mut parameters, &Settings::from([(key.into(), value.into())]), 100)?;
        parameters.scale(Scale { footprint: 10.0, time: 10.0 });
        Ok(parameters)
    }

    #[test]
    fn neither_seed_nor_costs_of_tiering_change_a_run_with_all_memory_fast() {
        let stream = StreamKey {
            workload: "masim".into(),
            set: Settings::from([("preset".into(), "test".into())]),
            accesses: 200_000,
            huge: false,
            seed: 1,
            own_pace: None,
        };
        let plain = TestbedKey {
            stream,
            machine: "pact".into(),
            machine_set: Settings::new(),
            reference: None,
            reference_threads: None,
            scale: None,
            intervals: 20,
            rounds: None,
            seed: 1,
        };
        let loaded = load(&plain.stream).expect("it loads");
        let ends = |key: &TestbedKey| {
            let profile = profile(key).expect("a machine");
            let experiment = Experiment {
                policies: Vec::new(),
                sizes: Vec::new(),
                profile: &profile,
                seed: key.seed,
                scale: scale(key, &loaded).expect("a scale"),
                intervals: key.intervals,
                version: "",
                stop: None,
            };
            Testbed::new(&loaded.input, &experiment).expect("it runs").all_fast_ends().to_vec()
        };
        for probe in crate::evidence::all().probes {
            let other = TestbedKey { machine_set: probe.machine, seed: 3, ..plain.clone() };
            assert_eq!(other.all_fast(), plain.all_fast());
            assert_eq!(ends(&other), ends(&plain), "{}", probe.id);
        }
        let walks = Settings::from([("costs.cached_touch".into(), "9ns".into())]);
        let other = TestbedKey { machine_set: walks, ..plain.clone() };
        assert_ne!(other.all_fast(), plain.all_fast(), "page walks are the program's own");
    }

    #[test]
    fn a_papers_value_is_scaled_and_one_for_each_fast_page_is_not() {
        let value = |key, text| hybridtier(key, text).expect("valid").value(key);
        assert_eq!(value("filter_bytes", "16*fast"), Some(Value::Size(Bytes(1600))));
        assert_eq!(value("revisit", "10s"), Some(Value::Duration(Nanos(1_000_000_000))));
        assert!(
            hybridtier("filter_bytes", "many*fast")
                .is_err_and(|error| error.to_string().contains("filter_bytes"))
        );
    }
}
