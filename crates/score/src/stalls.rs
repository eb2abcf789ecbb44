//! Quality of stall predictions: correlations with the core model's truth, and MLP by Little's law beside
//! that of the queue, with all memory in the slow tier.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use isotherm_core::TierId;
use isotherm_machine::Profile;
use isotherm_sim::{
    Criticality, Loaded, PageStall, SimulateError, TierStall, Truth, WindowStall, pearson, stall_window,
};
use rayon::prelude::*;

use crate::figures::{EVERY, Predictor};
use crate::key::{RunKey, TestbedKey};
use crate::metric::Metric;
use crate::run::{Failure, apply, load, profile, scale};

const SLOW: TierId = TierId(1);

/// Truths that several values are computed from, each found once.
#[derive(Debug, Default)]
pub(crate) struct Truths(Mutex<BTreeMap<TestbedKey, Arc<Told>>>);

/// The core model's truth about a stream, and how many threads that has.
#[derive(Debug)]
struct Told {
    truth: Truth,
    threads: f64,
}

impl Truths {
    fn of(&self, key: &TestbedKey) -> Result<Arc<Told>, Failure> {
        match self.known(key) {
            Some(told) => Ok(told),
            None => self.of_placed(key, &Placed::new(key)?),
        }
    }

    fn of_placed(&self, key: &TestbedKey, placed: &Placed) -> Result<Arc<Told>, Failure> {
        if let Some(told) = self.known(key) {
            return Ok(told);
        }
        let threads = placed.loaded.input.stream.threads as f64;
        let told = Arc::new(Told { truth: placed.truth()?, threads });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), told.clone());
        Ok(told)
    }

    fn known(&self, key: &TestbedKey) -> Option<Arc<Told>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }
}

#[derive(Debug)]
pub(crate) struct Case<'a> {
    /// Its run with all memory slow. [`EVERY`] stands for every workload.
    pub(crate) key: &'a RunKey,
    pub(crate) predictor: Option<Predictor>,
}

struct Placed {
    loaded: Loaded,
    profile: Profile,
    scale: isotherm_core::parameters::Scale,
    seed: u64,
}

impl Placed {
    fn new(key: &TestbedKey) -> Result<Self, Failure> {
        let (loaded, profile) = (load(&key.stream)?, profile(key)?);
        let scale = scale(key, &loaded)?;
        Ok(Self { loaded, profile, scale, seed: key.seed })
    }

    fn criticality(&self) -> Result<Criticality<'_>, SimulateError> {
        Criticality::new(&self.loaded.input, &self.profile, self.scale, self.seed)
    }

    fn truth(&self) -> Result<Truth, Failure> {
        Ok(self.criticality()?.truth(SLOW, stall_window(self.scale)))
    }
}

