//! NeoProf, by its model or the simulated hardware. Reading takes hot pages and bins out of it, so staging
//! takes the next one out and keeps it until it is read: none is lost.

use std::collections::HashSet;
use std::path::Path;

use isotherm_machine::DeviceProfile;
use isotherm_neoprof::registers as at;
use isotherm_neoprof::{Device, Model, Parameters, Request};

use super::{Registers, Staged, Uses, rtl};
use crate::options::Fault;

/// Constant registers of a stuck device: the number of hot pages, and the page.
pub(super) const STUCK: (u64, u64) = (16, 3);

pub(super) struct NeoProf {
    device: Box<dyn Device + Send>,
    sizes: Parameters,
    /// Values taken out of the device and not yet read.
    hot: Option<u64>,
    bin: Option<u64>,
    /// Values left in the device.
    hot_behind: u64,
    bins_behind: u64,
    /// Hot pages read since the reset.
    told: HashSet<u64>,
}

impl NeoProf {
    /// Makes a profile's device: its model, or the simulated hardware in `library`.
    pub(super) fn new(profile: &DeviceProfile, library: Option<&Path>) -> Result<Self, String> {
        let sizes = Parameters {
            lanes: profile.lanes,
            width: profile.width,
            counter_bits: profile.counter_bits,
            hot_entries: profile.hot_entries,
            ..Parameters::default()
        };
        let sizes = sizes.checked().map_err(|error| error.to_string())?;
        let device: Box<dyn Device + Send> = match library {
            None => Box::new(Model::new(sizes).map_err(|error| error.to_string())?),
            Some(path) => Box::new(
                rtl::Rtl::load(path, &sizes).map_err(|error| format!("{}: {error}", path.display()))?,
            ),
        };
        Ok(Self { device, sizes, hot: None, bin: None, hot_behind: 0, bins_behind: 0, told: HashSet::new() })
    }

    fn stage_values<const N: usize>(&mut self, staged: [u64; N], registers: Registers) {
        for register in staged {
            registers.put(register, self.device.read(register));
        }
    }

    /// Takes the next page out of the FIFO if none is staged.
    fn stage_hot(&mut self, registers: Registers) {
        if self.hot.is_none() && self.hot_behind > 0 {
            self.hot = Some(self.device.read(at::GET_HOT_PAGE));
            self.hot_behind -= 1;
        }
        // The staged value has left room in the FIFO, which may be full again: a device never reports more
        // than it can hold.
        let waiting = self.hot_behind + u64::from(self.hot.is_some());
        registers.put(at::GET_NR_HOT_PAGE, waiting.min(self.sizes.hot_entries.into()));
        registers.put(at::GET_HOT_PAGE, self.hot.unwrap_or(at::EMPTY));
    }

    fn stage_bin(&mut self, registers: Registers) {
        if self.bin.is_none() && self.bins_behind > 0 {
            self.bin = Some(self.device.read(at::GET_HIST));
            self.bins_behind -= 1;
        }
        registers.put(at::GET_NR_HIST_BIN, self.bins_behind + u64::from(self.bin.is_some()));
        registers.put(at::GET_HIST, self.bin.unwrap_or(at::EMPTY));
    }
}

impl Staged for NeoProf {
    fn pass(&mut self, requests: &[Request], idle: u64) {
        self.device.accesses(requests);
        self.device.idle(idle);
    }

    fn stage(&mut self, registers: Registers) {
        self.hot_behind = self.device.read(at::GET_NR_HOT_PAGE);
        self.bins_behind = self.device.read(at::GET_NR_HIST_BIN);
        self.stage_hot(registers);
        self.stage_bin(registers);
        self.stage_values([at::IDENTITY, at::PARAMETERS, at::SEED, at::SET_THRESHOLD], registers);
        self.stage_values([at::GET_NR_SAMPLE, at::GET_RD_CNT, at::GET_WR_CNT, at::MODE], registers);
        self.stage_values([at::STATUS, at::HOT_REFUSED, at::ACCESSES_DROPPED], registers);
        registers.put(at::RESET, 0);
        registers.put(at::SET_HIST_EN, 0);
    }

    fn loaded(&mut self, offset: u64, registers: Registers, uses: &mut Uses) {
        match offset {
            at::GET_HOT_PAGE => {
                if let Some(page) = self.hot.take() {
                    uses.hot_pages += 1;
                    uses.hot_again += u64::from(!self.told.insert(page));
                }
                self.stage_hot(registers);
            }
            at::GET_HIST => {
                self.bin = None;
                self.stage_bin(registers);
            }
            _ => {}
        }
    }

    fn stored(&mut self, offset: u64, value: u64, uses: &mut Uses) {
        if offset == at::RESET && value & 1 == 1 {
            uses.resets += 1;
            self.told.clear();
            (self.hot, self.bin) = (None, None);
        }
        if offset == at::SET_HIST_EN && value & 1 == 1 {
            self.bin = None;
        }
        self.device.write(offset, value);
    }

    fn count_losses(&mut self, uses: &mut Uses) {
        uses.hot_refused = self.device.read(at::HOT_REFUSED);
        uses.dropped = self.device.read(at::ACCESSES_DROPPED);
    }

    fn spoil(&self, fault: Fault, sound: bool, registers: Registers) {
        match fault {
            Fault::Version => registers.put(at::IDENTITY, at::IDENTITY_VALUE + 2),
            Fault::Vanishes if !sound => registers.vanish(),
            Fault::Stuck if !sound => {
                registers.put(at::GET_NR_HOT_PAGE, STUCK.0);
                registers.put(at::GET_HOT_PAGE, STUCK.1);
            }
            _ => {}
        }
    }
}
