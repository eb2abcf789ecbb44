//! Defines how well stalls are predicted: correlations with what the core model knows, with all memory in the slow tier.

use isotherm_core::TierId;
use isotherm_machine::Profile;
use isotherm_sim::{Criticality, Loaded, PageStall, TierStall, Truth, WindowStall, pearson, stall_window};
use rayon::prelude::*;
use serde::Deserialize;

use crate::catalogue::EVERY;
use crate::key::{BenchKey, RunKey};
use crate::metric::Metric;
use crate::run::{apply, load, profile, scale};

/// Where everything is.
const SLOW: TierId = TierId(1);

/// What predicts the stalls of a workload, or of each window of one, where that is compared; all without the factor `k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Predictor {
    /// PACT's Equation 1: misses / MLP, by the queue's occupancy, T1 / T2.
    Equation,
    /// The same by bandwidth and latency; of windows only.
    LittlesLaw,
    /// Misses alone.
    Misses,
}

/// A system on a workload whose stalls are known.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    /// Its run with all memory slow. [`EVERY`] stands for every workload.
    pub(crate) key: &'a RunKey,
    pub(crate) predictor: Option<Predictor>,
}

/// A workload on its machine.
struct Placed {
    loaded: Loaded,
    profile: Profile,
    scale: isotherm_core::parameters::Scale,
    seed: u64,
}

impl Placed {
    fn new(key: &BenchKey) -> Result<Self, String> {
        let (loaded, profile) = (load(&key.stream)?, profile(key)?);
        let scale = scale(key, &loaded)?;
        Ok(Self { loaded, profile, scale, seed: key.seed })
    }

    fn bench(&self) -> Result<Criticality<'_>, String> {
        Criticality::new(&self.loaded.input, &self.profile, self.scale, self.seed)
            .map_err(|error| error.to_string())
    }

    fn truth(&self) -> Result<Truth, String> {
        Ok(self.bench()?.truth(SLOW, stall_window(self.scale)))
    }
}

impl Case<'_> {
    /// The correlation that `metric` asks for.
    pub(crate) fn correlation(&self, metric: Metric) -> Result<f64, String> {
        let found = match metric {
            Metric::WorkloadStalls => self.workloads()?,
            Metric::WindowStalls => self.windows()?,
            Metric::PageStalls => self.pages()?,
            _ => return Err("no correlation".into()),
        };
        found.ok_or_else(|| "one of the two does not vary".into())
    }

    fn pages(&self) -> Result<Option<f64>, String> {
        let placed = Placed::new(&self.key.bench)?;
        let entry = isotherm_policies::find(&self.key.policy).map_err(|error| error.to_string())?;
        let mut parameters = entry.parameters();
        apply(&mut parameters, &self.key.set, 0)?;
        let mut pages = placed.truth()?.pages;
        placed.bench()?.measure(&parameters, &mut pages).map_err(|error| error.to_string())?;
        Ok(PageStall::rank_correlation(&pages))
    }

    /// Over workloads: each one's predicted stalls against its own.
    fn workloads(&self) -> Result<Option<f64>, String> {
        let predict: fn(&TierStall) -> f64 = match self.predictor {
            Some(Predictor::Equation) => |tier| tier.serial_misses,
            Some(Predictor::Misses) => |tier| tier.misses as f64,
            _ => return Err("nothing that predicts the stalls of workloads".into()),
        };
        let names = isotherm_workloads::ALL.iter().map(|workload| workload.name);
        let names: Vec<&str> =
            names.filter(|name| [EVERY, name].contains(&self.key.bench.stream.workload.as_str())).collect();
        let pair = |name: &&str| {
            let mut key = self.key.bench.clone();
            key.stream.workload = (*name).to_owned();
            let tier = Placed::new(&key)?.truth()?.tier;
            // A working set that its cache holds has nothing to say.
            Ok((tier.misses > 0).then(|| (predict(&tier), tier.stall.0 as f64)))
        };
        let pairs = names.par_iter().map(pair).collect::<Result<Vec<_>, String>>()?;
        Ok(pearson(&pairs.into_iter().flatten().collect::<Vec<_>>()))
    }

    /// Over windows of one workload: each one's predicted stalls against its own.
    fn windows(&self) -> Result<Option<f64>, String> {
        let predict: fn(&WindowStall) -> f64 = match self.predictor {
            Some(Predictor::Equation) => |window| window.misses as f64 / window.parallelism,
            Some(Predictor::LittlesLaw) => |window| window.misses as f64 / window.littles_law(),
            Some(Predictor::Misses) => |window| window.misses as f64,
            None => return Err("nothing that predicts the stalls of windows".into()),
        };
        let truth = Placed::new(&self.key.bench)?.truth()?;
        let pairs: Vec<_> =
            truth.windows.iter().map(|window| (predict(window), window.stall.0 as f64)).collect();
        Ok(pearson(&pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Settings;
    use crate::key::StreamKey;

    fn settings(of: &[(&str, &str)]) -> Settings {
        of.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// Without a prefetcher, what streams is sampled as often as what chases.
    const UNPREFETCHED: &[(&str, &str)] = &[("core.l2_registers", "0"), ("costs.sample", "0ns")];

    fn key(workload: &str, policy: &[(&str, &str)], own_pace: bool) -> RunKey {
        let stream = StreamKey {
            workload: workload.into(),
            set: settings(&[("preset", "test")]),
            accesses: 2_000_000,
            huge: false,
            seed: 1,
            own_pace: own_pace.then(|| ("pact".into(), settings(UNPREFETCHED))),
        };
        let bench = BenchKey {
            stream,
            machine: "pact".into(),
            machine_set: settings(UNPREFETCHED),
            reference: None,
            reference_threads: None,
            scale: None,
            intervals: 20,
            seed: 1,
        };
        RunKey { bench, fast: "0%".into(), policy: "pact".into(), set: settings(policy) }
    }

    fn of(key: &RunKey, predictor: Option<Predictor>, metric: Metric) -> Result<f64, String> {
        Case { key, predictor }.correlation(metric)
    }

    #[test]
    fn times_shrink_by_the_runs_threads_over_the_papers() {
        let mut bench = key("masim", &[], false).bench;
        let loaded = crate::run::load(&bench.stream).expect("it loads");
        bench.reference = Some("4G".into());
        let mut of = |threads| {
            bench.reference_threads = threads;
            crate::run::scale(&bench, &loaded).expect("a size")
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
        key.bench.machine_set = settings(&[("costs.sample", "0ns")]);
        let counts = of(&key, None, Metric::PageStalls).expect("both vary");
        assert!(counts > 0.6, "{counts}");
    }

    #[test]
    fn the_queue_tells_the_stalls_of_windows() {
        let (key, windows) = (key("gapbs-bc-kron", &[], false), Metric::WindowStalls);
        assert!(of(&key, Some(Predictor::Equation), windows).expect("it varies") > 0.8);
        assert!(of(&key, None, windows).is_err());
    }

    #[test]
    fn one_workload_alone_is_no_series() {
        let key = key("masim", &[], false);
        let alone = of(&key, Some(Predictor::Equation), Metric::WorkloadStalls);
        assert_eq!(alone, Err("one of the two does not vary".into()));
    }
}
