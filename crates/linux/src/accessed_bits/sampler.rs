//! Turns accessed pages into samples, up to the allowed rate.

use std::ops::Range;

use isotherm_core::{Nanos, Operation, SamplingRate};

use super::Heat;
use super::pagemap::PAGE;
use crate::process::Pid;
use crate::source::{Access, Cause};

#[derive(Debug)]
pub(super) struct Sampler {
    pub(super) rate: SamplingRate,
    max: u64,
    /// State of the sequence of starting points.
    turn: u64,
}

impl Sampler {
    pub(super) fn new(max: u64) -> Self {
        Self { rate: SamplingRate::Period(1), max: max.max(1), turn: 0 }
    }

    /// Appends accesses whose weights sum to about the number of pages, each times its range's heat (1 if
    /// there is no heat), and exactly on average over scans.
    pub(super) fn sample(
        &mut self,
        (process, time, elapsed): (Pid, Nanos, Nanos),
        pages: &[Range<u64>],
        heat: &[Heat],
        accesses: &mut Vec<Access>,
    ) {
        let heat = |index: usize| heat.get(index).copied().unwrap_or(Heat::SEEN);
        let count = |index: usize, range: &Range<u64>| {
            (range.end - range.start) / PAGE * u64::from(heat(index).accesses)
        };
        let counts = pages.iter().enumerate().map(|(index, range)| count(index, range));
        let total: u64 = counts.sum();
        let Some(step) = self.step(total, elapsed) else { return };
        // Multiples of the golden ratio's fraction spread starting points evenly, so that no page is always
        // skipped.
        self.turn = self.turn.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut skip = ((u128::from(self.turn) * u128::from(step)) >> 64) as u64;
        for (index, range) in pages.iter().enumerate() {
            let (heat, count) = (heat(index), count(index, range));
            // Of a look at one page, those delivered for all the pages that it speaks for.
            let alike = u16::try_from(heat.pages.div_ceil(step)).unwrap_or(u16::MAX);
            while skip < count {
                accesses.push(Access {
                    time,
                    process,
                    address: range.start + skip / u64::from(heat.accesses) * PAGE,
                    weight: u32::try_from(step).unwrap_or(u32::MAX),
                    latency: 0,
                    tier: None,
                    operation: Operation::Load,
                    cause: if alike > 1 { Cause::Region { alike } } else { Cause::Sampled },
                });
                skip += step;
            }
            skip -= count;
        }
    }

