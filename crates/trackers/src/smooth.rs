//! Smooth access counts (Jenga, section 5.2), which decay with every access instead of halving at once.
//!
//! Time is counted in samples, and a cooling period has `cp` of them. Each page keeps two numbers: its score
//! at the last cooling, `AC`, and the accesses since, `acc`. After `t` samples of a period the score is
//!
//! ```text
//! AS(t) = (1 - t / (2 cp)) AC + acc / 2          0 <= t <= cp
//! ```
//!
//! and a cooling sets `AC = AS(cp)` and `acc = 0`. So at a period's end the score equals the halved count,
//! and it is continuous but for steps of `acc / 2` at accesses; `docs/reference/policies.md` explains this
//! reading of the paper's formula. Scores are whole numbers, rounded down once: `(AC (2 cp - t) + acc cp) /
//! (2 cp)`.

/// Longest period, in samples; all products then fit 64 bits.
const LONGEST: u64 = 1 << 30;
/// Bits of a score's stamp that hold its tag; the others hold the period.
const TAG_BITS: u32 = 6;

/// Position of a set of scores in its periods.
#[derive(Debug, Clone)]
pub struct SmoothClock {
    period: u64,
    elapsed: u64,
    number: u32,
}

impl SmoothClock {
    /// Starts the first period. `period` is in samples and is clamped to 1 to 2^30.
    pub fn new(period: u64) -> Self {
        Self { period: period.clamp(1, LONGEST), elapsed: 0, number: 0 }
    }

    /// Counts one sample. Returns whether a period ended with it.
    #[inline]
    pub fn advance(&mut self) -> bool {
        self.elapsed += 1;
        let ended = self.elapsed == self.period;
        if ended {
            self.elapsed = 0;
            self.number += 1;
        }
        ended
    }

    /// Returns the number of ended periods modulo 2^26, the range that a score stores.
    fn stamp(&self) -> u32 {
        self.number & (u32::MAX >> TAG_BITS)
    }
}

/// Score of one page in 12 bytes (Jenga, section 6), with room for a tag of 6 bits.
#[derive(Debug, Clone, Copy, Default)]
pub struct SmoothScore {
    at_cooling: u32,
    accesses: u32,
    /// Period of the two numbers, above the tag in the lowest bits.
    stamp: u32,
}

impl SmoothScore {
    /// Returns a score of 0 in the clock's current period.
    pub fn zero(clock: &SmoothClock) -> Self {
        Self { at_cooling: 0, accesses: 0, stamp: clock.stamp() << TAG_BITS }
    }

    /// Returns the number of periods that ended since the score last changed.
    #[inline]
    pub fn periods_ago(self, clock: &SmoothClock) -> u32 {
        clock.stamp().wrapping_sub(self.stamp >> TAG_BITS) & (u32::MAX >> TAG_BITS)
    }

    /// Returns the tag stored when the score last changed.
    #[inline]
    pub fn tag(self) -> u8 {
        (self.stamp & ((1 << TAG_BITS) - 1)) as u8
    }

    /// Returns whether the score has counted accesses in this period.
    #[inline]
    pub fn is_current(self, clock: &SmoothClock) -> bool {
        self.periods_ago(clock) == 0 && self.accesses > 0
    }

    #[inline]
    fn parts(self, clock: &SmoothClock) -> (u32, u32) {
        match self.periods_ago(clock) {
            0 => (self.at_cooling, self.accesses),
            ended => {
                let halved = (u64::from(self.at_cooling) + u64::from(self.accesses)) >> 1;
                ((halved as u32).checked_shr(ended - 1).unwrap_or(0), 0)
            }
        }
    }

    /// Returns the current score.
    #[inline]
    pub fn get(self, clock: &SmoothClock) -> u32 {
        let (at_cooling, accesses) = self.parts(clock);
        score(at_cooling, accesses, clock)
    }

    /// Adds accesses and returns the score. The lowest 6 bits of `tag(score)` are stored as the tag.
    #[inline]
    pub fn add(&mut self, amount: u32, clock: &SmoothClock, tag: impl FnOnce(u32) -> u8) -> u32 {
        let (at_cooling, accesses) = self.parts(clock);
        let accesses = accesses.saturating_add(amount);
        let score = score(at_cooling, accesses, clock);
        let tag = u32::from(tag(score)) & ((1 << TAG_BITS) - 1);
        *self = Self { at_cooling, accesses, stamp: clock.stamp() << TAG_BITS | tag };
        score
    }
}

