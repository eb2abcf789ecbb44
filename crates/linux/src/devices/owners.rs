//! Owners of frames: devices know frames, policies know pages of processes.
//!
//! The kernel tells a page's frame (`/proc/PID/pagemap`, for CAP_SYS_ADMIN), not a frame's page. So page
//! tables of followed processes are read for the regions' frames, again when a hot frame has no owner. Each
//! owner found is checked against the page table, since pages move.

use std::collections::BTreeMap;
use std::ops::Range;

use isotherm_core::Nanos;

use super::PAGE;
use crate::LinuxError;
use crate::memory::maps::{Mapping, MapsReader};
use crate::memory::pagemap::{PageRun, Pagemap};
use crate::process::{Pid, ProcRoot};

/// Shortest time between two readings of all page tables.
const RENEWAL: Nanos = Nanos(100 * Nanos::MILLISECOND.0);
/// The same after readings that found no owner: frames of other processes are hot too, and tables are long.
const LONGEST_RENEWAL: Nanos = Nanos(16 * RENEWAL.0);
/// Runs of present pages taken at once.
const RUNS: usize = 512;
/// Frames read at once.
const FRAMES: u64 = 64 << 10;

pub trait Owners: Send {
    fn follow(&mut self, process: Pid);
    fn forget(&mut self, process: Pid);

    /// Appends the page of each frame that a followed process has, in the order of `frames`; returns how many
    /// frames have no owner. Fails if page tables may not be read.
    fn find(&mut self, frames: &[u64], now: Nanos, pages: &mut Vec<(Pid, u64)>) -> Result<u64, LinuxError>;
}

#[derive(Debug)]
pub struct PageTables {
    root: ProcRoot,
    maps: MapsReader,
    regions: Vec<Range<u64>>,
    followed: BTreeMap<Pid, Option<Pagemap>>,
    /// Known frames with their pages, in the order of frames.
    known: Vec<(u64, Pid, u64)>,
    renewed: Option<Nanos>,
    renewal: Nanos,
}

impl PageTables {
    /// Returns a lookup that follows no process yet. `regions` are frames.
    pub fn new(root: ProcRoot, regions: Vec<Range<u64>>) -> Self {
        let maps = MapsReader::new(root.clone());
        let (followed, known) = (BTreeMap::new(), Vec::new());
        Self { root, maps, regions, followed, known, renewed: None, renewal: RENEWAL }
    }

    fn renew(&mut self, now: Nanos) -> Result<(), LinuxError> {
        self.renewed = Some(now);
        self.known.clear();
        let Self { root, maps, regions, followed, known, .. } = self;
        for (&process, pagemap) in followed.iter_mut() {
            match read_tables(root, maps, (process, pagemap), regions, known) {
                Ok(()) => {}
                // It executed another program or has ended: opened again next time.
                Err(LinuxError::Ended(_)) => *pagemap = None,
                Err(error) => return Err(error),
            }
        }
        self.known.sort_unstable();
        Ok(())
    }

    /// Returns the page that has the frame, if it is known and still current.
    fn owner(&mut self, frame: u64) -> Option<(Pid, u64)> {
        self.page_of(frame).filter(|&page| self.is_current(page, frame))
    }

    /// Reads page tables again, if due, for the frames without an owner.
    fn find_missing(
        &mut self,
        frames: &[u64],
        now: Nanos,
        owners: &mut [Option<(Pid, u64)>],
    ) -> Result<(), LinuxError> {
        let due = self.renewed.is_none_or(|renewed| now >= renewed + self.renewal);
        if !due || owners.iter().all(Option::is_some) {
            return Ok(());
        }
        self.renew(now)?;
        let mut found = false;
        for (owner, &frame) in owners.iter_mut().zip(frames).filter(|(owner, _)| owner.is_none()) {
            *owner = self.owner(frame);
            found |= owner.is_some();
        }
        self.renewal = if found { RENEWAL } else { Nanos(self.renewal.0 * 2).min(LONGEST_RENEWAL) };
        Ok(())
    }

    fn page_of(&self, frame: u64) -> Option<(Pid, u64)> {
        let index = self.known.partition_point(|entry| entry.0 < frame);
        self.known.get(index).filter(|entry| entry.0 == frame).map(|entry| (entry.1, entry.2))
    }

    fn is_current(&mut self, (process, address): (Pid, u64), frame: u64) -> bool {
        let mut now = [0];
        let pagemap = self.followed.get_mut(&process).and_then(Option::as_mut);
        pagemap.is_some_and(|pagemap| pagemap.frames(address, &mut now).is_ok() && now[0] == frame)
    }
}

impl Owners for PageTables {
    fn follow(&mut self, process: Pid) {
        self.followed.entry(process).or_insert(None);
    }

    fn forget(&mut self, process: Pid) {
        self.followed.remove(&process);
    }

    fn find(&mut self, frames: &[u64], now: Nanos, pages: &mut Vec<(Pid, u64)>) -> Result<u64, LinuxError> {
        let mut owners: Vec<_> = frames.iter().map(|&frame| self.owner(frame)).collect();
        self.find_missing(frames, now, &mut owners)?;
        pages.extend(owners.iter().flatten());
        Ok(owners.iter().filter(|owner| owner.is_none()).count() as u64)
    }
}

/// Reads the frames of one process's movable memory and keeps those of the regions.
fn read_tables(
    root: &ProcRoot,
    maps: &mut MapsReader,
    (process, pagemap): (Pid, &mut Option<Pagemap>),
    regions: &[Range<u64>],
    known: &mut Vec<(u64, Pid, u64)>,
) -> Result<(), LinuxError> {
    let mut mappings: Vec<Mapping> = Vec::new();
    maps.read(process, &mut mappings)?;
    let pagemap = match pagemap {
        Some(pagemap) => pagemap,
        none => none.insert(Pagemap::open(root, process)?),
    };
    let mut runs = [PageRun::default(); RUNS];
    let mut frames = Vec::new();
    for mapping in mappings.iter().filter(|mapping| mapping.is_movable()) {
        let mut next = mapping.start;
        while next < mapping.end {
            let scanned = pagemap.scan(next..mapping.end, &mut runs)?;
            for run in &runs[..scanned.runs] {
                for first in (0..run.pages).step_by(FRAMES as usize) {
                    let start = run.start + first * PAGE;
                    frames.clear();
                    frames.resize((run.pages - first).min(FRAMES) as usize, 0);
                    pagemap.frames(start, &mut frames)?;
                    let addresses = (start..).step_by(PAGE as usize);
                    let ours = frames
                        .iter()
                        .zip(addresses)
                        .filter(|(frame, _)| regions.iter().any(|region| region.contains(frame)));
                    known.extend(ours.map(|(&frame, address)| (frame, process, address)));
                }
            }
            next = scanned.next.max(next + PAGE);
        }
    }
    Ok(())
}
