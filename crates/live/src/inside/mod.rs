//! Defines the engine as a thread of the program that it tiers: the same host, sources and policies as from outside.
//!
//! `libisotherm.so` makes the thread and gives it memory of its own. The engine takes no lock that the program's threads can
//! hold and allocates nothing from the program's heap: a fork in the middle of its work leaves a child without it and nothing
//! held.
//!
//! - It follows its own process alone. A child of a fork has no engine, and its memory stays where it is; a program that is
//!   executed, by the process itself or by a child, loads the library anew and has an engine of its own.
//! - The run ends with `exit`, with `_exit`, with the return from `main`, or when no thread but the engine's is left. A signal
//!   that kills, a raw system call and `exec` end it without a summary.

mod settings;
mod text;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use isotherm_core::{Nanos, Signal, Signals};

use crate::engine::{LiveResult, PolicyRun, RunError};
use crate::host::kernel::{KernelSpaces, TierReclaim};
use crate::host::tiers::{TierPlan, TierPlanError};
use crate::host::{self, Candidate, ChoiceError, CounterOrigin, LiveHost, Options, ProcessEvent, Processes};
use isotherm_linux::LinuxError;
use isotherm_linux::hint_faults::{self, HintFaultOptions, HintFaultSource};
use isotherm_linux::memory::mover::MoverOptions;
use isotherm_linux::perf::source::PmuSource;
use isotherm_linux::process::lock::EngineLock;
use isotherm_linux::process::{Pid, ProcRoot, ProcessStat};
use isotherm_linux::source::AccessSource;
use isotherm_linux::virtual_pmu::{self, VirtualPmuSource};
pub use settings::{Output, SettingError, Settings, VARIABLES};
pub use text::text;

pub use isotherm_linux::hint_faults::prepare_inside;

