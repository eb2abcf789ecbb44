//! Finds the run that a workload, a size and a system of a paper stand for, and its value.

use isotherm_workloads::Incomparable;

use crate::figures::{Comparison, EVERY, Effect, Paper, Settings};
use crate::key::{RunKey, StreamKey, TestbedKey};
use crate::metadata::metadata_percent;
use crate::metric::Metric;
use crate::outcome::Outcome;
use crate::request::Mode;
use crate::run::{Results, WINDOWS};
use crate::stalls::Case;

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Missing {
    #[error(transparent)]
    NotComparable(#[from] Incomparable),
    #[error("too short: {0:.3} windows; expected {WINDOWS}")]
    TooShort(f64),
    #[error("{0}")]
    NotYet(String),
}

impl From<String> for Missing {
    fn from(why: String) -> Self {
        Self::NotYet(why)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    pub(crate) paper: &'a Paper,
    pub(crate) mode: Mode,
    pub(crate) results: &'a Results,
    pub(crate) machine: &'a str,
    pub(crate) huge: bool,
    pub(crate) metric: Metric,
    pub(crate) after: f64,
    pub(crate) switched: Option<&'a Effect>,
    /// Added to the seed of sampling and policies.
    pub(crate) reseed: u64,
}

const ALLOCATOR: &str = "allocator";

fn over(settings: &Settings, others: &Settings) -> Settings {
    let mut merged = settings.clone();
    merged.extend(others.iter().map(|(key, value)| (key.clone(), value.clone())));
    merged
}

impl<'a> Values<'a> {
    pub(crate) fn new(paper: &'a Paper, metric: Metric, mode: Mode, results: &'a Results) -> Self {
        let (machine, after) = (paper.machine.as_str(), paper.after);
        Self { paper, mode, results, machine, huge: false, metric, after, switched: None, reseed: 0 }
    }

    pub(crate) fn of(paper: &'a Paper, comparison: &'a Comparison, mode: Mode, results: &'a Results) -> Self {
        Self {
            machine: comparison.machine(paper),
            huge: comparison.huge,
            after: comparison.after(paper),
            ..Self::new(paper, comparison.metric, mode, results)
        }
    }

    /// Returns the run of a system on a workload at a size, or the names that it lacks.
    fn key(&self, system: &str, workload: &str, size: &str) -> Result<RunKey, String> {
        let of_paper =
            |what: &str, name: &str| format!("the file of {} has no {what} {name}", self.paper.name);
        let ours = self.paper.workload.get(workload).ok_or_else(|| of_paper("workload", workload))?;
        let policy = self.paper.system.get(system).ok_or_else(|| of_paper("system", system))?;
        let fast = ours.sizes.get(size).ok_or_else(|| of_paper("size", size))?;
        let no_workload = ours.name != EVERY && isotherm_workloads::find(&ours.name).is_err();
        let no_policy = isotherm_policies::find(&policy.policy).is_err();
        if no_workload || no_policy {
            let workload = no_workload.then(|| format!("workload {}", ours.name));
            let policy = no_policy.then(|| format!("policy {}", policy.policy));
            return Err([workload, policy].into_iter().flatten().collect::<Vec<_>>().join(", "));
        }
        let nothing = Settings::new();
        let effect = |of: fn(&Effect) -> &Settings| self.switched.map_or(&nothing, of);
        let quick = if self.mode.quick { &ours.quick } else { &nothing };
        let limit = if self.mode.quick { ours.quick_accesses } else { ours.accesses };
        let mut set = over(&over(&ours.set, quick), effect(|effect| &effect.workload_set));
        if let (Some(theirs), Some(allocator)) = (&policy.allocator, set.get_mut(ALLOCATOR)) {
            allocator.clone_from(theirs);
        }
        // A hot set that changes within the stream would change back with each round.
        let changes = ours.change_at.is_some();
        let stream = StreamKey {
            workload: ours.name.clone(),
            set,
            accesses: limit.unwrap_or(self.mode.accesses()),
            huge: self.huge || self.switched.is_some_and(|effect| effect.huge),
            seed: self.mode.seed,
            own_pace: ours.own_pace.then(|| (self.machine.to_owned(), ours.machine.clone())),
        };
        let testbed = TestbedKey {
            stream,
            machine: self.machine.into(),
            machine_set: over(&ours.machine, effect(|effect| &effect.machine)),
            reference: ours.reference.clone(),
            reference_threads: ours.reference_threads,
            scale: self.switched.and_then(|effect| effect.scale),
            intervals: self.metric.intervals(),
            rounds: (!changes).then(|| self.mode.most_accesses(self.switched.is_some())),
            seed: self.mode.seed + self.reseed,
        };
        let set = over(&policy.set, effect(|effect| &effect.set));
        Ok(RunKey { testbed, fast: fast.clone(), policy: policy.policy.clone(), set })
    }

    /// Returns a run's outcome. A workload whose pace is not the original's is not run: its speeds, and how
    /// often a policy gets to act in them, would be another program's.
    pub(crate) fn outcome(&self, system: &str, workload: &str, size: &str) -> Result<&'a Outcome, Missing> {
        let key = self.key(system, workload, size)?;
        let ours =
            isotherm_workloads::find(&key.testbed.stream.workload).map_err(|error| error.to_string())?;
        ours.pace().comparable(self.machine)?;
        Ok(self.results.outcome(&key)?)
    }

    pub(crate) fn value(&self, system: &str, workload: &str, size: &str) -> Result<f64, Missing> {
        if self.metric.computed() {
            return Ok(self.computed(system, workload, size)?);
        }
        let change_at = self.paper.workload.get(workload).and_then(|ours| ours.change(self.mode.quick));
        let value = self.metric.of(self.outcome(system, workload, size)?, self.after, change_at);
        value.ok_or_else(|| Missing::NotYet("the run does not tell".into()))
    }

    /// Returns the same where it may be judged: of a run that holds enough windows. A quick run need not, nor
    /// one in which something is switched.
    pub(crate) fn judged(&self, system: &str, workload: &str, size: &str) -> Result<f64, Missing> {
        let value = self.value(system, workload, size)?;
        if self.mode.quick || self.metric.computed() || self.switched.is_some() {
            return Ok(value);
        }
        match self.outcome(system, workload, size)?.windows {
            Some(windows) if windows < WINDOWS as f64 => Err(Missing::TooShort(windows)),
            _ => Ok(value),
        }
    }

    /// Returns a value that no run tells, computed once.
    fn computed(&self, system: &str, workload: &str, size: &str) -> Result<f64, String> {
        let key = self.key(system, workload, size)?;
        let (ours, theirs) = (&self.paper.workload[workload], &self.paper.system[system]);
        let reference = ours.reference.as_deref();
        if self.metric == Metric::Metadata && reference.is_none() {
            return Err("the paper's footprint is not given".into());
        }
        if self.results.dry {
            return Err("not run".into());
        }
        let case = Case { key: &key, predictor: theirs.predictor };
        let compute = || match (self.metric, reference) {
            (Metric::Metadata, Some(reference)) => {
                metadata_percent(&key.policy, &key.set, reference, &key.fast)
            }
            _ => case.value(self.metric, &self.results.truths),
        };
        let name = format!("{:?} {reference:?} {case:?}", self.metric);
        if let Some(known) = self.results.computed.borrow().get(&name) {
            return known.clone();
        }
        let value = compute().map_err(|error| error.to_string());
        self.results.computed.borrow_mut().insert(name, value.clone());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::papers;
    use crate::outcome::Part;

    /// Runs of four windows of a control loop were judged like any other.
    #[test]
    fn a_run_of_too_few_windows_has_a_figure_and_is_not_judged() {
        let papers = papers();
        let paper = papers.iter().find(|paper| paper.name == "freqtier").expect("a paper");
        let judged = |windows: f64, quick: bool| {
            let mode = Mode { quick, seed: 1 };
            let of = |results: &Results, judge: bool| {
                let values = Values::new(paper, Metric::HitRatio, mode, results);
                let case = ("freqtier", "cdn", "1:8");
                if judge {
                    values.judged(case.0, case.1, case.2)
                } else {
                    values.value(case.0, case.1, case.2)
                }
            };
            let none = Results::default();
            of(&none, false).expect_err("not run");
            let parts = vec![Part { accesses: 10.0, time: 1.0, all_fast: 1.0, loads: 10.0, load_hits: 5.0 }];
            let outcome = || Outcome { windows: Some(windows), parts: parts.clone(), ..Outcome::default() };
            let results = Results::of(none.asked().into_iter().map(|key| (key, outcome())));
            assert_eq!(of(&results, false), Ok(50.0));
            of(&results, true)
        };
        assert_eq!(judged(60.0, false), Ok(50.0));
        assert_eq!(judged(59.9, false), Err(Missing::TooShort(59.9)));
        assert_eq!(judged(4.0, true), Ok(50.0), "a quick run is no evidence, and says so");
    }
}
