//! A session: one policy that tiers one program on this machine.
//!
//! [`SessionConfig`] says how memory is tiered and [`Target`] says whose. `isotherm run`, `isotherm attach`
//! and the engine in `libisotherm.so` build both and do the rest here, in three steps:
//!
//! 1. [`Session::open`] reads the tiers, opens access sources and refuses a policy that lacks a signal. The
//!    program is not touched yet.
//! 2. [`Session::start`] launches or follows the program.
//! 3. [`RunningSession::run`] runs the policy until the program ends.

mod candidates;
mod choice;
mod config;
mod environment;
mod error;
mod interleaving;
mod kernel_spaces;
mod manifest;
mod measured;
mod members;
mod own_process;
mod processes;
mod sources;
mod target;
mod tiers;

use std::path::Path;
use std::time::Duration;

use isotherm_core::live_result::LiveResult;
use isotherm_core::manifest::Manifest;
use isotherm_core::{FastLimit, Nanos};
use isotherm_linux::memory::mover::MoverOptions;
use isotherm_linux::process::lock::EngineLock;
use isotherm_linux::process::signals::Signals;
use isotherm_linux::process::{Exit, ProcRoot};

use crate::control::Control;
use crate::host::{LiveHost, Options};
use crate::policy_run::{PolicyRun, RunError};

pub use candidates::{Candidate, Opened, Reach, SourceRequest, candidates};
pub use choice::ChoiceError;
pub use config::SessionConfig;
pub use environment::Environment;
pub use error::SessionError;
pub use measured::Measured;
pub use members::Members;
pub use target::Target;
pub use tiers::{TierPlan, TierPlanError, TierRequest};

use interleaving::Interleaving;
use kernel_spaces::{KernelSpaces, TierReclaim};
use processes::ExitCell;
use sources::Sources;

/// How long a program may grow before its policy is sized by its mapped memory.
const PATIENCE: Duration = Duration::from_secs(1);
/// Shortest time between two scans of mapped memory.
const SCAN_INTERVAL: Nanos = Nanos(200 * Nanos::MILLISECOND.0);
/// Share of one processor for those scans.
const SCAN_BUDGET: f64 = 0.005;

/// A session whose tiers and sources are settled and whose program is not touched yet.
pub struct Session {
    config: SessionConfig,
    target: Target,
    plan: TierPlan,
    sources: Sources,
    manifest: Manifest,
    interleaving: Option<Interleaving>,
    control: Option<Control>,
    /// Held from the start for a process that already runs.
    lock: Option<EngineLock>,
    /// Received before anything is made that must be removed; the program receives its own inside.
    signals: Option<Signals>,
}

impl Session {
    /// Reads the tiers and opens sources; inside a program, call this on the engine's own thread.
    ///
    /// # Errors
    /// If the policy cannot run here, or another engine tiers the process.
    pub fn open(mut config: SessionConfig, target: Target) -> Result<Self, SessionError> {
        let needs = config.policy.needs()?;
        let signals = target.receives_signals().then(Signals::receive).transpose()?;
        let lock = target.pid().map(|pid| EngineLock::take(&ProcRoot::default(), pid)).transpose()?;
        let mut plan = TierPlan::read(Path::new("/"), &config.tiers)?;
        if config.model_counters && !plan.shadow {
            return Err(SessionError::ModelledMoves);
        }
        let control = match config.requests.take() {
            Some(requests) => Some(Control::answering(requests)),
            None => config.control.as_deref().map(Control::open).transpose()?,
        };
        target.hide_own_memory();
        let sources = Sources::open(&config, &target, needs, &plan)?;
        let mut manifest = manifest::read(Path::new("/"), &config, plan.free);
        manifest.options.extend(sources.why.clone().map(|why| ("source_choice", why)));
        let allocation = config.policy.allocation()?;
        let mut notes = Vec::new();
        let interleaving = Interleaving::begin(Path::new("/"), allocation, &plan, &target, &mut notes)?;
        plan.notes.append(&mut notes);
        Ok(Self { config, target, plan, sources, manifest, interleaving, control, lock, signals })
    }

    /// Returns what the user should know before the program starts.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.plan.notes.iter().chain(&self.sources.notes).map(String::as_str)
    }

    /// Launches the program or begins to follow it.
    ///
    /// # Errors
    /// If the program cannot be launched or followed, or a signal has asked for the end.
    pub fn start(self) -> Result<RunningSession, SessionError> {
        let Self { config, target, plan, sources, manifest, interleaving, control, lock, mut signals } = self;
        if let Some(received) = signals.as_mut().and_then(Signals::take) {
            return Err(SessionError::Interrupted(received.signal));
        }
        let mut environment = sources.environment;
        let interleaved = interleaving.as_ref().map_or(&[][..], |interleaving| &interleaving.nodes);
        let started = target.start(&mut environment, interleaved, lock, signals)?;
        let mut policy = config.policy;
        policy.fastest = sources.fastest;
        // The choice of sources has already reported missing reclaim.
        let reclaim = started.pid.map_or_else(TierReclaim::default, |pid| {
            TierReclaim::find(Path::new("/"), &plan.nodes, pid, &mut Vec::new())
        });
        let mover = MoverOptions { rate: config.rate, ..MoverOptions::default() };
        let root = ProcRoot::default();
        let spaces = KernelSpaces::new(root, config.page_size, plan.nodes.clone(), mover, reclaim);
        let options = Options {
            page_size: config.page_size,
            tiers: plan.tiers,
            nodes: plan.nodes,
            fast: config.share.as_ref().map_or(plan.fast, |share| FastLimit::Bytes(share.fast())),
            share: config.share,
            shadow: plan.shadow,
            model_counters: config.model_counters,
            inside: started.own_memory,
            scan_interval: SCAN_INTERVAL,
            scan_budget: SCAN_BUDGET,
            overhead: config.overhead,
        };
        let host = LiveHost::new(options, sources.opened, Box::new(spaces), started.processes);
        let (program, exit) = (started.program, started.exit);
        Ok(RunningSession {
            host,
            policy,
            manifest,
            control,
            program,
            exit,
            _interleaving: interleaving,
            _environment: environment,
            _lock: started.lock,
        })
    }
}

pub struct RunningSession {
    host: LiveHost,
    policy: PolicyRun,
    manifest: Manifest,
    control: Option<Control>,
    /// The program and its arguments, or its number.
    program: Vec<String>,
    /// How the program ended, if the session launched it.
    exit: Option<ExitCell>,
    _interleaving: Option<Interleaving>,
    _environment: Environment,
    _lock: Option<EngineLock>,
}

/// The end of a session.
#[derive(Debug)]
pub struct Ended {
    /// How the program ended, if the session launched it.
    pub exit: Option<Exit>,
    pub result: Result<LiveResult, RunError>,
}

impl RunningSession {
    /// Runs the policy until the program ends or the run is stopped. A launched program whose policy fails
    /// runs to its end without it.
    pub fn run(mut self) -> Ended {
        self.host.settle(PATIENCE);
        let ran = self.policy.run(&mut self.host, self.control.as_mut());
        if ran.is_err() && self.exit.is_some() {
            self.host.outlast();
        }
        let exit = self.exit.as_ref().and_then(|exit| exit.get()).copied();
        let status = exit.map(|exit| i32::from(exit.status()));
        let result = ran.map(|ran| LiveResult {
            manifest: self.manifest,
            ..self.policy.result(self.program, &ran, self.host.summary(), status)
        });
        Ended { exit, result }
    }
}
