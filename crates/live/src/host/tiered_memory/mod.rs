//! The programs' memory: which pages are mapped, on which tier each lies, and how pages move.

mod address_spaces;
mod page_numbering;
mod residency;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::path::PathBuf;

use isotherm_core::machine_status::MappingStatus;
use isotherm_core::{
    Allocation, Bytes, FastLimit, Move, MoveStatus, Nanos, PageId, PageSize, Pages, Placing, TierId,
};

use isotherm_linux::LinuxError;
use isotherm_linux::process::Pid;
use isotherm_shares::Curve;

use super::options::Options;
use super::share::ProcessReport;
use super::tally::{Heat, Tally};
pub use address_spaces::{AddressSpaces, PresentRun};
use page_numbering::{CHUNK_SHIFT, PageNumbering};
use residency::Residency;

/// Bytes of a chunk.
const CHUNK: u64 = 1 << CHUNK_SHIFT;
/// Maximum number of pages per call of [`AddressSpaces`].
const BATCH: usize = 4096;
/// Longest time that a source holds an armed page, plus one second.
const ARMED_FOR: Nanos = Nanos(11 * Nanos::SECOND.0);

/// Memory that the kernel can give of a tier.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// The most pages that the programs can have there.
    most: u64,
    /// Pages that the kernel said to have and did not give; each scan asks for half of them again.
    denied: u64,
}

impl Default for Room {
    fn default() -> Self {
        Self { most: u64::MAX, denied: 0 }
    }
}

/// Memory of a process in swap, as of its last scan.
#[derive(Debug)]
struct Swapped {
    pages: u64,
    /// The process's cgroup, and the bytes that zswap holds of the programs there.
    zswapped: Option<(PathBuf, Bytes)>,
}

pub(crate) struct TieredMemory {
    pub(crate) page_size: PageSize,
    pub(crate) shadow: bool,
    fast: FastLimit,
    /// Pages of each tier's memory.
    sizes: Vec<u64>,
    rooms: Vec<Room>,
    /// Pages of the huge page that each tier had too little room for last.
    refused: Vec<u64>,
    pub(crate) numbers: PageNumbering,
    pub(crate) residency: Residency,
    pub(crate) spaces: Box<dyn AddressSpaces>,
    placing: Placing,
    /// Bytes a second of each tier.
    bandwidths: Vec<u64>,
    /// The most pages that were mapped at once: shares of the fast limit refer to it.
    pub(crate) most: Pages,
    /// Mapped pages and the fast tier's capacity when the policy was sized.
    sized_for: (Pages, Pages),
    found: Vec<PresentRun>,
    swapped: HashMap<Pid, Swapped>,
    /// Whether a huge page maps each chunk, by its number, in a run of base pages; `None` until it is known.
    huge: Vec<Option<bool>>,
    addresses: Vec<u64>,
    tiers: Vec<Option<TierId>>,
    moves: Vec<(u64, TierId)>,
    victims: Vec<PageId>,
    /// Whether the fast tier's limit has fallen since it was last enforced.
    shrunk: bool,
    origins: Vec<Option<TierId>>,
    /// Pages that each move of a batch has moved.
    carried: Vec<u64>,
    /// Pages that a policy armed, oldest first.
    armed: VecDeque<(Nanos, PageId)>,
}

impl TieredMemory {
    pub(crate) fn new(options: &Options, spaces: Box<dyn AddressSpaces>) -> Self {
        let shift = options.page_size.shift();
        let capacity: Vec<u64> = options.tiers.iter().map(|tier| tier.size.0 >> shift).collect();
        let mut memory = Self {
            page_size: options.page_size,
            shadow: options.shadow,
            fast: options.fast.clone(),
            sizes: capacity.clone(),
            rooms: vec![Room::default(); capacity.len()],
            refused: vec![0; capacity.len()],
            numbers: PageNumbering::new(options.page_size),
            residency: Residency::new(capacity),
            spaces,
            placing: Placing::default(),
            bandwidths: options.tiers.iter().map(|tier| tier.bandwidth).collect(),
            most: Pages(0),
            sized_for: (Pages(0), Pages(0)),
            found: Vec::new(),
            swapped: HashMap::new(),
            huge: Vec::new(),
            addresses: Vec::new(),
            tiers: Vec::new(),
            moves: Vec::new(),
            victims: Vec::new(),
            shrunk: false,
            origins: Vec::new(),
            carried: Vec::new(),
            armed: VecDeque::new(),
        };
        memory.limit();
        memory
    }

