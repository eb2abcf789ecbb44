//! Executes a stream's accesses in blocks, each on its thread's pipeline and page's tier, and samples them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use isotherm_core::{Bytes, Counters, Nanos, Operation, PageId, PageSize, Sample, Spent, TierId};
use isotherm_machine::{BLOCK, BlockEnd, Cause, Cores, MAX_TIERS, Profile, Tier, transfer_time};

use crate::compression::Swapped;
use crate::device::Devices;
use crate::faults::Faults;
use crate::long::Counted;
use crate::lookups::{Lookups, Ordered, ShotDown};
use crate::page_state::TIER_MASK;
use crate::page_table::{Locator, traps};
use crate::sampler::Sampler;
use crate::stop::check;
use crate::stream::{Access, Stream};
use crate::summary::Grid;
use crate::{Charges, Interval};

/// Accesses ahead for which memory is fetched: they take longer than it.
const AHEAD: usize = 24;
/// Accesses ahead for which is fetched what new pages need beside their state, which is there by then.
const NEW_AHEAD: usize = 12;

/// Costs of a compressed tier, in picoseconds.
#[derive(Debug, Clone, Copy)]
struct Swap {
    /// A fault on a stored page, without its decompression.
    fault: u64,
    decompress: u64,
    compress: u64,
    /// A page that reclaim looks at.
    look: u64,
    shootdown: u64,
    /// Tier in whose memory pages are stored.
    memory: usize,
}

impl Swap {
    fn new(profile: &Profile, page_size: PageSize) -> Option<Self> {
        let (last, memory) = (profile.compressed()?, profile.tiers.len() - 2);
        let time = |bandwidth| transfer_time(page_size.bytes().0, bandwidth);
        Some(Self {
            fault: last.latency.0 * 1000,
            decompress: time(last.read_bandwidth),
            compress: time(last.write_bandwidth),
            look: profile.costs.reclaim_page.0 * 1000,
            shootdown: profile.costs.shootdown.0 * 1000,
            memory,
        })
    }
}

/// Cores and tiers that execute a stream, generic over how pages are placed.
pub(crate) struct Processor<'a, L> {
    pub(crate) locator: L,
    pub(crate) sampler: Sampler,
    pub(crate) charges: Charges,
    /// Time that the program's threads ran, summed over them, in picoseconds.
    running: u128,
    /// Of that, what they waited for cores that tiering threads had.
    displaced: u128,
    pub(crate) faults: Faults,
    /// Profiling devices, from the policy's first request on.
    pub(crate) devices: Option<Devices>,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) cores: Cores,
    /// See [`crate::RunResult::fast_cells`].
    pub(crate) fast_cells: Vec<u8>,
    grid: Grid,
    /// Column of the heatmap that the next access is in.
    column: usize,
    stream: &'a Stream,
    /// Accesses until each event's next sample, per thread.
    countdowns: Vec<[u64; MAX_TIERS]>,
    /// Tick of each event's last sample, and its samples in that tick, per thread.
    ticks: Vec<[(u64, u64); MAX_TIERS]>,
    lookups: Arc<Lookups>,
    shot_down: ShotDown,
    fault_cost: u64,
    lock_hold: u64,
    swap: Option<Swap>,
    /// Faults on stored pages.
    pub(crate) swap_ins: u64,
    /// Until when kswapd compresses pages, in picoseconds.
    reclaimed_until: u64,
    /// Thread that did the last task work.
    task_thread: usize,
    next: usize,
    /// Rounds before this one.
    round: u64,
    /// Access from which on the stream is repeated, at the start of an interval.
    again: Option<usize>,
    stop: Option<&'a AtomicBool>,
    interval_length: usize,
    /// Hits, loads and load hits before the current interval.
    before: [u64; 3],
}

