//! `paying-oracle`: an oracle that pays for its moves.
//!
//! It knows every page's accesses of the next intervals of the oracle, and starts from first touch. At the
//! start of each interval it exchanges the slow pages that will be accessed most for the fast ones that will
//! be accessed least, while the accesses between the two, times the difference of the tiers' idle latencies,
//! exceed the time of two moves. A thread of its own carries the moves out at their full cost while the
//! program runs on. It neither samples nor computes at the program's expense.
//!
//! How far to look ahead is a choice: it takes the best of [`HORIZONS`] and of the whole input. It is no true
//! bound, since it takes each interval by itself and each access to stall for its latency: a policy can beat
//! it. It says what knowing the future is worth where moves cost.

use isotherm_core::{Host, MigrationContext, Move, Nanos, Outcome, PageId, Pages, Plan, TierId, View};
use isotherm_machine::transfer_time;

use crate::host::SimHost;
use crate::page_table::PageTable;
use crate::replay::{Finished, Replay};

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
    let runs = horizons.map(|horizon| look_ahead(replay, fast, horizon));
    runs.min_by_key(time).expect("at least the whole input")
}

fn look_ahead(replay: &Replay<'_>, fast: Pages, horizon: usize) -> Finished {
    let stream = replay.stream;
    let (length, pages) = (replay.ranks().length(), stream.pages.len());
    let table =
        PageTable::new(pages, replay.capacities(fast), replay.profile.costs.reserve, Default::default());
    let (context, scale) = (MigrationContext::Dedicated, replay.scale.footprint);
    let mut host = SimHost::new(replay.processor(table), replay.profile, stream.page_size, context, scale);
    host.rounds = replay.rounds(None);
    let margin = margin(replay);
    let (mut counts, mut plan, mut outcome) = (vec![0u32; pages], Plan::default(), Outcome::default());
    let mut planned = usize::MAX;
    loop {
        let interval = host.processor.position() / length;
        if interval != planned {
            planned = interval;
            counts.fill(0);
            let ahead = stream.accesses.iter().skip(interval * length);
            let again = stream.accesses.iter().filter(|_| replay.long.is_some());
            ahead.chain(again).take(horizon * length).for_each(|access| counts[access.page as usize] += 1);
            exchange(&counts, margin, &host, &mut plan);
            outcome.clear();
            host.carry_out(&plan, &mut outcome);
        }
        if !host.run_block() {
            return Finished::of(&host.processor, host.rounds.take());
        }
    }
}

/// Returns the accesses that pay for two moves.
fn margin(replay: &Replay<'_>) -> u64 {
    let (costs, tiers) = (&replay.profile.costs, &replay.profile.tiers);
    let copy = Nanos(transfer_time(replay.stream.page_size.bytes().0, costs.copy_bandwidth) / 1000);
    let saved = tiers[1].latency - tiers[0].latency;
    2 * (costs.move_page + copy).0 / saved.0.max(1)
}

fn exchange(counts: &[u32], margin: u64, view: &dyn View, plan: &mut Plan) {
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for (page, &count) in counts.iter().enumerate() {
        let page = PageId(page as u32);
        match view.tier_of(page) {
            Some(TierId::FAST) => down.push((count, page)),
            Some(_) => up.push((count, page)),
            None => {}
        }
    }
    down.sort_unstable();
    up.sort_unstable_by_key(|&(count, page)| (std::cmp::Reverse(count), page));
    let pays = |&(&(hot, _), &(cold, _)): &(&(u32, PageId), &(u32, PageId))| {
        u64::from(hot) > u64::from(cold) + margin
    };
    let pairs = up.iter().zip(&down).take_while(pays).count();
    plan.clear();
    for (up, down) in up[..pairs].chunks(CHUNK).zip(down[..pairs].chunks(CHUNK)) {
        plan.moves.extend(down.iter().map(|&(_, page)| Move { page, to: TierId::FAST.slower() }));
        plan.moves.extend(up.iter().map(|&(_, page)| Move { page, to: TierId::FAST }));
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::Allocation;

    use super::*;

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
        exchange(&[10, 0, 40, 25, 0, 900], 20, &host, &mut plan);
        let moves: Vec<_> = plan.moves.iter().map(|step| (step.page.0, step.to.0)).collect();
        assert_eq!(moves, [(1, 1), (2, 0)], "25 accesses are not 20 more than 10");
        exchange(&[10, 0, 40, 25, 0, 900], 14, &host, &mut plan);
        assert_eq!(plan.moves.len(), 4);
    }
}
