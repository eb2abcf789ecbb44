//! The address spaces of real processes: the kernel says which pages are mapped and where, and moves them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use isotherm_core::{Bytes, MoveStatus, PageSize, Pages, TierId};

use isotherm_linux::LinuxError;
use isotherm_linux::clock;
use isotherm_linux::memory::huge::HugePages;
use isotherm_linux::memory::maps::{Mapping, MappingKind, MapsReader};
use isotherm_linux::memory::mover::{Mover, MoverOptions, PageMove, Shape, Step};
use isotherm_linux::memory::nodes::{Kernel, NodeReader, Residence};
use isotherm_linux::memory::pagemap::{PageRun, Pagemap};
use isotherm_linux::memory::reclaim::Reclaimer;
use isotherm_linux::memory::zswap::zswapped;
use isotherm_linux::memory::{BASE, HUGE};
use isotherm_linux::process::{Pid, ProcRoot};
use isotherm_linux::topology::Room;

use crate::host::{AddressSpaces, PresentRun};

/// Runs of present pages per read.
const RUNS: usize = 1024;
/// Maximum number of processes whose page tables stay open.
const OPEN: usize = 64;

/// Reclaim by the kernel's LRU on the nodes of each tier.
#[derive(Debug, Default)]
pub(super) struct TierReclaim {
    tiers: Vec<Vec<Reclaimer>>,
}

impl TierReclaim {
    pub(super) fn find(root: &Path, tiers: &[Vec<u32>], program: Pid, refused: &mut Vec<LinuxError>) -> Self {
        let own = Pid(std::process::id());
        let faster = tiers.len().saturating_sub(1);
        let mut find = |&node: &u32| match Reclaimer::find(root, program, own, node) {
            Ok(found) => Some(found),
            Err(error) => {
                refused.push(error);
                None
            }
        };
        Self {
            tiers: tiers[..faster].iter().map(|nodes| nodes.iter().filter_map(&mut find).collect()).collect(),
        }
    }

    fn exists(&self) -> bool {
        self.tiers.first().is_some_and(|reclaimers| !reclaimers.is_empty())
    }

    /// Reclaims bytes evenly from the tier's nodes; returns how many were freed.
    fn reclaim(&self, tier: usize, bytes: Bytes) -> Bytes {
        let reclaimers = self.tiers.get(tier).map_or(&[][..], Vec::as_slice);
        let each = Pages((bytes.0 / BASE).div_ceil(reclaimers.len().max(1) as u64));
        let freed = reclaimers.iter().filter_map(|reclaimer| reclaimer.reclaim(each).ok());
        Bytes(freed.map(|freed| freed.pages.0 * BASE).sum())
    }
}

pub(super) struct KernelSpaces {
    root: ProcRoot,
    page_size: PageSize,
    maps: MapsReader,
    mappings: Vec<Mapping>,
    pagemaps: HashMap<Pid, Pagemap>,
    runs: Vec<PageRun>,
    /// First addresses of the huge pages found by the last scan of a process.
    huge: HashMap<Pid, HashSet<u64>>,
    nodes: NodeReader<Kernel>,
    residences: Vec<Residence>,
    /// NUMA nodes of each tier; empty in shadow mode.
    tiers: Vec<Vec<u32>>,
    /// Free memory of each tier's nodes, where the kernel tells it.
    rooms: Vec<Option<Room>>,
    mover: Mover<Kernel>,
    moves: Vec<PageMove>,
    reclaim: TierReclaim,
    huge_pages: HugePages,
    /// First failure since the last call of [`AddressSpaces::warnings`].
    failure: Option<LinuxError>,
}

impl KernelSpaces {
    /// Takes the NUMA nodes of each tier, fastest first; none in shadow mode.
    pub(super) fn new(
        root: ProcRoot,
        page_size: PageSize,
        tiers: Vec<Vec<u32>>,
        mover: MoverOptions,
        reclaim: TierReclaim,
    ) -> Self {
        let (mut failure, machine) = (None, Path::new("/"));
        let mut room = |nodes: &Vec<u32>| match Room::on(machine, nodes) {
            Ok(room) => Some(room),
            Err(error) => {
                failure.get_or_insert(error);
                None
            }
        };
        Self {
            rooms: tiers.iter().map(&mut room).collect(),
            maps: MapsReader::new(root.clone()),
            root,
            page_size,
            mappings: Vec::new(),
            pagemaps: HashMap::new(),
            runs: vec![PageRun::default(); RUNS],
            huge: HashMap::new(),
            nodes: NodeReader::new(Kernel),
            residences: Vec::new(),
            tiers,
            mover: Mover::new(Kernel, mover),
            moves: Vec::new(),
            reclaim,
            huge_pages: HugePages::new(machine),
            failure,
        }
    }