impl<'a, L: Locator> Processor<'a, L> {
    /// Creates an idle processor before the first access, whose TLB look-ups are known. Intervals are
    /// `interval_length` accesses long.
    pub(crate) fn new(
        stream: &'a Stream,
        profile: &Profile,
        locator: L,
        interval_length: usize,
        sampler: Sampler,
        lookups: Arc<Lookups>,
    ) -> Self {
        Self {
            locator,
            sampler,
            charges: Charges::default(),
            running: 0,
            displaced: 0,
            faults: Faults::default(),
            devices: None,
            intervals: Vec::new(),
            fast_cells: Vec::new(),
            grid: Grid::of(stream),
            column: 0,
            stream,
            cores: Cores::new(profile, stream.threads),
            countdowns: vec![[u64::MAX; MAX_TIERS]; stream.threads],
            ticks: vec![[(0, 0); MAX_TIERS]; stream.threads],
            lookups,
            shot_down: ShotDown::new(stream.pages.len()),
            fault_cost: profile.costs.fault.0 * 1000,
            lock_hold: profile.costs.lock_hold.0 * 1000,
            swap: Swap::new(profile, stream.page_size),
            swap_ins: 0,
            reclaimed_until: 0,
            task_thread: 0,
            next: 0,
            round: 0,
            again: None,
            stop: None,
            interval_length: interval_length.max(1),
            before: [0; 3],
        }
    }

    /// Lets the stream begin again at its end, by [`Self::rewind`], with the interval of access `from`.
    pub(crate) fn repeating(self, from: usize) -> Self {
        Self { again: Some(from / self.interval_length * self.interval_length), ..self }
    }

    /// Unwinds from the next block once `stop` is set.
    pub(crate) fn stopping(self, stop: Option<&'a AtomicBool>) -> Self {
        Self { stop, ..self }
    }

    /// Begins another round over the stream, with everything else as it is.
    pub(crate) fn rewind(&mut self) {
        self.next = self.again.unwrap_or(0);
        self.round += 1;
        self.column = self.next / self.grid.accesses_per_column;
        self.locator.rewind();
    }

    pub(crate) fn now(&self) -> Nanos {
        Nanos(self.cores.now() / 1000)
    }

    /// Returns the program's time since the start, and what tiering took of it.
    pub(crate) fn spent(&self) -> Spent {
        let charges = &self.charges;
        Spent {
            elapsed: self.now(),
            running: Nanos((self.running / 1000) as u64),
            sampling: charges.sampling + charges.faulting,
            deciding: Nanos((self.displaced / 1000) as u64),
            moving: charges.moving + charges.reclaiming + charges.shootdowns,
        }
    }

    /// Returns the counts since the start, without those of moves.
    pub(crate) fn counted(&self) -> Counted {
        let tiers = &self.cores.tiers;
        let mut counters = Counters::default();
        self.cores.counters(&mut counters);
        Counted {
            time: self.now(),
            accesses: tiers.iter().map(|tier| tier.loads() + tier.stores()).sum(),
            hits: self.hits(),
            loads: tiers.iter().map(Tier::loads).sum(),
            load_hits: tiers[0].loads(),
            taken: self.cores.taken().map(|time| Nanos(time / 1000)),
            slow_bytes: counters.tiers.last().map_or(Bytes(0), |tier| tier.bytes_read + tier.bytes_written),
            ..Counted::default()
        }
    }

    /// Returns the accesses so far that the fast tier served.
    pub(crate) fn hits(&self) -> u64 {
        self.cores.tiers[0].loads() + self.cores.tiers[0].stores()
    }

    /// Returns the number of the next access.
    pub(crate) fn position(&self) -> usize {
        self.next
    }

    pub(crate) fn ended(&self) -> bool {
        self.next == self.stream.accesses.len()
    }

    pub(crate) fn tier(&mut self, tier: TierId) -> &mut Tier {
        &mut self.cores.tiers[tier.index()]
    }

