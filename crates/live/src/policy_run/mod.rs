//! Runs a policy on a live host, sized by the memory in use. When memory outgrows it, it is rebuilt and shown
//! the last samples before it acts.

mod orders;

use std::time::Duration;

use isotherm_core::live_result::{LiveResult, Summary};
use isotherm_core::manifest::Manifest;
use isotherm_core::parameters::{Parameters, REFERENCE_FOOTPRINT, REFERENCE_THREADS, Scale};
use isotherm_core::{
    Allocation, Bytes, EngineError, EngineStatistics, Host, Pages, Policy, Sampling, SamplingRate, Signals,
    View,
};
use isotherm_policies::{BuildError, Entry, Kind, Setup};

use crate::control::Control;
use crate::host::{LiveHost, Pause};
use orders::Order;

#[cfg(fuzzing)]
pub use orders::fuzz as fuzz_order;

/// Samples a second per thread of policies that name no rate.
const DEFAULT_RATE: f64 = 100_000.0;

/// How often the control socket is polled while the engine is suspended.
const SUSPENDED_POLL: Duration = Duration::from_millis(10);

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("policy {0}: only the simulator can compute it (isotherm simulate); try {1}")]
    Bound(&'static str, &'static str),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A policy to run, with its parameters unscaled.
#[derive(Debug, Clone)]
pub struct PolicyRun {
    pub entry: &'static Entry,
    pub parameters: Parameters,
    pub seed: u64,
    /// Divisor of scaled parameters; derived from the memory in use and the source's rate if `None`.
    pub scale: Option<Scale>,
    /// The source's maximum rate in samples a second over all threads, if it has one.
    pub fastest: Option<u64>,
}

/// Statistics of a run over all policies that were built.
#[derive(Debug, Clone, Copy)]
pub struct RunStats {
    pub statistics: EngineStatistics,
    pub scale: Scale,
    /// How often the policy was rebuilt for more memory.
    pub resized: u32,
}

impl PolicyRun {
    /// Returns a run of the policy with default parameters and seed 1.
    pub fn new(entry: &'static Entry) -> Self {
        Self { entry, parameters: entry.parameters(), seed: 1, scale: None, fastest: None }
    }

    pub fn result(
        &self,
        program: Vec<String>,
        ran: &RunStats,
        summary: Summary,
        exit_status: Option<i32>,
    ) -> LiveResult {
        LiveResult {
            version: env!("CARGO_PKG_VERSION").into(),
            manifest: Manifest::default(),
            program,
            policy: self.entry.name.into(),
            parameters: self.scaled(ran.scale),
            seed: self.seed,
            scale: ran.scale.footprint,
            time_scale: ran.scale.time,
            resized: ran.resized,
            steps: ran.statistics.steps,
            samples: ran.statistics.samples,
            hint_faults: ran.statistics.faults,
            samples_lost: ran.statistics.lost,
            exit_status,
            summary,
        }
    }

    /// Returns the signals that the policy needs of a host.
    ///
    /// # Errors
    /// If the entry is a bound, or the policy cannot be built.
    pub fn needs(&self) -> Result<Signals, RunError> {
        Ok(self.probe()?.signals())
    }

    /// Returns the signals that the policy uses too where the host has them.
    ///
    /// # Errors
    /// As [`Self::needs`].
    pub fn uses(&self) -> Result<Signals, RunError> {
        Ok(self.probe()?.uses())
    }

    /// Returns the place that the policy has for new pages.
    ///
    /// # Errors
    /// As [`Self::needs`].
    pub fn allocation(&self) -> Result<Allocation, RunError> {
        Ok(self.probe()?.allocation())
    }

    /// Builds the policy to ask for what does not depend on the run.
    fn probe(&self) -> Result<Box<dyn Policy>, RunError> {
        let setup =
            Setup { pages: 0, fast: Pages(1), page_size: Default::default(), tiers: 2, seed: self.seed };
        self.build(&setup, Scale::NONE)
    }