    pub(crate) fn begin_policy(&mut self, allocation: Allocation) {
        self.placing = Placing::new(allocation.with_bandwidths(&self.bandwidths));
        self.sized_for = (self.residency.mapped(), self.residency.capacity(TierId::FAST));
    }

    /// Whether `times` the memory that the policy was sized for is mapped, or fits into the fast tier, or so
    /// much less fits.
    pub(crate) fn outgrown(&self, times: f64) -> bool {
        let (mapped, fast) = self.sized_for;
        let exceeds = |now: Pages, then: Pages| now.0 as f64 > times * then.0.max(1) as f64;
        let fits = self.residency.capacity(TierId::FAST);
        exceeds(self.residency.mapped(), mapped) || exceeds(fits, fast) || exceeds(fast, fits)
    }

    pub(crate) fn limit_follows(&self) -> bool {
        !matches!(self.fast, FastLimit::Bytes(_))
    }

    /// Replaces the limit of fast memory; returns whether it has changed.
    pub(crate) fn set_limit(&mut self, fast: FastLimit) -> bool {
        let changed = self.fast != fast;
        if changed {
            self.fast = fast;
            let before = self.residency.capacity(TierId::FAST);
            self.limit();
            self.shrunk |= self.residency.capacity(TierId::FAST) < before;
        }
        changed
    }

    /// Returns the hit ratio by fast pages, from the samples of all mapped pages.
    pub(crate) fn curve(&self, heat: &Heat) -> Curve {
        let mut counts = Vec::with_capacity(self.residency.mapped().0 as usize);
        self.residency.walk(PageId(0), usize::MAX, |page, _| counts.push(heat.of(page)));
        Curve::of_counts(counts.into_iter())
    }

    /// Returns a process's memory on each tier, and the samples of it.
    pub(crate) fn process(&self, process: Pid, heat: &Heat) -> ProcessReport {
        let (mut pages, mut accesses) = (vec![0; self.residency.tiers()], 0);
        for page in self.numbers.chunks_of(process).iter().flat_map(|&chunk| self.numbers.pages_of(chunk)) {
            if let Some(tier) = self.residency.tier_of(PageId(page)) {
                pages[tier.index()] += 1;
                accesses += u64::from(heat.of(PageId(page)));
            }
        }
        let resident = pages.into_iter().map(|pages| self.bytes_of(Pages(pages))).collect();
        let swapped = self.swapped.get(&process).map_or(Pages(0), |swapped| Pages(swapped.pages));
        ProcessReport { process, resident, swapped: self.bytes_of(swapped), accesses }
    }

    /// Returns the memory of processes by address with how warm it is: the stretches with the most memory, by
    /// process and address.
    pub(crate) fn mappings(&self, processes: &[Pid], heat: &Heat) -> Vec<MappingStatus> {
        let memory = |one: &MappingStatus| one.resident_bytes.iter().copied().sum::<Bytes>();
        let mut found = Vec::new();
        let keep_largest = |found: &mut Vec<MappingStatus>| {
            found.sort_by_key(|one| std::cmp::Reverse(memory(one)));
            found.truncate(MappingStatus::MAX);
        };
        for &process in processes {
            let address = |&chunk: &u32| (self.numbers.start_of(chunk), chunk);
            let mut chunks: Vec<_> = self.numbers.chunks_of(process).iter().map(address).collect();
            chunks.sort_unstable();
            for run in chunks.chunk_by(|one, next| one.0 + (1 << CHUNK_SHIFT) == next.0) {
                found.extend(self.mapping(process, run, heat));
                if found.len() >= 4 * MappingStatus::MAX {
                    keep_largest(&mut found);
                }
            }
        }
        keep_largest(&mut found);
        found.sort_by_key(|one| (one.pid, one.start));
        found
    }

