//! A window (section 4.3.1, algorithm 1): its samples and counters, and each page's part of the stalls.

use isotherm_core::{Counters, Operation, Sample, SampleBatch, TierCounters, TierId, choices};
use isotherm_trackers::Window;

choices! {
    pub(crate) enum Weight {
        /// The accesses that it stands for.
        Accesses = "proportional",
        Latency = "latency",
        /// Those times the part of its latency that nothing hid.
        Exposed = "exposed",
    }
}

impl Weight {
    fn of(self, sample: &Sample) -> f32 {
        let each = match self {
            Self::Accesses => 1,
            Self::Latency => sample.latency,
            Self::Exposed => sample.exposed,
        };
        sample.weight as f32 * each as f32
    }
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    page: u32,
    tier: u8,
    weight: f32,
    samples: f32,
}

/// The cost of one miss, and the largest overlap that is believed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model {
    /// Of the second tier, in nanoseconds.
    pub(super) k: f64,
    pub(super) most_parallelism: f64,
    pub(super) frequency: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Attribution {
    weight: Weight,
    first: TierId,
    model: Model,
    samples: Vec<Seen>,
    before: Counters,
    now: Counters,
    updates: Vec<(u32, f32)>,
    /// The second tier's memory-level parallelism in the last window that had any.
    pub(super) parallelism: f64,
    pub(super) rejected: u64,
}

impl Attribution {
    pub(super) fn new(weight: Weight, first: TierId, model: Model) -> Self {
        let (samples, updates, before, now) = Default::default();
        Self { weight, first, model, samples, before, now, updates, parallelism: 0.0, rejected: 0 }
    }

    /// Takes samples and counters in: loads of tracked tiers.
    pub(super) fn observe(&mut self, batch: &SampleBatch) {
        let tracked = |sample: &&Sample| sample.operation == Operation::Load && sample.tier >= self.first;
        self.samples.extend(batch.samples.iter().filter(tracked).map(|sample| Seen {
            page: sample.page.0,
            tier: sample.tier.0,
            weight: self.weight.of(sample),
            samples: 1.0,
        }));
        self.now.clone_from(&batch.counters);
    }

    pub(super) fn len(&self) -> usize {
        self.samples.len()
    }

    /// Ends the window. Returns the stall for each of its pages; none for a rejected window.
    pub(super) fn close(&mut self) -> &[(u32, f32)] {
        self.updates.clear();
        self.coalesce();
        match self.stalls() {
            Some(stalls) => self.share_out(&stalls),
            None => self.rejected += 1,
        }
        self.samples.clear();
        std::mem::swap(&mut self.before, &mut self.now);
        &self.updates
    }

    fn coalesce(&mut self) {
        self.samples.sort_unstable_by_key(|seen| (seen.page, seen.tier));
        self.samples.dedup_by(|later, first| {
            let same = (later.page, later.tier) == (first.page, first.tier);
            if same {
                first.weight += later.weight;
                first.samples += later.samples;
            }
            same
        });
    }

    /// Returns each tier's stalls; `None` if counters are missing, went backwards or were extrapolated.
    fn stalls(&mut self) -> Option<Vec<f64>> {
        if self.now.multiplexed {
            return None;
        }
        let nothing = TierCounters::default();
        let before = |tier: usize| self.before.tiers.get(tier).unwrap_or(&nothing);
        let windows = self.now.tiers.iter().enumerate().map(|(tier, now)| difference(before(tier), now));
        let windows = windows.collect::<Option<Vec<Window>>>()?;
        let second = windows.get(1)?;
        let reference = latency(second);
        let stall = |window: &Window| {
            let farther = latency(window).zip(reference).map_or(1.0, |(own, reference)| own / reference);
            window.stall(self.model.k * farther, self.model.most_parallelism)
        };
        let tracked = self.first.index();
        let stalls = windows.iter().enumerate();
        let stalls = stalls.map(|(tier, window)| if tier < tracked { Some(0.0) } else { stall(window) });
        let stalls = stalls.collect();
        if let Some(parallelism) = second.parallelism(self.model.most_parallelism) {
            self.parallelism = parallelism;
        }
        stalls
    }

    fn share_out(&mut self, stalls: &[f64]) {
        let mut totals = vec![0.0_f64; stalls.len()];
        for seen in &self.samples {
            if let Some(total) = totals.get_mut(usize::from(seen.tier)) {
                *total += f64::from(seen.weight);
            }
        }
        for seen in &self.samples {
            let tier = usize::from(seen.tier);
            let (stall, total) = (stalls.get(tier).copied().unwrap_or(0.0), totals.get(tier).copied());
            let share =
                total.filter(|&total| total > 0.0).map_or(0.0, |total| f64::from(seen.weight) / total);
            let amount = if self.model.frequency { seen.samples } else { (stall * share) as f32 };
            self.updates.push((seen.page, amount));
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.samples.capacity() * size_of::<Seen>() + self.updates.capacity() * size_of::<(u32, f32)>()
    }
}

fn difference(before: &TierCounters, now: &TierCounters) -> Option<Window> {
    Some(Window {
        misses: now.load_misses.checked_sub(before.load_misses)?,
        occupancy: now.load_occupancy.checked_sub(before.load_occupancy)?,
        busy: now.load_busy.checked_sub(before.load_busy)?,
    })
}

/// Returns the mean latency of the window's requests, by Little's law.
fn latency(window: &Window) -> Option<f64> {
    let known = window.misses > 0 && window.occupancy > 0;
    known.then(|| window.occupancy as f64 / window.misses as f64)
}

#[cfg(test)]
mod tests;
