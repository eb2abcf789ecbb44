//! `paying-oracle`: an oracle that pays for its moves.
//!
//! It knows every page's accesses of the next intervals of the oracle, and starts from first touch. At the
//! start of each interval it exchanges the slow pages that will be accessed most for the fast ones that will
//! be accessed least, while the accesses between the two, times the difference of the tiers' idle latencies,
//! exceed the time of two moves. With more tiers it does so for each tier and all slower ones: what leaves
//! goes to the slowest, and the room that this makes in others is filled next. A thread of its own carries
//! the moves out at their full cost while the program runs on. It neither samples nor computes at the
//! program's expense.
//!
//! How far to look ahead is a choice: it takes the best of [`HORIZONS`] and of the whole input. It is no true
//! bound, since it takes each interval by itself and each access to stall for its latency: a policy can beat
//! it. It says what knowing the future is worth where moves cost.

use std::ops::Range;

use isotherm_core::{Host, MigrationContext, Move, Nanos, Outcome, PageId, Pages, Plan, TierId, View};
use isotherm_machine::transfer_time;
use rayon::prelude::*;

use crate::host::SimHost;
use crate::page_table::PageTable;
use crate::replay::{Finished, Replay};
use crate::stream::Access;

/// Intervals of the oracle that it looks ahead.
const HORIZONS: [usize; 3] = [1, 4, 16];
/// Pages that move down before as many move up.
const CHUNK: usize = 512;

pub(crate) fn run(replay: &Replay<'_>, fast: Pages) -> Finished {
    let intervals = replay.stream.accesses.len().div_ceil(replay.ranks().length()).max(1);
    let horizons = HORIZONS.into_iter().filter(|&horizon| horizon < intervals).chain([intervals]);
    let time = |finished: &Finished| match &finished.rounds {
        Some(rounds) => rounds.result(None).round_ns,
        None => finished.end,
    };
    let horizons: Vec<usize> = horizons.collect();
    let runs: Vec<Finished> =
        horizons.into_par_iter().map(|horizon| look_ahead(replay, fast, horizon)).collect();
    runs.into_iter().min_by_key(time).expect("at least the whole input")
}

/// The accesses to each page within a window of the input, behind which it may lie once more.
struct Window<'a> {
    accesses: &'a [Access],
    /// Whether the input is replayed again and again.
    repeats: bool,
    counts: Vec<u32>,
    of: Range<usize>,
}

impl Window<'_> {
    /// Moves the window to the `length` accesses from `start` on.
    fn begin_at(&mut self, start: usize, length: usize) {
        let end = (start + length).min(self.accesses.len() * if self.repeats { 2 } else { 1 });
        if !self.of.contains(&start) {
            self.counts.fill(0);
            self.of = start..start;
        }
        let page = |index: usize| self.accesses[index % self.accesses.len()].page as usize;
        (self.of.start..start).for_each(|index| self.counts[page(index)] -= 1);
        (self.of.end..end).for_each(|index| self.counts[page(index)] += 1);
        self.of = start..end;
    }
}

fn look_ahead(replay: &Replay<'_>, fast: Pages, horizon: usize) -> Finished {
    let stream = replay.stream;
    let (length, pages) = (replay.ranks().length(), stream.pages.len());
    let table =
        PageTable::new(pages, replay.capacities(fast), replay.profile.costs.reserve, Default::default());
    let (context, scale) = (MigrationContext::Dedicated, replay.scale.footprint);
    let mut host = SimHost::new(replay.processor(table), replay.profile, stream.page_size, context, scale);
    host.rounds = replay.rounds(None);
    let margin = |upper: TierId, lower: TierId| margin(replay, upper, lower);
    let mut window = Window {
        accesses: &stream.accesses,
        repeats: replay.long.is_some(),
        counts: vec![0; pages],
        of: 0..0,
    };
    let (mut plan, mut outcome) = (Plan::default(), Outcome::default());
    let mut planned = usize::MAX;
    loop {
        let interval = host.processor.position() / length;
        if interval != planned {
            planned = interval;
            window.begin_at(interval * length, horizon * length);
            exchange(&window.counts, &margin, &host, &mut plan);
            outcome.clear();
            host.carry_out(&plan, &mut outcome);
        }
        if !host.run_block() {
            return Finished::of(&host.processor, host.rounds.take());
        }
    }
}

/// Returns the accesses that pay for two moves between two tiers.
fn margin(replay: &Replay<'_>, upper: TierId, lower: TierId) -> u64 {
    let (costs, tiers) = (&replay.profile.costs, &replay.profile.tiers);
    let copy = Nanos(transfer_time(replay.stream.page_size.bytes().0, costs.copy_bandwidth) / 1000);
    let saved = tiers[lower.index()].latency - tiers[upper.index()].latency;
    2 * (costs.move_page + copy).0 / saved.0.max(1)
}