    /// Returns adjacent chunks, each with its address, as one stretch; `None` if nothing there is mapped.
    fn mapping(&self, process: Pid, chunks: &[(u64, u32)], heat: &Heat) -> Option<MappingStatus> {
        let pages: Vec<PageId> =
            chunks.iter().flat_map(|&(_, chunk)| self.numbers.pages_of(chunk)).map(PageId).collect();
        let mapped = |&page: &PageId| self.residency.tier_of(page).is_some();
        let first = pages.iter().position(mapped)?;
        let pages = &pages[first..=pages.iter().rposition(mapped)?];
        let mut resident = vec![0; self.residency.tiers()];
        let parts = pages.len().min(MappingStatus::MAX_CELLS);
        let cell = |part: usize| {
            let (mut accesses, mut fast, mut all) = (0, 0, 0);
            for &page in &pages[part * pages.len() / parts..(part + 1) * pages.len() / parts] {
                if let Some(tier) = self.residency.tier_of(page) {
                    resident[tier.index()] += 1;
                    accesses += u64::from(heat.of(page));
                    fast += u64::from(tier == TierId::FAST);
                    all += 1;
                }
            }
            (accesses, (100 * fast / all.max(1)) as u8)
        };
        Some(MappingStatus {
            pid: process.0,
            start: chunks[0].0 + self.bytes_of(Pages(first as u64)).0,
            bytes: self.bytes_of(Pages(pages.len() as u64)),
            cells: (0..parts).map(cell).collect(),
            resident_bytes: resident.into_iter().map(|pages| self.bytes_of(Pages(pages))).collect(),
        })
    }

    fn limit(&mut self) {
        self.most = self.most.max(self.residency.mapped());
        let limits = self.fast.limits(self.most.0, |bytes| bytes.0 >> self.page_size.shift());
        let limits = limits.into_iter().chain(std::iter::repeat(u64::MAX));
        for ((tier, limit), (&size, room)) in self.tiers().zip(limits).zip(self.sizes.iter().zip(&self.rooms))
        {
            self.residency.resize(tier, size.min(limit).min(room.most));
        }
    }

    /// Bounds the tiers by what the kernel can still give: others use them, too.
    fn look_for_room(&mut self, found: &[Pages]) {
        let last = self.sizes.len() - 1;
        for ((tier, room), found) in self.tiers().zip(&mut self.rooms).zip(found).take(last) {
            if let Some(free) = self.spaces.room(tier).filter(|_| !self.shadow) {
                room.most =
                    found.0.saturating_add((free.0 >> self.page_size.shift()).saturating_sub(room.denied));
                room.denied /= 2;
            }
        }
        self.limit();
    }

    /// Returns the room on a tier: none, if it is less than a huge page needed that was refused. A policy
    /// that counts on such room makes no other, and asks for the huge page in vain for ever.
    pub(crate) fn free(&self, tier: TierId) -> Pages {
        let free = self.residency.free(tier);
        if free.0 < self.refused.get(tier.index()).copied().unwrap_or(0) { Pages(0) } else { free }
    }

    /// Notes that the kernel found no room on a tier, whatever it told.
    fn deny(&mut self, tier: TierId) {
        let (used, room) = (self.residency.used(tier).0, &mut self.rooms[tier.index()]);
        room.denied = room.denied.saturating_add(self.residency.free(tier).0);
        room.most = used;
        self.limit();
    }

    /// Notes an access to a page and returns its tier; `seen` is the tier that the source reports.
    #[inline]
    pub(crate) fn touch(&mut self, page: PageId, seen: Option<TierId>) -> TierId {
        self.residency.touch(page).unwrap_or_else(|| self.discover(page, seen))
    }

    /// Notes a page mapped after the last scan; without a reported tier it lies where new pages go.
    #[cold]
    fn discover(&mut self, page: PageId, seen: Option<TierId>) -> TierId {
        let told = seen.filter(|tier| !self.shadow && tier.index() < self.residency.tiers());
        let tier = told.unwrap_or_else(|| self.residency.place(&mut self.placing));
        self.residency.map(page, tier);
        self.residency.touch(page);
        tier
    }