    /// Runs the policy on the host until the programs end. Clients of the control socket may change
    /// parameters or replace the policy: `self` becomes the policy that ran last.
    ///
    /// # Errors
    /// If the policy cannot be built, or the host lacks a signal. Requests of clients are checked before.
    pub fn run(
        &mut self,
        host: &mut LiveHost,
        mut control: Option<&mut Control>,
    ) -> Result<RunStats, RunError> {
        let mut ran = RunStats { statistics: EngineStatistics::default(), scale: Scale::NONE, resized: 0 };
        host.resize_policy(self.scale.is_none());
        loop {
            ran.scale = self.scale(host)?;
            let mut policy = self.build(&setup(host, self.seed), ran.scale)?;
            host.begin_policy(policy.allocation());
            host.keep_policy(policy.grows());
            host.teach(policy.as_mut());
            let mut next = None;
            let statistics = isotherm_core::run(host, policy.as_mut(), |host, policy| {
                host.note(policy.metadata(), |gauges| policy.gauges(gauges));
                if let Some(control) = control.as_deref_mut() {
                    control.serve(|line| self.obey(line, host, policy, ran.scale, &mut next));
                    while host.suspended() && next.is_none() && host.idle(SUSPENDED_POLL) {
                        control.serve(|line| self.obey(line, host, policy, ran.scale, &mut next));
                    }
                }
                if next.is_some() {
                    host.replace_policy();
                }
            })?;
            ran.statistics.steps += statistics.steps;
            ran.statistics.samples += statistics.samples;
            ran.statistics.faults += statistics.faults;
            ran.statistics.lost += statistics.lost;
            match (host.pause(), next) {
                (Pause::Ended, _) => return Ok(ran),
                (_, Some(next)) => {
                    if next.entry.name != self.entry.name {
                        host.forget_samples();
                    }
                    *self = next;
                }
                _ => ran.resized += 1,
            }
        }
    }

    /// Answers a line; `next` receives the run that replaces this one.
    fn obey<P: Policy + ?Sized>(
        &self,
        line: &str,
        host: &mut LiveHost,
        policy: &P,
        scale: Scale,
        next: &mut Option<Self>,
    ) -> String {
        // Earlier requests count even before the engine has built their policy.
        let now = next.as_ref().unwrap_or(self).clone();
        let answer = orders::parse(line).and_then(|order| match order {
            Order::Status => Ok(orders::status(now.entry.name, host, next.is_none().then_some(policy))),
            Order::Machine => serde_json::to_string(&orders::machine(now.entry.name, host))
                .map_err(|error| error.to_string()),
            Order::Mappings => serde_json::to_string(&host.mappings()).map_err(|error| error.to_string()),
            Order::Limit(limit) => host.set_limit(limit).map(|()| String::new()),
            Order::Fast => Ok(orders::fast(host)),
            Order::Parameters => {
                let scale = if next.is_some() { now.scale(host) } else { Ok(scale) };
                Ok(orders::parameters(&now.scaled(scale.map_err(|error| error.to_string())?)))
            }
            Order::Set(key, value) => {
                *next = Some(now.with(&[(key, value)], host)?);
                Ok(String::new())
            }
            Order::Policy(name, settings) => {
                let entry = isotherm_policies::find(name).map_err(|error| error.to_string())?;
                let other = Self { entry, parameters: entry.parameters(), ..now };
                *next = Some(other.with(&settings, host)?);
                Ok(String::new())
            }
            Order::Suspend(suspended) => {
                host.suspend(suspended);
                Ok(String::new())
            }
        });
        match answer {
            Ok(text) => format!("ok\n{text}"),
            Err(why) => format!("error: {why}"),
        }
    }

