//! The books: what tiering has cost by the host's measurement, and what it has saved by samples of pages that
//! are not where they were first.

use isotherm_core::{Counters, Sample, Spent, TierId};

/// Share of the program's time that may be lost without proof of a saving.
const TRUST: f64 = 0.005;
/// Share of the proved savings that may be spent: the rest covers costs that no host can measure.
const REINVESTED: f64 = 0.5;
/// Weight of what is known against what an epoch adds.
const MEMORY: f64 = 0.75;

/// A sum of events and the time that they took, in which old ones count ever less.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Price {
    time: f64,
    events: f64,
}

impl Price {
    fn add(&mut self, time: f64, events: f64) {
        if events > 0.0 {
            self.time = self.time * MEMORY + time;
            self.events = self.events * MEMORY + events;
        }
    }

    /// Returns the time of an event in nanoseconds; `None` before the first.
    pub(crate) fn each(&self) -> Option<f64> {
        (self.events > 0.0).then(|| self.time / self.events)
    }
}

/// Costs, savings and prices. All times are the program's threads' together, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Books {
    spent: Spent,
    counters: Vec<(u64, u64)>,
    /// Saved so far, less what displaced pages lost.
    pub(crate) saved: f64,
    pub(crate) sample: Price,
    pub(crate) page_move: Price,
    /// Stall of a slow access.
    stall: Price,
    /// Latency of a fast and of a slow access.
    latency: [Price; 2],
    /// Accesses by running time.
    access: Price,
    /// Sums that wait for the next entry.
    moved: f64,
    sampled: f64,
    weights: f64,
    latencies: [(f64, f64); 2],
    credit: f64,
}

impl Books {
    /// Notes a sample; `displaced`: whether its page is not where it was first.
    pub(crate) fn note(&mut self, sample: &Sample, displaced: bool) {
        let (slow, weight) = (sample.tier != TierId::FAST, f64::from(sample.weight));
        self.sampled += 1.0;
        self.weights += weight;
        if sample.latency > 0 {
            let (sum, count) = &mut self.latencies[usize::from(slow)];
            *sum += f64::from(sample.latency);
            *count += 1.0;
        }
        if displaced {
            self.credit += if slow { -weight } else { weight };
        }
    }

    /// Notes pages that were moved.
    pub(crate) fn note_moves(&mut self, pages: usize) {
        self.moved += pages as f64;
    }

    /// Makes an entry of all that was noted, with the host's measurements. Returns the program's time since
    /// the entry before.
    pub(crate) fn enter(&mut self, spent: &Spent, counters: &Counters) -> f64 {
        let since = |now: isotherm_core::Nanos, before: isotherm_core::Nanos| (now - before).0 as f64;
        let passed = since(spent.running, self.spent.running);
        self.sample.add(since(spent.sampling, self.spent.sampling), std::mem::take(&mut self.sampled));
        self.page_move.add(since(spent.moving, self.spent.moving), std::mem::take(&mut self.moved));
        for (price, sum) in self.latency.iter_mut().zip(&mut self.latencies) {
            let (sum, count) = std::mem::take(sum);
            price.add(sum, count);
        }
        self.counters.resize(counters.tiers.len(), (0, 0));
        let (mut stall, mut slow, mut all) = (0.0, 0.0, 0.0);
        for (index, (tier, before)) in counters.tiers.iter().zip(&mut self.counters).enumerate() {
            let misses = (tier.load_misses - before.0) as f64;
            all += misses;
            if index > 0 {
                stall += (tier.stall.0 - before.1) as f64;
                slow += misses;
            }
            *before = (tier.load_misses, tier.stall.0);
        }
        self.stall.add(stall, slow);
        let weights = std::mem::take(&mut self.weights);
        self.access.add(passed, if counters.tiers.is_empty() { weights } else { all });
        self.saved += std::mem::take(&mut self.credit) * self.gain();
        self.spent = *spent;
        passed
    }

    /// Returns what an access costs less from the fast tier: the slow tier's stall, which shrinks as the
    /// latency does. Where stalls are not counted, the latency, of which the program cannot have waited
    /// longer than it ran.
    pub(crate) fn gain(&self) -> f64 {
        let [Some(fast), Some(slow)] = self.latency.map(|price| price.each()) else { return 0.0 };
        let waited = match self.stall.each() {
            Some(stall) if stall > 0.0 => stall,
            _ => slow.min(self.access.each().unwrap_or(slow)),
        };
        waited * (1.0 - fast / slow)
    }

    /// Returns the program's time per access.
    pub(crate) fn pace(&self) -> Option<f64> {
        self.access.each()
    }

    pub(crate) fn running(&self) -> f64 {
        self.spent.running.0 as f64
    }

    pub(crate) fn spent(&self) -> f64 {
        (self.spent.sampling + self.spent.deciding + self.spent.moving).0 as f64
    }

    /// Returns what looking at the program has cost, without moves.
    pub(crate) fn looking(&self) -> f64 {
        (self.spent.sampling + self.spent.deciding).0 as f64
    }

    /// Returns what may be spent now.
    pub(crate) fn allowance(&self) -> f64 {
        let kept = if self.saved > 0.0 { REINVESTED } else { 1.0 };
        TRUST * self.running() + kept * self.saved - self.spent()
    }
}