    /// Scans the process's memory but the `hidden` ranges; with real tiers, locates each page.
    ///
    /// # Errors
    /// If the process has ended or may not be read; its known pages stay.
    pub(crate) fn scan(
        &mut self,
        process: Pid,
        hidden: &[Range<u64>],
        tally: &mut Tally,
    ) -> Result<(), LinuxError> {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        // Shadow tiers keep their splits, which the kernel does not have.
        if !self.shadow {
            self.forget_huge(process);
        }
        let looked = self.spaces.present(process, &mut found);
        hidden.iter().for_each(|hidden| cut(&mut found, hidden));
        let bytes_of = |swapped: bool| -> u64 {
            let runs = found.iter().filter(|run| run.swapped == swapped);
            runs.map(|run| run.range.end - run.range.start).sum()
        };
        let (present, swapped) = (bytes_of(false), bytes_of(true) >> self.page_size.shift());
        if looked.is_ok() {
            let zswapped = if swapped > 0 { self.spaces.zswapped(process) } else { None };
            self.swapped.insert(process, Swapped { pages: swapped, zswapped });
        }
        // A limit that is a share includes the pages that are about to be placed.
        self.most = self.most.max(Pages(present >> self.page_size.shift()));
        self.limit();
        let taken = looked.and_then(|()| self.take_runs(process, &found));
        self.found = found;
        taken?;
        for &chunk in self.numbers.chunks_of(process) {
            if let Some(huge) = self.huge.get_mut(chunk as usize) {
                huge.get_or_insert(false);
            }
        }
        let (numbers, residency) = (&mut self.numbers, &mut self.residency);
        let pages = numbers.pages_in_chunk();
        numbers.release(process, |chunk| {
            let chunk = chunk * pages..(chunk + 1) * pages;
            let gone = residency.sweep(chunk.clone()) == 0;
            if gone {
                tally.forget(chunk);
            }
            gone
        });
        self.limit();
        Ok(())
    }

    fn take_runs(&mut self, process: Pid, runs: &[PresentRun]) -> Result<(), LinuxError> {
        let step = self.page_size.bytes().0;
        self.addresses.clear();
        for run in runs {
            if run.huge && self.page_size == PageSize::Base {
                let chunks = (run.range.start.div_ceil(CHUNK))..run.range.end / CHUNK;
                chunks.for_each(|chunk| self.take_huge(process, chunk * CHUNK));
            }
            let mut address = run.range.start / step * step;
            while address < run.range.end {
                if run.swapped {
                    self.leave(process, address);
                    address += step;
                    continue;
                }
                self.addresses.push(address);
                if self.addresses.len() == BATCH {
                    self.take_batch(process)?;
                }
                address += step;
            }
        }
        self.take_batch(process)
    }

    /// Notes that a huge page maps the chunk that begins at the address.
    fn take_huge(&mut self, process: Pid, start: u64) {
        let known = self.numbers.at(process, start).is_some();
        if let Some(page) = self.numbers.number(process, start).filter(|_| !(self.shadow && known)) {
            self.set_huge(page, true);
        }
    }

    fn set_huge(&mut self, page: PageId, huge: bool) {
        let chunk = self.chunk_number(page);
        if chunk >= self.huge.len() {
            self.huge.resize(chunk + 1, None);
        }
        self.huge[chunk] = Some(huge);
    }

    fn chunk_number(&self, page: PageId) -> usize {
        (page.0 / self.numbers.pages_in_chunk()) as usize
    }

    fn forget_huge(&mut self, process: Pid) {
        for &chunk in self.numbers.chunks_of(process) {
            if let Some(huge) = self.huge.get_mut(chunk as usize) {
                *huge = None;
            }
        }
    }

    /// Returns the pages that move with this one. Since the last scan the kernel may have made a huge page of
    /// its chunk (khugepaged), or split one.
    fn unit_now(&mut self, process: Pid, page: PageId, looked: &mut HashSet<u32>) -> Range<u32> {
        match (self.is_huge_now(process, page, looked), self.unit(page).len() > 1) {
            (Some(huge), was) if huge != was => drop(self.look_again(process, page, huge, TierId::FAST)),
            (Some(huge), _) => self.set_huge(page, huge),
            (None, _) => {}
        }
        self.unit(page)
    }

    /// Asks the kernel whether a huge page maps the page's chunk, unless it has `looked` at it.
    fn is_huge_now(&mut self, process: Pid, page: PageId, looked: &mut HashSet<u32>) -> Option<bool> {
        let chunk = self.numbers.chunk_of(page).start;
        let start = self.numbers.address(PageId(chunk)).filter(|_| self.page_size == PageSize::Base);
        let (_, start) = start.filter(|_| looked.insert(chunk))?;
        Some(self.spaces.is_huge(process, start))
    }

