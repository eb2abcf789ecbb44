//! Driver of CXL's own hotness monitoring unit (CHMU; CXL 3.2, 8.2.8): its registers and its ring.
//!
//! A unit keeps no histogram and counts no traffic, so it serves policies with a fixed threshold. It reports
//! a unit of memory whose count exceeds that at once (*always on*) or at the end of each epoch.

pub use isotherm_chmu::Block;
use isotherm_chmu::registers as at;
use isotherm_chmu::registers::{
    ALWAYS_ON, ENABLE, EPOCHS, OVERFLOW, RESET_COUNTERS, SMALLEST_UNIT, VERSION, bits, epoch_ns,
};
use isotherm_core::{DeviceReport, DeviceRequest};

use super::{DeviceError, PAGE, Profiler};

/// Accesses to count, the most first, with the capability's bit.
const WHAT: [(u64, u64); 3] = [at::COUNTS[2], at::COUNTS[0], at::COUNTS[1]];
/// The epoch of a unit that cannot report at once, if it has one as long: 100 ms. Policies read more often,
/// and a list of 1,024 entries, as QEMU's emulation has, tells 40 MiB a second.
const EPOCH: u64 = 4 | 1 << 4;
/// Pages that a unit may consist of: 2 MiB.
const MAX_PAGES: u64 = 512;
/// Farthest hot list: its bitmap has a bit for each 256 MiB, of at most 2^52 bytes.
const FARTHEST_LIST: u64 = 4 << 20;
/// Reads of the status before an operation counts as stuck.
const PATIENCE: u32 = 100_000;
const WORD: u64 = 8;

#[derive(Debug)]
pub struct Chmu<B> {
    name: String,
    block: B,
    /// Offset of the instance's registers.
    base: u64,
    /// Accesses that it counts, as configured.
    what: u64,
    threshold: u32,
    entries: u16,
    hot_list: u64,
    /// The next entry to read, as its register has it: only the host moves it.
    head: u64,
    count_bits: u32,
    /// Bytes of a unit, as a power of two.
    unit_shift: u32,
    enabled: bool,
    overflows: u64,
}

impl<B: Block> Chmu<B> {
    /// Opens the first instance of the unit at this block, configured and stopped.
    ///
    /// # Errors
    /// Returns an error without a unit, its version, units of a page to 2 MiB or a way to count.
    pub fn open(name: impl Into<String>, mut block: B) -> Result<Self, DeviceError> {
        let device = name.into();
        let capability = block.read(at::CAPABILITY);
        if capability == u64::MAX {
            return Err(DeviceError::Vanished { device });
        }
        let (version, instances) = (bits(capability, 0, 3), bits(capability, 8, 15));
        if version != VERSION {
            return Err(DeviceError::Version { device, found: version, spoken: VERSION });
        }
        let lacks = |what| DeviceError::Lacks { device: device.clone(), what };
        if instances == 0 || bits(block.read(at::INSTANCE_LENGTH), 0, 15) == 0 {
            return Err(lacks("an instance"));
        }
        let base = at::FIRST_INSTANCE;
        let capabilities = block.read(base + at::CAPABILITIES);
        let units = block.read(base + at::UNITS);
        let what =
            WHAT.iter().find(|(bit, _)| capabilities >> bit & 1 == 1).ok_or_else(|| lacks("counting"))?.1;
        let first = PAGE.trailing_zeros() - SMALLEST_UNIT;
        let last = first + MAX_PAGES.trailing_zeros();
        let unit = (first..=last).find(|unit| units >> unit & 1 == 1);
        let unit = unit.ok_or_else(|| lacks("units of 4 KiB to 2 MiB"))?;
        if units & (ALWAYS_ON | EPOCHS) == 0 {
            return Err(lacks("a reporting mode"));
        }
        let entries = bits(capabilities, 48, 63) as u16;
        let hot_list = block.read(base + at::HOT_LIST);
        let bitmap = block.read(base + at::RANGE_BITMAP);
        if entries < 2 || hot_list < bitmap || bitmap < at::TAIL || hot_list > FARTHEST_LIST {
            return Err(lacks("a hot list behind its registers"));
        }
        let unit_shift = unit + SMALLEST_UNIT;
        let mut chmu = Self {
            name: device,
            block,
            base,
            what,
            threshold: u32::MAX,
            entries,
            hot_list,
            head: 0,
            count_bits: 0,
            unit_shift,
            enabled: false,
            overflows: 0,
        };
        chmu.configure(capabilities, units, bitmap..hot_list)?;
        Ok(chmu)
    }

