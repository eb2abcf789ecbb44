//! Defines the part of QEMU's plugin interface that the recorder uses.
//!
//! The functions are looked up in the running QEMU, so one shared object serves every version whose functions of these
//! names have these signatures: API 1 (Debian's 7.2) to 4 (10.0). `insn_data` changed and is not used.

use std::ffi::{CStr, c_int, c_uint, c_void};

/// QEMU's handle of this plugin.
pub(crate) type PluginId = u64;

/// A translation block, opaque.
#[repr(C)]
pub(crate) struct Block {
    _private: [u8; 0],
}

/// An instruction of a translation block, opaque.
#[repr(C)]
pub(crate) struct Instruction {
    _private: [u8; 0],
}

/// Called before a block runs.
pub(crate) type BlockCallback = extern "C" fn(c_uint, *mut c_void);
/// Called after a memory access, with what it was, where, and the data registered with it.
pub(crate) type MemoryCallback = extern "C" fn(c_uint, u32, u64, *mut c_void);
/// Called with a vCPU's index.
pub(crate) type VcpuCallback = extern "C" fn(PluginId, c_uint);
/// Called when a block is translated.
pub(crate) type TranslateCallback = extern "C" fn(PluginId, *mut Block);
/// Called without arguments.
pub(crate) type SimpleCallback = extern "C" fn(PluginId);
/// Called when QEMU ends the program.
pub(crate) type ExitCallback = extern "C" fn(PluginId, *mut c_void);
/// Called before a system call, with its number and eight arguments.
pub(crate) type SyscallCallback =
    extern "C" fn(PluginId, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);

/// `QEMU_PLUGIN_CB_NO_REGS`: the callback reads no registers.
pub(crate) const NO_REGISTERS: c_int = 0;
/// `QEMU_PLUGIN_MEM_RW`. The narrower filters do not work: 7.2 gives loads to callbacks registered for stores.
pub(crate) const READS_AND_WRITES: c_int = 3;

macro_rules! api {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// QEMU's functions.
        #[derive(Clone, Copy)]
        pub(crate) struct Api {
            $($(#[$doc])* pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Api {
            /// Looks all of them up; `None` if one is missing.
            pub(crate) fn load() -> Option<Self> {
                Some(Self {
                    $($name: {
                        let symbol = find($symbol)?;
                        // SAFETY: the symbol is QEMU's function of this name, which has had this signature in every
                        // version that offers the API versions this plugin declares.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>(symbol) }
                    },)*
                })
            }
        }
    };
}

api! {
    /// The number of instructions of a block.
    block_length = c"qemu_plugin_tb_n_insns": fn(*const Block) -> usize;
    /// An instruction of a block.
    instruction = c"qemu_plugin_tb_get_insn": fn(*const Block, usize) -> *mut Instruction;
    /// Its guest address.
    address = c"qemu_plugin_insn_vaddr": fn(*const Instruction) -> u64;
    /// Where its bytes lie in QEMU's memory.
    bytes = c"qemu_plugin_insn_haddr": fn(*const Instruction) -> *const u8;
    /// How many bytes it has.
    size = c"qemu_plugin_insn_size": fn(*const Instruction) -> usize;
    /// The size of an access, as a power of two.
    access_shift = c"qemu_plugin_mem_size_shift": fn(u32) -> c_uint;
    /// Whether an access is a store.
    is_store = c"qemu_plugin_mem_is_store": fn(u32) -> bool;
    /// Registers a [`BlockCallback`].
    on_block = c"qemu_plugin_register_vcpu_tb_exec_cb": fn(*mut Block, BlockCallback, c_int, *mut c_void);
    /// Registers a [`MemoryCallback`].
    on_memory = c"qemu_plugin_register_vcpu_mem_cb":
        fn(*mut Instruction, MemoryCallback, c_int, c_int, *mut c_void);
    /// Registers a [`TranslateCallback`].
    on_translate = c"qemu_plugin_register_vcpu_tb_trans_cb": fn(PluginId, TranslateCallback);
    /// Registers a [`VcpuCallback`] for the start of a vCPU.
    on_start = c"qemu_plugin_register_vcpu_init_cb": fn(PluginId, VcpuCallback);
    /// Registers a [`VcpuCallback`] for its end.
    on_end = c"qemu_plugin_register_vcpu_exit_cb": fn(PluginId, VcpuCallback);
    /// Registers a [`SimpleCallback`] for the moment when all translations are dropped.
    on_flush = c"qemu_plugin_register_flush_cb": fn(PluginId, SimpleCallback);
    /// Registers a [`SyscallCallback`].
    on_syscall = c"qemu_plugin_register_vcpu_syscall_cb": fn(PluginId, SyscallCallback);
    /// Registers an [`ExitCallback`].
    on_exit = c"qemu_plugin_register_atexit_cb": fn(PluginId, ExitCallback, *mut c_void);
}

fn find(symbol: &CStr) -> Option<*mut c_void> {
    // SAFETY: a lookup by a terminated name in the objects loaded already.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The API version to declare: QEMU 9.0 dropped version 1 and brought scoreboards.
pub(crate) fn version() -> c_int {
    if find(c"qemu_plugin_scoreboard_new").is_some() { 2 } else { 1 }
}