    /// Looks where the pages of a chunk are of which the kernel has made a huge page, or whose huge page it
    /// has split. Returns how many have come to a tier.
    fn look_again(&mut self, process: Pid, page: PageId, huge: bool, to: TierId) -> u64 {
        self.set_huge(page, huge);
        let chunk = self.numbers.chunk_of(page);
        let address = |page: u32| self.numbers.address(PageId(page)).map(|(_, address)| address);
        let (addresses, mut tiers): (Vec<u64>, _) = (chunk.clone().filter_map(address).collect(), Vec::new());
        if self.spaces.tiers(process, &addresses, &mut tiers).is_err() {
            return 0;
        }
        let before = self.elsewhere(chunk.clone(), to);
        for (page, tier) in chunk.clone().map(PageId).zip(tiers) {
            // What was not mapped may not be tiered, unless it is a part of the huge page.
            if let Some(tier) = tier.filter(|_| huge || self.residency.tier_of(page).is_some()) {
                self.residency.map(page, tier);
            }
        }
        before.saturating_sub(self.elsewhere(chunk, to))
    }

    /// Returns the pages that move with this one: those of its huge page, if it is in one.
    pub(crate) fn unit(&self, page: PageId) -> Range<u32> {
        match self.huge.get(self.chunk_number(page)) {
            Some(Some(true)) => self.numbers.chunk_of(page),
            _ => page.0..page.0 + 1,
        }
    }

    /// Splits the page's huge page; returns whether it was in one and the kernel did.
    pub(crate) fn split(&mut self, page: PageId) -> bool {
        let unit = self.unit(page);
        let Some((process, start)) = self.numbers.address(PageId(unit.start)).filter(|_| unit.len() > 1)
        else {
            return false;
        };
        let split = self.shadow || self.spaces.split(process, start);
        if split {
            self.set_huge(page, false);
        }
        split
    }

    /// Makes a huge page of the page's chunk; returns whether the kernel did. Nothing tells whether it would
    /// have for shadow tiers.
    pub(crate) fn collapse(&mut self, page: PageId) -> bool {
        let first = PageId(self.numbers.chunk_of(page).start);
        let base = self.page_size == PageSize::Base && self.unit(page).len() == 1;
        let address = self.numbers.address(first).filter(|_| base && !self.shadow);
        let Some((process, start)) = address else { return false };
        let collapsed = self.spaces.collapse(process, start);
        if collapsed {
            self.look_again(process, page, true, TierId::FAST);
        }
        collapsed
    }

    /// Forgets where a page is that is in swap now: no move reaches it, and it comes back to another place.
    fn leave(&mut self, process: Pid, address: u64) {
        if let Some(page) = self.numbers.at(process, address) {
            self.residency.unmap(page);
        }
    }

    /// Returns the memory in swap and how much of it zswap holds, where that is known: the kernel counts it
    /// for whole cgroups, so that it is an upper bound where they have other programs.
    pub(crate) fn swapped(&self) -> (Bytes, Option<Bytes>) {
        let all = self.bytes_of(Pages(self.swapped.values().map(|swapped| swapped.pages).sum()));
        let groups: BTreeMap<&PathBuf, Bytes> = self
            .swapped
            .values()
            .filter_map(|swapped| swapped.zswapped.as_ref())
            .map(|(group, bytes)| (group, *bytes))
            .collect();
        (all, (!groups.is_empty()).then(|| all.min(groups.into_values().sum())))
    }

    /// Marks the pages at [`Self::addresses`] as mapped.
    fn take_batch(&mut self, process: Pid) -> Result<(), LinuxError> {
        self.tiers.clear();
        if !self.shadow {
            self.spaces.tiers(process, &self.addresses, &mut self.tiers)?;
        }
        for (index, &address) in self.addresses.iter().enumerate() {
            let Some(page) = self.numbers.number(process, address) else { continue };
            let real = if self.shadow { self.residency.tier_of(page) } else { self.tiers[index] };
            let tier = match real {
                Some(tier) => tier,
                None if self.shadow => self.residency.place(&mut self.placing),
                None => continue,
            };
            self.residency.map(page, tier);
            self.residency.see(page);
        }
        self.addresses.clear();
        Ok(())
    }

    /// Forgets the memory of a process that has ended or executed another program.
    pub(crate) fn forget(&mut self, process: Pid, tally: &mut Tally) {
        self.spaces.forget(process);
        self.swapped.remove(&process);
        self.forget_huge(process);
        for &chunk in self.numbers.chunks_of(process) {
            self.numbers.pages_of(chunk).for_each(|page| self.residency.unmap(PageId(page)));
            tally.forget(self.numbers.pages_of(chunk));
        }
        self.numbers.forget(process);
    }

