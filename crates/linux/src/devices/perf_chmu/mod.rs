//! Driver of a hotness monitoring unit that the kernel's own perf driver has taken: a PMU `cxl_hmu_memX.Y.Z`
//! for unit Z in block Y of memory device X.
//!
//! The kernel's driver is a proposal ("CXL Hotness Monitoring Unit perf driver", J. Cameron, linux-cxl,
//! 2024-11-21) that no released kernel has. From its source and documentation:
//! - `epoch_type` is 0 at the end of each epoch, 1 always on; `hotness_granual` is a power of two; a
//!   `range_size` of 0 is everything.
//! - The event belongs to a processor, not to a task. No file tells the unit's capabilities: an event that
//!   asks too much is refused.
//! - The hot list is written to the AUX area ([`hot_list`]) when it is half full, when it overflows and when
//!   the event stops. Starting it again resets all counts. So clearing a unit stops and starts it.

pub mod hot_list;
mod stream;

use std::io;
use std::path::Path;

use isotherm_core::{DeviceReport, DeviceRequest};

use super::{DeviceError, PAGE, Profiler};
use crate::LinuxError;
use crate::files::Tree;
use crate::perf::open::explain;
use crate::perf::pmu::{DEVICES, Encoding, Pmu};
pub use stream::{HotLists, PerfStream};

const PREFIX: &str = "cxl_hmu_";
/// Necessary fields of events.
const FIELDS: [&str; 6] =
    ["epoch_type", "access_type", "epoch_scale", "epoch_multiplier", "hotness_threshold", "hotness_granual"];
/// Reads and writes of memory that is not confidential.
const READS_AND_WRITES: u64 = 3;
/// Sizes of units, as powers of two: 4 KiB to 2 MiB.
const UNITS: std::ops::RangeInclusive<u64> = 12..=21;
/// Modes as the fields have them: `epoch_type`, `epoch_scale`, `epoch_multiplier`. Always on, then epochs of
/// 1 s, 100 ms, 10 ms and 1 ms, then the unit's shortest.
const MODES: [(u64, u64, u64); 6] = [(1, 0, 0), (0, 5, 1), (0, 4, 1), (0, 3, 1), (0, 2, 1), (0, 0, 0)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mode {
    epochs: (u64, u64, u64),
    unit_shift: u64,
}

/// Returns the first unit of these memory devices (`memX`) that the kernel's driver has taken.
pub(super) fn find(tree: Tree<'_>, memories: &[String]) -> Result<Option<Pmu>, LinuxError> {
    let ours = |pmu: &Pmu| {
        let memory = pmu.name.strip_prefix(PREFIX).and_then(|unit| unit.split('.').next());
        memory.is_some_and(|memory| memories.iter().any(|name| name == memory))
    };
    Ok(all(tree)?.into_iter().find(ours))
}

pub fn all(tree: Tree<'_>) -> Result<Vec<Pmu>, LinuxError> {
    let mut pmus = Vec::new();
    for name in tree.names(DEVICES)?.into_iter().filter(|name| name.starts_with(PREFIX)) {
        pmus.extend(Pmu::read(tree, &name)?);
    }
    Ok(pmus)
}

/// Returns the first necessary field that events of the PMU lack.
pub fn lacks(pmu: &Pmu) -> Option<&'static str> {
    FIELDS.into_iter().find(|field| !pmu.has(field))
}

/// Returns the event, its threshold capped by its field; `None` if a field is missing or too narrow.
fn encode(pmu: &Pmu, mode: Mode, threshold: u32) -> Option<Encoding> {
    let (kind, scale, multiplier) = mode.epochs;
    let event = |threshold: u64| {
        let values = [kind, READS_AND_WRITES, scale, multiplier, threshold, mode.unit_shift];
        pmu.encode(&std::array::from_fn::<_, 6, _>(|at| (FIELDS[at], values[at])))
    };
    (0..32).find_map(|narrower| event(u64::from(threshold.min(u32::MAX >> narrower))))
}

type Open<S> = Box<dyn FnMut(Encoding) -> io::Result<S> + Send>;

