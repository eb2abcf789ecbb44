//! Skewed streams, and the error of devices that have seen them.

use isotherm_neoprof::{Accuracy, Device, Model, Parameters, Request, accuracy};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Accesses in random order, and their number for each page.
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

    /// Draws 90 % of the accesses from an eighth of the pages, as the paper's GUPS does (section VI-D).
    pub(crate) fn gups(accesses: usize, footprint: usize) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut page = || {
            let span = if random.random_bool(0.9) { footprint / 8 } else { footprint };
            random.random_range(0..span as u64)
        };
        Self::new((0..accesses).map(|_| page()).collect(), footprint)
    }

    /// Draws page `r` with a share proportional to 1 / r: inverse transform of a log-uniform rank.
    pub(crate) fn zipf(accesses: usize, footprint: usize) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut page = || ((footprint as f64).powf(random.random::<f64>()) as u64).min(footprint as u64) - 1;
        Self::new((0..accesses).map(|_| page()).collect(), footprint)
    }
}

/// Returns the error of a device of these sizes on the stream.
pub(crate) fn measure(stream: &Stream, parameters: Parameters, delta: f64) -> Accuracy {
    let mut device = Model::new(parameters).expect("sizes that can be built");
    device.accesses(&stream.requests);
    accuracy(&device, &stream.counts, delta)
}