    /// Replays one block. Returns false when no accesses are left.
    pub(crate) fn run_block(&mut self) -> bool {
        if self.ended() {
            return false;
        }
        self.stop.inspect(|stop| check(stop));
        if self.next.is_multiple_of(self.interval_length) {
            self.locator.interval(self.next);
        }
        let interval_end = (self.next / self.interval_length + 1) * self.interval_length;
        let end = (self.next + BLOCK).min(interval_end).min(self.stream.accesses.len());
        self.cores.begin_block();
        let before = self.event_counts();
        let (stream, shared) = (self.stream, Arc::clone(&self.lookups));
        let lookups = if self.round == 0 {
            &shared.first()[self.next..end]
        } else {
            let from = self.again.unwrap_or(0);
            &shared.later(&stream.accesses[from..], self.stop)[self.next - from..end - from]
        };
        let accesses = &stream.accesses[self.next..end];
        let [ahead, new_ahead] =
            [AHEAD, NEW_AHEAD].map(|ahead| stream.accesses.get(self.next + ahead..).unwrap_or(&[]));
        for (offset, (access, &ordered)) in accesses.iter().zip(lookups).enumerate() {
            if let Some(access) = ahead.get(offset) {
                self.locator.prefetch(access.page);
            }
            if let Some(access) = new_ahead.get(offset) {
                self.locator.prefetch_new(access.page);
            }
            self.replay(self.next + offset, access, ordered);
        }
        self.next = end;
        self.end_block(before);
        self.note_columns();
        if end == interval_end || self.ended() {
            self.end_interval();
        }
        true
    }

    /// Notes what is fast at the ends of the heatmap's columns that the last block reached.
    fn note_columns(&mut self) {
        let Grid { columns, rows, accesses_per_column, .. } = self.grid;
        let reached = if self.ended() { columns } else { self.next / accesses_per_column };
        let Some(fast) = self.locator.fast_rows().filter(|_| self.column < reached) else { return };
        self.fast_cells.resize(columns * rows, 0);
        for (row, share) in fast.shares().enumerate() {
            self.fast_cells[row * columns..][self.column..reached].fill(share);
        }
        self.column = reached;
    }

    #[inline]
    fn replay(&mut self, index: usize, access: &Access, ordered: Ordered) {
        let lookup = self.shot_down.apply(access.page, ordered.lookup);
        let state = self.locator.serve(index, access.page);
        let mut tier = usize::from(state & TIER_MASK);
        self.cores.enter(access.thread);
        if traps(state, access.store()) {
            tier = self.fault(access, tier);
        }
        let store = access.store() != 0;
        let timing = self.cores.access(access.thread, access.request(ordered.left), lookup, tier);
        self.locator.stalled(access.page, store, timing.stall);
        if let Some(devices) = &mut self.devices {
            devices.pass(tier, access.page, store);
            (0..timing.unasked).for_each(|_| devices.pass(tier, access.page, false));
        }
        let event = self.sampler.event(tier);
        let countdown = &mut self.countdowns[usize::from(access.thread)][event];
        // A load event counts misses, a store event every store that retires.
        let counts = if store { self.sampler.counts_stores() } else { !timing.prefetched };
        *countdown -= u64::from(counts);
        if counts && *countdown == 0 {
            self.take_sample(access, tier, event, timing.stall);
        }
    }

    /// Handles a trap: the thread pays for the fault before the access goes on. Returns the page's tier then.
    #[cold]
    fn fault(&mut self, access: &Access, tier: usize) -> usize {
        let clock = self.cores.clock(access.thread);
        if let Some(lands) = self.locator.lands(access.page, clock) {
            if lands > clock {
                self.cores.pause(access.thread, lands - clock + self.fault_cost, Cause::Moving);
            }
            return tier;
        }
        if let Some(swapped) = self.locator.swap_in(access.page) {
            self.pay_for_swap(access.thread, &swapped);
            return usize::from(swapped.tier);
        }
        let time = Nanos(clock / 1000);
        self.cores.pause(access.thread, self.fault_cost, Cause::Sampling);
        self.charges.faulting += Nanos(self.fault_cost / 1000);
        if self.locator.trap(access.page, access.store() != 0) {
            self.faults.take(access, tier, time);
        }
        self.hold_lock(1, Cause::Sampling);
        tier
    }

