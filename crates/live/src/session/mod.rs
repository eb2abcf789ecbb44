//! A session: one policy that tiers one program on this machine.
//!
//! [`SessionConfig`] says how memory is tiered and [`Target`] says whose. `isotherm run`, `isotherm attach` and the
//! engine in `libisotherm.so` build both and do the rest here, in three steps:
//!
//! 1. [`Session::open`] reads the tiers, opens access sources and refuses a policy that lacks a signal. The program
//!    is not touched yet.
//! 2. [`Session::start`] launches or follows the program.
//! 3. [`RunningSession::run`] runs the policy until the program ends.

mod candidates;
mod choice;
mod environment;
mod kernel_spaces;
mod own_process;
mod processes;
mod sources;
mod target;
mod tiers;

use std::path::{Path, PathBuf};
use std::time::Duration;

use isotherm_core::live_result::LiveResult;
use isotherm_core::{Bytes, Nanos, PageSize, Signal};
use isotherm_linux::LinuxError;
use isotherm_linux::memory::mover::MoverOptions;
use isotherm_linux::process::ProcRoot;
use isotherm_linux::process::launch::LaunchError;
use isotherm_linux::process::lock::EngineLock;

use crate::control::Control;
use crate::host::{FastLimit, LiveHost, Options};
use crate::policy_run::{PolicyRun, RunError};

pub use candidates::{Candidate, Opened, Reach, SourceRequest, candidates};
pub use choice::ChoiceError;
pub use environment::{Environment, preload};
pub use target::Target;
pub use tiers::{TierPlan, TierPlanError, TierRequest};

use kernel_spaces::{KernelSpaces, TierReclaim};
use processes::ExitCell;
use sources::Sources;

/// How long a program may grow before its policy is sized by its mapped memory.
const PATIENCE: Duration = Duration::from_secs(1);
/// Shortest time between two scans of mapped memory.
const SCAN_INTERVAL: Nanos = Nanos(200 * Nanos::MILLISECOND.0);
/// Share of one processor for those scans.
const SCAN_BUDGET: f64 = 0.005;
/// Share of their time that programs may lose to being observed, unless the user says otherwise.
pub const DEFAULT_OVERHEAD: f64 = 0.02;

/// How memory is tiered.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// The policy with its parameters, seed and scale.
    pub policy: PolicyRun,
    /// NUMA nodes of each tier, fastest first (`0,1` or `0+2,1+3`); the kernel's tiers if `None`.
    pub tiers: Option<String>,
    /// Limit of the fast tier; all of it if `None`, or a quarter of the mapped memory in shadow mode.
    pub fast: Option<FastLimit>,
    /// Whether nothing moves. A machine without a slow tier implies it.
    pub shadow: bool,
    /// Latencies of the tiers, fastest first, for tiers whose latency the firmware does not report.
    pub latencies: Vec<Nanos>,
    /// Name of the access source; the best available ones if `None`.
    pub source: Option<String>,
    /// Share of their time that programs may lose to being observed.
    pub overhead: f64,
    /// Whether counters that nothing counts are modelled; in shadow mode only.
    pub model_counters: bool,
    /// Limit of migration in bytes a second.
    pub rate: Option<Bytes>,
    /// Granularity of tracking and migration.
    pub page_size: PageSize,
    /// Socket at which the engine answers requests ([`crate::control`]).
    pub control: Option<PathBuf>,
}

