//! Finds the hot pages: those whose number of samples the higher of two rates explains better.
//!
//! Samples of a page that is accessed at a steady rate are a Poisson variable. Expectation maximisation on
//! the histogram of counts fits two such rates and a share of pages for each; a page is hot if its count
//! makes the higher rate the likelier one. The border therefore lies above counts that chance alone reaches,
//! and there is none if all pages share one rate.
//!
//! The few hottest pages can take most of all samples (the index of a large array, a stack), so that all
//! others look cold beside them. A count therefore tells no more than [`FAR`] times the mean of the other
//! pages.

use std::collections::BTreeMap;

/// Rounds of the fit, which converges in fewer.
const ROUNDS: usize = 60;
/// Least ratio of two distinct rates.
const APART: f64 = 3.0;
/// One page of so many is among the hottest, which do not set the scale; and the largest count on that scale.
const HOTTEST: f64 = 256.0;
const FAR: f64 = 32.0;
/// Least number of samples of a hot page.
const MIN: u32 = 2;

/// Returns the least samples of a hot page; `None` if pages do not fall into two groups.
pub(super) fn border(counts: impl Iterator<Item = u32>) -> Option<u32> {
    let mut histogram: BTreeMap<u32, f64> = BTreeMap::new();
    counts.for_each(|count| *histogram.entry(count).or_default() += 1.0);
    let mut bins: Vec<(f64, f64)> =
        histogram.iter().map(|(&count, &pages)| (f64::from(count), pages)).collect();
    let most = FAR * (mean(&but_hottest(&bins))? + 1.0);
    bins.iter_mut().for_each(|bin| bin.0 = bin.0.min(most));
    let mean = mean(&bins)?;
    // Start from the pages below and above the mean.
    let mut hot = |count: f64| f64::from(u8::from(count > mean));
    let mut fit = Fit::of(&bins, &mut hot)?;
    for _ in 0..ROUNDS {
        fit = Fit::of(&bins, &mut |count| fit.share_of_hot(count))?;
    }
    (fit.high > APART * fit.low).then(|| (fit.border().ceil().max(0.0) as u32).max(MIN))
}

/// Samples per page of each group, and hot pages per cold page.
#[derive(Clone, Copy)]
struct Fit {
    high: f64,
    low: f64,
    odds: f64,
}

impl Fit {
    fn of(bins: &[(f64, f64)], hot: &mut dyn FnMut(f64) -> f64) -> Option<Self> {
        let weights: Vec<f64> = bins.iter().map(|&(count, _)| hot(count)).collect();
        let sum = |hot: bool| {
            bins.iter().zip(&weights).fold((0.0, 0.0), |(pages, samples), (&(count, number), &weight)| {
                let weight = if hot { weight } else { 1.0 - weight } * number;
                (pages + weight, samples + weight * count)
            })
        };
        let ((hot_pages, hot_samples), (cold_pages, cold_samples)) = (sum(true), sum(false));
        let known = hot_pages > 0.0 && cold_pages > 0.0 && hot_samples > 0.0;
        known.then(|| Self {
            high: hot_samples / hot_pages,
            low: (cold_samples / cold_pages).max(1e-6),
            odds: hot_pages / cold_pages,
        })
    }

    fn share_of_hot(&self, count: f64) -> f64 {
        let log_odds = self.odds.ln() + count * (self.high / self.low).ln() - (self.high - self.low);
        1.0 / (1.0 + (-log_odds).exp())
    }

    /// Returns the count at which both groups are equally likely.
    fn border(&self) -> f64 {
        (self.high - self.low - self.odds.ln()) / (self.high / self.low).ln()
    }
}

/// Returns the bins, in the order of counts, without the hottest pages.
fn but_hottest(bins: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out = (bins.iter().map(|bin| bin.1).sum::<f64>() / HOTTEST).ceil();
    let mut others = bins.to_vec();
    for bin in others.iter_mut().rev() {
        let gone = bin.1.min(out);
        (bin.1, out) = (bin.1 - gone, out - gone);
    }
    others
}

fn mean(bins: &[(f64, f64)]) -> Option<f64> {
    let pages: f64 = bins.iter().map(|&(_, pages)| pages).sum();
    let samples: f64 = bins.iter().map(|&(count, pages)| count * pages).sum();
    (pages > 0.0).then_some(samples / pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the counts of `pages` pages sampled at a Poisson rate.
    fn poisson(rate: f64, pages: f64) -> Vec<u32> {
        let mut probability = (-rate).exp();
        (0..60)
            .flat_map(|count| {
                if count > 0 {
                    probability *= rate / f64::from(count);
                }
                vec![count; (probability * pages).round() as usize]
            })
            .collect()
    }

    #[test]
    fn a_tenth_of_pages_with_nine_tenths_of_the_samples_is_found() {
        for rate in [4.0, 6.0, 20.0] {
            let (hot, cold) = (poisson(rate, 1600.0), poisson(rate / 81.0, 14_400.0));
            let border = border(hot.iter().chain(&cold).copied()).expect("two rates");
            let missed = hot.iter().filter(|&&count| count < border).count() as f64 / hot.len() as f64;
            let found = (hot.len() as f64) * (1.0 - missed);
            let false_ones = cold.iter().filter(|&&count| count >= border).count() as f64;
            assert!(missed < 0.1 && false_ones / found < 0.05, "{rate}: {border}, {missed}, {false_ones}");
            assert!(rate < 6.0 || missed < 0.05, "{rate}: {missed}");
        }
    }

    #[test]
    fn two_pages_with_most_of_the_samples_do_not_hide_the_hot_set() {
        let (hot, cold) = (poisson(30.0, 819.0), poisson(0.4, 7373.0));
        let index = [75_792; 2];
        let border = border(index.iter().chain(&hot).chain(&cold).copied()).expect("two rates");
        assert!((3..16).contains(&border), "{border}");
    }

    #[test]
    fn equal_pages_and_pages_never_sampled_have_no_hot_set() {
        assert_eq!(border(poisson(5.0, 10_000.0).into_iter()), None);
        assert_eq!(border(std::iter::repeat_n(0, 100)), None);
        assert_eq!(border(std::iter::empty()), None);
    }
}