    /// Changes parameters, if the result can run on the host.
    fn with(mut self, settings: &[(&str, &str)], host: &LiveHost) -> Result<Self, String> {
        for (key, value) in settings {
            let key = orders::own_key(self.entry.name, key)?;
            self.parameters.set(key, value).map_err(|error| error.to_string())?;
        }
        let needs = self.needs().map_err(|error| error.to_string())?;
        match needs.missing(host.offers()).next() {
            Some(signal) => {
                Err(format!("this run lacks {signal}, which the policy needs: {}", host.remedy(signal)))
            }
            None => Ok(self),
        }
    }

    fn build(&self, setup: &Setup, scale: Scale) -> Result<Box<dyn Policy>, RunError> {
        let Kind::Policy(build) = self.entry.kind else {
            return Err(RunError::Bound(self.entry.name, simplest_policy()));
        };
        Ok(build(&self.scaled(scale), setup)?)
    }

    fn scaled(&self, scale: Scale) -> Parameters {
        let mut parameters = self.parameters.clone();
        parameters.scale(scale);
        parameters
    }

    /// Returns by how much this run is smaller than the one that the parameters are for.
    fn scale(&self, host: &LiveHost) -> Result<Scale, RunError> {
        if let Some(scale) = self.scale {
            return Ok(scale);
        }
        let sampling = self.build(&setup(host, self.seed), Scale::NONE)?.sampling();
        let footprint = Bytes(host.footprint().0 << host.page_size().shift());
        Ok(Scale::of(footprint, REFERENCE_FOOTPRINT, self.threads(&sampling, host.running_threads())))
    }

    /// Returns the samples that can come as a fraction of those of the paper's threads, at most 1.
    fn threads(&self, sampling: &Sampling, running: Option<u64>) -> f64 {
        let asked = match sampling.rate {
            SamplingRate::Frequency(rate) => rate as f64,
            SamplingRate::Period(_) | SamplingRate::Off => DEFAULT_RATE,
        };
        let source = self.fastest.map_or(1.0, |fastest| fastest as f64 / asked / REFERENCE_THREADS);
        let program = running.map_or(1.0, |threads| threads as f64 / REFERENCE_THREADS);
        source.min(program).min(1.0)
    }
}

/// Returns the name of the registry's first policy that runs live: the simplest one.
fn simplest_policy() -> &'static str {
    let runs = |entry: &&Entry| matches!(entry.kind, Kind::Policy(_));
    isotherm_policies::ALL.iter().find(runs).map_or("another", |entry| entry.name)
}

fn setup(host: &LiveHost, seed: u64) -> Setup {
    Setup {
        pages: host.pages(),
        fast: Pages(host.fast().0.max(1)),
        page_size: host.page_size(),
        tiers: host.tiers(),
        seed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of a program of one thread held a sixteenth of the samples that the policy counts on.
    #[test]
    fn times_are_those_of_as_many_samples_as_the_programs_threads_give() {
        let mut run = PolicyRun::new(isotherm_policies::find("freqtier").expect("a policy"));
        let setup = Setup { pages: 1, fast: Pages(1), page_size: Default::default(), tiers: 2, seed: 1 };
        let sampling = run.build(&setup, Scale::NONE).expect("a policy").sampling();
        let share = |run: &PolicyRun, threads| run.threads(&sampling, threads);
        assert_eq!(
            [None, Some(1), Some(4), Some(99)].map(|threads| share(&run, threads)),
            [1.0, 0.0625, 0.25, 1.0]
        );
        run.fastest = Some(50_000);
        assert_eq!(share(&run, Some(1)), 0.031_25, "half of what it asks for, of one thread");
        assert_eq!(share(&run, Some(8)), 0.031_25, "of all threads together");
    }

    #[test]
    fn regression_a_policy_that_is_asked_for_its_signals_takes_no_filter_of_the_size_that_was_set() {
        for name in ["freqtier", "hybridtier"] {
            let mut run = PolicyRun::new(isotherm_policies::find(name).expect("a policy"));
            run.parameters.set("filter_bytes", "256G").expect("allowed");
            run.needs().unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}
