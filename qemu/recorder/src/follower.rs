//! Follows a vCPU's dependences through blocks. QEMU calls only for blocks and accesses; the tracker gets
//! each instruction in order, unless it is idle.
//!
//! Most blocks use nothing that is tainted. Such a *quiet* block only clears taints, once, at its end.
//! Likewise an access does nothing if no register that it comes from was tainted when the block began, the
//! block has loaded no tainted value, and its line has none.

use std::ptr::NonNull;

use crate::dependence::Tracker;
use crate::summary::{Summary, Ticket};

pub(crate) struct Follower {
    /// `None` while the tracker is idle.
    position: Option<Position>,
    /// `None` before the first miss.
    tracker: Option<Box<Tracker>>,
}

/// Place in a block.
#[derive(Clone, Copy)]
struct Position {
    /// One of the block's summaries.
    entry: NonNull<Summary>,
    /// Index of the next instruction that the tracker has not passed.
    next: u32,
    /// Registers that were tainted when the block began and that it uses; without any, it is quiet.
    tainted: u32,
    /// Whether the block has loaded a tainted value.
    disturbed: bool,
    /// Registers that the block writes.
    destinations: u32,
}

impl Position {
    /// Returns the start of the block of `instruction`, which must lie in a block's array of summaries.
    #[inline(always)]
    fn start(instruction: &Summary, tracker: &Tracker) -> Self {
        let (tainted, destinations) =
            (tracker.tainted(instruction.block_sources), instruction.block_destinations);
        Self { entry: NonNull::from(instruction), next: 0, tainted, disturbed: false, destinations }
    }

    #[inline]
    fn block(&self) -> &'static [Summary] {
        // SAFETY: the summaries of a block lie in one array, each at its index. It lives until QEMU drops its
        // translations, which forgets every position (`forget`). The reference does not leave this module.
        unsafe {
            let entry = self.entry.as_ref();
            let first = self.entry.sub(usize::from(entry.index));
            std::slice::from_raw_parts(first.as_ptr(), entry.block_length() as usize)
        }
    }

    /// Steps over the instructions before index `target`.
    #[inline]
    fn advance(&mut self, tracker: &mut Tracker, target: u32) {
        if self.next >= target {
            return;
        }
        if !tracker.is_clean() {
            let block = self.block();
            tracker.pass(&block[self.next as usize..block.len().min(target as usize)]);
        }
        self.next = target;
    }

    /// Steps over the rest of the block.
    #[inline(always)]
    fn finish(&mut self, tracker: &mut Tracker) {
        if self.tainted == 0 && !self.disturbed {
            // Nothing tainted went into what the block wrote.
            tracker.cleanse(self.destinations);
        } else {
            self.advance(tracker, u32::MAX);
        }
    }
}

impl Follower {
    pub(crate) const fn new() -> Self {
        Self { position: None, tracker: None }
    }

    /// Returns whether a miss lies inside the window.
    #[inline(always)]
    pub(crate) fn is_active(&self) -> bool {
        self.position.is_some()
    }

    pub(crate) fn forget(&mut self) {
        self.position = None;
        if let Some(tracker) = &mut self.tracker {
            tracker.forget();
        }
    }

    /// Enters the block of `instruction`, which ends at instruction `end` of the thread.
    #[inline(never)]
    pub(crate) fn change_block(&mut self, instruction: &Summary, end: u64) {
        let (Some(position), Some(tracker)) = (&mut self.position, &mut self.tracker) else { return };
        position.finish(tracker);
        tracker.age(end);
        self.position = (!tracker.idle()).then(|| Position::start(instruction, tracker));
    }

    /// Notes a miss, instruction `at`. Returns the distance to the miss that its address depends on, or 0.
    #[inline]
    pub(crate) fn miss(&mut self, instruction: &Summary, line: u64, at: u64) -> u8 {
        let tracker = self.tracker.get_or_insert_default();
        let next = u32::from(instruction.index);
        match &mut self.position {
            Some(position) => position.advance(tracker, next),
            None => {
                let start = Position::start(instruction, tracker);
                self.position = Some(Position { next, disturbed: true, ..start });
            }
        }
        tracker.miss(instruction, line, at)
    }