    /// Returns how long a core decompresses a page.
    pub(crate) fn decompression(&self) -> Nanos {
        Nanos(self.swap.map_or(0, |swap| swap.decompress) / 1000)
    }

    /// Charges a fault on a stored page, and the kernel's work for its room.
    fn pay_for_swap(&mut self, thread: u16, swapped: &Swapped) {
        let Some(swap) = self.swap else { return };
        let memory = swap.memory;
        let size = self.stream.page_size.bytes();
        if let Some(stored) = swapped.decompressed {
            self.cores.pause(thread, swap.fault + swap.decompress, Cause::Moving);
            self.charges.swapping += Nanos((swap.fault + swap.decompress) / 1000);
            self.cores.tiers[memory].copy(stored, false);
            self.cores.tiers[usize::from(swapped.tier)].copy(size, true);
            self.swap_ins += 1;
        }
        if swapped.scanned > 0 {
            let work = swap.look * swapped.scanned + swap.compress * swapped.compressed;
            self.charges.swapping += Nanos(work / 1000);
            self.cores.tiers[memory].copy(Bytes(size.0 * swapped.compressed), false);
            self.cores.tiers[memory].copy(swapped.written, true);
            // kswapd does it beside the program; while it is busy with another cluster, the thread does.
            let now = self.cores.clock(thread);
            if self.reclaimed_until <= now {
                self.reclaimed_until = now + work;
                self.cores.occupy(work);
            } else {
                self.cores.pause(thread, work, Cause::Moving);
            }
            // No tiering system has a part in it.
            let shootdowns = self.charges.shootdowns;
            self.interrupt(swap.shootdown, Cause::Moving);
            self.charges.swapping += self.charges.shootdowns - shootdowns;
            self.charges.shootdowns = shootdowns;
        }
        self.hold_lock(1, Cause::Moving);
    }

    /// Takes the lock of the page tables and LRU lists `times`; waiters are delayed at the block's end.
    pub(crate) fn hold_lock(&mut self, times: u64, cause: Cause) {
        self.cores.hold_lock(self.lock_hold * times, cause);
    }

    #[cold]
    fn take_sample(&mut self, access: &Access, tier: usize, event: usize, stall: u64) {
        let time = Nanos(self.cores.clock(access.thread) / 1000);
        let thread = usize::from(access.thread);
        self.countdowns[thread][event] = self.sampler.countdown(event);
        if !self.sampler.admit(&mut self.ticks[thread][event], time) {
            return;
        }
        let cost = self.sampler.cost();
        self.cores.pause(access.thread, cost.0 * 1000, Cause::Sampling);
        self.charges.sampling += cost;
        self.sampler.record(Sample {
            time,
            page: PageId(access.page),
            weight: u32::try_from(self.sampler.period(event)).unwrap_or(u32::MAX),
            latency: (self.cores.tiers[tier].latency / 1000) as u32,
            exposed: (stall / 1000) as u32,
            tier: TierId(tier as u8),
            operation: if access.store() == 0 { Operation::Load } else { Operation::Store },
        });
    }

    /// Drops pages' translations in every TLB: of all pages if `None`.
    pub(crate) fn flush(&mut self, pages: Option<&[PageId]>) {
        match pages {
            Some(pages) => pages.iter().for_each(|page| self.shot_down.add(page.0)),
            None => self.shot_down.add_all(),
        }
    }