    /// Returns how many pages stand behind each delivered one.
    fn step(&self, total: u64, elapsed: Nanos) -> Option<u64> {
        let max = match self.rate {
            SamplingRate::Off => return None,
            SamplingRate::Period(_) => self.max,
            SamplingRate::Frequency(rate) => {
                let wanted = u128::from(rate) * u128::from(elapsed.0) / u128::from(Nanos::SECOND.0);
                self.max.min(u64::try_from(wanted).unwrap_or(u64::MAX)).max(1)
            }
        };
        Some(total.div_ceil(max).max(1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(sampler: &mut Sampler, pages: &[Range<u64>], elapsed: Nanos) -> Vec<Access> {
        let mut accesses = Vec::new();
        sampler.sample((Pid(7), Nanos(9), elapsed), pages, &[], &mut accesses);
        accesses
    }

    fn ranges(runs: &[(u64, u64)]) -> Vec<Range<u64>> {
        let mut start = 0;
        runs.iter()
            .map(|&(gap, length)| {
                let range = (start + gap) * PAGE..(start + gap + length) * PAGE;
                start += gap + length;
                range
            })
            .collect()
    }

    proptest! {
        #[test]
        fn weights_stand_for_all_pages(
            runs in proptest::collection::vec((1u64..5, 1u64..200), 1..20),
            most in 1u64..300,
        ) {
            let pages = ranges(&runs);
            let total: u64 = runs.iter().map(|run| run.1).sum();
            let mut sampler = Sampler::new(most);
            let mut weights = 0;
            let scans = 200;
            for _ in 0..scans {
                let accesses = sample(&mut sampler, &pages, Nanos::SECOND);
                prop_assert!(accesses.len() as u64 <= most);
                prop_assert!(accesses.windows(2).all(|pair| pair[0].address < pair[1].address));
                prop_assert!(accesses.iter().all(|a| pages.iter().any(|range| range.contains(&a.address))));
                weights += accesses.iter().map(|access| u64::from(access.weight)).sum::<u64>();
            }
            let mean = weights as f64 / f64::from(scans);
            prop_assert!((mean - total as f64).abs() <= 0.05 * total as f64 + 1.0, "{mean} for {total}");
        }
    }

    #[test]
    fn a_hotter_range_has_more_of_the_accesses() {
        let (mut accesses, mut sampler) = (Vec::new(), Sampler::new(100));
        let pages = ranges(&[(1, 300), (1, 100)]);
        for _ in 0..50 {
            let heat = [1, 9].map(|accesses| Heat { accesses, pages: 1 });
            sampler.sample((Pid(7), Nanos(9), Nanos::SECOND), &pages, &heat, &mut accesses);
        }
        let hot = accesses.iter().filter(|access| access.address >= pages[1].start).count();
        let weights: u64 = accesses.iter().map(|access| u64::from(access.weight)).sum();
        assert!((hot as f64 / accesses.len() as f64 - 0.75).abs() < 0.01, "{hot} of {}", accesses.len());
        assert!((weights as f64 / (50.0 * 1200.0) - 1.0).abs() < 0.02, "{weights}");
        assert!(accesses.iter().all(|access| pages.iter().any(|range| range.contains(&access.address))));
    }

    /// However many pages a region has, its accesses are worth as many observations as looks found any.
    #[test]
    fn accesses_to_a_region_are_worth_its_looks() {
        let worth = |pages: u64, accesses: u32, most: u64| {
            let (mut delivered, mut sampler) = (Vec::new(), Sampler::new(most));
            let heat = [Heat { accesses, pages }];
            sampler.sample((Pid(7), Nanos(9), Nanos::SECOND), &ranges(&[(0, pages)]), &heat, &mut delivered);
            let worth = |access: &Access| match access.cause {
                Cause::Region { alike } => 1.0 / f64::from(alike),
                _ => 1.0,
            };
            (delivered.len(), delivered.iter().map(worth).sum::<f64>())
        };
        for (pages, most) in [(1, 1 << 16), (1000, 1 << 16), (1000, 2000), (1 << 20, 1 << 16)] {
            let (delivered, looks) = worth(pages, 3, most);
            assert!(
                delivered as u64 <= most && (looks - 3.0).abs() < 0.1,
                "{pages} pages: {delivered}, {looks}"
            );
        }
        // Fewer delivered than looks: each is one.
        assert_eq!(worth(1000, 20, 10), (10, 10.0));
    }

    #[test]
    fn every_page_while_there_is_room() {
        let accesses = sample(&mut Sampler::new(100), &ranges(&[(3, 60), (1, 40)]), Nanos::SECOND);
        assert_eq!(accesses.len(), 100);
        assert!(accesses.iter().all(|access| access.weight == 1));
    }

    #[test]
    fn requests_are_kept() {
        let mut sampler = Sampler::new(1000);
        let pages = ranges(&[(0, 500)]);
        sampler.rate = SamplingRate::Off;
        assert!(sample(&mut sampler, &pages, Nanos::SECOND).is_empty());
        sampler.rate = SamplingRate::Frequency(100);
        assert_eq!(sample(&mut sampler, &pages, Nanos::SECOND).len(), 100);
        assert_eq!(sample(&mut sampler, &pages, Nanos(500 * Nanos::MILLISECOND.0)).len(), 50);
        sampler.rate = SamplingRate::Period(10_007);
        assert_eq!(sample(&mut sampler, &pages, Nanos::SECOND).len(), 500);
    }

    #[test]
    fn no_page_is_always_passed_over() {
        let (mut sampler, pages) = (Sampler::new(10), ranges(&[(0, 100)]));
        let mut seen = std::collections::HashSet::new();
        for _ in 0..100 {
            seen.extend(sample(&mut sampler, &pages, Nanos::SECOND).iter().map(|access| access.address));
        }
        assert_eq!(seen.len(), 100);
    }
}
