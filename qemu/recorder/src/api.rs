//! The part of QEMU's plugin interface that the recorder uses.
//!
//! One shared object serves every QEMU whose functions of these names have these signatures: API 1 (Debian's
//! 7.2) to 4 (10.0). `insn_data` changed and is not used.

use std::ffi::{c_int, c_uint, c_void};

use isotherm_qemu_api::{Block, BlockCallback, Instruction, PluginId, SimpleCallback, VcpuCallback, find};

/// Callback before a system call, with its number and eight arguments.
pub(crate) type SyscallCallback =
    extern "C" fn(PluginId, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);

/// Callback after a system call, with its number and result.
pub(crate) type SyscallReturnCallback = extern "C" fn(PluginId, c_uint, i64, i64);

isotherm_qemu_api::api! {
    address = c"qemu_plugin_insn_vaddr": fn(*const Instruction) -> u64;
    /// Returns where an instruction's bytes lie in QEMU's memory.
    bytes = c"qemu_plugin_insn_haddr": fn(*const Instruction) -> *const u8;
    size = c"qemu_plugin_insn_size": fn(*const Instruction) -> usize;
    on_block = c"qemu_plugin_register_vcpu_tb_exec_cb": fn(*mut Block, BlockCallback, c_int, *mut c_void);
    on_end = c"qemu_plugin_register_vcpu_exit_cb": fn(PluginId, VcpuCallback);
    /// Registers a callback for the moments when QEMU drops all translations.
    on_flush = c"qemu_plugin_register_flush_cb": fn(PluginId, SimpleCallback);
    on_syscall = c"qemu_plugin_register_vcpu_syscall_cb": fn(PluginId, SyscallCallback);
    on_syscall_return = c"qemu_plugin_register_vcpu_syscall_ret_cb": fn(PluginId, SyscallReturnCallback);
}

/// Returns the API version to declare: QEMU 9.0 dropped version 1 and brought scoreboards.
pub(crate) fn version() -> c_int {
    if find(c"qemu_plugin_scoreboard_new").is_some() { 2 } else { 1 }
}
