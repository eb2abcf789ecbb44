//! The lab's profiling device: in front of the last tier, its registers in memory that the guest maps.
//!
//! The guest loads from and stores to that memory (of an `ivshmem-plain` device) without QEMU, which calls
//! the plugin only afterwards. So the registers are *staged*: each holds the value for the next load. They
//! are staged whenever code that is not followed continues (the engine's, while the program stands still) and
//! after each use that changes one. With several processors a register may be as old as the engine's last
//! entry into user mode; that loses nothing.

mod chmu;
mod neoprof;
mod rtl;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use isotherm_machine::DeviceProfile;
use isotherm_neoprof::Request;
use isotherm_qemu_api::access::Kind as Access;
use serde::Serialize;

use crate::options::{DeviceKind, Fault};
use crate::shared_memory::Memory;

/// Requests that reach the device together.
const BATCH: usize = 4096;
/// Bytes of a page, as a power of two.
const PAGE_SHIFT: u32 = 12;
/// Uses of registers after which a faulty device fails.
const SOUND: u64 = 500;

/// Traffic and use of the device since a phase began; the lab's `DeviceUses` describes the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Uses {
    kind: &'static str,
    reads: u64,
    writes: u64,
    register_reads: u64,
    register_writes: u64,
    register_bytes: u64,
    register_ns: u64,
    resets: u64,
    hot_pages: u64,
    hot_again: u64,
    hot_refused: u64,
    dropped: u64,
}

/// The memory with the registers, by offsets in bytes. Words beyond it read all ones, as on a bus.
#[derive(Clone, Copy)]
struct Registers(Memory);

impl Registers {
    fn put(&self, offset: u64, value: u64) {
        if let Some(word) = self.0.get(offset as usize / 8) {
            word.store(value, Relaxed);
        }
    }

    fn get(&self, offset: u64) -> u64 {
        self.0.get(offset as usize / 8).map_or(u64::MAX, |word| word.load(Relaxed))
    }

    /// Makes all registers read all ones.
    fn vanish(&self) {
        self.0.iter().for_each(|word| word.store(u64::MAX, Relaxed));
    }
}

/// A kind of device.
trait Staged: Send {
    /// Passes requests, a cycle each, and then cycles without one.
    fn pass(&mut self, requests: &[Request], idle: u64);

    /// Writes every register.
    fn stage(&mut self, registers: Registers);

    /// Notes that the guest has loaded a register.
    fn loaded(&mut self, offset: u64, registers: Registers, uses: &mut Uses);

    /// Takes a value that the guest has stored; all registers are staged afterwards.
    fn stored(&mut self, offset: u64, value: u64, uses: &mut Uses);

    /// Brings the counts of losses up to date.
    fn count_losses(&mut self, uses: &mut Uses);

    /// Writes a fault over staged registers; `sound` says that the device has not failed yet.
    fn spoil(&self, fault: Fault, sound: bool, registers: Registers);
}

pub(crate) struct Profiler {
    device: Box<dyn Staged>,
    profile: DeviceProfile,
    registers: Registers,
    /// First word of the registers, by which they are known.
    identity: u64,
    ranges: Vec<Range<u64>>,
    fault: Option<Fault>,
    /// Physical address of the registers, known once the guest has used them.
    base: Option<u64>,
    requests: Vec<Request>,
    cycles: u64,
    /// Whether requests have passed since the registers were staged.
    stale: bool,
    uses: Uses,
}

impl Profiler {
    /// Makes a profile's device after power-on, in front of the memory of `ranges`. `library` holds NeoProf's
    /// simulated hardware.
    pub(crate) fn new(
        kind: DeviceKind,
        profile: &DeviceProfile,
        library: Option<&Path>,
        (registers, ranges): (Memory, Vec<Range<u64>>),
        fault: Option<Fault>,
    ) -> Result<Self, String> {
        let registers = Registers(registers);
        let mut device: Box<dyn Staged> = match kind {
            DeviceKind::NeoProf => Box::new(neoprof::NeoProf::new(profile, None)?),
            DeviceKind::NeoProfRtl => Box::new(neoprof::NeoProf::new(profile, library)?),
            DeviceKind::Chmu | DeviceKind::ChmuEpochs => {
                let memory = ranges.iter().map(|range| range.end - range.start).sum();
                Box::new(chmu::Chmu::new(profile, memory, kind == DeviceKind::Chmu)?)
            }
        };
        device.stage(registers);
        let mut profiler = Self {
            device,
            profile: profile.clone(),
            registers,
            identity: 0,
            ranges,
            fault,
            base: None,
            requests: Vec::with_capacity(BATCH),
            cycles: 0,
            stale: false,
            uses: Uses { kind: kind.name(), ..Uses::default() },
        };
        profiler.spoil();
        profiler.identity = registers.get(0);
        Ok(profiler)
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
        self.cycles += self.requests.len() as u64;
        let now = (u128::from(now_ns) * u128::from(self.profile.clock) / 1_000_000_000) as u64;
        let idle = now.saturating_sub(self.cycles);
        self.cycles += idle;
        self.device.pass(&self.requests, idle);
        self.requests.clear();
    }

    /// Begins a phase, and modelled time with it.
    pub(crate) fn begin_phase(&mut self) {
        self.settle(0);
        self.cycles = 0;
        self.uses = Uses { kind: self.uses.kind, ..Uses::default() };
    }

    pub(crate) fn uses(&mut self) -> Uses {
        let DeviceProfile { read, write, .. } = self.profile;
        self.uses.register_ns = self.uses.register_reads * read.0 + self.uses.register_writes * write.0;
        self.device.count_losses(&mut self.uses);
        self.uses.clone()
    }

    /// Returns whether a physical address, which is not memory, is one of the registers. `word` reads the
    /// first word of its page, by whose identity the device is recognised.
    pub(crate) fn is_register(&mut self, physical: u64, word: impl FnOnce() -> Option<u64>) -> bool {
        let bytes = (self.registers.0.len() * 8) as u64;
        match self.base {
            Some(base) => (base..base + bytes).contains(&physical),
            None => {
                let own = word() == Some(self.identity);
                self.base = own.then_some(physical >> PAGE_SHIFT << PAGE_SHIFT);
                own
            }
        }
    }

    /// Stages the registers again if anything has passed.
    pub(crate) fn stage(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.stale) {
            self.settle(now_ns);
            self.device.stage(self.registers);
            self.spoil();
        }
    }

    /// Notes that the guest has used the register at this physical address.
    pub(crate) fn used(&mut self, physical: u64, access: Access, now_ns: u64) {
        let offset = physical.saturating_sub(self.base.unwrap_or(physical));
        self.uses.register_bytes += access.reach + 1;
        if access.store {
            self.uses.register_writes += 1;
            self.settle(now_ns);
            self.device.stored(offset, self.registers.get(offset), &mut self.uses);
            self.device.stage(self.registers);
        } else {
            self.uses.register_reads += 1;
            self.device.loaded(offset, self.registers, &mut self.uses);
        }
        self.spoil();
    }

    fn spoil(&self) {
        if let Some(fault) = self.fault {
            self.device.spoil(fault, self.uses.register_reads < SOUND, self.registers);
        }
    }
}

#[cfg(test)]
mod tests;
