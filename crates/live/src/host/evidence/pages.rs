//! The kept samples by page: how much memory takes a share of the accesses, and how sure that is.

/// Groups of samples for the jackknife: stretches of the run.
pub(crate) const GROUPS: usize = 8;
/// Student's 97.5 % quantile for so many.
const QUANTILE: f64 = 2.365;

/// The samples of one page, in accesses: those at even and at odd places of the log, and in each stretch of
/// the run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct PageSamples {
    pub(crate) page: u32,
    pub(crate) halves: [f64; 2],
    pub(crate) groups: [f64; GROUPS],
}

impl PageSamples {
    pub(super) fn add(&mut self, at: usize, group: usize, accesses: f64) {
        self.halves[at % 2] += accesses;
        self.groups[group.min(GROUPS - 1)] += accesses;
    }

    pub(crate) fn all(&self) -> f64 {
        self.halves[0] + self.halves[1]
    }

    /// Returns the accesses without those of one stretch, scaled up for it.
    pub(crate) fn without(&self, group: usize) -> f64 {
        (self.all() - self.groups[group]) * GROUPS as f64 / (GROUPS - 1) as f64
    }
}

/// Returns the pages that take a share of the accesses: the fewest and the most that it may be. The fewest
/// are those with most samples, by the same samples: too few, since luck looks like heat. The most are those
/// with most of one half of the samples, by the other half, the mean of both ways: too many, since luck
/// misleads the order. Accesses to pages without a sample in the half that orders lie evenly on all others of
/// `mapped`.
pub(crate) fn for_share(pages: &[PageSamples], mapped: usize, share: f64) -> Option<(f64, f64)> {
    let fewest = ordered(pages, mapped, share, PageSamples::all, PageSamples::all)?;
    let half = |by: usize, of: usize| {
        ordered(pages, mapped, share, move |page| page.halves[by], move |page| page.halves[of])
    };
    let most = (half(0, 1)? + half(1, 0)?) / 2.0;
    Some((fewest, most.max(fewest)))
}

fn ordered(
    pages: &[PageSamples],
    mapped: usize,
    share: f64,
    by: impl Fn(&PageSamples) -> f64,
    of: impl Fn(&PageSamples) -> f64,
) -> Option<f64> {
    let mut order: Vec<(f64, f64)> =
        pages.iter().map(|page| (by(page), of(page))).filter(|&(by, _)| by > 0.0).collect();
    order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let all: f64 = pages.iter().map(&of).sum();
    let wanted = share * all;
    let (mut taken, mut count) = (0.0, 0.0);
    // Pages of equal order take their mean: which of them comes first is chance.
    for equal in order.chunk_by(|one, next| one.0 == next.0) {
        let sum: f64 = equal.iter().map(|page| page.1).sum();
        if taken + sum >= wanted && sum > 0.0 {
            return Some(count + equal.len() as f64 * (wanted - taken) / sum);
        }
        (taken, count) = (taken + sum, count + equal.len() as f64);
    }
    let others = (mapped as f64 - count).max(0.0);
    (all > taken).then(|| count + others * (wanted - taken) / (all - taken))
}

/// Returns the error of a figure by the jackknife, from the figures without each stretch of the run.
pub(crate) fn jackknife(without: &[f64; GROUPS]) -> f64 {
    let count = GROUPS as f64;
    let mean = without.iter().sum::<f64>() / count;
    let squares: f64 = without.iter().map(|figure| (figure - mean).powi(2)).sum();
    QUANTILE * ((count - 1.0) / count * squares).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(page: u32, halves: [f64; 2]) -> PageSamples {
        PageSamples { page, halves, groups: [0.0; GROUPS] }
    }

    #[test]
    fn memory_for_a_share_lies_between_luck_for_and_luck_against() {
        // A hundred pages, all alike, of which some have a sample in one half or the other.
        let lucky: Vec<PageSamples> =
            (0..40).map(|at| page(at, if at % 2 == 0 { [1.0, 0.0] } else { [0.0, 1.0] })).collect();
        let (fewest, most) = for_share(&lucky, 100, 0.9).expect("samples");
        assert_eq!(fewest, 36.0, "by the samples themselves, nine tenths of those with one");
        assert!((most - 92.0).abs() < 1e-9, "by the other half, nine tenths of the rest: {most}");
        // Ten pages that take all, as both halves see.
        let hot: Vec<PageSamples> = (0..10).map(|at| page(at, [50.0, 50.0])).collect();
        assert_eq!(for_share(&hot, 100, 0.9), Some((9.0, 9.0)));
        assert_eq!(for_share(&[], 100, 0.9), None);
    }

    #[test]
    fn the_jackknife_finds_the_error_of_a_mean() {
        let values = [1.0, 3.0, 2.0, 5.0, 4.0, 2.0, 3.0, 4.0];
        let sum: f64 = values.iter().sum();
        let error = jackknife(&values.map(|value| (sum - value) / 7.0)) / QUANTILE;
        let mean = sum / 8.0;
        let expected = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 7.0 / 8.0).sqrt();
        assert!((error - expected).abs() < 1e-12, "{error} {expected}");
    }
}