    /// Configures it for all memory, the unit, no downsampling, and always on or else epochs near [`EPOCH`].
    fn configure(
        &mut self,
        capabilities: u64,
        units: u64,
        bitmap: std::ops::Range<u64>,
    ) -> Result<(), DeviceError> {
        self.stop()?;
        self.head = self.place(at::HEAD, "the start of the hot list")?;
        for offset in bitmap.step_by(WORD as usize) {
            self.block.write(self.base + offset, u64::MAX);
        }
        let downsampling = u64::from((bits(units, 32, 47) as u16).trailing_zeros().min(15));
        let mode = u64::from(units & ALWAYS_ON != 0);
        let (longest, shortest) = (bits(capabilities, 16, 31), bits(capabilities, 32, 47));
        let epoch = if epoch_ns(longest) < epoch_ns(EPOCH) {
            longest
        } else if epoch_ns(shortest) > epoch_ns(EPOCH) {
            shortest
        } else {
            EPOCH
        };
        let word = u64::from(self.unit_shift) | downsampling << 32 | mode << 40 | epoch << 48;
        self.block.write(self.base + at::UNIT_AND_EPOCH, word);
        let status = self.status()?;
        self.count_bits = bits(status, 32, 39) as u32;
        if !(1..64).contains(&self.count_bits) {
            let (device, found) = (self.name.clone(), self.count_bits.into());
            return Err(DeviceError::Absurd { device, what: "the width of a count", found, most: 63 });
        }
        Ok(())
    }

    fn status(&mut self) -> Result<u64, DeviceError> {
        match self.block.read(self.base + at::STATUS) {
            u64::MAX => Err(DeviceError::Vanished { device: self.name.clone() }),
            status => Ok(status),
        }
    }

    /// Writes the configuration and waits until it is in force.
    fn control(&mut self, flags: u64) -> Result<(), DeviceError> {
        let word = self.what | flags | u64::from(self.threshold) << 32;
        self.block.write(self.base + at::CONFIGURATION, word);
        let mut found = 0;
        for _ in 0..PATIENCE {
            found = self.status()?;
            if bits(found, 16, 31) == 0 {
                return Ok(());
            }
        }
        Err(DeviceError::Stuck { device: self.name.clone(), what: "its status", found })
    }

    fn stop(&mut self) -> Result<(), DeviceError> {
        self.enabled = false;
        self.control(0)
    }

    fn start(&mut self) -> Result<(), DeviceError> {
        self.enabled = true;
        self.control(ENABLE)
    }

    /// Tells the unit that the entries before this one have been read.
    fn release(&mut self, head: u64) {
        self.head = head;
        self.block.write_half(self.base + at::HEAD, head as u16);
    }

    /// Reads a position of the ring from a register.
    fn place(&mut self, register: u64, what: &'static str) -> Result<u64, DeviceError> {
        let (found, most) =
            (u64::from(self.block.read_half(self.base + register)), u64::from(self.entries) - 1);
        if found <= most {
            return Ok(found);
        }
        // The device answers, so the position is wrong.
        self.status()?;
        Err(DeviceError::Absurd { device: self.name.clone(), what, found, most })
    }
}

impl<B: Block + Send> Profiler for Chmu<B> {
    fn name(&self) -> &str {
        &self.name
    }

    fn reports(&self) -> bool {
        false
    }

    fn command(&mut self, request: DeviceRequest) -> Result<(), DeviceError> {
        if let Some(threshold) = request.threshold {
            // The configuration may change only while it is stopped.
            self.stop()?;
            self.threshold = threshold;
            self.start()?;
        }
        if request.clear {
            self.control(RESET_COUNTERS | if self.enabled { ENABLE } else { 0 })?;
            let tail = self.place(at::TAIL, "the end of the hot list")?;
            self.release(tail);
        }
        Ok(())
    }

    fn read(&mut self, _report: bool, pages: &mut Vec<u64>) -> Result<Option<DeviceReport>, DeviceError> {
        let mut head = self.head;
        let tail = self.place(at::TAIL, "the end of the hot list")?;
        // An empty list has not overflowed since it was last read.
        if head == tail {
            return Ok(None);
        }
        let unit_pages = (1u64 << self.unit_shift) / PAGE;
        while head != tail {
            let entry = self.block.read(self.base + self.hot_list + head * WORD);
            if entry == u64::MAX {
                return Err(DeviceError::Vanished { device: self.name.clone() });
            }
            let first = (entry >> self.count_bits).saturating_mul(unit_pages);
            pages.extend(first..first.saturating_add(unit_pages));
            head = (head + 1) % u64::from(self.entries);
        }
        self.release(tail);
        if self.status()? & OVERFLOW != 0 {
            self.overflows += 1;
            // Writing 1 clears it.
            self.block.write(self.base + at::STATUS, OVERFLOW);
        }
        Ok(None)
    }

    fn lost(&self) -> u64 {
        self.overflows
    }
}
