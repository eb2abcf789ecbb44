//! Defines how a policy of the registry runs on a live host: sized by the memory in use, and anew when that has outgrown it.

use std::time::Duration;

use isotherm_core::parameters::{Parameters, REFERENCE_FOOTPRINT, REFERENCE_THREADS, Scale};
use isotherm_core::{
    Bytes, EngineError, EngineStatistics, Pages, Policy, Sampling, SamplingRate, Signals, View,
};
use isotherm_policies::{BuildError, Entry, Kind, Setup};

use serde::Serialize;

use crate::control::Control;
use crate::host::{LiveHost, Pause, Summary};

mod orders;

/// The rate at which policies that do not name one sample each thread, per second.
const USUAL_RATE: f64 = 100_000.0;

/// How often the control is looked at while the engine is suspended.
const SUSPENDED_POLL: Duration = Duration::from_millis(10);

/// Why a policy does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The name is a bound's.
    #[error("policy {0}: only the simulator can compute it (isotherm simulate); try {1}")]
    Bound(&'static str, &'static str),
    /// It cannot be built for this size.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The host lacks what it needs.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A policy to run, with its parameters unscaled.
#[derive(Debug, Clone)]
pub struct PolicyRun {
    /// Its entry.
    pub entry: &'static Entry,
    /// Its parameters.
    pub parameters: Parameters,
    /// Seeds what it draws.
    pub seed: u64,
    /// By what scaled parameters are divided; by the memory in use and the source's rate where nothing is given.
    pub scale: Option<Scale>,
    /// The samples a second that the source delivers at most, of all threads together, where it has such a bound.
    pub fastest: Option<u64>,
}

/// A live run and what came of it: what `--json` prints.
#[derive(Debug, Clone, Serialize)]
pub struct LiveResult {
    /// Isotherm's version.
    pub version: String,
    /// The program and its arguments, or the process that was attached to.
    pub program: Vec<String>,
    /// The policy's name.
    pub policy: String,
    /// Its parameters as they were in force, scaled.
    pub parameters: Parameters,
    /// Of whatever was drawn.
    pub seed: u64,
    /// By what counts of samples and sizes were divided.
    pub scale: f64,
    /// By what durations were divided.
    pub time_scale: f64,
    /// How often the policy was built anew because the memory in use had outgrown it.
    pub resized: u32,
    /// Steps of the engine.
    pub steps: u64,
    /// Samples that reached the policy.
    pub samples: u64,
    /// Hint faults that reached the policy.
    pub hint_faults: u64,
    /// Samples lost on the way to it.
    pub samples_lost: u64,
    /// The program's exit status, 128 + signal where a signal ended it; none where it was attached to.
    pub exit_status: Option<i32>,
    /// Everything else.
    #[serde(flatten)]
    pub summary: Summary,
}

/// What passed through the engine, of all policies that were built.
#[derive(Debug, Clone, Copy)]
pub struct RunStats {
    /// Of the engine.
    pub statistics: EngineStatistics,
    /// By what parameters were divided at last.
    pub scale: Scale,
    /// How often the policy was built anew for more memory.
    pub resized: u32,
}

impl PolicyRun {
    /// The run's result.
    pub fn result(
        &self,
        program: Vec<String>,
        ran: &RunStats,
        summary: Summary,
        exit_status: Option<i32>,
    ) -> LiveResult {
        let mut parameters = self.parameters.clone();
        parameters.scale(ran.scale);
        LiveResult {
            version: env!("CARGO_PKG_VERSION").into(),
            program,
            policy: self.entry.name.into(),
            parameters,
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

    /// What the policy needs of a host.
    ///
    /// # Errors
    /// If it is a bound, or cannot be built.
    pub fn needs(&self) -> Result<Signals, RunError> {
        let setup =
            Setup { pages: 0, fast: Pages(1), page_size: Default::default(), tiers: 2, seed: self.seed };
        Ok(self.build(&setup, Scale::NONE)?.signals())
    }

    /// Runs it on the host until the programs end.
    ///
    /// # Errors
    /// If it cannot be built, or the host lacks what it needs.
    pub fn run(&self, host: &mut LiveHost) -> Result<RunStats, RunError> {
        self.clone().run_under(host, None)
    }

    /// As [`Self::run`]; whoever is at the control may change parameters and replace the policy, so this is then another.
    ///
    /// # Errors
    /// If it cannot be built, or the host lacks what it needs. What the control asks for was checked before.
    pub fn run_under(
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
                (_, Some(next)) => *self = next,
                _ => ran.resized += 1,
            }
        }
    }

    fn build(&self, setup: &Setup, scale: Scale) -> Result<Box<dyn Policy>, RunError> {
        let Kind::Policy(build) = self.entry.kind else {
            return Err(RunError::Bound(self.entry.name, "first-touch"));
        };
        Ok(build(&self.scaled(scale), setup)?)
    }

    /// The parameters of a run that is smaller by `scale`.
    fn scaled(&self, scale: Scale) -> Parameters {
        let mut parameters = self.parameters.clone();
        parameters.scale(scale);
        parameters
    }

    /// By how much this run is smaller than the one that the parameters are for.
    fn scale(&self, host: &LiveHost) -> Result<Scale, RunError> {
        if let Some(scale) = self.scale {
            return Ok(scale);
        }
        let sampling = self.build(&setup(host, self.seed), Scale::NONE)?.sampling();
        let footprint = Bytes(host.footprint().0 << host.page_size().shift());
        Ok(Scale::of(footprint, REFERENCE_FOOTPRINT, self.threads(&sampling)))
    }

    /// The threads that, each sampled as the policy asks, give as many samples a second as the source can deliver; for each of the paper's.
    fn threads(&self, sampling: &Sampling) -> f64 {
        let asked = match sampling.rate {
            SamplingRate::Frequency(rate) => rate as f64,
            SamplingRate::Period(_) | SamplingRate::Off => USUAL_RATE,
        };
        self.fastest.map_or(1.0, |fastest| (fastest as f64 / asked / REFERENCE_THREADS).min(1.0))
    }
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
