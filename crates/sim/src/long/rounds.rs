//! The rounds of a run, and whether they still change.

use isotherm_core::{Bytes, Nanos};

use crate::long::{Long, MIN_ROUNDS};
use crate::result::{LongRun, Round, TimeParts};

/// Rounds that a policy which moves pages is compared over at least, whatever its control loop.
const MOVING_WINDOW: usize = 3;
/// Share by which the time of a settled round may change.
const TIME: f64 = 0.002;
/// Change of its hit ratio.
const HITS: f64 = 0.002;
/// Change of its moves, as a share of them and of all pages.
const MOVES: (f64, f64) = (0.1, 0.002);
/// Rounds at least of each half of a run that goes up and down by chance.
const CHANCE_ROUNDS: usize = 8;
/// Standard errors by which its halves may differ.
const CHANCE: f64 = 2.0;
/// Largest standard error of the mean time of settled rounds (a share) and of their hit ratio: of those alike
/// within the bounds above, and of those that go up and down by chance.
const CERTAIN: [f64; 2] = [0.005, 0.01];

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

/// An average over rounds.
#[derive(Debug, Clone, Copy)]
struct Mean {
    value: f64,
    /// Variance of the average, from how the rounds vary.
    variance: f64,
}

/// Averages over rounds.
#[derive(Debug, Clone, Copy)]
struct Means {
    time: Mean,
    hits: Mean,
    moves: Mean,
}

fn moves(round: &Round) -> u64 {
    round.promotions + round.demotions
}

impl Mean {
    fn of(rounds: &[Round], value: impl Fn(&Round) -> f64) -> Self {
        let count = rounds.len().max(1) as f64;
        let mean = rounds.iter().map(&value).sum::<f64>() / count;
        let squares: f64 = rounds.iter().map(|round| (value(round) - mean).powi(2)).sum();
        Self { value: mean, variance: squares / (count - 1.0).max(1.0) / count }
    }

    /// Returns whether the average of the part before differs by no more than chance explains. Chance is how
    /// this part varies: the other may hold the end of a change, which must not pass for chance.
    fn by_chance(self, before: Self) -> bool {
        (self.value - before.value).abs() <= CHANCE * (2.0 * self.variance).sqrt()
    }
}

impl Means {
    fn of(rounds: &[Round]) -> Self {
        Self {
            time: Mean::of(rounds, |round| round.modelled_ns.0 as f64),
            hits: Mean::of(rounds, |round| round.hit_ratio),
            moves: Mean::of(rounds, |round| moves(round) as f64),
        }
    }

    fn by_chance(&self, before: &Self) -> bool {
        self.time.by_chance(before.time)
            && self.hits.by_chance(before.hits)
            && self.moves.by_chance(before.moves)
    }

    /// Returns whether the time and the hits are known within an error.
    fn certain(&self, error: f64) -> bool {
        self.time.variance.sqrt() <= error * self.time.value && self.hits.variance.sqrt() <= error
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
        let most = self.long.most.min(self.rounds(now.time - before.time));
        (self.done.len() as u64) < most && !self.never_settles() && self.settled().is_none()
    }

