//! The lab's NeoProf: the device in front of the last tier, and its registers in memory that the guest maps.
//!
//! The guest loads from and stores to that memory (of an `ivshmem-plain` device) without QEMU, which calls
//! the plugin only afterwards. So the registers are *staged*: each holds the value for the next load. They
//! are staged whenever code that is not followed continues (the engine's, while the program stands still) and
//! after each use of a register. With several processors a register may be as old as the engine's last entry
//! into user mode; that loses nothing.

mod rtl;

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use isotherm_machine::DeviceProfile;
use isotherm_neoprof::registers as at;
use isotherm_neoprof::{Device, Model, Parameters, Request};
use serde::Serialize;

use crate::options::Fault;
use crate::shared_memory::Memory;

/// Requests that reach the device together.
const BATCH: usize = 4096;
/// Bytes of a page, as a power of two.
const PAGE_SHIFT: u32 = 12;
/// Uses of registers after which a faulty device fails.
const SOUND: u64 = 500;
/// Constant registers of a stuck device: the number of hot pages, and the page.
const STUCK: (u64, u64) = (16, 3);

/// Traffic and use of the device since a phase began; the lab's `NeoProfUses` describes the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Uses {
    rtl: bool,
    reads: u64,
    writes: u64,
    register_reads: u64,
    register_writes: u64,
    register_ns: u64,
    resets: u64,
    hot_pages: u64,
    hot_again: u64,
    hot_refused: u64,
    dropped: u64,
}

pub(crate) struct NeoProf {
    device: Box<dyn Device + Send>,
    sizes: Parameters,
    profile: DeviceProfile,
    registers: Memory,
    ranges: Vec<Range<u64>>,
    fault: Option<Fault>,
    /// Physical address of the registers, known once the guest has used them.
    base: Option<u64>,
    requests: Vec<Request>,
    cycles: u64,
    /// Whether requests have passed since the registers were staged.
    stale: bool,
    /// Values taken out of the device and not yet read.
    hot: Option<u64>,
    bin: Option<u64>,
    /// Values left in the device.
    hot_behind: u64,
    bins_behind: u64,
    /// Hot pages read since the reset.
    told: HashSet<u64>,
    uses: Uses,
}

impl NeoProf {
    /// Makes a profile's device after power-on: its model, or the simulated hardware in `library`.
    pub(crate) fn new(
        profile: &DeviceProfile,
        library: Option<&Path>,
        (registers, ranges): (Memory, Vec<Range<u64>>),
        fault: Option<Fault>,
    ) -> Result<Self, String> {
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
        let mut neoprof = Self {
            device,
            sizes,
            profile: profile.clone(),
            registers,
            ranges,
            fault,
            base: None,
            requests: Vec::with_capacity(BATCH),
            cycles: 0,
            stale: false,
            hot: None,
            bin: None,
            hot_behind: 0,
            bins_behind: 0,
            told: HashSet::new(),
            uses: Uses { rtl: library.is_some(), ..Uses::default() },
        };
        neoprof.stage_values([at::IDENTITY, at::PARAMETERS, at::SEED]);
        neoprof.stage_all();
        Ok(neoprof)
    }

    /// Passes a miss at modelled time `now_ns`: a read of the line, and a write-back of a store's.
    #[inline]
    pub(crate) fn pass(&mut self, physical: u64, store: bool, now_ns: impl FnOnce() -> u64) {
        let Some(page) = self.page(physical) else { return };
        self.stale = true;
        self.requests.push(Request { page, write: false });
        self.uses.reads += 1;
        if store {
            self.requests.push(Request { page, write: true });
            self.uses.writes += 1;
        }
        if self.requests.len() >= BATCH {
            self.settle(now_ns());
        }
    }

    /// Returns the device's number of a page; its memory is numbered contiguously.
    fn page(&self, physical: u64) -> Option<u64> {
        let mut before = 0;
        for range in &self.ranges {
            if range.contains(&physical) {
                return Some((before + physical - range.start) >> PAGE_SHIFT);
            }
            before += range.end - range.start;
        }
        None
    }

    /// Sends the requests and the idle cycles. Requests beyond the clock's cycles use up later ones.
    fn settle(&mut self, now_ns: u64) {
        self.device.accesses(&self.requests);
        self.cycles += self.requests.len() as u64;
        self.requests.clear();
        let now = (u128::from(now_ns) * u128::from(self.profile.clock) / 1_000_000_000) as u64;
        let idle = now.saturating_sub(self.cycles);
        self.device.idle(idle);
        self.cycles += idle;
    }

    /// Begins a phase, and modelled time with it.
    pub(crate) fn begin_phase(&mut self) {
        self.settle(0);
        self.cycles = 0;
        self.uses = Uses { rtl: self.uses.rtl, ..Uses::default() };
    }