impl Case<'_> {
    pub(crate) fn value(&self, metric: Metric, truths: &Truths) -> Result<f64, Failure> {
        let found = match metric {
            Metric::WorkloadStalls => self.workloads(truths)?,
            Metric::Mlp => {
                self.windows(truths, |mlps| Some(mean(mlps.iter().map(|&(predicted, _)| predicted))))?
            }
            Metric::MlpTrend => self.windows(truths, pearson)?,
            Metric::PageStalls => self.pages(truths)?,
            _ => return Err("no prediction".into()),
        };
        found.ok_or_else(|| "one of the two does not vary".into())
    }

    fn pages(&self, truths: &Truths) -> Result<Option<f64>, Failure> {
        let placed = Placed::new(&self.key.testbed)?;
        let entry = isotherm_policies::find(&self.key.policy)?;
        let mut parameters = entry.parameters();
        apply(&mut parameters, &self.key.set, 0)?;
        let mut pages = truths.of_placed(&self.key.testbed, &placed)?.truth.pages.clone();
        placed.criticality()?.measure(&parameters, &mut pages)?;
        Ok(PageStall::rank_correlation(&pages))
    }

    fn workloads(&self, truths: &Truths) -> Result<Option<f64>, Failure> {
        let predict: fn(&TierStall) -> f64 = match self.predictor {
            Some(Predictor::Equation) => |tier| tier.serial_misses,
            Some(Predictor::Misses) => |tier| tier.misses as f64,
            _ => return Err("nothing that predicts the stalls of workloads".into()),
        };
        let names = isotherm_workloads::ALL.iter().map(|workload| workload.name);
        let names: Vec<&str> =
            names.filter(|name| [EVERY, name].contains(&self.key.testbed.stream.workload.as_str())).collect();
        let pair = |name: &&str| {
            let mut key = self.key.testbed.clone();
            key.stream.workload = (*name).to_owned();
            let tier = truths.of(&key)?.truth.tier;
            // A working set that fits the cache says nothing.
            Ok((tier.misses > 0).then(|| (predict(&tier), tier.stall.0 as f64)))
        };
        let pairs = names.par_iter().map(pair).collect::<Result<Vec<_>, Failure>>()?;
        Ok(pearson(&pairs.into_iter().flatten().collect::<Vec<_>>()))
    }

    /// Gathers each window's MLP of a core, as predicted and by the queue.
    fn windows(
        &self,
        truths: &Truths,
        gather: fn(&[(f64, f64)]) -> Option<f64>,
    ) -> Result<Option<f64>, Failure> {
        let told = truths.of(&self.key.testbed)?;
        let predict = |window: &WindowStall| match self.predictor {
            Some(Predictor::Equation) => Ok(window.parallelism),
            Some(Predictor::LittlesLaw) => Ok(window.littles_law() / told.threads),
            _ => Err("nothing that predicts the MLP of windows"),
        };
        let pair = |window: &WindowStall| Ok((predict(window)?, window.parallelism));
        let pairs = told.truth.windows.iter().map(pair).collect::<Result<Vec<_>, Failure>>()?;
        Ok(gather(&pairs))
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Settings;
    use crate::key::StreamKey;

    fn settings(of: &[(&str, &str)]) -> Settings {
        of.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// Without a prefetcher, streams are sampled as often as chases.
    /// A machine on which latencies alone cost time.
    const PLAIN: &[(&str, &str)] = &[
        ("core.l2_registers", "0"),
        ("tlb.first_entries", "1073741824"),
        ("costs.sample", "0ns"),
        ("costs.buffered_sample", "0ns"),
        ("costs.sample_rate_limit", "1000000000"),
        ("costs.sample_time_limit", "0%"),
    ];

    fn key(workload: &str, policy: &[(&str, &str)], own_pace: bool) -> RunKey {
        let stream = StreamKey {
            workload: workload.into(),
            set: settings(&[("preset", "test")]),
            accesses: 2_000_000,
            huge: false,
            seed: 1,
            own_pace: own_pace.then(|| ("pact".into(), settings(PLAIN))),
        };
        let testbed = TestbedKey {
            stream,
            machine: "pact".into(),
            machine_set: settings(PLAIN),
            reference: None,
            reference_threads: None,
            scale: None,
            intervals: 20,
            rounds: None,
            seed: 1,
        };
        RunKey { testbed, fast: "0%".into(), policy: "pact".into(), set: settings(policy) }
    }

    fn of(key: &RunKey, predictor: Option<Predictor>, metric: Metric) -> Result<f64, String> {
        Case { key, predictor }.value(metric, &Truths::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn times_shrink_by_the_runs_threads_over_the_papers() {
        let mut testbed = key("masim", &[], false).testbed;
        let loaded = crate::run::load(&testbed.stream).expect("it loads");
        testbed.reference = Some("4G".into());
        let mut of = |threads| {
            testbed.reference_threads = threads;
            crate::run::scale(&testbed, &loaded).expect("a size")
        };
        let (as_run, usual) = (of(Some(2)), of(None));
        assert_eq!(as_run.time, as_run.footprint, "the paper's two threads");
        assert_eq!((usual.footprint, usual.time), (as_run.footprint, (as_run.time / 8.0).round()));
    }

    #[test]
    fn at_their_own_pace_pac_tells_a_chase_from_a_traversal_and_counts_do_not() {
        let pages = |score, own_pace| {
            let key = key("masim", &[("sampling_period", "20"), ("score", score)], own_pace);
            of(&key, None, Metric::PageStalls).expect("both vary")
        };
        let (pac, counts, in_turns) = (pages("pac", true), pages("frequency", true), pages("pac", false));
        assert!(pac > 0.6 && counts < 0.3, "{pac} {counts}");
        assert!(in_turns < 0.3, "{in_turns}: threads in turns leave every window the same");
    }

    #[test]
    fn with_a_prefetcher_samples_alone_tell_a_chase_from_a_traversal() {
        let mut key = key("masim", &[("sampling_period", "20"), ("score", "frequency")], false);
        key.testbed.machine_set = settings(&[("costs.sample", "0ns")]);
        let counts = of(&key, None, Metric::PageStalls).expect("both vary");
        assert!(counts > 0.6, "{counts}");
    }

    #[test]
    fn littles_law_follows_the_queue_and_counts_prefetches_too() {
        let mut key = key("bwaves", &[], false);
        let both = |key: &RunKey, metric| {
            [Predictor::LittlesLaw, Predictor::Equation]
                .map(|predictor| of(key, Some(predictor), metric).expect("there are windows"))
        };
        let [alone, queue] = both(&key, Metric::Mlp);
        assert!((0.5..1.0).contains(&(alone / queue)), "it counts idle time: {alone} {queue}");
        assert_eq!(both(&key, Metric::MlpTrend)[1], 1.0, "the queue's with itself");
        key.testbed.machine_set.remove("core.l2_registers");
        let [law, queue] = both(&key, Metric::Mlp);
        assert!(law > 2.0 * queue, "it counts prefetches: {law} {queue}");
        assert!(of(&key, Some(Predictor::Misses), Metric::Mlp).is_err());
    }

    #[test]
    fn one_workload_alone_is_no_series() {
        let key = key("masim", &[], false);
        let alone = of(&key, Some(Predictor::Equation), Metric::WorkloadStalls);
        assert_eq!(alone, Err("one of the two does not vary".into()));
    }
}