    /// Appends the present and swapped pages of the mappings that were read last.
    fn scan(&mut self, process: Pid, found: &mut Vec<PresentRun>) -> Result<(), LinuxError> {
        if self.pagemaps.len() >= OPEN && !self.pagemaps.contains_key(&process) {
            self.pagemaps.clear();
        }
        let pagemap = match self.pagemaps.entry(process) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(Pagemap::open(&self.root, process)?)
            }
        };
        let page_size = self.page_size;
        for mapping in self.mappings.iter().filter(|mapping| is_tiered(mapping, page_size)) {
            let mut next = mapping.start;
            while next < mapping.end {
                let scanned = pagemap.scan(next..mapping.end, &mut self.runs)?;
                for run in &self.runs[..scanned.runs] {
                    let range = run.start..run.start + run.pages * BASE;
                    let huge = run.huge == Some(true);
                    if huge {
                        self.huge.entry(process).or_default().extend(whole_chunks(&range));
                    }
                    found.push(PresentRun { range, swapped: run.swapped, huge });
                }
                next = scanned.next;
            }
        }
        Ok(())
    }

    /// Keeps a failure to tell, unless the process has ended.
    fn note(&mut self, error: LinuxError) {
        if !matches!(error, LinuxError::Ended(_)) {
            self.failure.get_or_insert(error);
        }
    }

    fn tier_of(&self, node: u32) -> Option<TierId> {
        let tier = self.tiers.iter().position(|nodes| nodes.contains(&node))?;
        Some(TierId(tier as u8))
    }

    /// Returns the node for a page: addresses alternate between the tier's nodes, so that all fill.
    fn node_for(&self, tier: TierId, address: u64) -> Option<u32> {
        let nodes = self.tiers.get(tier.index())?;
        let turn = address >> self.page_size.shift();
        nodes.get(turn as usize % nodes.len().max(1)).copied()
    }
}

/// Lists the first addresses of the 2 MiB chunks that lie whole in the range.
fn whole_chunks(range: &Range<u64>) -> impl Iterator<Item = u64> + use<> {
    (range.start.div_ceil(HUGE)..range.end / HUGE).map(|chunk| chunk * HUGE)
}

/// Whether a mapping is allocated memory or a stack; hugetlb pages move only whole.
fn is_tiered(mapping: &Mapping, page_size: PageSize) -> bool {
    use MappingKind::{Anonymous, Heap, Hugetlb, SharedMemory, Stack};
    let own = match mapping.kind {
        Anonymous | Heap | SharedMemory | Stack => true,
        Hugetlb => page_size == PageSize::Huge,
        _ => false,
    };
    own && mapping.readable
}

impl AddressSpaces for KernelSpaces {
    fn present(&mut self, process: Pid, found: &mut Vec<PresentRun>) -> Result<(), LinuxError> {
        self.maps.read(process, &mut self.mappings)?;
        self.huge.remove(&process);
        let before = found.len();
        match self.scan(process, found) {
            // A page table opened before exec answers this although the process lives.
            Err(LinuxError::Ended(_)) if self.pagemaps.remove(&process).is_some() => {
                found.truncate(before);
                self.scan(process, found)
            }
            other => other,
        }
    }

    fn tiers(
        &mut self,
        process: Pid,
        addresses: &[u64],
        tiers: &mut Vec<Option<TierId>>,
    ) -> Result<(), LinuxError> {
        self.residences.clear();
        self.nodes.locate(process, addresses, &mut self.residences)?;
        tiers.extend(self.residences.iter().map(|residence| match residence {
            Residence::Node(node) => self.tier_of(*node),
            Residence::Gone | Residence::Unknown(_) => None,
        }));
        Ok(())
    }

    fn swapped(&mut self, process: Pid, addresses: &[u64], swapped: &mut Vec<bool>) {
        if let Some(pagemap) = self.pagemaps.get_mut(&process) {
            let all = swapped.len() + addresses.len();
            // The process may end meanwhile: its pages are then gone.
            let _ = pagemap.swapped(addresses, swapped);
            swapped.resize(all, false);
        }
    }

    fn zswapped(&mut self, process: Pid) -> Option<(PathBuf, Bytes)> {
        zswapped(Path::new("/"), process)
    }

    fn is_huge(&mut self, process: Pid, start: u64) -> bool {
        let Some(pagemap) = self.pagemaps.get_mut(&process) else { return false };
        // A huge page maps all of its 2 MiB, so that its first page tells.
        let scanned = pagemap.scan(start..start + BASE, &mut self.runs);
        let is_huge = scanned.is_ok_and(|scanned| scanned.runs == 1 && self.runs[0].huge == Some(true));
        let known = self.huge.entry(process).or_default();
        if is_huge {
            known.insert(start)
        } else {
            known.remove(&start)
        };
        is_huge
    }