    /// Notes that sources hold these pages until they are accessed, for at most [`ARMED_FOR`].
    pub(crate) fn arm(&mut self, pages: &[PageId], now: Nanos) {
        for &page in pages {
            self.residency.set_armed(page, true);
            self.armed.push_back((now, page));
        }
    }

    pub(crate) fn expire(&mut self, now: Nanos) {
        while let Some(&(since, page)) = self.armed.front() {
            if now - since < ARMED_FOR {
                break;
            }
            self.armed.pop_front();
            self.residency.set_armed(page, false);
        }
    }

    pub(crate) fn migrate(&mut self, moves: &[Move], statuses: &mut Vec<MoveStatus>, tally: &mut Tally) {
        let mut rest = moves;
        while let Some(first) = rest.first() {
            let owner = self.numbers.address(first.page).map(|(process, _)| process);
            // Moves to one target finish first: pages that leave a tier make room for later moves.
            let same = |one: &&Move| {
                one.to == first.to && self.numbers.address(one.page).map(|(process, _)| process) == owner
            };
            let length = rest.iter().take(BATCH).take_while(same).count();
            let (now, later) = rest.split_at(length);
            let before = statuses.len();
            self.origins.clear();
            self.origins.extend(now.iter().map(|one| self.residency.tier_of(one.page)));
            self.carried.clear();
            self.carried.resize(now.len(), 0);
            let swapped = match owner {
                Some(process) if !self.shadow => self.migrate_really(process, now, statuses),
                _ => {
                    for (index, one) in now.iter().enumerate() {
                        let (status, pages) = self.relocate(*one);
                        self.carried[index] = pages;
                        statuses.push(status);
                    }
                    0
                }
            };
            let moves = now.iter().zip(&self.origins).zip(&statuses[before..]).zip(&self.carried);
            for (((one, &from), &status), &pages) in moves {
                tally.moved((from, one.to), status, pages, self.page_size);
            }
            tally.swapped(swapped);
            rest = later;
        }
    }

    /// Returns how many pages of a unit are mapped and not on a tier.
    fn elsewhere(&self, unit: Range<u32>, to: TierId) -> u64 {
        unit.filter(|&page| self.residency.tier_of(PageId(page)).is_some_and(|tier| tier != to)).count()
            as u64
    }

    /// Notes that the mapped pages of a unit are on a tier.
    fn place(&mut self, unit: Range<u32>, to: TierId) {
        for page in unit.map(PageId) {
            if self.residency.tier_of(page).is_some() {
                self.residency.map(page, to);
            }
        }
    }

    /// Moves a unit between virtual tiers, if there is room; returns how many pages that were.
    fn relocate(&mut self, one: Move) -> (MoveStatus, u64) {
        let unit = self.unit(one.page);
        if unit.len() == 1 || self.residency.tier_of(one.page).is_none_or(|from| from == one.to) {
            let status = self.residency.relocate(one.page, one.to);
            return (status, u64::from(status == MoveStatus::Moved));
        }
        let pages = self.elsewhere(unit.clone(), one.to);
        if one.to.index() + 1 < self.residency.tiers() && self.residency.free(one.to).0 < pages {
            self.refused[one.to.index()] = pages;
            return (MoveStatus::NoRoom, 0);
        }
        self.place(unit, one.to);
        (MoveStatus::Moved, pages)
    }

