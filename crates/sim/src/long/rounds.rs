//! The rounds of a run, and whether they still change.

use isotherm_core::{Bytes, Nanos};

use crate::long::Long;
use crate::result::{LongRun, Round, TimeParts};

/// Rounds that a policy which moves pages is compared over at least, whatever its control loop.
const MOVING_WINDOW: usize = 3;
/// Share by which the time of a settled round may change.
const TIME: f64 = 0.002;
/// Change of its hit ratio.
const HITS: f64 = 0.002;
/// Change of its moves, as a share of them and of all pages.
const MOVES: (f64, f64) = (0.1, 0.002);

/// The rounds simulated so far.
#[derive(Debug, Clone)]
pub(crate) struct Rounds {
    long: Long,
    pages: u64,
    control_loop: Nanos,
    before: Counted,
    done: Vec<Round>,
}

/// Counts since the start of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counted {
    pub(crate) time: Nanos,
    /// Time that tiering took of it.
    pub(crate) taken: [Nanos; 3],
    pub(crate) accesses: u64,
    pub(crate) hits: u64,
    pub(crate) loads: u64,
    pub(crate) load_hits: u64,
    pub(crate) slow_bytes: Bytes,
    pub(crate) promotions: u64,
    pub(crate) demotions: u64,
}

impl Counted {
    pub(crate) fn parts(&self) -> TimeParts {
        TimeParts::new(self.time, self.taken)
    }
}

/// Averages over rounds.
#[derive(Debug, Clone, Copy)]
struct Mean {
    time: f64,
    hits: f64,
    moves: f64,
}

fn moves(round: &Round) -> u64 {
    round.promotions + round.demotions
}

impl Mean {
    fn of(rounds: &[Round]) -> Self {
        let count = rounds.len().max(1) as f64;
        Self {
            time: rounds.iter().map(|round| round.modelled_ns.0).sum::<u64>() as f64 / count,
            hits: rounds.iter().map(|round| round.hit_ratio).sum::<f64>() / count,
            moves: rounds.iter().map(moves).sum::<u64>() as f64 / count,
        }
    }
}

impl Rounds {
    /// Starts a run over `pages`. Without a control loop there is no policy, only a placement.
    pub(crate) fn new(long: Long, pages: usize, control_loop: Option<Nanos>) -> Self {
        Self {
            long,
            pages: pages as u64,
            control_loop: control_loop.unwrap_or_default(),
            before: Counted::default(),
            done: Vec::new(),
        }
    }

    /// Notes a round's end. Returns whether another round follows.
    pub(crate) fn end(&mut self, now: Counted) -> bool {
        let before = std::mem::replace(&mut self.before, now);
        self.done.push(Round {
            modelled_ns: now.time - before.time,
            parts: now.parts() - before.parts(),
            slowdown: 0.0,
            hit_ratio: (now.hits - before.hits) as f64 / (now.accesses - before.accesses).max(1) as f64,
            promotions: now.promotions - before.promotions,
            demotions: now.demotions - before.demotions,
            accesses: now.accesses - before.accesses,
            loads: now.loads - before.loads,
            load_hits: now.load_hits - before.load_hits,
            slow_bytes: now.slow_bytes - before.slow_bytes,
        });
        (self.done.len() as u64) < self.long.simulated(self.control_loop) && !self.settled()
    }

    /// Returns the number of last rounds that hold the slowest control loop; `None` if all hold less.
    fn window(&self) -> Option<usize> {
        let mut time = Nanos(0);
        let holds = |round: &Round| {
            time += round.modelled_ns;
            time >= self.control_loop
        };
        let needed = self.done.iter().rev().position(holds)? + 1;
        // Where nothing moved for two control loops, the placement stays: one round is as the next.
        let still = self.done.iter().rev().take(2 * needed).all(|round| moves(round) == 0);
        Some(if still { needed } else { needed.max(MOVING_WINDOW) })
    }

    /// Returns whether the last two windows are alike.
    fn settled(&self) -> bool {
        let Some(window) = self.window().filter(|window| 2 * window <= self.done.len()) else { return false };
        let (before, last) = self.done[self.done.len() - 2 * window..].split_at(window);
        let (before, last) = (Mean::of(before), Mean::of(last));
        let moves = MOVES.0 * before.moves.max(last.moves) + MOVES.1 * self.pages as f64;
        (last.time - before.time).abs() <= TIME * before.time
            && (last.hits - before.hits).abs() <= HITS
            && (last.moves - before.moves).abs() <= moves
    }

