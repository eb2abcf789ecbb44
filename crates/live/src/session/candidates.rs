//! The access sources that a session can use, best first as far as nothing was measured.

use std::io::ErrorKind;
use std::path::Path;

use isotherm_core::{Nanos, PageSize, Signal, Signals};
use isotherm_linux::LinuxError;
use isotherm_linux::accessed_bits::{BitSource, ClearRefs, Damon, IdlePages, Pace, Resolution};
use isotherm_linux::devices;
use isotherm_linux::hint_faults::{self, HintFaultOptions, HintFaultSource};
use isotherm_linux::perf::data_source::TierMap;
use isotherm_linux::perf::events::SourceEvents;
use isotherm_linux::perf::source::{PmuOptions, PmuSource};
use isotherm_linux::process::preload::Entry;
use isotherm_linux::source::AccessSource;
use isotherm_linux::sys::probe;
use isotherm_linux::virtual_pmu::{self, SharedVirtualPmu, VirtualPmuSource};

use super::config::DEFAULT_OVERHEAD;
use super::environment::Environment;
use super::measured::Measured;

/// Part of the overhead that scans beside another source may cost, the inverse.
const BESIDE_SHARE: f64 = 8.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach<'a> {
    /// The engine launches the program and can load an agent into it.
    Launch {
        /// `libisotherm.so`, if it was found.
        agent: Option<&'a Path>,
    },
    Attach,
    /// The engine is one of several on the machine.
    Group,
    /// The engine is a thread of the program.
    Inside,
}

#[derive(Debug, Clone, Copy)]
pub struct SourceRequest<'a> {
    pub reach: Reach<'a>,
    /// Name of the source that the user asks for.
    pub source: Option<&'a str>,
    pub needs: Signals,
    /// Tier of each memory source; empty in shadow mode.
    pub tiers: TierMap,
    pub slow_nodes: &'a [u32],
    pub page_size: PageSize,
    pub seed: u64,
    /// Share of their time that programs may lose to being observed.
    pub overhead: f64,
    pub pace: Pace,
    /// Figures of the sources on this machine; none where nothing was measured.
    pub measured: &'a [Measured],
}

impl<'a> SourceRequest<'a> {
    /// Returns a request with defaults, for a machine whose tiers are shadows.
    pub fn new(reach: Reach<'a>, needs: Signals) -> Self {
        Self {
            reach,
            source: None,
            needs,
            tiers: TierMap::default(),
            slow_nodes: &[],
            page_size: PageSize::Base,
            seed: 1,
            overhead: DEFAULT_OVERHEAD,
            pace: Pace::default(),
            measured: &[],
        }
    }
}

pub struct Opened {
    /// The source, which follows no process yet.
    pub source: Box<dyn AccessSource>,
    pub environment: Environment,
}

pub struct Candidate<'a> {
    /// Name in kebab case, as in `--source`.
    pub name: &'static str,
    pub offers: Signals,
    pub open: Box<dyn FnOnce() -> Result<Opened, LinuxError> + 'a>,
}

impl<'a> Candidate<'a> {
    fn new<S: AccessSource + 'static>(
        name: &'static str,
        offers: Signals,
        open: impl FnOnce() -> Result<S, LinuxError> + 'a,
    ) -> Self {
        let open = move || Ok(Opened { source: Box::new(open()?), environment: Environment::default() });
        Self { name, offers, open: Box::new(open) }
    }
}

