//! Soar: objects are ranked by a profile run and placed when they are allocated; nothing moves afterwards.
//!
//! # Paper
//! Liu et al., "Tiered Memory Management Beyond Hotness", OSDI 2025; PACT compares it in section 5.4. Here
//! are its scores and its ranking; the simulator does the profile run and the placement.
//!
//! - In each interval of the profile run (all memory fast) stalls of loads give a predicted slowdown, `stalls
//!   x K`, with `K = 1 / (a + b / AOL)` and AOL, amortised off-core latency, the time with a load in flight
//!   over the loads.
//! - Each object has a part of it by its part of the loads. Where AOL is below a limit, an object with most
//!   of the loads has its part divided by a factor (its loads overlap), and one with few multiplied.
//! - Objects are placed by score per page as long as there is room. The one that does not fit spills: its
//!   first pages are fast, the rest is slow. Soar binds an object to a node with Linux' preferred policy,
//!   which falls back to the next node once the first is full (PACT, section 5.4: "cannot be fully placed in
//!   DRAM").
//!
//! # Deviations
//! - Loads are counted, not sampled: a profile without noise.
//! - The factor is the limit over the AOL, in whole steps up to 8: the paper gives its ends, not its steps.
//! - An object is all that a workload allocates under one name; in a trace without names, a run of pages.

/// Of the published fit on Skylake: `K = 1 / (A + B / AOL)`, AOL in cycles.
const A: f64 = 0.87;
const B: f64 = 24.67;
/// AOL in cycles above which loads count as serial: the middle of the range in which it does not matter.
const SERIAL: f64 = 85.0;
/// The most by which a part is divided or multiplied.
const MAX_FACTOR: f64 = 8.0;
/// Parts of the loads above which an object has most and below which few: the middle of their ranges.
const MAX: f64 = 0.7;
const FEW: f64 = 0.03;

/// One interval of the profile run.
#[derive(Debug, Clone, Copy)]
pub struct ProfileInterval {
    /// Stalls of loads, in nanoseconds.
    pub stall: f64,
    /// Amortised off-core latency, in cycles.
    pub amortised: f64,
}

impl ProfileInterval {
    /// Returns the score of an object with this part of the interval's loads.
    pub fn score(&self, part: f64) -> f64 {
        if self.amortised <= 0.0 {
            return 0.0;
        }
        let slowdown = self.stall / (A + B / self.amortised);
        let factor = (SERIAL / self.amortised).floor().clamp(1.0, MAX_FACTOR);
        let own = slowdown * part;
        match () {
            () if part >= MAX => own / factor,
            () if part <= FEW => own * factor,
            () => own,
        }
    }
}

/// Returns how many pages of each object, given as pages and score, are placed in `room` pages: those of the
/// highest score per page first, until the room is used up.
pub fn place(objects: &[(u64, f64)], room: u64) -> Vec<u64> {
    let mut order: Vec<usize> = (0..objects.len()).collect();
    let density = |&(pages, score): &(u64, f64)| score / pages.max(1) as f64;
    order.sort_by(|&one, &other| density(&objects[other]).total_cmp(&density(&objects[one])));
    let (mut left, mut fast) = (room, vec![0; objects.len()]);
    for object in order {
        fast[object] = objects[object].0.min(left);
        left -= fast[object];
    }
    fast
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_placed_by_score_a_page() {
        let objects = [(10, 100.0), (90, 450.0), (5, 10.0)];
        assert_eq!(place(&objects, 100), [10, 90, 0]);
        assert_eq!(place(&objects, 200), [10, 90, 5]);
    }

    #[test]
    fn an_object_that_does_not_fit_spills_and_leaves_no_room_free() {
        assert_eq!(place(&[(10, 100.0), (90, 450.0), (5, 10.0)], 50), [10, 40, 0]);
        assert_eq!(place(&[(10, 100.0)], 9), [9]);
    }

    #[test]
    fn where_loads_overlap_the_frequent_object_is_worth_less_and_the_rare_one_more() {
        let interval = |amortised| ProfileInterval { stall: 1000.0, amortised };
        let (serial, streamed) = (interval(200.0), interval(20.0));
        let even = |interval: &ProfileInterval| 1000.0 / (0.87 + 24.67 / interval.amortised);
        assert_eq!(serial.score(0.8), even(&serial) * 0.8);
        assert_eq!(serial.score(0.01), even(&serial) * 0.01);
        assert_eq!(streamed.score(0.8), even(&streamed) * 0.8 / 4.0);
        assert_eq!(streamed.score(0.01), even(&streamed) * 0.01 * 4.0);
        assert_eq!(streamed.score(0.3), even(&streamed) * 0.3);
        assert_eq!(interval(1.0).score(0.01), even(&interval(1.0)) * 0.01 * 8.0, "no factor above 8");
    }
}
