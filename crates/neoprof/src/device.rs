//! A device's interface: its registers, and the requests that pass it.

use crate::registers::{
    EMPTY, GET_HIST, GET_HOT_PAGE, GET_NR_HIST_BIN, GET_NR_HOT_PAGE, PARAMETERS, SEED, SET_HIST_EN,
};
use crate::{Histogram, ParameterError, Parameters, histogram_of_bins};

/// A request on its way to the memory behind the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// Number of the page in the device's memory.
    pub page: u64,
    /// Whether the request writes.
    pub write: bool,
}

/// A device's registers; see [`registers`](crate::registers).
pub trait Registers {
    /// Reads the register at `offset` bytes, which changes some registers.
    fn read(&mut self, offset: u64) -> u64;

    /// Writes the register at `offset` bytes.
    fn write(&mut self, offset: u64, value: u64);
}

/// A device and the memory channels that it watches. Registers reflect every request sent before.
pub trait Device: Registers {
    /// Runs one cycle of the memory controller in which `requests` pass, the first on channel 0 and so on;
    /// requests beyond the device's channels pass in the following cycles.
    fn cycle(&mut self, requests: &[Request]);

    /// Runs `cycles` cycles without a request.
    fn idle(&mut self, cycles: u64);

    /// Runs one cycle with one request.
    fn access(&mut self, page: u64, write: bool) {
        self.cycle(&[Request { page, write }]);
    }

    /// Runs a cycle for each request.
    fn accesses(&mut self, requests: &[Request]) {
        requests.iter().for_each(|request| self.cycle(std::slice::from_ref(request)));
    }
}

/// Moves all hot pages from the buffer to the end of `pages`, oldest first.
pub fn read_hot_pages(device: &mut impl Registers, pages: &mut Vec<u64>) {
    for _ in 0..device.read(GET_NR_HOT_PAGE) {
        match device.read(GET_HOT_PAGE) {
            EMPTY => return,
            page => pages.push(page),
        }
    }
}

/// Captures the histogram and reads it.
///
/// # Errors
/// [`ParameterError`] if the device states impossible sizes.
pub fn read_histogram(device: &mut impl Registers) -> Result<Histogram, ParameterError> {
    let parameters = Parameters::from_word(device.read(PARAMETERS), device.read(SEED))?;
    device.write(SET_HIST_EN, 1);
    let bins = device.read(GET_NR_HIST_BIN).min(parameters.histogram_bins.into());
    let entries: Vec<u64> = (0..bins).map(|_| device.read(GET_HIST)).collect();
    Ok(histogram_of_bins(&entries, parameters.counter_max()))
}
