//! Each tier's misses over modelled time, in a bounded number of points.

use serde::Serialize;

/// Maximum number of points; the next one halves them.
const MAX: usize = 1024;
/// Modelled nanoseconds between the first points.
const FIRST_INTERVAL: u64 = 100_000;

/// Cumulative misses at points in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct History {
    /// Nanoseconds between points, at least.
    interval_ns: u64,
    /// Modelled time in nanoseconds, and the misses of each tier since the phase began.
    points: Vec<(u64, Vec<u64>)>,
}

impl Default for History {
    fn default() -> Self {
        Self { interval_ns: FIRST_INTERVAL, points: Vec::new() }
    }
}

impl History {
    #[inline]
    pub(crate) fn is_due(&self, time: u64) -> bool {
        self.points.last().map_or(0, |(last, _)| *last) + self.interval_ns <= time
    }

    /// Adds a point; times ascend.
    pub(crate) fn add(&mut self, time: u64, misses: Vec<u64>) {
        if self.points.len() == MAX {
            let mut keep = true;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.interval_ns *= 2;
        }
        self.points.push((time, misses));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_thin_out_and_cover_the_whole_time() {
        let mut history = History::default();
        let end = 5_000 * FIRST_INTERVAL;
        for time in (0..=end).step_by(1000).filter(|time| time % 3 != 1) {
            if history.is_due(time) {
                history.add(time, vec![time, 2 * time]);
            }
        }
        let points = &history.points;
        assert!((MAX / 2..=MAX).contains(&points.len()), "{}", points.len());
        assert_eq!(history.interval_ns, 8 * FIRST_INTERVAL);
        // Each of eight gaps that became one may be late by up to two steps of this test.
        let longest = history.interval_ns + 8 * 2000;
        assert!(points.is_sorted() && points[0].0 <= longest);
        assert!(points.windows(2).all(|pair| pair[1].0 - pair[0].0 <= longest));
        assert!(end - points[points.len() - 1].0 <= longest);
    }
}