    /// Returns whether the slowest control loop is too long for the rounds that may be simulated, so that no
    /// number of them shows whether they still change. A run of a given length is simulated all the same.
    fn never_settles(&self) -> bool {
        let rounds = self.done.len() as u64;
        self.long.lasting(self.control_loop) > Nanos(0)
            && rounds >= MIN_ROUNDS
            && self.before.time.0 / rounds * self.long.most < 2 * self.control_loop.0
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

    /// Returns the number of last rounds that are alike; `None` while rounds still change.
    fn settled(&self) -> Option<usize> {
        let window = self.window()?;
        if self.halves(window, CERTAIN[0]).is_some_and(|halves| self.same(halves)) {
            return Some(2 * window);
        }
        // Rounds that go up and down by chance need a longer part for a mean that is known.
        let half = window.max(CHANCE_ROUNDS).max(self.done.len() / 3);
        self.halves(half, CERTAIN[1])
            .is_some_and(|(before, last)| last.by_chance(&before))
            .then_some(2 * half)
    }

    /// Returns the means of the last `half` rounds and of as many before them, if that of both is certain.
    fn halves(&self, half: usize, error: f64) -> Option<(Means, Means)> {
        let start = self.done.len().checked_sub(2 * half)?;
        let last = &self.done[start..];
        Means::of(last).certain(error).then(|| (Means::of(&last[..half]), Means::of(&last[half..])))
    }

    fn same(&self, (before, last): (Means, Means)) -> bool {
        let few = MOVES.0 * before.moves.value.max(last.moves.value) + MOVES.1 * self.pages as f64;
        (last.time.value - before.time.value).abs() <= TIME * before.time.value
            && (last.hits.value - before.hits.value).abs() <= HITS
            && (last.moves.value - before.moves.value).abs() <= few
    }

    /// Returns the rounds of the run: those asked for, or more where they do not last long enough if each of
    /// the rest takes `round`.
    fn rounds(&self, round: Nanos) -> u64 {
        let missing = self.long.lasting(self.control_loop).0.saturating_sub(self.before.time.0);
        let needed = self.done.len() as u64 + missing.div_ceil(round.0.max(1));
        self.long.asked(self.control_loop).max(if missing > 0 { needed } else { 0 })
    }

    /// Returns the run beside `all_fast`, which is not known for all-fast itself.
    pub(crate) fn result(&self, all_fast: Option<&LongRun>) -> LongRun {
        // Before a whole window, all but the first round, in which pages are allocated.
        let known = self.done.len().saturating_sub(1).max(1);
        let settled = self.settled();
        let window = settled.or(self.window()).map_or(known, |window| known.min(window));
        let last = &self.done[self.done.len() - window..];
        let mean = Means::of(last);
        let round_ns = Nanos(mean.time.value.round() as u64);
        let fast = all_fast.map_or(round_ns, |all_fast| all_fast.round_ns).0.max(1) as f64;
        let slowdown = |round: &Round| Round { slowdown: round.modelled_ns.0 as f64 / fast, ..*round };
        let mut run = LongRun {
            rounds: self.rounds(round_ns),
            simulated: self.done.len() as u64,
            settled: settled.is_some(),
            control_loop_ns: self.control_loop,
            averaged: window as u64,
            round_ns,
            slowdown: round_ns.0 as f64 / fast,
            hit_ratio: mean.hits.value,
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
        assert_eq!((falling.done.len(), falling.settled().is_some()), (50, false));
        let creeping = |round| 1000 + round / 4;
        assert!(run(Some(0), creeping).settled().is_some(), "a change too small to see within a few rounds");
        assert!(run(Some(20), creeping).settled().is_none(), "over a control loop of 20 s it is seen");
    }

    /// A number from 0 to 199 that looks like chance.
    fn noise(round: u64) -> u64 {
        (round * round * 7919 + round * 104_729) % 199
    }

    #[test]
    fn rounds_that_go_up_and_down_by_chance_settle_on_a_mean_that_is_known() {
        let noisy = run(Some(0), |round| 10_000 + 4 * noise(round));
        let averaged = noisy.settled().expect("a mean that stays");
        assert!((2 * CHANCE_ROUNDS..=30).contains(&averaged), "{averaged}");
        let mean = noisy.result(None).round_ns.0 as f64 / 1e6;
        assert!((mean / 10_400.0 - 1.0).abs() < 2.0 * CERTAIN[1], "{mean}");
        let wild = run(Some(0), |round| 10_000 + 100 * noise(round));
        assert_eq!((wild.done.len(), wild.settled()), (50, None), "its mean is not known well in 50 rounds");
        let rising = run(Some(0), |round| 10_000 + 4 * noise(round) + 60 * round);
        assert_eq!((rising.done.len(), rising.settled()), (50, None), "a trend is no chance");
    }

    #[test]
    fn a_change_that_has_ended_is_no_chance() {
        // Averaged with the rounds after it, the second one would make them 0.8 % slower.
        let learning = |round| if round == 1 { 12_500 } else { 10_000 + noise(round) / 20 };
        let settled = run(Some(150), learning);
        assert!(settled.settled().is_some());
        let round = settled.result(None).round_ns.0 as f64 / 1e6;
        assert!((round / 10_005.0 - 1.0).abs() < 0.001, "{round}");
    }

    #[test]
    fn a_run_of_control_loops_holds_them_all_where_its_rounds_are_shorter_than_expected() {
        let length = Length::Loops { loops: 60, accesses: 40 * 20_000_000 };
        let long = Long::new(length, 20_000_000, Nanos(SECOND)).expect("long enough");
        let mut rounds = Rounds::new(long, 1000, Some(Nanos(SECOND)));
        let mut time = Nanos(0);
        let mut end = || {
            time += Nanos(SECOND * 9 / 10);
            rounds.end(Counted { time, ..Counted::default() })
        };
        while end() {}
        let run = rounds.result(None);
        assert!(run.settled && run.modelled_ns >= Nanos(60 * SECOND), "{run:?}");
    }

    #[test]
    fn a_run_whose_control_loop_is_too_long_to_be_seen_twice_stops_early() {
        let run = |loops: bool, control_loop: u64| {
            let accesses = 20 * 20_000_000;
            let length = if loops { Length::Loops { loops: 60, accesses } } else { Length::Rounds(20) };
            let long = Long::new(length, 20_000_000, Nanos(SECOND)).expect("long enough");
            let mut rounds = Rounds::new(long, 1000, Some(Nanos(control_loop * SECOND)));
            let ends = (1..=40).map(|round| Counted { time: Nanos(round * SECOND), ..Counted::default() });
            ends.take_while(|&now| rounds.end(now)).count() + 1
        };
        assert_eq!((run(true, 11), run(false, 11)), (8, 20));
        assert_eq!(run(true, 10), 20, "ten and ten");
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