fn exchange(counts: &[u32], margin: &dyn Fn(TierId, TierId) -> u64, view: &dyn View, plan: &mut Plan) {
    let tiers = view.tiers();
    let mut pages = vec![Vec::new(); tiers];
    for (page, &count) in counts.iter().enumerate() {
        let page = PageId(page as u32);
        if let Some(tier) = view.tier_of(page) {
            pages[tier.index()].push((count, page));
        }
    }
    plan.clear();
    let last = TierId(tiers as u8 - 1);
    let mut room = 0;
    for upper in (0..last.0).map(TierId) {
        let down = &mut pages[upper.index()];
        down.sort_unstable();
        let down = std::mem::take(down);
        let below = upper.index() + 1..tiers;
        let of_tier =
            |lower: usize| pages[lower].iter().map(move |&(hot, page)| (hot, page, TierId(lower as u8)));
        let mut up: Vec<(u32, PageId, TierId)> = below.flat_map(of_tier).collect();
        up.sort_unstable_by_key(|&(count, page, _)| (std::cmp::Reverse(count), page));
        // Into free room first: that is one move.
        let ahead =
            up.iter().take(room).take_while(|&&(hot, _, from)| 2 * u64::from(hot) > margin(upper, from));
        let ahead = ahead.count();
        let pays = |&(&(hot, _, from), &(cold, _)): &(&(u32, PageId, TierId), &(u32, PageId))| {
            u64::from(hot) > u64::from(cold) + margin(upper, from)
        };
        let pairs = up[ahead..].iter().zip(&down).take_while(pays).count();
        let up = &up[..ahead + pairs];
        let to_upper = |&(_, page, _): &(u32, PageId, TierId)| Move { page, to: upper };
        plan.moves.extend(up[..ahead].iter().map(to_upper));
        for (up, down) in up[ahead..].chunks(CHUNK).zip(down[..pairs].chunks(CHUNK)) {
            plan.moves.extend(down.iter().map(|&(_, page)| Move { page, to: last }));
            plan.moves.extend(up.iter().map(to_upper));
        }
        // What has moved does not move again, and leaves room in the next tier.
        let mut moved: Vec<PageId> = up.iter().map(|&(_, page, _)| page).collect();
        moved.sort_unstable();
        room = up.iter().filter(|&&(_, _, from)| from == upper.slower()).count();
        for pages in &mut pages[upper.index() + 1..] {
            pages.retain(|(_, page)| moved.binary_search(page).is_err());
        }
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::Allocation;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_window_that_moves_counts_what_lies_in_it(
            pages in prop::collection::vec(0u32..8, 1..60),
            length in 1usize..20,
            horizon in 1usize..5,
            repeats: bool,
        ) {
            let accesses: Vec<Access> =
                pages.iter().map(|&page| Access { page, ..Access::default() }).collect();
            let mut window = Window { accesses: &accesses, repeats, counts: vec![0; 8], of: 0..0 };
            let ahead = if repeats { pages.repeat(2) } else { pages.clone() };
            // Two rounds, so that the window goes back once.
            for start in (0..pages.len()).step_by(length).chain((0..pages.len()).step_by(length)) {
                window.begin_at(start, horizon * length);
                let mut counts = vec![0; 8];
                ahead[start..].iter().take(horizon * length).for_each(|&page| counts[page as usize] += 1);
                prop_assert_eq!(&window.counts, &counts);
            }
        }
    }

    #[test]
    fn pages_are_exchanged_while_the_difference_pays_for_two_moves() {
        // Pages 0 and 1 are fast, 2 to 4 slow; page 5 is not mapped.
        let machine = isotherm_machine::Profile::builtin("pact").expect("built in");
        let stream = crate::Stream {
            accesses: (0..5).map(|page| crate::Access { page, ..Default::default() }).collect(),
            pages: (0..6).map(|page| (0, page << 12)).collect(),
            threads: 1,
            ..Default::default()
        };
        let scale = isotherm_core::parameters::Scale { footprint: 1.0, time: 1.0 };
        let replay = Replay::new(&stream, &[], &machine, scale, 1, 1).expect("two tiers");
        let table = PageTable::new(6, vec![2, 6], 0.0, Allocation::FastFirst);
        let context = MigrationContext::Dedicated;
        let mut host = SimHost::new(replay.processor(table), &machine, stream.page_size, context, 1.0);
        while host.run_block() {}
        let mut plan = Plan::default();
        exchange(&[10, 0, 40, 25, 0, 900], &|_, _| 20, &host, &mut plan);
        let moves: Vec<_> = plan.moves.iter().map(|step| (step.page.0, step.to.0)).collect();
        assert_eq!(moves, [(1, 1), (2, 0)], "25 accesses are not 20 more than 10");
        exchange(&[10, 0, 40, 25, 0, 900], &|_, _| 14, &host, &mut plan);
        assert_eq!(plan.moves.len(), 4);
    }
}
