//! The stake: how much the pages that were faster first may lose by being slower. Their accesses tell it
//! before they are slow. A gain shows only afterwards: loads that wait together wait for the slowest of them,
//! and the next phase may need the pages that this one does not.

use isotherm_core::{Operation, Sample, TierId};

/// Sums over an entry's samples of one tier.
#[derive(Debug, Clone, Copy, Default)]
struct Sampled {
    /// Accesses that they stand for.
    all: f64,
    /// Of those, the accesses to pages that were there first.
    at_home: f64,
    /// Those to pages that were faster first, by the share of the latency that they would not have there.
    away: f64,
}

/// A program's loss and its time, both weighed by the share of pages that the loss is of. Older entries count
/// less.
#[derive(Debug, Clone, Copy, Default)]
struct Loss {
    lost: f64,
    passed: f64,
}

impl Loss {
    fn add(&mut self, lost: f64, passed: f64, kept: f64) {
        *self = Self { lost: self.lost * kept + lost, passed: self.passed * kept + passed };
    }

    fn get(self) -> f64 {
        if self.passed > 0.0 { self.lost / self.passed } else { 0.0 }
    }
}

/// Losses as shares of the program's time, if they were those of all pages that were faster first.
#[derive(Debug, Default)]
pub(crate) struct Stake {
    sampled: Vec<Sampled>,
    /// By pages that are where they were first, if they went to the slowest tier.
    home: Loss,
    /// By pages that are slower than first.
    away: Loss,
    /// Stall of loads of pages that are where they were first, and their latencies: the share of its latency
    /// that such a load waits, wherever its page is.
    exposed: (f64, f64),
    /// Stall and number of slow loads, weighed by the fourth power of their share of all loads: what a load
    /// waits while most are slow. Stores hardly wait: a program that fills its memory does not tell it.
    slow: (f64, f64),
    /// Load misses of each tier in this entry, what one waits, and what slow ones wait longer than that.
    loads: Vec<f64>,
    waits: Vec<f64>,
    longer: f64,
    /// Time of the program that fast pages do not wait any more, in this entry.
    gained: f64,
    /// Savings that the counters confirm; older ones count less.
    proved: f64,
}

/// An entry's time, and what its counters tell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) passed: f64,
    /// See `Books::kept`.
    pub(crate) kept: f64,
    /// Share of the program's time that a thread's is.
    pub(crate) part: f64,
    /// Share of the pages that were faster first that are slower now.
    pub(crate) demoted: f64,
    /// Stall of the accesses to each tier, and the latencies of the tiers.
    pub(crate) stalled: &'a [f64],
    pub(crate) latencies: &'a [f64],
    /// Savings by samples.
    pub(crate) saved: f64,
}

impl Stake {
    /// Begins an entry with its stalls and load misses by tier; `part` and `kept`: see [`Entry`].
    pub(crate) fn begin(&mut self, stalled: &[f64], loads: impl Iterator<Item = f64>, part: f64, kept: f64) {
        self.loads.clear();
        self.loads.extend(loads);
        let (all, slow) = (self.loads.iter().sum::<f64>(), self.loads.iter().skip(1).sum::<f64>());
        let stall = stalled.iter().skip(1).sum::<f64>();
        if all > 0.0 {
            let weight = (slow / all).powi(4);
            self.slow = (self.slow.0 * kept + weight * stall, self.slow.1 * kept + weight * slow);
        }
        self.longer = (stall - slow * self.slow_wait()).max(0.0) * part;
        self.waits.clear();
        self.waits.extend(stalled.iter().zip(&self.loads).map(|(stall, loads)| stall / loads.max(1.0)));
    }

    /// Returns what a slow load waits while most are slow.
    fn slow_wait(&self) -> f64 {
        let (stall, loads) = self.slow;
        if loads > 0.0 { stall / loads } else { 0.0 }
    }