/// Why a session does not run.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The policy cannot run live.
    #[error(transparent)]
    Policy(#[from] RunError),
    /// The tiers cannot be read or do not exist.
    #[error(transparent)]
    Tiers(#[from] TierPlanError),
    /// The named source does not exist or cannot be opened.
    #[error(transparent)]
    Source(#[from] ChoiceError),
    /// No source offers a signal that the policy needs.
    #[error("policy {policy} needs {missing}, which is unavailable here: {fix}")]
    Missing {
        /// The policy's name.
        policy: &'static str,
        /// The missing signal.
        missing: Signal,
        /// What would provide the signal, which sources were refused and why, and which policy to use instead.
        fix: String,
    },
    /// Modelled counters were requested without shadow mode.
    #[error("--model-counters needs --shadow: modelled counters decide no real moves")]
    ModelledMoves,
    /// The program cannot be put into the cgroup.
    #[error("--cgroup: {}: {error}", path.display())]
    Cgroup {
        /// The cgroup's `cgroup.procs`.
        path: PathBuf,
        /// The kernel's answer.
        error: std::io::Error,
    },
    /// The program cannot be launched.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The kernel refused a request, or another engine tiers the process.
    #[error(transparent)]
    Linux(#[from] LinuxError),
}

impl SessionError {
    /// Whether the request is at fault, not the machine.
    pub fn is_request(&self) -> bool {
        !matches!(self, Self::Linux(_) | Self::Launch(_) | Self::Tiers(TierPlanError::Machine(_)))
    }
}

/// A session whose tiers and sources are settled and whose program is not touched yet.
pub struct Session {
    config: SessionConfig,
    target: Target,
    plan: TierPlan,
    sources: Sources,
    control: Option<Control>,
    /// Held from the start for a process that already runs.
    lock: Option<EngineLock>,
}

impl Session {
    /// Reads the tiers and opens the sources that the policy needs. Inside a program, call this on the engine's own
    /// thread after [`crate::inside::prepare_inside`].
    ///
    /// # Errors
    /// If the policy cannot run here, or another engine tiers the process.
    pub fn open(config: SessionConfig, target: Target) -> Result<Self, SessionError> {
        let needs = config.policy.needs()?;
        let lock = target.pid().map(|pid| EngineLock::take(&ProcRoot::default(), pid)).transpose()?;
        let plan = TierPlan::read(Path::new("/"), &config.tier_request())?;
        if config.model_counters && !plan.shadow {
            return Err(SessionError::ModelledMoves);
        }
        let control = config.control.as_deref().map(Control::open).transpose()?;
        target.hide_own_memory();
        let sources = Sources::open(&config, &target, needs, &plan)?;
        Ok(Self { config, target, plan, sources, control, lock })
    }

    /// Returns what the user should know before the program starts.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.plan.notes.iter().chain(&self.sources.notes).map(String::as_str)
    }

    /// Launches the program or begins to follow it.
    ///
    /// # Errors
    /// If the program cannot be launched or followed.
    pub fn start(self) -> Result<RunningSession, SessionError> {
        let Self { config, target, plan, sources, control, lock } = self;
        let started = target.start(sources.environment, sources.agent, lock)?;
        let mut policy = config.policy;
        policy.fastest = sources.fastest;
        // The choice of sources has already reported missing reclaim.
        let reclaim = TierReclaim::find(Path::new("/"), &plan.nodes, started.pid, &mut Vec::new());
        let mover = MoverOptions { rate: config.rate, ..MoverOptions::default() };
        let root = ProcRoot::default();
        let spaces = KernelSpaces::new(root, config.page_size, plan.nodes.clone(), mover, reclaim);
        let options = Options {
            page_size: config.page_size,
            tiers: plan.tiers,
            nodes: plan.nodes,
            fast: plan.fast,
            shadow: plan.shadow,
            model_counters: config.model_counters,
            inside: started.own_memory,
            scan_interval: SCAN_INTERVAL,
            scan_budget: SCAN_BUDGET,
        };
        let host = LiveHost::new(options, sources.opened, Box::new(spaces), started.processes);
        let (program, exit) = (started.program, started.exit);
        Ok(RunningSession { host, policy, control, program, exit, _lock: started.lock })
    }
}

/// A session whose program runs.
pub struct RunningSession {
    host: LiveHost,
    policy: PolicyRun,
    control: Option<Control>,
    /// The program and its arguments, or its number.
    program: Vec<String>,
    /// How the program ended, if the session launched it.
    exit: Option<ExitCell>,
    _lock: EngineLock,
}

impl RunningSession {
    /// Runs the policy until the program ends or the run is stopped.
    ///
    /// # Errors
    /// If the policy cannot be built for this size, or the host lacks a signal.
    pub fn run(mut self) -> Result<LiveResult, RunError> {
        self.host.settle(PATIENCE);
        let ran = self.policy.run_under(&mut self.host, self.control.as_mut())?;
        let exit = self.exit.as_ref().and_then(|exit| exit.get());
        let status = exit.map(|exit| i32::from(exit.status()));
        Ok(self.policy.result(self.program, &ran, self.host.summary(), status))
    }
}

impl SessionConfig {
    /// Returns a configuration with the defaults of `isotherm run` for the policy.
    pub fn new(policy: PolicyRun) -> Self {
        Self {
            policy,
            tiers: None,
            fast: None,
            shadow: false,
            latencies: Vec::new(),
            source: None,
            overhead: DEFAULT_OVERHEAD,
            model_counters: false,
            rate: None,
            page_size: PageSize::Base,
            control: None,
        }
    }

    fn tier_request(&self) -> TierRequest<'_> {
        TierRequest {
            tiers: self.tiers.as_deref(),
            fast: self.fast,
            shadow: self.shadow,
            latencies: &self.latencies,
        }
    }
}