    fn split(&mut self, process: Pid, start: u64) -> bool {
        if let Err(error) = self.huge_pages.split(process, start) {
            self.note(error);
            return false;
        }
        !self.is_huge(process, start)
    }

    fn collapse(&mut self, process: Pid, start: u64) -> bool {
        let collapsed = self.huge_pages.collapse(process, start).unwrap_or_else(|error| {
            self.note(error);
            false
        });
        if collapsed {
            self.huge.entry(process).or_default().insert(start);
        }
        collapsed
    }

    fn migrate(&mut self, process: Pid, moves: &[(u64, TierId)], statuses: &mut Vec<MoveStatus>) {
        let huge = self.huge.get(&process);
        let shape = |address: u64| match self.page_size {
            _ if huge.is_some_and(|huge| huge.contains(&address)) => Shape::Huge,
            PageSize::Base => Shape::Base,
            PageSize::Huge => Shape::HugeRange,
        };
        let mut moved = Vec::with_capacity(moves.len());
        let mut list = std::mem::take(&mut self.moves);
        list.clear();
        let node = |&(address, tier): &(u64, TierId)| {
            self.node_for(tier, address).map(|node| PageMove { address, shape: shape(address), node })
        };
        list.extend(moves.iter().map_while(node));
        let step = {
            let (reclaim, tiers) = (&self.reclaim, &self.tiers);
            let mut room = |node: u32, bytes: Bytes| {
                let tier = tiers.iter().position(|nodes| nodes.contains(&node)).unwrap_or(0);
                reclaim.reclaim(tier, bytes).0 > 0
            };
            self.mover.step(clock::monotonic(), process, &list, &mut moved, &mut room)
        };
        self.moves = list;
        // Pages beyond the rate limit count as busy: the policy sees that and may ask again.
        let rest = match step {
            Ok(Step::Done | Step::Wait { .. }) => MoveStatus::Busy,
            Err(LinuxError::Ended(_)) => MoveStatus::Gone,
            Err(LinuxError::Permission { .. }) => MoveStatus::Denied,
            // For instance, the node is offline.
            Err(error) => {
                self.failure.get_or_insert(error);
                MoveStatus::Busy
            }
        };
        moved.resize(moves.len(), rest);
        statuses.append(&mut moved);
    }

    /// Closes the page table: one opened between vfork and exec is the parent's and stays readable.
    fn forget(&mut self, process: Pid) {
        self.pagemaps.remove(&process);
        self.huge.remove(&process);
    }

    fn name(&mut self, process: Pid) -> Option<String> {
        let mut text = Vec::new();
        self.root.read(process, "comm", &mut text).ok()?;
        Some(String::from_utf8_lossy(&text).trim_end().to_owned())
    }

    fn room(&mut self, tier: TierId) -> Option<Bytes> {
        match self.rooms.get(tier.index())?.as_ref()?.read() {
            Ok(room) => Some(room),
            Err(error) => {
                self.failure.get_or_insert(error);
                None
            }
        }
    }

    fn reclaims(&self) -> bool {
        self.reclaim.exists()
    }

    fn reclaim(&mut self, from: TierId, bytes: u64) -> u64 {
        self.reclaim.reclaim(from.index(), Bytes(bytes)).0
    }

    fn warnings(&mut self) -> Vec<LinuxError> {
        self.mover.denials().into_iter().chain(self.failure.take()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hugetlb_pages_are_tiered_only_whole() {
        let mapping = |kind: &str| {
            let mut mappings = Vec::new();
            let line = format!("10000000-10200000 rw-p 00000000 00:10 7 {kind}\n");
            isotherm_linux::memory::maps::parse(line.as_bytes(), Path::new("maps"), &mut mappings)
                .expect("a line");
            mappings.remove(0)
        };
        let tiered = |kind| [PageSize::Base, PageSize::Huge].map(|size| is_tiered(&mapping(kind), size));
        assert_eq!(tiered("/anon_hugepage (deleted)"), [false, true]);
        assert_eq!(tiered("[heap]"), [true, true]);
        assert_eq!(tiered("/usr/bin/sort"), [false, false]);
    }

    #[test]
    fn a_huge_page_seen_in_part_does_not_count() {
        let chunks = |range: Range<u64>| whole_chunks(&range).collect::<Vec<_>>();
        assert_eq!(chunks(HUGE..3 * HUGE), [HUGE, 2 * HUGE]);
        assert_eq!(chunks(HUGE + BASE..3 * HUGE - BASE), [0; 0]);
        assert_eq!(chunks(HUGE - BASE..2 * HUGE + BASE), [HUGE]);
    }
}
