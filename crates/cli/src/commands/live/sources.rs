//! Defines which access sources a live run opens.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;

use isotherm_core::{Signal, Signals};
use isotherm_linux::LinuxError;
use isotherm_linux::accessed_bits::{BitSource, ClearRefs, IdlePages, Pace, Resolution};
use isotherm_linux::devices;
use isotherm_linux::hint_faults::{HintFaultOptions, HintFaultSource};
use isotherm_linux::perf::data_source::TierMap;
use isotherm_linux::perf::events::SourceEvents;
use isotherm_linux::perf::source::{PmuOptions, PmuSource};
use isotherm_linux::source::AccessSource;
use isotherm_linux::virtual_pmu::{self, VirtualPmuSource};
use isotherm_live::engine::PolicyRun;
use isotherm_live::host::tiers::TierPlan;
use isotherm_live::host::{self, Candidate, CounterOrigin};

use crate::args::LiveArgs;
use crate::failure::Failure;

/// The library with the agent, beside the program or in `../lib`.
const LIBRARY: &str = "libisotherm.so";

/// How the engine comes to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Way {
    /// It starts it, and can load an agent into it.
    Started,
    /// It runs already.
    Attached,
}

/// The sources of a run.
pub(super) struct Sources {
    /// Opened, following nothing yet.
    pub(super) chosen: Vec<Box<dyn AccessSource>>,
    /// What the program's environment must hold for them.
    pub(super) environment: Environment,
    /// The samples a second that they deliver at most, if there is such a bound.
    pub(super) fastest: Option<u64>,
    /// What the user should know.
    pub(super) notes: Vec<String>,
}

/// Variables and their values.
pub(in crate::commands) type Environment = Vec<(OsString, OsString)>;

type Opened = Result<Box<dyn AccessSource>, LinuxError>;

/// Opens the best sources that offer what the policy needs, or the one that the user names.
///
/// # Errors
/// If they do not offer it all: the policy cannot run.
pub(super) fn choose(
    args: &LiveArgs,
    needs: Signals,
    memory: &TierPlan,
    way: Way,
) -> Result<Sources, Failure> {
    let environment = RefCell::new(Vec::new());
    let mut refused = Vec::new();
    let slow: Vec<u32> = memory.nodes.iter().skip(1).flatten().copied().collect();
    let candidates = candidates(args, needs, (way, memory.map, slow), Pace::default(), &environment);
    let chosen = host::choose(needs, candidates, args.source.as_deref(), &mut refused);
    let mut chosen = chosen.map_err(Failure::usage)?;
    if is_device_alone(&chosen) && virtual_pmu::is_present(Path::new("/")) {
        // The time of the machine that the lab models, and its counters.
        chosen.push(virtual_pmu().map_err(Failure::usage)?);
    }
    let origin = CounterOrigin::of(&chosen, memory.shadow, args.model_counters);
    let offered = host::offers(&chosen, origin, memory.shadow, memory.reclaims());
    let names: Vec<&str> = chosen.iter().map(|source| source.name()).collect();
    let because = |(name, error): &(&'static str, LinuxError)| format!("not used: {name}: {error}");
    let mut notes: Vec<String> = refused.iter().map(because).collect();
    if let Some(missing) = needs.missing(offered).next() {
        let why = notes.iter().map(|note| format!(" ({note})")).collect::<String>();
        let policy = &args.policy;
        let remedy = host::remedy(missing);
        let instead = nearest(needs, offered).map_or_else(String::new, |name| {
            format!("; the nearest policy that can run here: --policy {name}")
        });
        let modelled = if missing == Signal::TierStalls && memory.shadow {
            ", or --model-counters for a shadow run by a model"
        } else {
            ""
        };
        return Err(Failure::usage(format!(
            "policy {policy} needs {missing}, which is not to be had: {remedy}{modelled}{why}{instead}"
        )));
    }
    if !names.is_empty() {
        notes.push(format!("accesses are learned from {}", names.join(" and ")));
    }
    let limited = names.first() == Some(&"hint-faults");
    let fastest = limited.then_some(HintFaultOptions::fastest(args.overhead));
    Ok(Sources { chosen, environment: environment.into_inner(), fastest, notes })
}

/// Whether accesses are learned from profiling devices only.
fn is_device_alone(chosen: &[Box<dyn AccessSource>]) -> bool {
    matches!(chosen, [source] if source.offers().has(Signal::DeviceHotPages))
}

/// The policy that uses most of what `needs` names, and least else, of those that need no more than `offered`.
fn nearest(needs: Signals, offered: Signals) -> Option<&'static str> {
    let fitting = isotherm_policies::ALL.iter().filter_map(|entry| {
        let tiering =
            PolicyRun { entry, parameters: entry.parameters(), seed: 1, scale: None, fastest: None };
        let own = tiering.needs().ok()?;
        let runs = own.missing(offered).next().is_none();
        let (unused, other) = (needs.missing(own).count(), own.missing(needs).count());
        runs.then_some((unused, other, entry.name))
    });
    // Of equal ones the first of the registry.
    fitting.min_by_key(|&(unused, other, _)| (unused, other)).map(|(.., name)| name)
}