#[inline]
fn score(at_cooling: u32, accesses: u32, clock: &SmoothClock) -> u32 {
    let (period, elapsed) = (clock.period, clock.elapsed);
    let doubled = u64::from(at_cooling) * (2 * period - elapsed) + u64::from(accesses) * period;
    (doubled / (2 * period)) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn no_tag(_: u32) -> u8 {
        0
    }

    #[test]
    fn a_score_takes_twelve_bytes() {
        assert_eq!(size_of::<SmoothScore>(), 12);
    }

    #[test]
    fn a_page_that_is_left_alone_decays_evenly_and_never_jumps() {
        let mut clock = SmoothClock::new(1000);
        let mut page = SmoothScore::zero(&clock);
        page.add(2_000_000, &clock, no_tag);
        let mut before = page.get(&clock);
        assert_eq!(before, 1_000_000, "half of what came, as at a period's end");
        while !clock.advance() {}
        assert_eq!(page.get(&clock), 1_000_000, "what is new does not decay before it was halved once");
        for _ in 0..3000 {
            clock.advance();
            let now = page.get(&clock);
            assert!(now <= before && before - now <= 501, "{before} {now}");
            before = now;
        }
        assert_eq!(before, 125_000);
    }

    #[test]
    fn the_tag_and_the_age_are_kept_beside_the_score() {
        let mut clock = SmoothClock::new(2);
        let mut page = SmoothScore::zero(&clock);
        assert!(!page.is_current(&clock));
        page.add(100, &clock, |score| score as u8);
        assert_eq!((page.tag(), page.is_current(&clock), page.periods_ago(&clock)), (50, true, 0));
        (0..5).for_each(|_| _ = clock.advance());
        assert_eq!((page.tag(), page.is_current(&clock), page.periods_ago(&clock)), (50, false, 2));
    }

    #[test]
    fn the_count_of_periods_may_wrap() {
        let mut clock = SmoothClock { number: (1 << 26) - 1, ..SmoothClock::new(1) };
        let mut page = SmoothScore::zero(&clock);
        page.add(64, &clock, no_tag);
        clock.advance();
        clock.advance();
        assert_eq!((page.periods_ago(&clock), page.get(&clock)), (2, 16));
    }

    /// The score by its definition, in real numbers, with the same roundings at coolings.
    struct Exact {
        at_cooling: f64,
        accesses: f64,
    }

    proptest! {
        /// At every moment the score is at most the exact one and less than one below it; at a period's end
        /// it equals the count of a tracker that halves at once; and across a cooling it changes by at most
        /// one sample's decay.
        #[test]
        fn scores_are_continuous_and_end_where_halving_ends(
            period in 1u64..50,
            steps in prop::collection::vec((0u32..1000, 0u32..3), 1..400),
        ) {
            let mut clock = SmoothClock::new(period);
            let mut page = SmoothScore::zero(&clock);
            let mut exact = Exact { at_cooling: 0.0, accesses: 0.0 };
            let mut halved = 0u32;
            for (amount, rarity) in steps {
                if rarity == 0 {
                    page.add(amount, &clock, no_tag);
                    exact.accesses += f64::from(amount);
                    halved += amount;
                }
                let time = clock.elapsed as f64 / clock.period as f64;
                let expected = (1.0 - time / 2.0) * exact.at_cooling + exact.accesses / 2.0;
                let found = f64::from(page.get(&clock));
                prop_assert!(found <= expected + 1e-6 && expected - found < 1.0, "{found} {expected}");
                let before = page.get(&clock);
                let slope = exact.at_cooling / (2.0 * clock.period as f64);
                if clock.advance() {
                    halved /= 2;
                    exact = Exact { at_cooling: f64::from(halved), accesses: 0.0 };
                    prop_assert_eq!(page.get(&clock), halved, "the halved count");
                }
                let step = f64::from(before) - f64::from(page.get(&clock));
                prop_assert!((-1e-6..slope + 1.0).contains(&step), "{step} at slope {slope}");
            }
        }

        /// Scores updated only when used read as if every cooling had changed all of them.
        #[test]
        fn lazy_cooling_equals_eager_cooling(period in 1u64..20, gaps in prop::collection::vec(0u64..90, 1..60)) {
            let mut clock = SmoothClock::new(period);
            let (mut lazy, mut eager) = (SmoothScore::zero(&clock), SmoothScore::zero(&clock));
            for gap in gaps {
                for _ in 0..gap {
                    if clock.advance() {
                        eager.add(0, &clock, no_tag);
                    }
                }
                prop_assert_eq!(lazy.get(&clock), eager.get(&clock));
                lazy.add(100, &clock, no_tag);
                eager.add(100, &clock, no_tag);
            }
        }
    }
}