    /// Moves pages, and with each the others of its huge page; asks for a huge page once. Returns how many of
    /// the pages that are gone are in swap.
    fn migrate_really(&mut self, process: Pid, moves: &[Move], statuses: &mut Vec<MoveStatus>) -> u64 {
        self.moves.clear();
        let first = statuses.len();
        let mut asked = Vec::with_capacity(moves.len());
        // Moves of a huge page that was asked for, and the place of the first of them.
        let (mut huge, mut along) = (HashMap::new(), Vec::new());
        let (mut claimed, mut looked) = (0, HashSet::new());
        for one in moves {
            let unit = self.unit_now(process, one.page, &mut looked);
            let is_huge = unit.len() > 1;
            if let Some(&place) = huge.get(&unit.start).filter(|_| is_huge) {
                along.push((statuses.len(), place));
                statuses.push(MoveStatus::Busy);
                continue;
            }
            let pages = if is_huge { self.elsewhere(unit.clone(), one.to) } else { 1 };
            // The kernel knows only the node's size, so the tier's limit is enforced here.
            let room = one.to.index() + 1 == self.residency.tiers()
                || self.residency.free(one.to).0 >= claimed + pages;
            match self.numbers.address(PageId(unit.start)) {
                Some(_) if self.residency.tier_of(one.page).is_none() => statuses.push(MoveStatus::Gone),
                Some((_, address)) if room => {
                    if is_huge {
                        huge.insert(unit.start, statuses.len());
                    }
                    claimed += pages;
                    asked.push((statuses.len(), unit, pages));
                    self.moves.push((address, one.to));
                    statuses.push(MoveStatus::Busy);
                }
                Some(_) => {
                    if is_huge {
                        self.refused[one.to.index()] = pages;
                    }
                    statuses.push(MoveStatus::NoRoom);
                }
                None => statuses.push(MoveStatus::Gone),
            }
        }
        let mut answers = Vec::with_capacity(asked.len());
        self.spaces.migrate(process, &self.moves, &mut answers);
        let gone: Vec<u64> = (self.moves.iter().zip(&answers))
            .filter(|(_, answer)| **answer == MoveStatus::Gone)
            .map(|(one, _)| one.0)
            .collect();
        // Since the first look the kernel may have split a huge page, as where a node has no room for it, and
        // moved a part; or it has made one and moved all of it.
        let mut changed = Vec::new();
        looked.clear();
        for ((index, unit, pages), answer) in asked.into_iter().zip(answers) {
            statuses[index] = answer;
            let one = moves[index - first];
            let huge = unit.len() > 1;
            let tried = !matches!(answer, MoveStatus::AlreadyThere | MoveStatus::Gone);
            let now = if tried { self.is_huge_now(process, one.page, &mut looked) } else { None };
            let change = now.is_some_and(|now| now != huge);
            if change {
                changed.push((index - first, !huge));
            }
            if answer == MoveStatus::Moved && !(huge && change) {
                self.carried[index - first] = pages;
            }
            match answer {
                MoveStatus::Moved | MoveStatus::AlreadyThere if !(huge && change) => self.place(unit, one.to),
                MoveStatus::NoRoom if self.residency.free(one.to).0 > 0 => self.deny(one.to),
                // The next scans tell whether the page is gone or was held by a source for a moment.
                _ => {}
            }
        }
        for (index, huge) in changed {
            let one = moves[index];
            self.carried[index] += self.look_again(process, one.page, huge, one.to);
        }
        for (index, place) in along {
            let moved = statuses[place] == MoveStatus::Moved;
            statuses[index] = if moved { MoveStatus::AlreadyThere } else { statuses[place] };
        }
        let mut swapped = Vec::new();
        if !gone.is_empty() {
            self.spaces.swapped(process, &gone, &mut swapped);
        }
        let left = gone.into_iter().zip(swapped).filter(|(_, swapped)| *swapped);
        left.map(|(address, _)| self.leave(process, address)).count() as u64
    }

    pub(crate) fn reclaims(&self) -> bool {
        self.shadow || self.spaces.reclaims()
    }

    /// Makes room on a tier: by the kernel's LRU or, in shadow mode, by a clock over the samples.
    pub(crate) fn reclaim(&mut self, from: TierId, pages: Pages, tally: &mut Tally) -> Pages {
        if !self.shadow {
            let freed =
                self.spaces.reclaim(from, pages.0 << self.page_size.shift()) >> self.page_size.shift();
            tally.traffic.reclaimed += freed;
            return Pages(freed);
        }
        Pages(self.demote(from, pages, tally))
    }

    /// Looks for the tiers' room and demotes pages beyond: the kernel places new ones without regard to it.
    /// Pages that the last scan missed do not count: new ones have got the memory of those that were freed.
    /// After the limit has fallen the coldest go: all at once, there is no time to find out who is accessed.
    pub(crate) fn enforce(&mut self, tally: &mut Tally) {
        let found = self.residency.found();
        self.look_for_room(&found);
        let excesses: Vec<(TierId, Pages)> = self
            .tiers()
            .zip(found)
            .scan(Pages(0), |excess, (tier, found)| {
                *excess = found + *excess - self.residency.capacity(tier);
                Some((tier, *excess))
            })
            .take_while(|(tier, excess)| excess.0 > 0 && tier.index() + 1 < self.residency.tiers())
            .collect();
        // The slowest of them makes room for the next.
        for (tier, excess) in excesses.into_iter().rev() {
            match tier == TierId::FAST && std::mem::take(&mut self.shrunk) {
                true => self.demote_coldest(excess, tally),
                false => self.demote(tier, excess, tally),
            };
        }
    }