    pub(crate) fn uses(&mut self) -> Uses {
        let DeviceProfile { read, write, .. } = self.profile;
        self.uses.register_ns = self.uses.register_reads * read.0 + self.uses.register_writes * write.0;
        self.uses.hot_refused = self.device.read(at::HOT_REFUSED);
        self.uses.dropped = self.device.read(at::ACCESSES_DROPPED);
        self.uses.clone()
    }

    /// Returns whether a physical address, which is not memory, is one of the registers. `word` reads the
    /// first word of its page, by whose identity the device is recognised.
    pub(crate) fn is_register(&mut self, physical: u64, word: impl FnOnce() -> Option<u64>) -> bool {
        let page = physical >> PAGE_SHIFT << PAGE_SHIFT;
        match self.base {
            Some(base) => base == page,
            None => {
                let own = word() == Some(self.staged(at::IDENTITY));
                self.base = own.then_some(page);
                own
            }
        }
    }

    /// Stages the registers again if anything has passed.
    pub(crate) fn stage(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.stale) {
            self.settle(now_ns);
            self.stage_all();
        }
    }

    /// Notes that the guest has used the register at this physical address.
    pub(crate) fn used(&mut self, physical: u64, store: bool, now_ns: u64) {
        let offset = physical & (at::BYTES - 1);
        if store {
            self.uses.register_writes += 1;
            self.settle(now_ns);
            self.write(offset, self.staged(offset));
            return self.stage_all();
        }
        self.uses.register_reads += 1;
        match offset {
            at::GET_HOT_PAGE => {
                if let Some(page) = self.hot.take() {
                    self.uses.hot_pages += 1;
                    self.uses.hot_again += u64::from(!self.told.insert(page));
                }
                self.stage_hot();
            }
            at::GET_HIST => {
                self.bin = None;
                self.stage_bin();
            }
            _ => {}
        }
        self.spoil();
    }

    fn write(&mut self, offset: u64, value: u64) {
        if offset == at::RESET && value & 1 == 1 {
            self.uses.resets += 1;
            self.told.clear();
            (self.hot, self.bin) = (None, None);
        }
        if offset == at::SET_HIST_EN && value & 1 == 1 {
            self.bin = None;
        }
        self.device.write(offset, value);
    }

    fn stage_all(&mut self) {
        self.hot_behind = self.device.read(at::GET_NR_HOT_PAGE);
        self.bins_behind = self.device.read(at::GET_NR_HIST_BIN);
        self.stage_hot();
        self.stage_bin();
        self.stage_values([at::SET_THRESHOLD, at::GET_NR_SAMPLE, at::GET_RD_CNT, at::GET_WR_CNT]);
        self.stage_values([at::MODE, at::STATUS, at::HOT_REFUSED, at::ACCESSES_DROPPED]);
        self.put(at::RESET, 0);
        self.put(at::SET_HIST_EN, 0);
        self.spoil();
    }

    fn stage_values<const N: usize>(&mut self, registers: [u64; N]) {
        for register in registers {
            let value = self.device.read(register);
            self.put(register, value);
        }
    }

    /// Takes the next page out of the FIFO if none is staged.
    fn stage_hot(&mut self) {
        if self.hot.is_none() && self.hot_behind > 0 {
            self.hot = Some(self.device.read(at::GET_HOT_PAGE));
            self.hot_behind -= 1;
        }
        // The staged value has left room in the FIFO, which may be full again: a device never reports more
        // than it can hold.
        let waiting = self.hot_behind + u64::from(self.hot.is_some());
        self.put(at::GET_NR_HOT_PAGE, waiting.min(self.sizes.hot_entries.into()));
        self.put(at::GET_HOT_PAGE, self.hot.unwrap_or(at::EMPTY));
    }

    fn stage_bin(&mut self) {
        if self.bin.is_none() && self.bins_behind > 0 {
            self.bin = Some(self.device.read(at::GET_HIST));
            self.bins_behind -= 1;
        }
        self.put(at::GET_NR_HIST_BIN, self.bins_behind + u64::from(self.bin.is_some()));
        self.put(at::GET_HIST, self.bin.unwrap_or(at::EMPTY));
    }

    fn put(&self, offset: u64, value: u64) {
        if let Some(word) = self.registers.get(offset as usize / 8) {
            word.store(value, Relaxed);
        }
    }

    fn staged(&self, offset: u64) -> u64 {
        self.registers.get(offset as usize / 8).map_or(u64::MAX, |word| word.load(Relaxed))
    }

    /// Spoils the registers where a fault is simulated.
    fn spoil(&self) {
        let sound = self.uses.register_reads < SOUND;
        match self.fault {
            Some(Fault::Version) => self.put(at::IDENTITY, at::IDENTITY_VALUE + 2),
            Some(Fault::Vanishes) if !sound => {
                self.registers.iter().for_each(|word| word.store(u64::MAX, Relaxed));
            }
            Some(Fault::Stuck) if !sound => {
                self.put(at::GET_NR_HOT_PAGE, STUCK.0);
                self.put(at::GET_HOT_PAGE, STUCK.1);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
