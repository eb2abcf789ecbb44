//! Defines the part of QEMU's plugin interface that the recorder uses.
//!
//! The functions are looked up in the running QEMU, so one shared object serves every version whose functions of these
//! names have these signatures: API 1 (Debian's 7.2) to 4 (10.0). `insn_data` changed and is not used.

use std::ffi::{c_int, c_uint, c_void};

pub(crate) use isotherm_qemu_api::{
    Block, BlockCallback, ExitCallback, Instruction, MemoryCallback, NO_REGISTERS, PluginId,
    READS_AND_WRITES, SimpleCallback, TranslateCallback, VcpuCallback, find,
};

/// Called before a system call, with its number and eight arguments.
pub(crate) type SyscallCallback =
    extern "C" fn(PluginId, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);

isotherm_qemu_api::api! {
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

/// The API version to declare: QEMU 9.0 dropped version 1 and brought scoreboards.
pub(crate) fn version() -> c_int {
    if find(c"qemu_plugin_scoreboard_new").is_some() { 2 } else { 1 }
}