pub struct PerfChmu<S> {
    pmu: Pmu,
    mode: Mode,
    open: Open<S>,
    stream: Option<S>,
    /// Pages found before the unit was stopped.
    pages: Vec<u64>,
    lost: u64,
}

impl PerfChmu<PerfStream> {
    /// Opens the unit with the best mode that its driver and this user's rights, below `root`, allow. Fails
    /// if this user may not, or the driver accepts no event that a policy could use.
    pub(super) fn attach(pmu: Pmu, root: &Path) -> Result<Self, LinuxError> {
        let cpu = pmu.cpus.first().copied().unwrap_or(0);
        let name = pmu.name.clone();
        let opened = Self::new(pmu, Box::new(move |encoding| PerfStream::open(encoding, cpu)));
        opened.map_err(|error| match error {
            Refusal::Device(error) => error.into(),
            Refusal::Call(error) => explain(error, &name, Tree::new(root), None),
        })
    }
}

#[derive(Debug)]
pub(super) enum Refusal {
    Device(DeviceError),
    Call(io::Error),
}

impl<S: HotLists> PerfChmu<S> {
    /// Tries modes and sizes of units, the best first, until the driver accepts one; nothing is counted yet.
    pub(super) fn new(pmu: Pmu, mut open: Open<S>) -> Result<Self, Refusal> {
        let device = pmu.name.clone();
        if let Some(what) = lacks(&pmu) {
            return Err(Refusal::Device(DeviceError::Lacks { device, what }));
        }
        let modes =
            MODES.into_iter().flat_map(|epochs| UNITS.map(move |unit_shift| Mode { epochs, unit_shift }));
        for mode in modes {
            let Some(encoding) = encode(&pmu, mode, 1) else { continue };
            match open(encoding) {
                Ok(_) => return Ok(Self { pmu, mode, open, stream: None, pages: Vec::new(), lost: 0 }),
                // The unit cannot do that; the next is tried.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL)) => {}
                Err(error) => return Err(Refusal::Call(error)),
            }
        }
        Err(Refusal::Device(DeviceError::Lacks { device, what: "a mode that its driver takes" }))
    }

    fn failed(&self, call: &'static str) -> impl FnOnce(io::Error) -> DeviceError {
        let device = self.pmu.name.clone();
        move |error| DeviceError::Refused { device, call, error: error.to_string() }
    }

    /// Stops the unit and takes its hot pages.
    fn stop(&mut self) -> Result<(), DeviceError> {
        let stopped = self.stream.as_mut().map_or(Ok(()), HotLists::stop).map_err(self.failed("stopping it"));
        self.take();
        stopped
    }

    fn start(&mut self) -> Result<(), DeviceError> {
        self.stream.as_mut().map_or(Ok(()), HotLists::start).map_err(self.failed("starting it"))
    }

    fn take(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let (unit_pages, pages) = ((1 << self.mode.unit_shift) / PAGE, &mut self.pages);
        let tally = stream.drain(&mut |unit, _count| {
            let first = unit.saturating_mul(unit_pages);
            pages.extend(first..first.saturating_add(unit_pages));
        });
        self.lost += tally.missing + u64::from(tally.damaged > 0);
    }
}

impl<S: HotLists> Profiler for PerfChmu<S> {
    fn name(&self) -> &str {
        &self.pmu.name
    }

    fn reports(&self) -> bool {
        false
    }

    fn command(&mut self, request: DeviceRequest) -> Result<(), DeviceError> {
        if let Some(threshold) = request.threshold {
            self.stop()?;
            // The threshold is part of the event, and an event of this PMU excludes others.
            self.stream = None;
            let encoding = encode(&self.pmu, self.mode, threshold).ok_or_else(|| DeviceError::Lacks {
                device: self.pmu.name.clone(),
                what: "bits for a threshold",
            })?;
            self.stream = Some((self.open)(encoding).map_err(self.failed("opening it"))?);
            self.start()?;
        } else if request.clear {
            self.stop()?;
            self.start()?;
        }
        Ok(())
    }

    fn read(&mut self, _report: bool, pages: &mut Vec<u64>) -> Result<Option<DeviceReport>, DeviceError> {
        self.take();
        pages.append(&mut self.pages);
        Ok(None)
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}