    fn event_counts(&self) -> [u64; MAX_TIERS] {
        let stores = u64::from(self.sampler.counts_stores());
        let mut counts = [0; MAX_TIERS];
        for (count, tier) in counts.iter_mut().zip(&self.cores.tiers) {
            *count = tier.load_misses() + stores * tier.stores();
        }
        counts
    }

    fn end_block(&mut self, before: [u64; MAX_TIERS]) {
        let displaced = |cores: &Cores| cores.taken()[Cause::Deciding as usize];
        let so_far = displaced(&self.cores);
        let BlockEnd { elapsed, active, worked } = self.cores.end_block();
        self.running += u128::from(worked);
        self.displaced += u128::from(displaced(&self.cores) - so_far) * active as u128;
        if let Some(devices) = &mut self.devices {
            devices.settle(self.cores.now());
        }
        let after = self.event_counts();
        let counts = std::array::from_fn(|tier| after[tier] - before[tier]);
        self.sampler.block(&counts, elapsed as f64 / 1000.0, active);
    }

    fn end_interval(&mut self) {
        let tiers = &self.cores.tiers;
        let loads = tiers.iter().map(Tier::loads).sum();
        let after = [self.hits(), loads, tiers[0].loads()];
        let [hits, loads, load_hits] = std::array::from_fn(|index| after[index] - self.before[index]);
        let accesses = ((self.next - 1) % self.interval_length + 1) as u64;
        let counts = Interval { end_ns: self.now(), accesses, hits, loads, load_hits, ..Interval::default() };
        self.intervals.push(counts);
        self.before = after;
    }

    pub(crate) fn restart_events(&mut self) {
        for countdowns in &mut self.countdowns {
            for (event, countdown) in countdowns.iter_mut().enumerate() {
                *countdown = if self.sampler.period(event) > 0 {
                    self.sampler.countdown(event).max(1)
                } else {
                    u64::MAX
                };
            }
        }
    }

    /// Returns the number of threads that ran in the last blocks.
    pub(crate) fn thread_count(&self) -> usize {
        (0..self.cores.threads()).filter(|&thread| self.cores.runs(thread)).count()
    }

    /// Stops one program thread for `duration` picoseconds: the given one, or each in turn.
    pub(crate) fn delay_program(&mut self, thread: Option<u16>, duration: u64, cause: Cause) {
        let thread = thread.unwrap_or_else(|| self.next_task_thread());
        self.cores.pause(thread, duration, cause);
        // The thread works all that time, so its core is not free for others.
        self.cores.occupy(duration);
    }

    fn next_task_thread(&mut self) -> u16 {
        let count = self.cores.threads();
        let found = (1..=count).map(|step| (self.task_thread + step) % count).find(|&t| self.cores.runs(t));
        self.task_thread = found.unwrap_or(self.task_thread);
        self.task_thread as u16
    }

    /// Returns the pages in the same 2 MiB-aligned range of addresses as `page`.
    pub(crate) fn huge_range(&self, page: PageId) -> Range<u32> {
        let pages = &self.stream.pages;
        let range_of = |&(process, address): &(u32, u64)| (process, address >> PageSize::Huge.shift());
        let range = range_of(&pages[page.index()]);
        let first = pages[..page.index()].iter().rev().take_while(|&entry| range_of(entry) == range).count();
        let behind = pages[page.index()..].iter().take_while(|&entry| range_of(entry) == range).count();
        (page.index() - first) as u32..(page.index() + behind) as u32
    }

    /// Returns whether an access of the next `duration` picoseconds, at the current rate, stores to the page.
    pub(crate) fn stores_within(&self, page: PageId, duration: u64) -> bool {
        let accesses = (duration * BLOCK as u64).checked_div(self.cores.block_time()).unwrap_or(0) as usize;
        let (before, behind) = self.stream.accesses.split_at(self.next);
        let again = self.again.and_then(|from| before.get(from..)).unwrap_or(&[]);
        let mut next = behind.iter().chain(again).take(accesses);
        next.any(|access| access.page == page.0 && access.store() != 0)
    }