/// How long a program may grow before its policy is sized by what it has mapped.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// The time between two looks at what is mapped, at least.
pub const SCAN_INTERVAL: Nanos = Nanos(200 * Nanos::MILLISECOND.0);
/// The share of one processor that they may take.
pub const SCAN_BUDGET: f64 = 0.005;
/// Between so many updates it is looked whether the program has threads left.
const LOOKS: u32 = 25;

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The policy cannot run.
    #[error(transparent)]
    Policy(#[from] RunError),
    /// There are no such tiers.
    #[error(transparent)]
    Tiers(#[from] TierPlanError),
    /// There is no such source.
    #[error(transparent)]
    Source(#[from] ChoiceError),
    /// No source tells what the policy needs.
    #[error("policy {policy} needs {missing}, which is not to be had: {remedy}{why}")]
    Missing {
        /// The policy.
        policy: &'static str,
        /// What it lacks.
        missing: Signal,
        /// What would provide it.
        remedy: &'static str,
        /// Sources that were refused, with the reasons.
        why: String,
    },
    /// The kernel refused something, or another engine has the process.
    #[error(transparent)]
    Linux(#[from] LinuxError),
}

/// Gives the calling thread descriptors of its own and keeps signals from it; the program's are no business of the engine, and
/// the reverse. Standard error stays open.
///
/// # Errors
/// If the kernel cannot separate them.
pub fn separate() -> Result<(), LinuxError> {
    std::mem::forget(hint_faults::BlockedSignals::all());
    hint_faults::own_descriptors(true).map_err(|error| LinuxError::Call {
        call: "close_range",
        error: std::io::Error::from_raw_os_error(error),
    })?;
    hint_faults::note_thread();
    Ok(())
}

/// Where the calling thread's stack lies.
pub fn own_stack() -> Option<Range<u64>> {
    hint_faults::own_stack().map(|stack| stack.start..stack.end)
}

/// The engine of this process.
pub struct Engine {
    host: LiveHost,
    tiering: PolicyRun,
    program: Vec<String>,
    _lock: EngineLock,
}

impl Engine {
    /// Opens what the settings ask for, after [`prepare_inside`] and on the engine's own thread. `own` is memory of the engine.
    /// The run ends when `ending` is set.
    ///
    /// # Errors
    /// If the policy lacks something, or another engine has this process; nothing is observed or moved then.
    pub fn open(
        settings: &Settings,
        own: Vec<Range<u64>>,
        ending: &'static AtomicBool,
    ) -> Result<Self, OpenError> {
        let (root, pid) = (ProcRoot::default(), Pid(std::process::id()));
        let lock = EngineLock::take(&root, pid)?;
        let plan = TierPlan::read(Path::new("/"), &settings.tiers())?;
        own.iter().for_each(|range| hint_faults::exclude(range.clone()));
        let mut tiering = settings.tiering.clone();
        let sources = sources(settings, tiering.needs()?, &plan)?;
        let agent = sources.iter().any(|source| source.offers().has(Signal::HintFaults));
        tiering.fastest = agent.then(|| HintFaultOptions::fastest(settings.overhead));
        let reclaim = TierReclaim::find(Path::new("/"), &plan.nodes, pid, &mut Vec::new());
        let mover = MoverOptions { rate: settings.rate, ..MoverOptions::default() };
        let spaces = KernelSpaces::new(root.clone(), settings.page_size, plan.nodes.clone(), mover, reclaim);
        let options = Options {
            page_size: settings.page_size,
            tiers: plan.tiers,
            fast: plan.fast,
            shadow: plan.shadow,
            nodes: plan.nodes.clone(),
            inside: Some(own),
            scan_interval: SCAN_INTERVAL,
            scan_budget: SCAN_BUDGET,
            model_counters: false,
        };
        let program = command(&root, pid);
        let companions = 2 + u32::from(agent);
        let process = OwnProcess { root, pid, told: false, ending, companions, looks: 0 };
        let host = LiveHost::new(options, sources, Box::new(spaces), Box::new(process));
        Ok(Self { host, tiering, program, _lock: lock })
    }

    /// Runs until the program ends.
    ///
    /// # Errors
    /// If the policy cannot be built for this size, or the host lacks what it needs.
    pub fn run(mut self) -> Result<LiveResult, RunError> {
        self.host.settle(PATIENCE);
        let ran = self.tiering.run(&mut self.host)?;
        Ok(self.tiering.result(self.program, &ran, self.host.summary(), None))
    }
}

/// The best sources that offer what the policy needs, or the one that is asked for.
fn sources(
    settings: &Settings,
    needs: Signals,
    plan: &TierPlan,
) -> Result<Vec<Box<dyn AccessSource>>, OpenError> {
    let samples = Signals::NONE.with(Signal::LoadSamples).with(Signal::StoreSamples);
    let (latency, tiers) = (needs.has(Signal::SampleLatency), plan.map);
    let pmu = Candidate {
        name: "pmu",
        offers: samples.with(Signal::SampleLatency).with(Signal::TierHits),
        open: Box::new(move || Ok(Box::new(PmuSource::detect(latency, tiers)?))),
    };
    let hint_faults = Candidate {
        name: "hint-faults",
        offers: samples.with(Signal::HintFaults),
        open: Box::new(|| hint_faults(settings)),
    };
    let mut candidates = vec![pmu, hint_faults];
    // The lab's virtual machine has one, and no other machine lacks it.
    if virtual_pmu::is_present(Path::new("/")) {
        let exact = samples.with(Signal::SampleLatency).with(Signal::TierHits).with(Signal::TierStalls);
        let open =
            Box::new(|| Ok(Box::new(VirtualPmuSource::inside(Path::new("/"))?) as Box<dyn AccessSource>));
        candidates.insert(0, Candidate { name: "virtual-pmu", offers: exact, open });
    }
    let mut refused = Vec::new();
    let chosen = host::choose(needs, candidates, settings.source.as_deref(), &mut refused)?;
    let origin = CounterOrigin::of(&chosen, plan.shadow, false);
    let offered = host::offers(&chosen, origin, plan.shadow, plan.reclaims());
    match needs.missing(offered).next() {
        None => Ok(chosen),
        Some(missing) => Err(OpenError::Missing {
            policy: settings.tiering.entry.name,
            missing,
            remedy: host::remedy(missing),
            why: refused.iter().map(|(name, error)| format!(" ({name}: {error})")).collect(),
        }),
    }
}

fn hint_faults(settings: &Settings) -> Result<Box<dyn AccessSource>, LinuxError> {
    let seed = settings.tiering.seed;
    let options = HintFaultOptions { seed, ..HintFaultOptions::of(settings.overhead) };
    let source = HintFaultSource::open(options)?;
    hint_faults::start_agent_inside(&source.socket());
    Ok(Box::new(source))
}

/// The program and its arguments.
fn command(root: &ProcRoot, pid: Pid) -> Vec<String> {
    let mut text = Vec::new();
    // A name is for people: a process that hides it goes by its number.
    if root.read(pid, "cmdline", &mut text).is_err() || text.is_empty() {
        return vec![pid.0.to_string()];
    }
    let parts = text.strip_suffix(&[0]).unwrap_or(&text).split(|&byte| byte == 0);
    parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

/// This process, until it is asked to end or has no other thread.
struct OwnProcess {
    root: ProcRoot,
    pid: Pid,
    told: bool,
    ending: &'static AtomicBool,
    /// Threads of a process that is at its end: the first one, the engine's, and the agent's if there is one.
    companions: u32,
    looks: u32,
}

impl OwnProcess {
    fn is_alone(&mut self) -> bool {
        self.looks = (self.looks + 1) % LOOKS;
        self.looks == 0
            && ProcessStat::read(&self.root, self.pid, &mut Vec::new())
                .is_ok_and(|stat| stat.state == b'Z' && stat.threads <= self.companions)
    }
}

impl Processes for OwnProcess {
    fn update(&mut self, events: &mut Vec<ProcessEvent>) -> bool {
        if !std::mem::replace(&mut self.told, true) {
            events.push(ProcessEvent::Started(self.pid));
        }
        !self.ending.load(Relaxed) && !self.is_alone()
    }

    /// Whoever sets `ending` unparks this thread.
    fn wait(&mut self, time: Duration) {
        if !self.ending.load(Relaxed) {
            std::thread::park_timeout(time);
        }
    }
}
