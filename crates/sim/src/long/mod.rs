//! Long runs: a stream replayed round after round, with the policy's state and the placement kept.
//!
//! 1. The policy's times are its paper's where what is simulated holds [`LOOPS`] of its slowest control loop;
//!    else they are divided so that it does, at most by the run's [`Scale`].
//! 2. Rounds are simulated until they no longer change ([`Rounds`]), as far as [`MAX_ACCESSES`] allow.
//! 3. The rest of the asked rounds is extrapolated from the last ones.
//! 4. For the scoreboard ([`Length::Loops`]), times are divided by the run's scale, as in a single replay.
//! 5. A policy pays back when its sum of times falls below that of first-touch for good ([`pays_back`]).

mod payback;
mod rounds;

use isotherm_core::Nanos;
use isotherm_core::parameters::{Parameters, Scale};
use isotherm_machine::BLOCK;

use crate::SimulateError;
pub(crate) use payback::pays_back;
pub(crate) use rounds::{Counted, Rounds};

/// Accesses that are simulated at most, unless that would be too few rounds: a minute at the slowest speed
/// that is promised.
const MAX_ACCESSES: u64 = 1_500_000_000;
/// Rounds that are simulated at most: results list each.
const MAX_ROUNDS: u64 = 2000;
/// Rounds in which anything can settle.
const MIN_ROUNDS: u64 = 8;
/// Rounds of the scoreboard at least: the quarter that is left out then has the loading.
const LEAST_ROUNDS: u64 = 4;
/// Control loops that a policy has to learn and to settle in.
const LOOPS: f64 = 3.0;
/// Fewest accesses of a round: the model counts time by blocks.
const MIN_ACCESSES: u64 = BLOCK as u64;

/// How long a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// As many rounds as take so long with all memory fast, the last one whole.
    Time(Nanos),
    /// So many rounds.
    Rounds(u64),
    /// As many rounds as hold so many of each policy's slowest control loop at the run's scale. Loading is
    /// replayed once.
    Loops {
        /// Control loops.
        loops: u64,
        /// Accesses simulated at most, unless that would be too few rounds.
        accesses: u64,
    },
}

/// A run of several rounds over a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Long {
    length: Length,
    /// Accesses of loading, which later rounds leave out.
    pub(crate) loading: usize,
    /// Rounds simulated at most.
    pub(crate) most: u64,
    /// Time of a round of the whole with all memory fast.
    round: Nanos,
    /// Pages of the whole for each of the stream.
    thinned: f64,
}

/// A policy's parameters for a run.
pub(crate) struct Scaled {
    pub(crate) parameters: Parameters,
    /// Divisor of its times.
    pub(crate) times: f64,
    /// Its slowest control loop in force.
    pub(crate) control_loop: Nanos,
}

impl Long {
    /// Plans a run over `accesses`, which take `round` with all memory fast.
    ///
    /// # Errors
    /// Too few accesses for a round, or less time than a round takes.
    pub(crate) fn new(length: Length, accesses: u64, round: Nanos) -> Result<Self, SimulateError> {
        if accesses < MIN_ACCESSES {
            return Err(SimulateError::ShortRound(accesses, MIN_ACCESSES));
        }
        if let Length::Time(time) = length
            && time < round
        {
            return Err(SimulateError::ShortTime(time, round));
        }
        let (most, least) = match length {
            Length::Loops { accesses: most, .. } => (most / accesses, LEAST_ROUNDS),
            _ => (MAX_ACCESSES / accesses, MIN_ROUNDS),
        };
        Ok(Self { length, loading: 0, most: most.clamp(least, MAX_ROUNDS), round, thinned: 1.0 })
    }

    /// Returns the same with accesses of loading before the part that is repeated.
    pub(crate) fn behind(self, loading: usize) -> Self {
        Self { loading, ..self }
    }

    /// Returns the rounds asked for, under a policy with that slowest control loop in force.
    pub(crate) fn asked(&self, control_loop: Nanos) -> u64 {
        let round = self.round.0.max(1);
        match self.length {
            Length::Time(time) => time.0.div_ceil(round),
            Length::Rounds(rounds) => rounds.max(1),
            Length::Loops { loops, .. } => {
                loops.saturating_mul(control_loop.0).div_ceil(round).max(LEAST_ROUNDS)
            }
        }
    }

    /// Returns the time that a run lasts at least under such a policy, however short its rounds are; 0 for a
    /// run of a given length.
    pub(crate) fn lasting(&self, control_loop: Nanos) -> Nanos {
        match self.length {
            Length::Loops { loops, .. } => Nanos(loops.saturating_mul(control_loop.0)),
            _ => Nanos(0),
        }
    }

    /// Returns the rounds that are simulated at most, under such a policy.
    pub(crate) fn simulated(&self, control_loop: Nanos) -> u64 {
        self.most.min(self.asked(control_loop))
    }

    /// Returns the time for which a policy without times of its own may learn before anything changes: a
    /// quarter of the rounds.
    pub(crate) fn learning(&self) -> Nanos {
        match self.length {
            Length::Loops { .. } => Nanos(0),
            _ => Nanos(self.round.0.saturating_mul(self.simulated(Nanos(0))) / 4),
        }
    }

