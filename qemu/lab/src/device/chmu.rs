//! CXL's hotness monitoring unit by its model. No CXL device of this QEMU has one, so a page in front of the
//! block names it, in place of the register locator.

use std::collections::HashSet;

use isotherm_chmu::registers as at;
use isotherm_chmu::registers::{FIRST_INSTANCE, STAND_IN, STAND_IN_BLOCK};
use isotherm_chmu::{Block, Model, Sizes};
use isotherm_machine::DeviceProfile;
use isotherm_neoprof::{Registers as _, Request};

use super::{Registers, Staged, Uses};
use crate::options::Fault;

/// A version that does not exist.
pub(super) const NO_VERSION: u64 = 3;
/// An operation that never ends, in the status.
const IN_PROGRESS: u64 = 1 << 16;
const STATUS: u64 = STAND_IN_BLOCK + FIRST_INSTANCE + at::STATUS;

pub(super) struct Chmu {
    model: Model,
    sizes: Sizes,
    clock: u64,
    /// Cycles since power-on.
    cycles: u64,
    /// Units read since the reset.
    told: HashSet<u64>,
}

impl Chmu {
    pub(super) fn new(profile: &DeviceProfile, memory: u64, always_on: bool) -> Result<Self, String> {
        let sizes = Sizes {
            memory,
            entries: u16::try_from(profile.hot_entries).unwrap_or(u16::MAX),
            count_bits: profile.counter_bits,
            always_on,
        };
        let model = Model::new(sizes).map_err(|error| error.to_string())?;
        Ok(Self { model, sizes, clock: profile.clock.max(1), cycles: 0, told: HashSet::new() })
    }

    fn nanoseconds(&self) -> u128 {
        u128::from(self.cycles) * 1_000_000_000 / u128::from(self.clock)
    }
}

impl Staged for Chmu {
    fn pass(&mut self, requests: &[Request], idle: u64) {
        self.model.accesses(requests);
        let before = self.nanoseconds();
        self.cycles += requests.len() as u64 + idle;
        self.model.elapse((self.nanoseconds() - before) as u64);
    }

    fn stage(&mut self, registers: Registers) {
        registers.put(0, STAND_IN);
        for offset in (0..self.sizes.bytes()).step_by(8) {
            registers.put(STAND_IN_BLOCK + offset, self.model.read(offset));
        }
    }

    /// Reading changes no register.
    fn loaded(&mut self, offset: u64, registers: Registers, uses: &mut Uses) {
        let list = STAND_IN_BLOCK + self.sizes.bytes() - u64::from(self.sizes.entries) * 8;
        if offset >= list {
            let unit = registers.get(offset) >> self.sizes.count_bits;
            uses.hot_pages += 1;
            uses.hot_again += u64::from(!self.told.insert(unit));
        }
    }

    fn stored(&mut self, offset: u64, value: u64, uses: &mut Uses) {
        let Some(offset) = offset.checked_sub(STAND_IN_BLOCK) else { return };
        match offset.checked_sub(FIRST_INSTANCE) {
            // The word holds the tail, too, which is the unit's.
            Some(at::HEAD) => self.model.write_half(offset, value as u16),
            Some(at::CONFIGURATION) if value & at::RESET_COUNTERS != 0 => {
                uses.resets += 1;
                self.told.clear();
                self.model.write(offset, value);
            }
            _ => self.model.write(offset, value),
        }
    }

    fn count_losses(&mut self, uses: &mut Uses) {
        uses.hot_refused = self.model.refused();
    }

    fn spoil(&self, fault: Fault, sound: bool, registers: Registers) {
        match fault {
            Fault::Version => registers.put(STAND_IN_BLOCK, NO_VERSION | 1 << 8),
            Fault::Vanishes if !sound => registers.vanish(),
            Fault::Stuck if !sound => registers.put(STATUS, registers.get(STATUS) | IN_PROGRESS),
            _ => {}
        }
    }
}
