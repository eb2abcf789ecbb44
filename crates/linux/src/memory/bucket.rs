//! A rate limit on bytes: a token bucket whose time is an argument.

use isotherm_core::{Bytes, Nanos};

/// Units of the level per byte: a rate in bytes per second times nanoseconds is then a whole number of units.
const UNITS: u128 = 1_000_000_000;

/// Lets at most `burst + rate * t` bytes pass in any time `t`.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    rate: u64,
    burst: u128,
    level: u128,
    filled: Nanos,
}

impl TokenBucket {
    /// Returns a full bucket; `rate` is in bytes per second.
    pub fn new(rate: Bytes, burst: Bytes) -> Self {
        let burst = u128::from(burst.0) * UNITS;
        Self { rate: rate.0, burst, level: burst, filled: Nanos(0) }
    }

    /// Returns how much may pass now. Time that runs backwards fills nothing.
    pub fn available(&mut self, now: Nanos) -> Bytes {
        let passed = now - self.filled;
        self.level = self.burst.min(self.level + u128::from(passed.0) * u128::from(self.rate));
        self.filled = self.filled.max(now);
        Bytes(u64::try_from(self.level / UNITS).unwrap_or(u64::MAX))
    }

    /// Takes all of `amount`, or nothing and returns false.
    pub fn take(&mut self, now: Nanos, amount: Bytes) -> bool {
        let enough = self.available(now) >= amount;
        if enough {
            self.level -= u128::from(amount.0) * UNITS;
        }
        enough
    }

    /// Returns tokens that were taken and not used.
    pub fn put_back(&mut self, amount: Bytes) {
        self.level = self.burst.min(self.level + u128::from(amount.0) * UNITS);
    }

    /// Returns when `amount` can be taken if nothing else is; `None` if never.
    pub fn ready_at(&mut self, now: Nanos, amount: Bytes) -> Option<Nanos> {
        let wanted = u128::from(amount.0) * UNITS;
        if self.available(now) >= amount {
            return Some(now);
        }
        if wanted > self.burst || self.rate == 0 {
            return None;
        }
        let wait = (wanted - self.level).div_ceil(u128::from(self.rate));
        Some(Nanos(self.filled.0.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_bucket_passes_its_burst_and_then_the_rate() {
        let mut bucket = TokenBucket::new(Bytes(1000), Bytes(500));
        assert!(bucket.take(Nanos(0), Bytes(500)) && !bucket.take(Nanos(0), Bytes(1)));
        assert_eq!(bucket.ready_at(Nanos(0), Bytes(100)), Some(Nanos(100 * Nanos::MILLISECOND.0)));
        assert!(!bucket.take(Nanos(100 * Nanos::MILLISECOND.0 - 1), Bytes(100)));
        assert!(bucket.take(Nanos(100 * Nanos::MILLISECOND.0), Bytes(100)));
        assert_eq!(bucket.ready_at(Nanos(0), Bytes(501)), None);
    }

    proptest! {
        #[test]
        fn no_time_span_passes_more_than_rate_and_burst(
            rate in 0u64..1 << 40, burst in 0u64..1 << 34,
            asks in prop::collection::vec((0u64..3_000_000_000, 0u64..1 << 34), 1..40),
        ) {
            let mut bucket = TokenBucket::new(Bytes(rate), Bytes(burst));
            let (mut now, mut passed) = (0u64, Vec::new());
            for (pause, ask) in asks {
                now += pause;
                if bucket.take(Nanos(now), Bytes(ask)) {
                    passed.push((now, u128::from(ask)));
                }
            }
            for (first, &(start, _)) in passed.iter().enumerate() {
                let mut sum = 0;
                for &(end, amount) in &passed[first..] {
                    sum += amount;
                    let bound = u128::from(burst) * UNITS + u128::from(end - start) * u128::from(rate);
                    prop_assert!(sum * UNITS <= bound, "{} in {} ns", sum, end - start);
                }
            }
        }

        #[test]
        fn what_is_said_to_be_ready_is_ready_and_not_before(
            rate in 1u64..1 << 40, burst in 1u64..1 << 34, spent in 0u64..1 << 34, ask in 1u64..1 << 34, now in 0u64..1 << 50,
        ) {
            let (spent, ask) = (spent.min(burst), ask.min(burst));
            let mut bucket = TokenBucket::new(Bytes(rate), Bytes(burst));
            prop_assert!(bucket.take(Nanos(now), Bytes(spent)));
            let ready = bucket.ready_at(Nanos(now), Bytes(ask)).expect("it is within the burst");
            if ready > Nanos(now) {
                prop_assert!(!bucket.clone().take(ready - Nanos(1), Bytes(ask)));
            }
            prop_assert!(bucket.take(ready, Bytes(ask)));
        }

        #[test]
        fn putting_back_restores_and_never_overfills(burst in 1u64..1 << 34, amount in 0u64..1 << 34) {
            let amount = Bytes(amount.min(burst));
            let mut bucket = TokenBucket::new(Bytes(0), Bytes(burst));
            prop_assert!(bucket.take(Nanos(5), amount));
            bucket.put_back(amount);
            bucket.put_back(amount);
            prop_assert_eq!(bucket.available(Nanos(5)), Bytes(burst));
        }
    }
}