    /// Returns the same with at most so many rounds simulated.
    pub(crate) fn at_most(self, rounds: u64) -> Self {
        Self { most: self.most.min(rounds), ..self }
    }

    /// Returns the same over a sub-sample with one in so many pages, whose rounds are as much shorter.
    pub(crate) fn thinned(self, one_in: f64) -> Self {
        Self { thinned: one_in, ..self }
    }

    /// Scales a policy's parameters for what is simulated.
    ///
    /// # Errors
    /// A control loop that this is too short for at any scale.
    pub(crate) fn scaled(&self, parameters: &Parameters, scale: Scale) -> Result<Scaled, SimulateError> {
        let mut parameters = parameters.clone();
        let slowest = parameters.longest(false).map_or(0, |(_, time)| time.0);
        let rounds = self.simulated(Nanos(u64::MAX));
        let simulated = self.round.0.saturating_mul(rounds);
        let needed = match self.length {
            Length::Loops { .. } => scale.time,
            _ => (LOOPS * slowest as f64 / simulated.max(1) as f64).max(1.0),
        };
        let times = (needed * self.thinned).min(scale.time);
        parameters.scale_to(scale, times);
        let (key, control_loop) = parameters.longest(true).unwrap_or(("", Nanos(0)));
        if control_loop.0 as f64 * self.thinned > simulated as f64 {
            let policy = parameters.group().to_owned();
            let held = Nanos(simulated);
            return Err(SimulateError::ShortRun { policy, rounds, held, key, control_loop });
        }
        Ok(Scaled { parameters, times, control_loop })
    }
}

#[cfg(test)]
mod tests {
    use isotherm_policies::find;

    use super::*;

    const SECOND: u64 = Nanos::SECOND.0;
    const SCALE: Scale = Scale { footprint: 4000.0, time: 250.0 };

    fn scaled(length: Length, round: Nanos) -> Scaled {
        let long = Long::new(length, 20_000_000, round).expect("long enough");
        long.scaled(&find("hybridtier").expect("a policy").parameters(), SCALE).expect("long enough")
    }

    fn loop_of(scaled: &Scaled) -> (f64, u64) {
        (scaled.times, scaled.control_loop.0 / 1_000_000)
    }

    #[test]
    fn times_are_the_papers_where_three_of_the_slowest_loop_are_simulated() {
        let slow = Nanos(5 * SECOND);
        assert_eq!(loop_of(&scaled(Length::Time(Nanos(360 * SECOND)), slow)), (1.0, 120_000));
        assert_eq!(loop_of(&scaled(Length::Rounds(72), slow)), (1.0, 120_000));
        assert_eq!(loop_of(&scaled(Length::Time(Nanos(90 * SECOND)), slow)).1, 30_000, "18 rounds, 90 s");
        // Of an hour, 75 rounds of 20 million accesses are simulated.
        assert_eq!(loop_of(&scaled(Length::Time(Nanos(3600 * SECOND)), Nanos(SECOND))), (4.8, 25_000));
        assert_eq!(loop_of(&scaled(Length::Rounds(1), Nanos(SECOND / 2))).0, 250.0, "no more than by scale");
    }

    #[test]
    fn a_quota_by_the_second_is_the_same_by_the_second_however_times_are_scaled() {
        let quota = |scaled: &Parameters| {
            let number = |name| match scaled.value(name) {
                Some(isotherm_core::parameters::Value::Size(size)) => size.0,
                Some(isotherm_core::parameters::Value::Duration(time)) => time.0,
                other => panic!("{name}: {other:?}"),
            };
            number("quota") as f64 / number("quota_period") as f64
        };
        let parameters = find("neomem").expect("a policy").parameters();
        let mut once = parameters.clone();
        once.scale(SCALE);
        let long = Long::new(Length::Rounds(100), 20_000_000, Nanos(SECOND)).expect("long enough");
        let long = long.scaled(&parameters, SCALE).expect("long enough");
        assert_eq!(long.times, 1.0);
        assert!((quota(&once) / quota(&long.parameters) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn what_is_too_short_is_refused_with_what_to_do() {
        let refused = |length, accesses, round| {
            let long = Long::new(length, accesses, Nanos(round));
            let policy = find("hybridtier").expect("a policy").parameters();
            let scaled = long.and_then(|long| long.scaled(&policy, Scale::NONE).map(|_| ()));
            scaled.expect_err("too short").to_string()
        };
        let few = refused(Length::Rounds(9), 1023, SECOND);
        assert!(few.contains("1023 accesses") && few.contains("at least 1024"), "{few}");
        let time = refused(Length::Time(Nanos(5)), 20_000_000, SECOND);
        assert!(time.contains("--for 5ns") && time.contains("1s"), "{time}");
        let run = refused(Length::Rounds(2), 20_000_000, SECOND);
        assert!(run.contains("hybridtier") && run.contains("monitor_quiet") && run.contains("120s"), "{run}");
    }
}