    /// Returns the run beside `all_fast`, which is not known for all-fast itself.
    pub(crate) fn result(&self, all_fast: Option<&LongRun>) -> LongRun {
        // Before a whole window, all but the first round, in which pages are allocated.
        let known = self.done.len().saturating_sub(1).max(1);
        let alike = if self.settled() { 2 } else { 1 };
        let window = self.window().map_or(known, |window| known.min(alike * window));
        let last = &self.done[self.done.len() - window..];
        let mean = Mean::of(last);
        let round_ns = Nanos(mean.time.round() as u64);
        let fast = all_fast.map_or(round_ns, |all_fast| all_fast.round_ns).0.max(1) as f64;
        let slowdown = |round: &Round| Round { slowdown: round.modelled_ns.0 as f64 / fast, ..*round };
        let mut run = LongRun {
            rounds: self.long.asked(self.control_loop),
            simulated: self.done.len() as u64,
            settled: self.settled(),
            control_loop_ns: self.control_loop,
            averaged: window as u64,
            round_ns,
            slowdown: round_ns.0 as f64 / fast,
            hit_ratio: mean.hits,
            each: self.done.iter().map(slowdown).collect(),
            ..LongRun::default()
        };
        run.modelled_ns = run.after(run.rounds);
        run.all_fast_ns = all_fast.map_or(run.modelled_ns, |all_fast| all_fast.after(run.rounds));
        let sum = |rounds: &[Round], cause: usize| {
            rounds.iter().map(|round| round.parts.taken()[cause].0).sum::<u64>()
        };
        let beyond = run.rounds.saturating_sub(run.simulated);
        let taken = std::array::from_fn(|cause| {
            let each = sum(last, cause) / window as u64;
            Nanos(sum(&self.done, cause).saturating_add(each.saturating_mul(beyond)))
        });
        run.parts = TimeParts::new(run.modelled_ns, taken);
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::long::Length;

    const SECOND: u64 = Nanos::SECOND.0;

    /// Runs rounds of so many milliseconds each, with as many moves each, until they settle; returns them.
    fn run_moving(control_loop: Option<u64>, moves: u64, milliseconds: impl Fn(u64) -> u64) -> Rounds {
        let long = Long::new(Length::Rounds(50), 20_000_000, Nanos(SECOND)).expect("long enough");
        let mut rounds = Rounds::new(long, 1000, control_loop.map(|time| Nanos(time * SECOND)));
        let (mut now, mut round) = (Counted::default(), 0);
        loop {
            now.time += Nanos(milliseconds(round) * 1_000_000);
            now.promotions += moves;
            round += 1;
            if !rounds.end(now) {
                return rounds;
            }
        }
    }

    fn run(control_loop: Option<u64>, milliseconds: impl Fn(u64) -> u64) -> Rounds {
        run_moving(control_loop, 10, milliseconds)
    }

    #[test]
    fn rounds_stop_when_two_windows_of_the_control_loop_are_alike() {
        let learning = |round| if round < 4 { 2000 } else { 1000 };
        assert_eq!(run(Some(0), learning).done.len(), 10, "three and three after four");
        assert_eq!(run(Some(5), learning).done.len(), 14, "5 s are five rounds: five and five after four");
    }

    #[test]
    fn a_placement_that_stays_needs_two_rounds_alike_or_two_control_loops() {
        let still =
            |control_loop, milliseconds: fn(u64) -> u64| run_moving(control_loop, 0, milliseconds).done.len();
        assert_eq!(still(None, |_| 1000), 2);
        assert_eq!(still(Some(0), |round| if round == 0 { 2000 } else { 1000 }), 3);
        assert_eq!(still(Some(5), |_| 1000), 10, "a policy may still act within its control loop");
    }

    #[test]
    fn rounds_that_change_go_on_to_the_end_and_are_not_settled() {
        let falling = run(Some(0), |round| 3000 - 20 * round);
        assert_eq!((falling.done.len(), falling.settled()), (50, false));
        let creeping = |round| 1000 + round / 4;
        assert!(run(Some(0), creeping).settled(), "a change too small to see within a few rounds");
        assert!(!run(Some(20), creeping).settled(), "over a control loop of 20 s it is seen");
    }

    #[test]
    fn moves_and_hits_that_change_keep_it_going_too() {
        let long = Long::new(Length::Rounds(50), 20_000_000, Nanos(SECOND)).expect("long enough");
        let count = |hits: u64, moves: u64| {
            let mut rounds = Rounds::new(long, 1000, Some(Nanos(0)));
            let goes_on = |round: &u64| {
                let (hits, promotions) = (hits * round * round, 10 * round + moves * round * round);
                let (time, accesses) = (Nanos(round * SECOND), round * 1000);
                rounds.end(Counted { time, accesses, hits, promotions, ..Counted::default() })
            };
            (1..=50).take_while(goes_on).count()
        };
        assert_eq!(count(0, 0), 5);
        assert!(count(1, 0) > 40, "one hit more in each round, of a thousand");
        assert!(count(0, 5) > 20, "ten moves more in each round, of a thousand pages");
    }

    #[test]
    fn the_rest_is_extrapolated_from_the_last_window() {
        let settled = run(Some(0), |round| if round == 0 { 2000 } else { 1000 }).result(None);
        assert_eq!((settled.rounds, settled.simulated, settled.settled), (50, 7, true));
        assert_eq!(settled.modelled_ns, Nanos(51 * SECOND));
        assert_eq!((settled.round_ns, settled.each.len()), (Nanos(SECOND), 7));
    }
}