    /// Returns whether the accesses of the ticket's group, hits in the bytes from `address` on, do nothing
    /// here. The tracker then passes their instructions later.
    #[inline(always)]
    pub(crate) fn skips(&self, address: u64, ticket: Ticket) -> bool {
        let (Some(position), Some(tracker)) = (&self.position, &self.tracker) else { return true };
        // SAFETY: the block's translation is alive, since it runs.
        let plain =
            position.tainted == 0 || position.tainted & unsafe { ticket.summary() }.group_origins == 0;
        let untouched = tracker.is_untouched(address, ticket.reach());
        plain && untouched && !position.disturbed && (!ticket.stores() || tracker.stores_nothing())
    }

    /// Notes a load or store of `instruction` at `address`; `missed` if [`Self::miss`] was called for it.
    #[inline(always)]
    pub(crate) fn access(&mut self, instruction: &Summary, address: u64, store: bool, missed: bool) {
        let (Some(position), Some(tracker)) = (&mut self.position, &mut self.tracker) else { return };
        let plain = !position.disturbed && position.tainted & instruction.origins == 0;
        if store && plain {
            return tracker.put(address, 0);
        } else if plain && !missed && tracker.is_untouched(address, 0) {
            return;
        }
        position.advance(tracker, u32::from(instruction.index));
        if store {
            tracker.store(instruction, address);
        } else {
            position.disturbed |= tracker.load(instruction, address, missed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Found, Touch, place};

    /// SplitMix64.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ mixed >> 31) % bound
        }

        fn registers(&mut self) -> u32 {
            [0, 1 << self.below(8), 1 << self.below(8) | 1 << self.below(8)][self.below(3) as usize]
        }

        fn block(&mut self) -> Vec<Summary> {
            let length = 1 + self.below(7);
            let mut found: Vec<_> = (0..length).map(|_| self.instruction()).collect();
            place(&mut found);
            let group = |found: &Found| Summary { group_origins: found.summary.origins, ..found.summary };
            found.iter().map(group).collect()
        }

        fn instruction(&mut self) -> Found {
            let touches = [Touch::Nothing, Touch::Loads, Touch::Stores][self.below(3) as usize];
            let address = if touches == Touch::Nothing { 0 } else { self.registers() };
            let (sources, destinations) = (self.registers(), self.registers());
            let summary = Summary { address, sources, destinations, touches, ..Summary::default() };
            Found { summary, once: true, place: None, tells: true }
        }
    }

    #[test]
    fn what_it_skips_changes_no_dependence() {
        let mut random = Random(7);
        let blocks: Vec<_> = (0..40).map(|_| random.block()).collect();
        let (mut follower, mut tracker) = (Follower::new(), Tracker::default());
        let (mut end, mut dependent, mut skipped) = (0, 0, 0);
        for round in 0..60_000 {
            let block = &blocks[random.below(40) as usize];
            end += block.len() as u64;
            if follower.is_active() {
                follower.change_block(&block[0], end);
            }
            tracker.age(end);
            for instruction in block {
                let (address, store) = (random.below(1000) * 8, instruction.touches == Touch::Stores);
                let missed = random.below(if round % 50 < 10 { 3 } else { 200 }) == 0;
                if instruction.touches != Touch::Nothing {
                    if missed {
                        let at = end - u64::from(instruction.behind);
                        let distance = tracker.miss(instruction, address >> 6, at);
                        assert_eq!(follower.miss(instruction, address >> 6, at), distance);
                        dependent += u32::from(distance > 0);
                    }
                    match store {
                        true => tracker.store(instruction, address),
                        false => drop(tracker.load(instruction, address, missed)),
                    }
                    let skips = !missed && follower.skips(address, Ticket::new(instruction, 7, store));
                    skipped += u32::from(skips);
                    if !skips {
                        follower.access(instruction, address, store, missed);
                    }
                }
                tracker.step(instruction);
            }
        }
        assert!(dependent > 1000 && skipped > 1000, "{dependent} of the misses, {skipped} skipped");
    }
}
