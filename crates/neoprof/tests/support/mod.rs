//! Defines skewed streams and the true error of a sketch on them.

use isotherm_neoprof::{Device, H3, Model, Parameters, Request};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How often each page is accessed, and the accesses in random order.
pub(crate) struct Stream {
    requests: Vec<Request>,
    pub(crate) counts: Vec<u32>,
}

impl Stream {
    fn new(pages: Vec<u64>, footprint: usize) -> Self {
        let mut counts = vec![0; footprint];
        pages.iter().for_each(|&page| counts[page as usize] += 1);
        Self { requests: pages.into_iter().map(|page| Request { page, write: false }).collect(), counts }
    }

    /// 90 % of the accesses to an eighth of the pages, the paper's GUPS (section VI-D).
    pub(crate) fn gups(accesses: usize, footprint: usize) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut page = || {
            let span = if random.random_bool(0.9) { footprint / 8 } else { footprint };
            random.random_range(0..span as u64)
        };
        Self::new((0..accesses).map(|_| page()).collect(), footprint)
    }

    /// Page `r` with a share that falls as 1 / r: inverse transform of a log-uniform rank.
    pub(crate) fn zipf(accesses: usize, footprint: usize) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut page = || ((footprint as f64).powf(random.random::<f64>()) as u64).min(footprint as u64) - 1;
        Self::new((0..accesses).map(|_| page()).collect(), footprint)
    }
}

/// The bound and the share of pages whose estimate is off by more.
pub(crate) struct Result {
    pub(crate) bound: u32,
    pub(crate) beyond: f64,
    pub(crate) mean_error: f64,
}

/// Estimates read back through the sketch's own hash: the least count of the page's entries.
pub(crate) fn measure(stream: &Stream, parameters: Parameters, delta: f64) -> Result {
    let mut device = Model::new(parameters).expect("sizes that can be built");
    device.accesses(&stream.requests);
    let bound = device.histogram().error_bound(parameters.lanes, delta);
    let estimates = estimates(stream, &parameters);
    let errors: Vec<u32> =
        stream.counts.iter().zip(&estimates).map(|(count, estimate)| estimate - count).collect();
    let beyond = errors.iter().filter(|&&error| error > bound).count();
    Result {
        bound,
        beyond: beyond as f64 / errors.len() as f64,
        mean_error: errors.iter().map(|&error| f64::from(error)).sum::<f64>() / errors.len() as f64,
    }
}

/// What the device's sketch holds, computed anew from exact counts.
pub(crate) fn estimates(stream: &Stream, parameters: &Parameters) -> Vec<u32> {
    let hash = H3::new(parameters);
    let mut lanes = [vec![0u32; parameters.width as usize], vec![0u32; parameters.width as usize]];
    for (page, &count) in stream.counts.iter().enumerate() {
        let indices = hash.indices::<2>(page as u64);
        lanes.iter_mut().zip(indices).for_each(|(lane, index)| lane[index as usize] += count);
    }
    let estimate = |page: usize| {
        let indices = hash.indices::<2>(page as u64);
        lanes[0][indices[0] as usize].min(lanes[1][indices[1] as usize])
    };
    (0..stream.counts.len()).map(estimate).collect()
}
