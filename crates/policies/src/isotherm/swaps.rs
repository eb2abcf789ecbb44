//! Which pages to exchange: the slow ones with the highest rates against the fast ones with the lowest.

use super::rates::Rate;

/// Bins of an octave of rates.
const PER_OCTAVE: f64 = 4.0;
/// The lowest bin ends at `2^-LOWEST`.
const LOWEST: f64 = 6.0;
const BINS: usize = 80;
/// Standard errors by which a rate must be safe.
const CAUTION: f64 = 1.0;

/// Counts of pages by what their rates are at least (slow pages) or at most (fast pages).
#[derive(Debug)]
pub(crate) struct Swaps {
    slow: [u32; BINS],
    fast: [u32; BINS],
}

/// How many pages of which bins move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cut {
    /// Slow pages above this bin go up, and so many of it.
    up: (usize, u32),
    /// Fast pages below this bin go down, and so many of it.
    down: (usize, u32),
    /// Pages that go up.
    pub(crate) promoted: u32,
    /// Samples that they will have more than those that go down.
    pub(crate) gain: f64,
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

fn bin_of(rate: Rate, fast: bool) -> usize {
    let error = CAUTION * rate.variance.sqrt();
    bin(if fast { rate.mean + error } else { rate.mean - error })
}

impl Swaps {
    pub(crate) fn new() -> Self {
        Self { slow: [0; BINS], fast: [0; BINS] }
    }

    #[inline]
    pub(crate) fn add(&mut self, rate: Rate, fast: bool) {
        let bins = if fast { &mut self.fast } else { &mut self.slow };
        bins[bin_of(rate, fast)] += 1;
    }

    /// Pairs the highest slow pages with free room, then with the lowest fast ones, as long as a pair is more
    /// than `margin` samples apart, at most `most` of them.
    pub(crate) fn cut(&self, free: u32, margin: f64, most: u32) -> Cut {
        let mut cut = Cut { up: (BINS, 0), down: (0, 0), promoted: 0, gain: 0.0 };
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
                if least <= margin {
                    break;
                }
                (room, slow) = (room - pages, slow - pages);
                cut.promoted += pages;
                cut.gain += least * f64::from(pages);
                cut.up = (up, self.slow[up] - slow);
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
            cut.gain += difference * f64::from(pages);
            cut.up = (up, self.slow[up] - slow);
            cut.down = (down, self.fast[down] - fast);
        }
        cut
    }
}

impl Cut {
    /// Returns whether the page moves. Ask each page once.
    #[inline]
    pub(crate) fn takes(&mut self, rate: Rate, fast: bool) -> bool {
        let bin = bin_of(rate, fast);
        let (edge, left) = if fast { &mut self.down } else { &mut self.up };
        if bin != *edge {
            return if fast { bin < *edge } else { bin > *edge };
        }
        let taken = *left > 0;
        *left -= u32::from(taken);
        taken
    }
}
