//! Threads at their own pace: orders a stream's accesses by when each thread reaches them.
//!
//! A replay keeps the recorded order: a fast thread waits for a slow one. That is wrong where threads are
//! independent, as PACT's Fig. 1a has two that differ only in the latency that they hide.

use isotherm_core::TierId;
use isotherm_machine::{CoreTiming, Profile, ReorderWindows, ThreadModel, Translation};

use crate::stream::{Access, Stream};

impl Stream {
    /// Returns the same accesses in the order in which independent threads complete them with all memory at
    /// the idle latency of `tier` and all pages in the TLBs. Each thread's accesses keep their order.
    #[must_use]
    pub fn at_own_pace(&self, profile: &Profile, tier: TierId) -> Self {
        let timing = CoreTiming::new(profile);
        let latency = profile.tiers[tier.index()].latency.0 * 1000;
        let mut threads: Vec<ThreadModel> = (0..self.threads).map(|_| ThreadModel::new(timing)).collect();
        let mut windows = ReorderWindows::new(profile, self.threads);
        let mut complete = |access: &Access| {
            let left = windows.miss(access.thread, access.instructions);
            let thread = &mut threads[usize::from(access.thread)];
            thread.access(&timing, access.request(left), Translation::default(), tier.index(), latency);
            thread.clock()
        };
        let mut order: Vec<(u64, usize)> =
            self.accesses.iter().enumerate().map(|(index, access)| (complete(access), index)).collect();
        order.sort_unstable();
        let accesses = order.into_iter().map(|(_, index)| self.accesses[index]).collect();
        Self { accesses, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_thread_that_streams_runs_ahead_of_one_that_chases() {
        let access = |page, thread: u16| Access {
            page,
            instructions: 10,
            thread,
            dependence: u8::from(thread == 1),
            ..Access::default()
        };
        let accesses = (0..10_000).flat_map(|page| [access(page, 0), access(page, 1)]).collect();
        let pages = (0..10_000).map(|page| (0, page << 12)).collect();
        let stream = Stream { accesses, pages, threads: 2, ..Stream::default() };
        let paced = stream.at_own_pace(&Profile::builtin("pact").expect("builtin"), TierId(1));
        let of = |stream: &Stream, thread| -> Vec<u32> {
            stream
                .accesses
                .iter()
                .filter(|access| access.thread == thread)
                .map(|access| access.page)
                .collect()
        };
        for thread in [0, 1] {
            assert_eq!(of(&paced, thread), of(&stream, thread), "each in its own order");
        }
        let chased = |part: &[Access]| part.iter().filter(|access| access.thread == 1).count();
        let (first, last) = paced.accesses.split_at(10_000);
        assert!(chased(first) < 2000 && chased(last) > 8000, "{} {}", chased(first), chased(last));
    }
}
