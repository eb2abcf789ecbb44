//! A ratio of accesses with an interval that covers other runs of the same program.
//!
//! Samples of one moment resemble each other: they come from the same windows, under the same placement. So
//! the interval does not count samples. It compares each stretch of the run with the next one (mean square
//! successive difference, von Neumann 1941, with the ratio's linearised error, the delta method), in
//! stretches of three lengths, and takes the length that shows the largest error. A steady rise, as of a
//! placement that a policy learns, is in all runs. Runs differ in when it comes: by an eighth of their length
//! ([`SHIFT`]), times what the ratio rises from the first quarter to the last. Two errors are added that all
//! stretches share or none shows: that of the rates of pages that windows saturate, and that of few samples
//! (Wilson's interval for as many samples as their unequal weights are worth, and of samples that rest on the
//! same look at a region for one).

use isotherm_core::live_result::Estimate;

/// Stretches of a run that are compared, and Student's 97.5 % quantile for each number of them: successive
/// differences have two thirds of their degrees of freedom.
const STRETCHES: [(usize, f64); 3] = [(32, 2.080), (16, 2.228), (8, 2.571)];
/// Part of a run by which another one may learn earlier or later.
const SHIFT: f64 = 1.0 / 8.0;
const FINEST: usize = STRETCHES[0].0;
/// The normal distribution's 97.5 % quantile.
const NORMAL: f64 = 1.96;

/// A kept sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Observation {
    /// The time for which it stands, the same twice for a moment.
    pub(crate) span: (f64, f64),
    /// Part of a sample that it is.
    pub(crate) part: f64,
    /// Samples that are worth one observation together with it, at least 1: the design effect of clusters
    /// (Kish 1965).
    pub(crate) alike: f64,
    pub(crate) page: u32,
    /// Accesses that it stands for.
    pub(crate) weight: f64,
    pub(crate) value: f64,
    /// Relative variance of the weight, the same for all samples of the page.
    pub(crate) variance: f64,
    /// Relative variance that the weight shares with all others that have one.
    pub(crate) shared: f64,
}

impl Observation {
    /// Returns the part of it between two times, if any.
    pub(super) fn within(self, from: f64, to: f64) -> Option<Self> {
        let span = (self.span.0.max(from), self.span.1.min(to));
        if self.span.0 == self.span.1 {
            return (from <= span.0 && span.1 <= to).then_some(self);
        }
        let share = (span.1 - span.0) / (self.span.1 - self.span.0);
        (share > 0.0).then_some(Self { span, part: self.part * share, weight: self.weight * share, ..self })
    }
}

/// Accesses in a stretch of the run, and the sum of their values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Block {
    pub(crate) values: f64,
    pub(crate) accesses: f64,
}

impl Block {
    fn add(&mut self, other: Self) {
        self.values += other.values;
        self.accesses += other.accesses;
    }
}

/// Estimates the mean value per access of observations between two times; `None` without any.
pub(super) fn of_observations(observations: &[Observation], from: f64, to: f64) -> Option<Estimate> {
    let mut blocks = [Block::default(); FINEST];
    let length = ((to - from) / FINEST as f64).max(f64::MIN_POSITIVE);
    let mut squares = 0.0;
    for seen in observations {
        let place = |time: f64| ((time - from) / length).clamp(0.0, FINEST as f64);
        let (start, end) = (place(seen.span.0), place(seen.span.1));
        let (first, last) = ((start as usize).min(FINEST - 1), (end as usize).min(FINEST - 1));
        for (at, block) in blocks.iter_mut().enumerate().take(last + 1).skip(first) {
            let inside = end.min(at as f64 + 1.0) - start.max(at as f64);
            let share = if end > start { inside / (end - start) } else { 1.0 };
            block.add(Block { values: seen.weight * seen.value * share, accesses: seen.weight * share });
        }
        squares += seen.weight * seen.weight / seen.part * seen.alike;
    }
    let all = total(&blocks);
    let mean = (all.accesses > 0.0).then(|| all.values / all.accesses)?;
    let shared = of_rates(observations, mean) / (all.accesses * all.accesses);
    Some(estimate(&blocks, shared, all.accesses * all.accesses / squares))
}

/// Returns the variance of the sum of deviations from the mean that the pages' rates cause.
fn of_rates(observations: &[Observation], mean: f64) -> f64 {
    let mut pages: Vec<(u32, f64, f64)> = observations
        .iter()
        .filter(|seen| seen.variance > 0.0)
        .map(|seen| (seen.page, seen.weight * (seen.value - mean), seen.variance))
        .collect();
    pages.sort_unstable_by_key(|&(page, ..)| page);
    let of_pages: f64 = pages
        .chunk_by(|one, next| one.0 == next.0)
        .map(|samples| samples.iter().map(|sample| sample.1).sum::<f64>().powi(2) * samples[0].2)
        .sum();
    let shared = observations.iter().filter(|seen| seen.shared > 0.0);
    let all: f64 = shared.map(|seen| seen.weight * (seen.value - mean) * seen.shared.sqrt()).sum();
    of_pages + all * all
}

/// Estimates a ratio from the stretches of a run in order; values are from 0 to 1. `shared`: variance that
/// all stretches have in common; `samples`: how many samples of equal weight tell as much.
pub(crate) fn estimate(blocks: &[Block], shared: f64, samples: f64) -> Estimate {
    let all = total(blocks);
    let value = all.values / all.accesses;
    let mut error: f64 = 0.0;
    for (count, quantile) in STRETCHES {
        let merged = blocks.len().div_ceil(count);
        let stretches: Vec<Block> = blocks.chunks(merged.max(1)).map(total).collect();
        let count = stretches.len() as f64;
        if count < 2.0 {
            continue;
        }
        let deviation = |block: &Block| block.values - value * block.accesses;
        let differences = stretches.windows(2).map(|two| (deviation(&two[1]) - deviation(&two[0])).powi(2));
        let variance = differences.sum::<f64>() / 2.0 * count / (count - 1.0);
        error = error.max(quantile * (variance / (all.accesses * all.accesses) + shared).sqrt());
    }
    let error = error.hypot(SHIFT * rise(blocks));
    let (low, high) = few(value, samples);
    Estimate { value, low: (value - error).min(low).max(0.0), high: (value + error).max(high).min(1.0) }
}

/// Returns how far the ratio of the last quarter is from that of the first.
fn rise(blocks: &[Block]) -> f64 {
    let quarter = blocks.len().div_ceil(4).min(blocks.len());
    let of = |blocks: &[Block]| {
        let sum = total(blocks);
        (sum.accesses > 0.0).then(|| sum.values / sum.accesses)
    };
    match (of(&blocks[..quarter]), of(&blocks[blocks.len() - quarter..])) {
        (Some(first), Some(last)) => last - first,
        _ => 0.0,
    }
}

/// Returns Wilson's interval of a share.
fn few(share: f64, samples: f64) -> (f64, f64) {
    let z = NORMAL * NORMAL / samples;
    let middle = (share + z / 2.0) / (1.0 + z);
    let half = (z * share * (1.0 - share) + z * z / 4.0).sqrt() / (1.0 + z);
    (middle - half, middle + half)
}

fn total(blocks: &[Block]) -> Block {
    let mut sum = Block::default();
    blocks.iter().for_each(|&block| sum.add(block));
    sum
}