/// What may be used, the best first; what the program's environment must hold for a source is put there as it is opened.
pub(in crate::commands) fn candidates<'a>(
    args: &'a LiveArgs,
    needs: Signals,
    (way, tiers, slow): (Way, TierMap, Vec<u32>),
    pace: Pace,
    environment: &'a RefCell<Environment>,
) -> Vec<Candidate<'a>> {
    let samples = Signals::NONE.with(Signal::LoadSamples).with(Signal::StoreSamples);
    let bits = Signals::NONE.with(Signal::LoadSamples).with(Signal::AccessedBits);
    let all = |name, offers, open: Box<dyn FnOnce() -> Opened + 'a>| Candidate { name, offers, open };
    let latency = needs.has(Signal::SampleLatency);
    let asked = args.source.as_deref();
    let mut list = vec![
        all(
            "pmu",
            samples.with(Signal::SampleLatency).with(Signal::TierHits),
            Box::new(move || Ok(Box::new(PmuSource::detect(latency, tiers)?))),
        ),
        all(
            "hint-faults",
            samples.with(Signal::HintFaults),
            Box::new(move || hint_faults(args, way, environment)),
        ),
        all("idle-pages", bits, Box::new(move || Ok(Box::new(BitSource::new(IdlePages::new()?, pace))))),
        all("accessed-bits", bits, Box::new(move || accessed_bits(args, pace))),
    ];
    // The lab's virtual machine has one, and no other machine lacks it.
    if asked == Some("virtual-pmu") || virtual_pmu::is_present(Path::new("/")) {
        let exact = samples.with(Signal::SampleLatency).with(Signal::TierHits).with(Signal::TierStalls);
        list.insert(0, all("virtual-pmu", exact, Box::new(virtual_pmu)));
    }
    // A device tells nothing but what it finds hot: only who can use that gets it.
    if asked == Some("device") || needs.has(Signal::DeviceHotPages) {
        let reports = Signals::NONE.with(Signal::DeviceHotPages).with(Signal::DeviceReports);
        list.insert(0, all("device", reports, Box::new(move || device(&slow))));
    }
    // First touches alone are no accesses: only who asks for them gets them.
    if asked == Some("page-faults") {
        list.push(all("page-faults", samples, Box::new(page_faults)));
    }
    list
}

fn virtual_pmu() -> Opened {
    Ok(Box::new(VirtualPmuSource::open(Path::new("/"))?))
}

fn device(slow_nodes: &[u32]) -> Opened {
    Ok(Box::new(devices::find::open(Path::new("/"), slow_nodes, &mut Vec::new())?))
}

fn page_faults() -> Opened {
    Ok(Box::new(PmuSource::new(SourceEvents::page_faults(), PmuOptions::default())?))
}

fn accessed_bits(args: &LiveArgs, pace: Pace) -> Opened {
    let page_size = args.page_size.into();
    let scanner = ClearRefs::new(Resolution { page_size, ..Resolution::default() })?;
    Ok(Box::new(BitSource::new(scanner, pace)))
}

fn hint_faults(args: &LiveArgs, way: Way, environment: &RefCell<Environment>) -> Opened {
    let unsupported = |remedy: String| LinuxError::Unsupported { what: "hint faults", remedy };
    if way == Way::Attached {
        let remedy = format!("the program must be started with {LIBRARY} in it: use isotherm run");
        return Err(unsupported(remedy));
    }
    let library = library(LIBRARY).ok_or_else(|| {
        unsupported(format!("{LIBRARY} must lie beside isotherm or in ../lib; `make build` puts it there"))
    })?;
    let options = HintFaultOptions { seed: args.seed, ..HintFaultOptions::of(args.overhead) };
    let source = HintFaultSource::open(options)?;
    *environment.borrow_mut() = source.environment(&library);
    Ok(Box::new(source))
}

/// Where a library of this build is, as an absolute path.
pub(in crate::commands) fn library(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let folder = own.parent()?;
    let places = [folder.join("deps").join(name), folder.join(name), folder.join("../lib").join(name)];
    places.into_iter().find(|place| place.is_file())
}