    fn demote_coldest(&mut self, pages: Pages, tally: &mut Tally) -> u64 {
        let mut victims = std::mem::take(&mut self.victims);
        victims.clear();
        self.residency.walk(PageId(0), usize::MAX, |page, tier| {
            victims.extend((tier == TierId::FAST && !self.residency.missed(page)).then_some(page));
        });
        let excess = (pages.0 as usize).min(victims.len());
        if excess < victims.len() {
            // A huge page is as hot as all of it, in comparison with as many base pages.
            let pages = u64::from(self.numbers.pages_in_chunk());
            let mut whole: HashMap<u32, u64> = HashMap::new();
            for &page in victims.iter().filter(|&&page| self.unit(page).len() > 1) {
                *whole.entry(self.unit(page).start).or_default() += u64::from(tally.heat.of(page));
            }
            let alone = |page: PageId| pages * u64::from(tally.heat.of(page));
            let heat = |page| whole.get(&self.unit(page).start).copied().unwrap_or_else(|| alone(page));
            victims.select_nth_unstable_by_key(excess, |&page| (heat(page), page));
        }
        victims.truncate(excess);
        self.move_down(TierId::FAST, victims, &[], tally)
    }

    /// Moves pages without recent accesses to the next slower tier; returns how many.
    fn demote(&mut self, from: TierId, pages: Pages, tally: &mut Tally) -> u64 {
        if from.index() + 1 >= self.residency.tiers() {
            return 0;
        }
        let mut victims = std::mem::take(&mut self.victims);
        victims.clear();
        let mut spared = Vec::new();
        self.residency.victims(from, pages.0, &mut victims, &mut spared);
        self.move_down(from, victims, &spared, tally)
    }

    fn move_down(&mut self, from: TierId, victims: Vec<PageId>, spared: &[PageId], tally: &mut Tally) -> u64 {
        let (mut moves, mut left) = (Vec::new(), victims.len());
        // A huge page stays if a part of it does, and goes once.
        let mut staying: HashSet<u32> = spared.iter().map(|&page| self.unit(page).start).collect();
        for &page in &victims {
            let unit = self.unit(page);
            if left == 0 || unit.len() > 1 && !staying.insert(unit.start) {
                continue;
            }
            left = left.saturating_sub(unit.len());
            moves.push(Move { page, to: from.slower() });
        }
        self.victims = victims;
        let before = tally.traffic.demotions;
        self.migrate(&moves, &mut Vec::with_capacity(moves.len()), tally);
        tally.traffic.demotions - before
    }

    pub(crate) fn tiers(&self) -> impl Iterator<Item = TierId> + use<> {
        (0..self.residency.tiers() as u8).map(TierId)
    }

    pub(crate) fn bytes_of(&self, pages: Pages) -> Bytes {
        Bytes(pages.0 << self.page_size.shift())
    }

    pub(crate) fn bytes(&self) -> usize {
        self.numbers.bytes() + self.residency.bytes() + self.huge.capacity()
    }
}

fn cut(runs: &mut Vec<PresentRun>, hidden: &Range<u64>) {
    let mut behind = Vec::new();
    for run in runs.iter_mut().filter(|run| run.range.start < hidden.end && hidden.start < run.range.end) {
        if hidden.end < run.range.end {
            behind.push(PresentRun { range: hidden.end..run.range.end, ..*run });
        }
        run.range.end = hidden.start.max(run.range.start);
    }
    runs.append(&mut behind);
    runs.retain(|run| !run.range.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sources_own_memory_is_cut_out_of_the_mapped_memory() {
        let run = |range: Range<u64>| PresentRun { range, swapped: false, huge: false };
        let mut runs = vec![run(0..10), run(20..40), run(50..60)];
        cut(&mut runs, &(5..25));
        assert_eq!(runs, [run(0..5), run(50..60), run(25..40)], "in any order");
        cut(&mut runs, &(50..60));
        cut(&mut runs, &(30..35));
        assert_eq!(runs, [run(0..5), run(25..30), run(35..40)]);
    }
}
