//! Defines what can be done with a device: reading and writing its registers, and sending requests past it.

use crate::registers::{
    EMPTY, GET_HIST, GET_HOT_PAGE, GET_NR_HIST_BIN, GET_NR_HOT_PAGE, PARAMETERS, SEED, SET_HIST_EN,
};
use crate::{Histogram, ParameterError, Parameters, histogram_of_bins};

/// A request on its way to the memory behind the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// The page's number in the device's memory.
    pub page: u64,
    /// Whether it writes.
    pub write: bool,
}

/// A device's registers, see [`registers`](crate::registers).
pub trait Registers {
    /// Reads the register at `offset` bytes; some registers are changed by that.
    fn read(&mut self, offset: u64) -> u64;

    /// Writes the register at `offset` bytes.
    fn write(&mut self, offset: u64, value: u64);
}

/// A device and the memory channels that it watches. What a register tells includes every request sent before.
pub trait Device: Registers {
    /// One cycle of the memory controller in which `requests` pass, the first on channel 0 and so on; those beyond
    /// the device's channels pass in cycles that follow.
    fn cycle(&mut self, requests: &[Request]);

    /// As many cycles without a request.
    fn idle(&mut self, cycles: u64);

    /// One cycle with one request.
    fn access(&mut self, page: u64, write: bool) {
        self.cycle(&[Request { page, write }]);
    }

    /// As many cycles as there are requests, each with one.
    fn accesses(&mut self, requests: &[Request]) {
        requests.iter().for_each(|request| self.cycle(std::slice::from_ref(request)));
    }
}

/// Takes all hot pages out of the buffer, oldest first, and appends them to `pages`.
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
/// If the device states sizes that none has.
pub fn read_histogram(device: &mut impl Registers) -> Result<Histogram, ParameterError> {
    let parameters = Parameters::from_word(device.read(PARAMETERS), device.read(SEED))?;
    device.write(SET_HIST_EN, 1);
    let bins = device.read(GET_NR_HIST_BIN).min(parameters.histogram_bins.into());
    let entries: Vec<u64> = (0..bins).map(|_| device.read(GET_HIST)).collect();
    Ok(histogram_of_bins(&entries, parameters.counter_max()))
}