    /// Notes a sample of a page that was first in `home`, if not in the sample's tier; `saved`: the share of
    /// its latency that it would not have there, `part`: see `Books::parts`.
    pub(crate) fn note(&mut self, sample: &Sample, home: Option<TierId>, saved: f64, part: f64) {
        let tier = sample.tier.index();
        if self.sampled.len() <= tier {
            self.sampled.resize(tier + 1, Sampled::default());
        }
        let weight = f64::from(sample.weight);
        let sampled = &mut self.sampled[tier];
        sampled.all += weight;
        match home {
            None => sampled.at_home += weight,
            Some(home) if home < sample.tier => sampled.away += weight * saved,
            Some(_) if sample.operation == Operation::Load => {
                let waits = self.waits.get(tier).copied().unwrap_or_default();
                self.gained += weight * part * (self.slow_wait() - waits);
            }
            Some(_) => {}
        }
    }

    /// Ends the entry.
    pub(crate) fn end(&mut self, entry: Entry) {
        let Entry { passed, kept, part, demoted, .. } = entry;
        let proved = (std::mem::take(&mut self.gained).min(entry.saved) - self.longer).max(0.0);
        self.proved = self.proved * kept + proved;
        self.sampled.resize(entry.stalled.len(), Sampled::default());
        let Some(&slowest) = entry.latencies.last() else { return };
        let (mut home, mut away) = (0.0, 0.0);
        let mut unseen = false;
        let tiers = self.sampled.iter_mut().zip(entry.stalled).zip(&self.loads).zip(entry.latencies);
        for (((sampled, &stalled), &loads), &latency) in tiers {
            let Sampled { all, at_home, away: slower } = std::mem::take(sampled);
            if latency <= 0.0 {
                continue;
            }
            if all > 0.0 {
                let here = at_home / all;
                home += stalled * part * (slowest / latency - 1.0).max(0.0) * here;
                if latency < slowest {
                    let (stall, latencies) = self.exposed;
                    self.exposed = (stall * kept + stalled * here, latencies * kept + loads * latency * here);
                }
                let (stall, latencies) = self.exposed;
                let waits = if latencies > 0.0 { (stall / latencies).min(1.0) } else { 0.0 };
                away += waits * loads * latency * part * slower / all;
            } else if latency < slowest {
                home += stalled * part * (slowest / latency - 1.0);
                unseen = true;
            }
        }
        self.away.add(away, demoted * passed, kept);
        // Without samples it is unknown whose the stall is, unless all pages are where they were first.
        if !unseen || demoted == 0.0 {
            self.home.add(home, (1.0 - demoted) * passed, kept);
        }
    }

    /// Confirms savings.
    #[cfg(test)]
    pub(crate) fn prove(&mut self, saved: f64) {
        self.proved += saved;
    }

    /// Returns what the counters confirm of all savings so far.
    pub(crate) fn proved(&self) -> f64 {
        self.proved
    }

    /// Returns the share of the pages that were faster first that may still go to slower tiers if the program
    /// may lose the share `allowed` of its time; `demoted` of them are there, and samples have told what
    /// `known` of them lose. By samples that tell of little, no more go than would lose `most` if they lost
    /// what others do: the next phase may need them. If negative, so many are too many.
    pub(crate) fn left(&self, allowed: f64, most: f64, demoted: f64, known: f64) -> f64 {
        let (home, away) = (self.home.get(), self.away.get());
        let left = allowed - demoted * away;
        if left < 0.0 {
            return left / away;
        }
        if home <= 0.0 {
            return f64::INFINITY;
        }
        // The coldest go first: what these lose tells what as many others would.
        let again = (2.0 * known).min(most / home) - demoted;
        let again = if away > 0.0 { again.min(left / away) } else { again };
        again.max(left / home)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm_core::{Nanos, Operation, PageId};

    /// An entry of 1000 ns in which both tiers stall for 100 ns; the slow one takes three times as long.
    fn entry(demoted: f64) -> Entry<'static> {
        Entry {
            passed: 1000.0,
            kept: 1.0,
            part: 1.0,
            demoted,
            stalled: &[100.0; 2],
            latencies: &[100.0, 300.0],
            saved: 0.0,
        }
    }

    fn sample(tier: u8) -> Sample {
        Sample {
            time: Nanos(0),
            page: PageId(0),
            weight: 10,
            latency: 0,
            exposed: 0,
            tier: TierId(tier),
            operation: Operation::Load,
        }
    }

