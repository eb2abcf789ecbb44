//! The rounds of a run, and whether they still change.

use isotherm_core::Nanos;

use crate::long::Long;
use crate::result::{LongRun, Round};

/// Rounds that a policy is compared over at least, whatever its control loop.
const POLICY_WINDOW: usize = 3;
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
    accesses: u64,
    pages: u64,
    control_loop: Nanos,
    least: usize,
    end: Nanos,
    hits: u64,
    moves: (u64, u64),
    done: Vec<Round>,
}

/// Averages over rounds.
#[derive(Debug, Clone, Copy)]
struct Mean {
    time: f64,
    hits: f64,
    moves: f64,
}

impl Mean {
    fn of(rounds: &[Round]) -> Self {
        let count = rounds.len().max(1) as f64;
        let moves = |round: &Round| (round.promotions + round.demotions) as f64;
        Self {
            time: rounds.iter().map(|round| round.modelled_ns.0).sum::<u64>() as f64 / count,
            hits: rounds.iter().map(|round| round.hit_ratio).sum::<f64>() / count,
            moves: rounds.iter().map(moves).sum::<f64>() / count,
        }
    }
}

impl Rounds {
    /// Starts a run over `accesses` to `pages`. Without a control loop there is no policy, only a placement.
    pub(crate) fn new(long: Long, (accesses, pages): (usize, usize), control_loop: Option<Nanos>) -> Self {
        Self {
            long,
            accesses: accesses as u64,
            pages: pages as u64,
            control_loop: control_loop.unwrap_or_default(),
            least: if control_loop.is_some() { POLICY_WINDOW } else { 1 },
            end: Nanos(0),
            hits: 0,
            moves: (0, 0),
            done: Vec::new(),
        }
    }

    /// Notes a round's end, with the counts since the run's start. Returns whether another round follows.
    pub(crate) fn end(&mut self, now: Nanos, hits: u64, moves: (u64, u64)) -> bool {
        self.done.push(Round {
            modelled_ns: now - self.end,
            slowdown: 0.0,
            hit_ratio: (hits - self.hits) as f64 / self.accesses as f64,
            promotions: moves.0 - self.moves.0,
            demotions: moves.1 - self.moves.1,
        });
        (self.end, self.hits, self.moves) = (now, hits, moves);
        (self.done.len() as u64) < self.long.most && !self.settled()
    }

    /// Returns the number of last rounds that hold the slowest control loop; `None` if all hold less.
    fn window(&self) -> Option<usize> {
        let mut time = Nanos(0);
        let holds = |round: &Round| {
            time += round.modelled_ns;
            time >= self.control_loop
        };
        let needed = self.done.iter().rev().position(holds)? + 1;
        Some(needed.max(self.least))
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
        let mean = Mean::of(&self.done[self.done.len() - window..]);
        let round_ns = Nanos(mean.time.round() as u64);
        let fast = all_fast.map_or(round_ns, |all_fast| all_fast.round_ns).0.max(1) as f64;
        let slowdown = |round: &Round| Round { slowdown: round.modelled_ns.0 as f64 / fast, ..*round };
        let mut run = LongRun {
            rounds: self.long.asked,
            simulated: self.done.len() as u64,
            settled: self.settled(),
            control_loop_ns: self.control_loop,
            round_ns,
            slowdown: round_ns.0 as f64 / fast,
            hit_ratio: mean.hits,
            each: self.done.iter().map(slowdown).collect(),
            ..LongRun::default()
        };
        run.modelled_ns = run.after(run.rounds);
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::long::Length;

    const SECOND: u64 = Nanos::SECOND.0;

    /// Runs rounds of so many milliseconds each, until they settle; returns them.
    fn run(control_loop: Option<u64>, milliseconds: impl Fn(u64) -> u64) -> Rounds {
        let long = Long::new(Length::Rounds(50), 20_000_000, Nanos(SECOND)).expect("long enough");
        let mut rounds = Rounds::new(long, (20_000_000, 1000), control_loop.map(|time| Nanos(time * SECOND)));
        let (mut now, mut round) = (Nanos(0), 0);
        loop {
            now += Nanos(milliseconds(round) * 1_000_000);
            round += 1;
            if !rounds.end(now, 0, (0, 0)) {
                return rounds;
            }
        }
    }

    #[test]
    fn rounds_stop_when_two_windows_of_the_control_loop_are_alike() {
        let learning = |round| if round < 4 { 2000 } else { 1000 };
        assert_eq!(run(Some(0), learning).done.len(), 10, "three and three after four");
        assert_eq!(run(Some(5), learning).done.len(), 14, "5 s are five rounds: five and five after four");
        assert_eq!(run(None, |_| 1000).done.len(), 2);
        assert_eq!(run(None, |round| if round == 0 { 2000 } else { 1000 }).done.len(), 3);
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
            let mut rounds = Rounds::new(long, (1000, 1000), Some(Nanos(0)));
            let goes_on = |round: &u64| {
                rounds.end(Nanos(round * SECOND), hits * round * round, (moves * round * round, 0))
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