/// Lists the sources that may be used, best first where nothing was measured.
pub fn candidates(request: SourceRequest<'_>) -> Vec<Candidate<'_>> {
    let SourceRequest { reach, needs, tiers, slow_nodes, page_size, pace, .. } = request;
    let asked = |name| request.source == Some(name);
    let (inside, root) = (reach == Reach::Inside, Path::new("/"));
    let samples = Signals::NONE.with(Signal::LoadSamples).with(Signal::StoreSamples);
    let samples_of_latency = samples.with(Signal::SampleLatency);
    let latencies = samples_of_latency.with(Signal::TierHits);
    let bits = Signals::NONE.with(Signal::LoadSamples).with(Signal::AccessedBits);
    let mut list = Vec::new();
    // A device reports nothing but hot pages: it serves only policies that use those.
    if !inside && (asked("device") || needs.has(Signal::DeviceHotPages)) {
        let reports = Signals::NONE.with(Signal::DeviceHotPages).with(Signal::DeviceReports);
        let open = move || devices::find::open(root, slow_nodes, &mut Vec::new());
        list.push(Candidate::new("device", reports, open));
    }
    // Only the lab's virtual machine has one; elsewhere its absence is not reported.
    if asked("virtual-pmu") || virtual_pmu::is_present(root) {
        list.push(match reach {
            Reach::Group => {
                Candidate::new("virtual-pmu", samples_of_latency, move || SharedVirtualPmu::open(root))
            }
            _ => Candidate::new("virtual-pmu", latencies.with(Signal::TierStalls), move || match inside {
                true => VirtualPmuSource::inside(root),
                false => VirtualPmuSource::open(root),
            }),
        });
    }
    let with_latency = needs.has(Signal::SampleLatency);
    list.push(Candidate::new("pmu", latencies, move || PmuSource::detect(with_latency, tiers)));
    list.push(Candidate {
        name: "hint-faults",
        offers: samples.with(Signal::HintFaults),
        open: Box::new(move || open_hint_faults(&request)),
    });
    if !inside {
        let idle_pages = move || Ok(BitSource::new(IdlePages::new()?, pace));
        list.push(Candidate::new("idle-pages", bits, idle_pages));
        let resolution = Resolution { page_size, ..Resolution::default() };
        let accessed_bits = move || Ok(BitSource::new(ClearRefs::new(resolution)?, pace));
        list.push(Candidate::new("accessed-bits", bits, accessed_bits));
        // A machine has one user of DAMON: it goes to who asks, or to one session where it was measured.
        let measured = request.measured.iter().any(|measured| measured.name == "damon");
        if asked("damon") || (measured && reach != Reach::Group) {
            list.push(Candidate::new("damon", bits, move || Ok(BitSource::new(Damon::new()?, pace))));
        }
    }
    // First touches are not accesses: this source serves only users who ask for it.
    if !inside && asked("page-faults") {
        let open = || PmuSource::new(SourceEvents::page_faults(), PmuOptions::default());
        list.push(Candidate::new("page-faults", samples, open));
    }
    list
}

/// Opens what helps hint faults: scans of accessed bits, which find memory that nobody uses. Share of a
/// processor and of the programs' time: an eighth of the `overhead` is for the latter.
pub(super) fn open_beside_hint_faults(overhead: f64) -> Result<Box<dyn AccessSource>, LinuxError> {
    let pace = Pace {
        interval: Nanos(5 * Nanos::SECOND.0),
        budget: overhead / BESIDE_SHARE,
        program_budget: overhead / BESIDE_SHARE,
    };
    Ok(Box::new(BitSource::beside(ClearRefs::new(Resolution::default())?, pace)))
}

fn open_hint_faults(request: &SourceRequest<'_>) -> Result<Opened, LinuxError> {
    let unsupported = |remedy: &str| LinuxError::Unsupported { what: "hint faults", remedy: remedy.into() };
    let library = match request.reach {
        Reach::Launch { agent: Some(library) } => Some(library),
        Reach::Launch { agent: None } => {
            return Err(unsupported(
                "libisotherm.so must lie beside isotherm or in ../lib; `make build` puts it there",
            ));
        }
        Reach::Attach | Reach::Group => {
            return Err(unsupported(
                "the program must be started with libisotherm.so in it: use isotherm run",
            ));
        }
        Reach::Inside => None,
    };
    // The program has no more rights than this process.
    probe::hint_faults().map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => LinuxError::Permission {
            what: "a source of hint faults",
            needs: "CAP_SYS_PTRACE, and userfaultfd where system calls are filtered",
            remedy: "sudo isotherm run -- PROGRAM".into(),
        },
        _ => unsupported("userfaultfd with UFFDIO_MOVE, of Linux 6.8 or later"),
    })?;
    let options = HintFaultOptions { seed: request.seed, ..HintFaultOptions::of(request.overhead) };
    let source = HintFaultSource::open(options)?;
    let environment = match library.map(Entry::new).transpose()? {
        Some(entry) => {
            let variables = source.environment(Path::new(&entry.text));
            Environment::of_entry(entry, variables)
        }
        None => Environment::default(),
    };
    if request.reach == Reach::Inside {
        hint_faults::start_agent_inside(&source.socket());
    }
    Ok(Opened { source: Box::new(source), environment })
}
