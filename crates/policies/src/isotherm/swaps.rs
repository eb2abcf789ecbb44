//! Which pages to exchange: the slow ones with the highest rates against the fast ones with the lowest.

use super::rates::Rate;

/// Bins of an octave of rates.
const PER_OCTAVE: f64 = 4.0;
/// The lowest bin ends at `2^-LOWEST`.
const LOWEST: f64 = 6.0;
const BINS: usize = 80;
/// Standard errors by which a rate must be safe.
pub(crate) const CAUTION: f64 = 1.0;

/// Counts of pages by what their rates are at least (slow pages) or at most (fast pages).
#[derive(Debug)]
pub(crate) struct Swaps {
    slow: [u32; BINS],
    fast: [u32; BINS],
}

/// How many pages of which bins move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cut {
    /// Slow pages above this bin go up, and some of it.
    up: Edge,
    /// Fast pages below this bin go down, and some of it.
    down: Edge,
    /// Pages that go up.
    pub(crate) promoted: u32,
    /// Swaps to which the moves come: a page that takes free room is half of one.
    pub(crate) swaps: f64,
    /// Samples that they will have more than those that go down.
    pub(crate) gain: f64,
}

/// A bin of which so many pages move, spread evenly over the addresses: neighbours are often one thread's,
/// and a program waits for its slowest thread.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Edge {
    bin: usize,
    taken: u32,
    of: u32,
    due: u32,
}

impl Edge {
    fn new(bin: usize, taken: u32, of: u32) -> Self {
        Self { bin, taken, of, due: of / 2 }
    }

    /// Returns whether the bin's next page is among those taken.
    fn takes_next(&mut self) -> bool {
        self.due += self.taken;
        let taken = self.due >= self.of;
        self.due -= if taken { self.of } else { 0 };
        taken
    }
}

fn bin(value: f64) -> usize {
    if value <= 0.0 {
        return 0;
    }
    ((value.log2() + LOWEST) * PER_OCTAVE).clamp(0.0, (BINS - 1) as f64) as usize
}

/// Returns the rate at which a bin begins.
fn edge(bin: usize) -> f64 {
    if bin == 0 { 0.0 } else { (bin as f64 / PER_OCTAVE - LOWEST).exp2() }
}

/// Returns the bin of a page by what its rate is at least (a slow page) or at most (a fast one), by so many
/// standard errors.
pub(crate) fn bin_of(rate: Rate, fast: bool, caution: f64) -> usize {
    let error = caution * rate.variance.sqrt();
    bin(if fast { rate.mean + error } else { rate.mean - error })
}

impl Swaps {
    pub(crate) fn new() -> Self {
        Self { slow: [0; BINS], fast: [0; BINS] }
    }

    #[inline]
    pub(crate) fn add(&mut self, bin: usize, fast: bool) {
        let bins = if fast { &mut self.fast } else { &mut self.slow };
        bins[bin] += 1;
    }

    /// Pairs the highest slow pages with free room, then with the lowest fast ones, as long as a pair is more
    /// than `margin` samples apart, at most `most` of them. In free room a page needs half of the moves, so
    /// half of the margin.
    pub(crate) fn cut(&self, free: u32, margin: f64, most: u32) -> Cut {
        let down = Edge::new(0, 0, self.fast[0]);
        let mut cut = Cut { up: Edge::new(BINS, 0, 0), down, promoted: 0, swaps: 0.0, gain: 0.0 };
        let (mut up, mut down, mut room) = (BINS - 1, 0, free);
        let (mut slow, mut fast) = (self.slow[up], self.fast[0]);
        while cut.promoted < most {
            if slow == 0 {
                if up == 0 {
                    break;
                }
                up -= 1;
                slow = self.slow[up];
                continue;
            }
            let least = edge(up);
            if room > 0 {
                let pages = room.min(slow).min(most - cut.promoted);
                if least <= margin / 2.0 {
                    break;
                }
                (room, slow) = (room - pages, slow - pages);
                cut.promoted += pages;
                cut.swaps += f64::from(pages) / 2.0;
                cut.gain += least * f64::from(pages);
                cut.up = Edge::new(up, self.slow[up] - slow, self.slow[up]);
                continue;
            }
            if fast == 0 {
                if down + 1 >= up {
                    break;
                }
                down += 1;
                fast = self.fast[down];
                continue;
            }
            let difference = least - edge(down + 1);
            if difference <= margin {
                break;
            }
            let pages = slow.min(fast).min(most - cut.promoted);
            (slow, fast) = (slow - pages, fast - pages);
            cut.promoted += pages;
            cut.swaps += f64::from(pages);
            cut.gain += difference * f64::from(pages);
            cut.up = Edge::new(up, self.slow[up] - slow, self.slow[up]);
            cut.down = Edge::new(down, self.fast[down] - fast, self.fast[down]);
        }
        cut
    }
}