    #[test]
    fn pages_may_go_as_long_as_all_that_they_wait_less_is_within_what_may_be_lost() {
        let mut stake = Stake::default();
        stake.begin(&[100.0; 2], [2.0, 4.0].into_iter(), 1.0, 1.0);
        stake.end(entry(0.0));
        // They would wait for 300 in place of 100 of 1000 ns.
        assert!((stake.left(0.005, 1.0, 0.0, 0.0) - 0.025).abs() < 1e-9);
    }

    #[test]
    fn pages_come_back_when_they_lose_more_than_may_be_lost() {
        let mut stake = Stake::default();
        // A load of a fast page waits for half of its latency. A tenth of the pages went, which a quarter of
        // the slow loads is to: each waits for half of 200 ns more.
        stake.begin(&[100.0; 2], [2.0, 4.0].into_iter(), 1.0, 1.0);
        stake.note(&sample(0), None, 0.0, 0.0);
        stake.note(&sample(1), Some(TierId::FAST), 2.0 / 3.0, 0.0);
        (0..3).for_each(|_| stake.note(&sample(1), None, 0.0, 0.0));
        stake.end(entry(0.1));
        let lost = 0.1;
        assert!((stake.left(0.005, 1.0, 0.1, 0.1) + (lost - 0.005) / lost * 0.1).abs() < 1e-9);
        assert!(stake.left(lost, 1.0, 0.1, 0.1).abs() < 1e-9, "all of it may be lost");
    }

    /// Pages that came to the fast tier would look as if they had much to lose there.
    #[test]
    fn a_fast_tier_without_samples_tells_nothing_once_pages_have_moved() {
        let mut stake = Stake::default();
        stake.begin(&[100.0; 2], [2.0, 4.0].into_iter(), 1.0, 1.0);
        stake.note(&sample(1), None, 0.0, 0.0);
        stake.end(entry(0.5));
        assert!(stake.left(0.005, 1.0, 0.0, 0.0) > 1.0);
    }

    /// A tenth of the pages went, and no sample tells of these.
    fn losing_nothing() -> Stake {
        let mut stake = Stake::default();
        stake.begin(&[100.0; 2], [2.0, 4.0].into_iter(), 1.0, 1.0);
        stake.note(&sample(0), None, 0.0, 0.0);
        stake.note(&sample(1), None, 0.0, 0.0);
        stake.end(entry(0.1));
        stake
    }

    #[test]
    fn as_many_pages_again_may_go_if_those_that_went_lose_little() {
        let stake = losing_nothing();
        assert!((stake.left(0.005, 1.0, 0.1, 0.1) - 0.1).abs() < 1e-9);
        // No sample has told of half of those that went.
        assert!(stake.left(0.005, 1.0, 0.1, 0.05) < 0.05);
    }

    /// Half of the fast pages of `social-network` had gone before the phase that they were placed for came.
    #[test]
    fn regression_pages_that_lose_little_take_no_more_with_them_than_others_could_lose() {
        let stake = losing_nothing();
        // Those that stayed would lose 200 of 900 ns.
        assert!((stake.left(0.005, 0.04, 0.1, 0.1) - (0.18 - 0.1)).abs() < 1e-9);
        assert!(stake.left(0.005, 0.01, 0.1, 0.1) > 0.0, "what may be lost may always go");
    }

    /// Loads of the fast tier wait for 10 ns each. Slow ones wait for 20 ns while all are slow.
    #[test]
    fn savings_are_confirmed_unless_slow_loads_wait_longer_for_them() {
        let proved = |stalled: &'static [f64], saved| {
            let mut stake = Stake::default();
            stake.begin(&[0.0, 2000.0], [0.0, 100.0].into_iter(), 1.0, 1.0);
            stake.end(entry(0.0));
            stake.begin(stalled, [50.0, 50.0].into_iter(), 1.0, 1.0);
            (0..5).for_each(|_| stake.note(&sample(0), Some(TierId(1)), 0.0, 1.0));
            stake.end(Entry { saved, stalled, ..entry(0.1) });
            stake.proved()
        };
        assert!((proved(&[500.0, 1000.0], 600.0) - 500.0).abs() < 1.0);
        assert!((proved(&[500.0, 1000.0], 200.0) - 200.0).abs() < 1.0, "no more than the books say");
        assert!(proved(&[500.0, 1500.0], 600.0) < 50.0, "the group waits for its slowest");
    }
}
