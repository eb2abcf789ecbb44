//! A vCPU: the filter in front of the model, and the stretches of user-mode code that it runs.
//!
//! A *stretch* is the code between two moments at which the kernel hands the processor to user mode. It
//! belongs to one process, and a virtual address keeps its meaning throughout, so everything remembered ends
//! with it.

use std::cell::UnsafeCell;
use std::ptr::NonNull;

use isotherm_core::cache::LINE_SHIFT;
use isotherm_qemu_api::access;
use isotherm_virtual_pmu::Process;

use crate::accounts::AccountId;
use crate::guest::Guest;
use crate::model::{Missed, Model, Stretch};
use crate::plugin::Plugin;

/// Maximum number of vCPUs: a record numbers as many.
pub(crate) const MAX: usize = 128;
const NONE: u64 = u64::MAX;
/// Tag of no process: its bit is above those of lines and processes.
const NO_TAG: u64 = 1 << 63;
/// Shift of the process in a line's number, above those of user memory: 47 bits less 6.
const PROCESS_SHIFT: u32 = 47 - LINE_SHIFT;
const PROCESS_BITS: u64 = (1 << 22) - 1;
/// Last offset in a line at which an access surely ends in that line: none is longer than 16 bytes.
const SAFE: u64 = 48;
/// Number of pages remembered to hold no registers.
const PLAIN: usize = 64;

#[derive(Clone, Copy)]
struct Running {
    process: Process,
    account: AccountId,
    /// Its bits in the numbers of lines.
    tag: u64,
}

#[repr(align(128))]
pub(crate) struct Vcpu {
    line: u64,
    accesses: u64,
    /// Tag of the process that is followed, and the guest's doorbell when it was found: together they tell
    /// that nothing has changed since.
    tag: u64,
    doorbell: u64,
    /// Whether `running` is up to date.
    resolved: bool,
    /// Process that runs, if it is followed.
    running: Option<Running>,
    /// Number of the requests in force when `running` was found.
    generation: u64,
    /// Phase at that time.
    epoch: u64,
    /// Instructions of all stretches, which QEMU counts.
    pub(crate) instructions: Option<NonNull<u64>>,
    /// Value of that before the stretch, and at its last miss.
    began: u64,
    charged: u64,
    /// Reads the vCPU's registers, once it has started.
    pub(crate) guest: Option<Guest>,
    /// Virtual pages, by their lowest bits, without registers of the profiling device in this stretch.
    plain: [u64; PLAIN],
}

/// Returns whether an access surely lies in one line.
#[inline(always)]
fn is_within(access: u32, address: u64) -> bool {
    let within = address & ((1 << LINE_SHIFT) - 1);
    within <= SAFE || access::known(access).is_some_and(|kind| within + kind.reach < 1 << LINE_SHIFT)
}

struct Cell(UnsafeCell<Vcpu>);

// SAFETY: only the thread that runs a vCPU touches it, in callbacks of this vCPU, which do not nest.
unsafe impl Sync for Cell {}

static VCPUS: [Cell; MAX] = [const { Cell(UnsafeCell::new(Vcpu::new())) }; MAX];

/// Returns a vCPU. The plugin refuses machines that have more vCPUs than places.
///
/// # Safety
/// A callback of this vCPU is running, and has no other reference to it.
#[inline(always)]
pub(crate) unsafe fn get<'a>(index: u32) -> &'a mut Vcpu {
    // SAFETY: the caller's contract; other vCPUs have other places.
    unsafe { &mut *VCPUS[index as usize % MAX].0.get() }
}

impl Vcpu {
    const fn new() -> Self {
        Self {
            line: NONE,
            accesses: 0,
            tag: NO_TAG,
            doorbell: 0,
            resolved: false,
            running: None,
            generation: 0,
            epoch: 0,
            instructions: None,
            began: 0,
            charged: 0,
            guest: None,
            plain: [NONE; PLAIN],
        }
    }

    fn executed(&self) -> u64 {
        // SAFETY: this vCPU's element of the scoreboard, looked up again whenever it may have moved.
        self.instructions.map_or(0, |place| unsafe { place.read() })
    }

    /// Returns whether an access lies in the last line touched and in no other: then only its count changes.
    #[inline(always)]
    pub(crate) fn repeats(&mut self, access: u32, address: u64) -> bool {
        self.accesses += 1;
        self.line == address >> LINE_SHIFT && is_within(access, address)
    }

    /// Returns whether an access that does not repeat the last still changes nothing but its count: it lies
    /// in one line, that is the most recent of its set, and the guest asks for nothing.
    #[inline(always)]
    pub(crate) fn changes_nothing(&mut self, plugin: &Plugin, access: u32, address: u64) -> bool {
        let line = address >> LINE_SHIFT;
        let nothing = is_within(access, address)
            && plugin.latest.is(line | self.tag)
            && plugin.doorbell() == self.doorbell;
        if nothing {
            self.line = line;
        }
        nothing
    }

