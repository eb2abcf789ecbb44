//! Driver of NeoProf: the register protocol. Validates every value it reads.

use isotherm_core::{DeviceReport, DeviceRequest, DeviceTraffic};
use isotherm_neoprof::registers as at;
use isotherm_neoprof::{Parameters, Registers, read_histogram, read_hot_pages};

use super::{DeviceError, Profiler};

/// The identity's lowest byte is the version.
const VERSION: u64 = 0xff;
/// Equal hot pages in a row after which the register counts as stuck: a filter lets a page through once.
const REPEATS: usize = 8;

#[derive(Debug)]
pub struct NeoProf<R> {
    name: String,
    registers: R,
    sizes: Parameters,
}

impl<R: Registers> NeoProf<R> {
    /// Opens the device at these registers and clears it; it finds no page hot before a threshold is set.
    ///
    /// # Errors
    /// Returns an error for another device's registers, another version, impossible sizes, or no answer.
    pub fn open(name: impl Into<String>, mut registers: R) -> Result<Self, DeviceError> {
        let device = name.into();
        let found = registers.read(at::IDENTITY);
        if found == u64::MAX {
            return Err(DeviceError::Vanished { device });
        }
        if found & !VERSION != at::IDENTITY_VALUE & !VERSION {
            return Err(DeviceError::Identity { device, found, expected: at::IDENTITY_VALUE });
        }
        if found != at::IDENTITY_VALUE {
            let (found, spoken) = (found & VERSION, at::IDENTITY_VALUE & VERSION);
            return Err(DeviceError::Version { device, found, spoken });
        }
        let sizes = Parameters::from_word(registers.read(at::PARAMETERS), registers.read(at::SEED));
        let sizes = sizes.map_err(|error| DeviceError::Parameters { device: device.clone(), error })?;
        let mut opened = Self { name: device, registers, sizes };
        opened.registers.write(at::SET_THRESHOLD, sizes.counter_max().into());
        opened.registers.write(at::RESET, 1);
        Ok(opened)
    }

    pub fn sizes(&self) -> &Parameters {
        &self.sizes
    }

    /// Returns why a register's value is impossible: the device has vanished or is broken.
    fn absurd(&mut self, what: &'static str, found: u64, most: u64) -> DeviceError {
        let device = self.name.clone();
        if self.registers.read(at::IDENTITY) == at::IDENTITY_VALUE {
            DeviceError::Absurd { device, what, found, most }
        } else {
            DeviceError::Vanished { device }
        }
    }

    fn report(&mut self) -> Result<DeviceReport, DeviceError> {
        let device = || self.name.clone();
        let histogram =
            read_histogram(&mut self.registers).map_err(|_| DeviceError::Vanished { device: device() })?;
        // As many entries as a row has: a device with stuck registers has another histogram.
        if histogram.entries() != u64::from(self.sizes.width) {
            let (found, most) = (histogram.entries(), self.sizes.width.into());
            return Err(self.absurd("the sum of the histogram", found, most));
        }
        let mut counter = |offset| self.registers.read(offset);
        let traffic = DeviceTraffic {
            cycles: counter(at::GET_NR_SAMPLE),
            reads: counter(at::GET_RD_CNT),
            writes: counter(at::GET_WR_CNT),
        };
        let (refused, dropped) = (counter(at::HOT_REFUSED), counter(at::ACCESSES_DROPPED));
        if traffic.cycles > at::COUNTER_MAX {
            return Err(self.absurd("the counter of cycles", traffic.cycles, at::COUNTER_MAX));
        }
        Ok(DeviceReport { histogram, lanes: self.sizes.lanes, traffic, refused, dropped })
    }
}

impl<R: Registers + Send> Profiler for NeoProf<R> {
    fn name(&self) -> &str {
        &self.name
    }

    fn reports(&self) -> bool {
        true
    }

    fn tells_again(&self) -> bool {
        false
    }

    fn command(&mut self, request: DeviceRequest) -> Result<(), DeviceError> {
        if let Some(threshold) = request.threshold {
            let threshold = threshold.min(self.sizes.counter_max()).into();
            self.registers.write(at::SET_THRESHOLD, threshold);
            let found = self.registers.read(at::SET_THRESHOLD);
            if found != threshold {
                return Err(self.absurd("the threshold, set just before,", found, threshold));
            }
        }
        if request.clear {
            self.registers.write(at::RESET, 1);
        }
        Ok(())
    }

    fn read(&mut self, report: bool, pages: &mut Vec<u64>) -> Result<Option<DeviceReport>, DeviceError> {
        let waiting = self.registers.read(at::GET_NR_HOT_PAGE);
        if waiting > self.sizes.hot_entries.into() {
            return Err(self.absurd("the number of hot pages", waiting, self.sizes.hot_entries.into()));
        }
        if waiting > 0 {
            self.read_pages(pages)?;
        }
        report.then(|| self.report()).transpose()
    }
}

impl<R: Registers> NeoProf<R> {
    fn read_pages(&mut self, pages: &mut Vec<u64>) -> Result<(), DeviceError> {
        let first = pages.len();
        read_hot_pages(&mut self.registers, pages);
        let found = &pages[first..];
        let error = match found.iter().find(|&&page| page > self.sizes.page_mask()) {
            Some(&page) => Some(self.absurd("a hot page", page, self.sizes.page_mask())),
            None if found.len() >= REPEATS && found.iter().all(|page| *page == found[0]) => {
                Some(DeviceError::Stuck { device: self.name.clone(), what: "its hot page", found: found[0] })
            }
            None => None,
        };
        if error.is_some() {
            pages.truncate(first);
        }
        error.map_or(Ok(()), Err)
    }
}