    /// Interrupts every running thread for `duration` picoseconds each.
    pub(crate) fn interrupt(&mut self, duration: u64, cause: Cause) {
        let mut interrupted = 0;
        for thread in 0..self.cores.threads() {
            if self.cores.runs(thread) {
                self.cores.pause(thread as u16, duration, cause);
                interrupted += 1;
            }
        }
        self.charges.shootdowns += Nanos(duration * interrupted / 1000);
        self.cores.occupy(duration * interrupted);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use isotherm_core::{Counters, PageId};
    use isotherm_machine::{BLOCK, CostModel, Footprint, Miss, Profile};

    use super::Processor;
    use crate::lookups::Lookups;
    use crate::page_table::Locator;
    use crate::sampler::Sampler;
    use crate::{Access, Kind, Stream};

    /// Places pages in the tiers in turn.
    struct Alternate;

    impl Locator for Alternate {
        fn serve(&mut self, _: usize, page: u32) -> u8 {
            (page % 2) as u8
        }
    }

    #[test]
    fn pages_that_are_shot_down_walk_again() {
        let profile = Profile::builtin("pact").expect("it comes with Isotherm");
        let access = |n| Access { page: n % 8, instructions: 10, ..Access::default() };
        let accesses = (0..3 * BLOCK as u32).map(access).collect();
        let stream = Stream { accesses, pages: vec![(0, 0); 8], threads: 1, ..Stream::default() };
        let lookups = Arc::new(Lookups::new(&stream, &profile, 1.0, None));
        let sampler = Sampler::new(1, 1, &profile.costs);
        let mut processor = Processor::new(&stream, &profile, Alternate, usize::MAX, sampler, lookups);
        let walks = [None, Some(Some(&[PageId(3)][..])), Some(None)].map(|flush| {
            let before = processor.cores.walks().walks;
            flush.inspect(|&pages| processor.flush(pages));
            assert!(processor.run_block());
            processor.cores.walks().walks - before
        });
        assert_eq!(walks, [8, 1, 8], "all at first, the one that was shot down, and all again");
    }

    #[test]
    fn misses_cost_what_they_cost_in_a_simulation() {
        let profile = Profile::builtin("pact").expect("it comes with Isotherm");
        let access = |n: u64| {
            let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            Access {
                page: random as u32 % 64,
                instructions: random as u32 % 40 + 1,
                thread: (n / 300 % 2) as u16,
                dependence: (random % 3) as u8,
                kind: if random.is_multiple_of(5) { Kind::STORE } else { Kind::LOAD },
                ..Access::default()
            }
        };
        let accesses: Vec<Access> = (0..100 * BLOCK as u64).map(access).collect();
        let pages = (0..64).map(|page| (0, page << 12)).collect();
        let stream = Stream { accesses, pages, threads: 2, ..Stream::default() };
        let lookups = Arc::new(Lookups::new(&stream, &profile, 1.0, None));
        let sampler = Sampler::new(1, 1, &profile.costs);
        let mut processor = Processor::new(&stream, &profile, Alternate, usize::MAX, sampler, lookups);
        while processor.run_block() {}
        let footprint = Footprint { pages: 64, page_size: stream.page_size, scale: 1.0 };
        let mut model = CostModel::new(&profile, 2, footprint).expect("a valid machine");
        for access in &stream.accesses {
            let Access { page, instructions, thread, dependence, .. } = *access;
            let (store, tier) = (access.store() != 0, (page % 2) as u8);
            let miss = Miss { thread, instructions, dependence, store, tier, page };
            model.miss(miss).expect("a tier");
        }
        let (mut simulated, mut modelled) = (Counters::default(), Counters::default());
        processor.cores.counters(&mut simulated);
        model.counters(&mut modelled);
        assert_eq!((model.now(), modelled), (processor.now(), simulated));
    }
}
