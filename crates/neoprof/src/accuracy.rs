//! The error of a device's sketch: its bound (section IV-B) and the error of each page.

use crate::{H3, Model, Parameters};

/// An error bound and the errors that it bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accuracy {
    /// Bound from the histogram, which an estimate's error exceeds with a probability of at most delta.
    pub bound: u32,
    /// Share of the pages whose estimate exceeds the bound.
    pub beyond: f64,
    /// Mean of the estimate minus the count over all pages.
    pub mean_error: f64,
}

const MAX_LANES: usize = 4;

/// Compares what `device` has counted since its reset with the exact `counts` of its pages, numbered from 0.
/// Pages that were not accessed belong to them too, since a sketch may take them for hot.
#[must_use]
pub fn accuracy(device: &Model, counts: &[u32], delta: f64) -> Accuracy {
    let parameters = device.parameters();
    let bound = device.histogram().error_bound(parameters.lanes, delta);
    let (mut beyond, mut sum) = (0u64, 0u64);
    for (&count, estimate) in counts.iter().zip(estimates(parameters, counts)) {
        // A saturated counter is below the count.
        let error = estimate.saturating_sub(count);
        beyond += u64::from(error > bound);
        sum += u64::from(error);
    }
    let pages = counts.len().max(1) as f64;
    Accuracy { bound, beyond: beyond as f64 / pages, mean_error: sum as f64 / pages }
}

/// Returns a sketch's estimate of each page, accessed `counts` times: the least of its counters.
#[must_use]
pub fn estimates(parameters: &Parameters, counts: &[u32]) -> Vec<u32> {
    let (hash, lanes) = (H3::new(parameters), parameters.lanes as usize);
    let indices = |page: usize| hash.indices::<MAX_LANES>(page as u64).into_iter().take(lanes).enumerate();
    let mut counters = vec![vec![0u32; parameters.width as usize]; lanes];
    for (page, &count) in counts.iter().enumerate() {
        for (lane, index) in indices(page) {
            let counter = &mut counters[lane][index as usize];
            *counter = counter.saturating_add(count).min(parameters.counter_max());
        }
    }
    let estimate =
        |page| indices(page).map(|(lane, index)| counters[lane][index as usize]).min().unwrap_or(0);
    (0..counts.len()).map(estimate).collect()
}