impl Cut {
    /// Returns whether a page of the bin moves. Ask for each page once.
    #[inline]
    pub(crate) fn takes(&mut self, bin: usize, fast: bool) -> bool {
        let edge = if fast { &mut self.down } else { &mut self.up };
        if bin != edge.bin {
            return if fast { bin < edge.bin } else { bin > edge.bin };
        }
        edge.takes_next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(mean: f64) -> Rate {
        Rate { mean, variance: 0.0 }
    }

    /// Bins pages of these rates; returns the cut and the rates of the pages that it takes.
    fn cut(slow: &[f64], fast: &[f64], free: u32, margin: f64, most: u32) -> (Cut, Vec<f64>, Vec<f64>) {
        let mut swaps = Swaps::new();
        slow.iter().for_each(|&mean| swaps.add(bin_of(rate(mean), false, 1.0), false));
        fast.iter().for_each(|&mean| swaps.add(bin_of(rate(mean), true, 1.0), true));
        let cut = swaps.cut(free, margin, most);
        let mut left = cut;
        let mut taken = |means: &[f64], fast| {
            means
                .iter()
                .copied()
                .filter(|&mean| left.takes(bin_of(rate(mean), fast, 1.0), fast))
                .collect::<Vec<_>>()
        };
        let (up, down) = (taken(slow, false), taken(fast, true));
        (cut, up, down)
    }

    #[test]
    fn the_highest_slow_pages_are_exchanged_for_the_lowest_fast_ones() {
        let (found, up, down) = cut(&[1.0, 50.0, 9.0, 100.0], &[60.0, 0.0, 4.0], 0, 1.0, 10);
        // 100 for 0, 50 for 4; 9 is less than 60.
        assert_eq!((found.promoted, up, down), (2, vec![50.0, 100.0], vec![0.0, 4.0]));
    }

    #[test]
    fn no_pair_moves_below_the_margin_and_no_more_than_afforded() {
        let (found, up, down) = cut(&[10.0, 10.0], &[5.0, 5.0], 0, 8.0, 10);
        assert_eq!((found.promoted, up.len(), down.len()), (0, 0, 0));
        let (found, up, down) = cut(&[10.0, 10.0], &[1.0, 1.0], 0, 2.0, 1);
        assert_eq!((found.promoted, up.len(), down.len()), (1, 1, 1));
    }

    #[test]
    fn of_the_last_bin_pages_are_taken_evenly() {
        let mut edge = Edge::new(3, 3, 12);
        let taken: Vec<usize> = (0..12).filter(|_| edge.takes_next()).collect();
        assert_eq!(taken, [1, 5, 9]);
        let mut all = Edge::new(3, 5, 5);
        assert!((0..5).all(|_| all.takes_next()));
    }

    #[test]
    fn free_room_is_filled_first() {
        let (found, up, down) = cut(&[10.0, 20.0, 30.0], &[1.0], 2, 1.0, 10);
        assert_eq!((found.promoted, up.len(), down.len()), (3, 3, 1));
    }

    #[test]
    fn a_page_that_takes_free_room_must_save_half_of_what_a_swap_must() {
        let (found, up, down) = cut(&[10.0, 10.0, 10.0], &[0.0], 2, 15.0, 10);
        assert_eq!((found.promoted, found.swaps, up.len(), down.len()), (2, 1.0, 2, 0));
        assert_eq!(cut(&[10.0], &[0.0], 1, 25.0, 10).0.promoted, 0);
    }

    #[test]
    fn what_is_uncertain_counts_less_for_a_slow_page_and_more_for_a_fast_one() {
        let doubtful = Rate { mean: 9.0, variance: 64.0 };
        assert!(bin_of(doubtful, false, 1.0) < bin_of(rate(9.0), false, 1.0));
        assert!(bin_of(doubtful, true, 1.0) > bin_of(rate(9.0), true, 1.0));
    }
}
