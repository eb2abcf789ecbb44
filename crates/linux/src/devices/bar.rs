//! A PCI device's registers as the drivers use them. Beyond the mapping reads return all ones, as on the bus.

use isotherm_chmu::Block;
use isotherm_neoprof::Registers;

use crate::sys::registers::DeviceRegisters;

impl Registers for DeviceRegisters {
    fn read(&mut self, offset: u64) -> u64 {
        self.load(offset).unwrap_or(u64::MAX)
    }

    fn write(&mut self, offset: u64, value: u64) {
        self.store(offset, value);
    }
}

impl Block for DeviceRegisters {
    fn read_half(&mut self, offset: u64) -> u16 {
        self.load(offset).unwrap_or(u16::MAX)
    }

    fn write_half(&mut self, offset: u64, value: u16) {
        self.store(offset, value);
    }
}
