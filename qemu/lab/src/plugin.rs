//! The plugin's state: QEMU's functions, the model and the guest's last request.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use isotherm_virtual_pmu::layout::word;

use crate::api::{Api, Counter, Scoreboard};
use crate::exclusive::{Exclusive, Guard};
use crate::latest::Latest;
use crate::model::Model;
use crate::shared_memory::Memory;

static PLUGIN: OnceLock<Plugin> = OnceLock::new();

pub(crate) struct Plugin {
    pub(crate) api: Api,
    model: Exclusive<Model>,
    /// The cache's most recent lines, which are looked up without the model.
    pub(crate) latest: Latest,
    memory: Memory,
    /// Last doorbell answered.
    answered: AtomicU64,
    generation: AtomicU64,
    /// Whether the virtual machine has a profiling device, whose registers are watched.
    pub(crate) has_registers: bool,
    scoreboard: *mut Scoreboard,
}

// SAFETY: any thread may use QEMU's scoreboard; everything else is `Send` and `Sync` by itself.
unsafe impl Send for Plugin {}
// SAFETY: as above.
unsafe impl Sync for Plugin {}

/// Returns the state, or `None` before the plugin is installed.
#[inline(always)]
pub(crate) fn get() -> Option<&'static Plugin> {
    PLUGIN.get()
}

impl Plugin {
    /// Installs the state of a machine of so many vCPUs. Returns `None` if a state is installed already.
    pub(crate) fn install(api: Api, model: Model, memory: Memory, vcpus: u16) -> Option<&'static Self> {
        // SAFETY: a counter for each vCPU.
        let scoreboard = unsafe { (api.new_scoreboard)(size_of::<u64>()) };
        let plugin = Self {
            api,
            has_registers: model.profiler.is_some(),
            latest: Latest::new(model.geometry()),
            model: Exclusive::new(model, vcpus == 1),
            memory,
            answered: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            scoreboard,
        };
        PLUGIN.set(plugin).ok()?;
        get()
    }

    /// Lends the model to a callback of a vCPU.
    #[inline(always)]
    pub(crate) fn lock(&self) -> Guard<'_, Model> {
        self.model.lock()
    }

    /// Lends the model to the thread that ends QEMU.
    pub(crate) fn lock_at_exit(&self) -> Guard<'_, Model> {
        self.model.take_back();
        self.model.lock()
    }

    pub(crate) fn instructions(&self) -> Counter {
        Counter { scoreboard: self.scoreboard, offset: 0 }
    }

    /// Returns whether a doorbell of the guest waits for its answer: a load of the shared memory.
    #[inline(always)]
    pub(crate) fn is_called(&self) -> bool {
        self.doorbell() != self.answered.load(Ordering::Relaxed)
    }

    /// Returns the doorbell that was answered last.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn doorbell(&self) -> u64 {
        self.memory.get(word::DOORBELL).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Returns the number of the request in force.
    #[inline(always)]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Applies the guest's requests if it has rung.
    pub(crate) fn obey(&self, model: &mut Model) {
        let doorbell = self.doorbell();
        if doorbell != self.answered.load(Ordering::Relaxed) {
            model.obey(doorbell);
            self.answered.store(doorbell, Ordering::Relaxed);
            self.generation.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the physical address of the current callback's access; `None` if the TLB does not have it.
    pub(crate) fn physical(&self, access: u32, address: u64) -> Option<u64> {
        // SAFETY: called during a memory callback, as QEMU demands; the handle is used at once.
        unsafe {
            let handle = (self.api.hardware_address)(access, address);
            (!handle.is_null()).then(|| (self.api.physical_address)(handle))
        }
    }
}