    /// Makes an access to another line than the last.
    pub(crate) fn access(&mut self, plugin: &Plugin, index: u32, access: u32, address: u64) {
        if plugin.is_called() || !self.resolved || self.generation != plugin.generation() {
            self.resolve(plugin, index);
        }
        let kind = plugin.api.access(access);
        let (first, last) = (address >> LINE_SHIFT, (address + kind.reach) >> LINE_SHIFT);
        let before = std::mem::replace(&mut self.line, last);
        let Some(running) = self.running else {
            if plugin.has_registers && self.uses_register(plugin, access, address, kind) {
                // The next access to it is another use.
                self.line = NONE;
            }
            return;
        };
        if first != before {
            self.touch(plugin, index, access, (first | running.tag, address), kind.store);
        }
        if first != last && last != before {
            self.touch(plugin, index, access, (last | running.tag, last << LINE_SHIFT), kind.store);
        }
    }

    /// Touches a line of the cache, and brings it in if it is missing.
    #[inline(always)]
    fn touch(&mut self, plugin: &Plugin, index: u32, access: u32, (line, address): (u64, u64), store: bool) {
        if plugin.latest.is(line) {
            return;
        }
        let mut model = plugin.lock();
        plugin.latest.note(line);
        if !model.touch(line) {
            self.miss(plugin, &mut model, index, access, address, store);
        }
    }

    /// Returns whether code that is not followed has used a register of the profiling device; notes the use.
    fn uses_register(&mut self, plugin: &Plugin, access: u32, address: u64, kind: access::Kind) -> bool {
        let page = address >> 12;
        let plain = &mut self.plain[page as usize % PLAIN];
        if *plain == page {
            return false;
        }
        let (Some(physical), Some(guest)) = (plugin.physical(access, address), &self.guest) else {
            return false;
        };
        let mut model = plugin.lock();
        let used = model.use_register(physical, kind, || guest.first_word(&plugin.api, address));
        if !used {
            *plain = page;
        }
        used
    }

    fn miss(
        &mut self,
        plugin: &Plugin,
        model: &mut Model,
        index: u32,
        access: u32,
        address: u64,
        store: bool,
    ) {
        let Some(Running { process, account, .. }) = self.running else { return };
        let executed = self.executed();
        let instructions = executed - self.charged;
        self.charged = executed;
        let physical = plugin.physical(access, address);
        model.miss(&Missed { vcpu: index as u16, process, account, address, physical, store, instructions });
    }

    /// Ends the stretch, since the kernel hands the processor to user mode.
    pub(crate) fn enter_user_mode(&mut self, plugin: &Plugin, index: u32) {
        self.end_stretch(plugin, index, self.accesses);
        self.accesses = 0;
    }

    fn end_stretch(&mut self, plugin: &Plugin, index: u32, accesses: u64) {
        let executed = self.executed();
        if let Some(running) = self.running.take() {
            let mut model = plugin.lock();
            // The rest of an earlier phase is dropped.
            if model.phase.epoch == self.epoch {
                model.end_stretch(&Stretch {
                    vcpu: index as u16,
                    account: running.account,
                    accesses,
                    instructions: executed - self.began,
                    rest: executed - self.charged,
                });
            }
        }
        (self.began, self.charged) = (executed, executed);
        (self.resolved, self.line, self.tag) = (false, NONE, NO_TAG);
        if plugin.has_registers {
            self.plain = [NONE; PLAIN];
        }
    }

    /// Finds the process that runs, and applies the guest's requests.
    #[cold]
    #[inline(never)]
    fn resolve(&mut self, plugin: &Plugin, index: u32) {
        // The current access belongs to the next stretch.
        if self.resolved {
            self.end_stretch(plugin, index, self.accesses.saturating_sub(1));
            self.accesses = 1;
        }
        let mut model = plugin.lock();
        plugin.obey(&mut model);
        (self.resolved, self.generation, self.epoch) = (true, plugin.generation(), model.phase.epoch);
        self.running = if model.control.counting { self.who_runs(plugin, &mut model) } else { None };
        self.doorbell = plugin.answered();
        match &self.running {
            Some(running) => self.tag = running.tag,
            None => model.stage_registers(),
        }
    }

    fn who_runs(&self, plugin: &Plugin, model: &mut Model) -> Option<Running> {
        let guest = self.guest.as_ref()?;
        let mailbox = model.mailbox;
        let (process, task) = guest.process(&plugin.api, mailbox.as_ref());
        if model.leaves_out(|| guest.thread(&plugin.api, mailbox.as_ref()?, task?)) {
            return None;
        }
        let account = model.account(process, || guest.parent(&plugin.api, mailbox.as_ref()?, task?))?;
        let number = match process {
            Process::Tgid(tgid) => tgid.into(),
            Process::PageTables(tables) => (tables >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 42,
        };
        Some(Running { process, account, tag: (number & PROCESS_BITS) << PROCESS_SHIFT })
    }
}
