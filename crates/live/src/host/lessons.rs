//! The last samples that a policy got, to teach the one that takes its place.

use std::collections::VecDeque;

use isotherm_core::{Counters, Policy, Sample, SampleBatch, View};

/// Samples that are kept: 8 MiB of them.
const KEPT: usize = 1 << 18;

#[derive(Default)]
pub(super) struct Lessons {
    samples: VecDeque<Sample>,
}

impl Lessons {
    pub(super) fn keep(&mut self, samples: &[Sample]) {
        let samples = &samples[samples.len().saturating_sub(KEPT)..];
        let excess = (self.samples.len() + samples.len()).saturating_sub(KEPT);
        self.samples.drain(..excess);
        self.samples.extend(samples);
    }

    /// Shows the policy the samples of pages that are still mapped, in batches as it asks for them.
    pub(super) fn teach(&self, policy: &mut dyn Policy, counters: &Counters, view: &mut dyn View) {
        let full = policy.sampling().batch.max(1);
        let mut batch = SampleBatch { counters: counters.clone(), ..SampleBatch::default() };
        let mut rest = self.samples.iter().peekable();
        while rest.peek().is_some() {
            batch.samples.clear();
            batch
                .samples
                .extend(rest.by_ref().take(full).filter(|sample| view.tier_of(sample.page).is_some()));
            policy.observe(&batch, view);
        }
    }

    pub(super) fn clear(&mut self) {
        self.samples.clear();
    }

    pub(super) fn bytes(&self) -> usize {
        self.samples.capacity() * size_of::<Sample>()
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::{Nanos, Operation, PageId, TierId};

    use super::*;

    #[test]
    fn the_last_samples_are_kept_however_they_come() {
        let sample = |page: usize| Sample {
            time: Nanos(0),
            page: PageId(page as u32),
            weight: 1,
            latency: 0,
            exposed: 0,
            tier: TierId::FAST,
            operation: Operation::Load,
        };
        let samples: Vec<Sample> = (0..2 * KEPT).map(sample).collect();
        let kept = |parts: &[std::ops::Range<usize>]| {
            let mut lessons = Lessons::default();
            parts.iter().for_each(|part| lessons.keep(&samples[part.clone()]));
            let ends = [lessons.samples.front(), lessons.samples.back()];
            ends.map(|end| end.map(|sample| sample.page.index()))
        };
        assert_eq!(kept(&[0..10, 10..30]), [Some(0), Some(29)]);
        assert_eq!(kept(&[0..10, 10..KEPT + 5]), [Some(5), Some(KEPT + 4)]);
        assert_eq!(kept(&[0..5, 0..2 * KEPT]), [Some(KEPT), Some(2 * KEPT - 1)]);
    }
}
