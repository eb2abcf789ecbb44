//! Defines the plugin's one state: QEMU's functions, the model, and what the guest has asked for last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use isotherm_qemu_api::access::Tell;
use isotherm_virtual_pmu::layout::word;

use crate::api::{Api, Counter, Scoreboard};
use crate::model::{Memory, Model};

static PLUGIN: OnceLock<Plugin> = OnceLock::new();

/// The state.
pub(crate) struct Plugin {
    /// QEMU's functions.
    pub(crate) api: Api,
    /// Those that tell what an access is.
    pub(crate) tell: Tell,
    /// Everything that vCPUs share.
    pub(crate) model: Mutex<Model>,
    memory: Memory,
    /// The doorbell that was answered last.
    answered: AtomicU64,
    /// Grows with each answer.
    generation: AtomicU64,
    /// Whether the machine has a profiling device, whose registers are to be watched.
    pub(crate) has_registers: bool,
    scoreboard: *mut Scoreboard,
}

// SAFETY: the scoreboard is QEMU's, which may be asked by any thread; everything else is `Send` and `Sync` by itself.
unsafe impl Send for Plugin {}
// SAFETY: as above.
unsafe impl Sync for Plugin {}

/// The state; `None` before the plugin is installed.
#[inline(always)]
pub(crate) fn get() -> Option<&'static Plugin> {
    PLUGIN.get()
}

impl Plugin {
    /// Makes this the state. `None` if there is one already.
    pub(crate) fn install(api: Api, model: Model, memory: Memory) -> Option<&'static Self> {
        // SAFETY: the two functions of QEMU.
        let tell = unsafe { Tell::new(api.access_shift, api.is_store) };
        // SAFETY: an element for each vCPU, as large as a counter.
        let scoreboard = unsafe { (api.new_scoreboard)(size_of::<u64>()) };
        let has_registers = model.has_neoprof();
        let plugin = Self {
            api,
            tell,
            has_registers,
            model: Mutex::new(model),
            memory,
            answered: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            scoreboard,
        };
        PLUGIN.set(plugin).ok()?;
        get()
    }

    /// The counter of each vCPU's instructions.
    pub(crate) fn instructions(&self) -> Counter {
        Counter { scoreboard: self.scoreboard, offset: 0 }
    }

    /// Whether the guest has rung and was not answered yet: a load of the shared memory.
    #[inline(always)]
    pub(crate) fn is_called(&self) -> bool {
        self.doorbell() != self.answered.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn doorbell(&self) -> u64 {
        self.memory.get(word::DOORBELL).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// The number of the requests in force.
    #[inline(always)]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Takes over what the guest asks for, if it has rung.
    pub(crate) fn obey(&self, model: &mut Model) {
        let doorbell = self.doorbell();
        if doorbell != self.answered.load(Ordering::Relaxed) {
            model.obey(doorbell);
            self.answered.store(doorbell, Ordering::Relaxed);
            self.generation.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Where an access of the callback under way lies in physical memory; `None` if the TLB does not have it.
    pub(crate) fn physical(&self, access: u32, address: u64) -> Option<u64> {
        // SAFETY: called during a memory callback, as QEMU asks; the handle is used at once.
        unsafe {
            let handle = (self.api.hardware_address)(access, address);
            (!handle.is_null()).then(|| (self.api.physical_address)(handle))
        }
    }
}
