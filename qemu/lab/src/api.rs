//! The part of QEMU's plugin interface, version 4 (QEMU 10.0), that this plugin uses.

use std::ffi::{c_char, c_int, c_uint, c_void};

use isotherm_qemu_api::{Block, BlockCallback, Instruction};

pub(crate) const VERSION: c_int = 4;
/// `QEMU_PLUGIN_INLINE_ADD_U64`.
pub(crate) const ADD: c_int = 0;

/// `qemu_info_t`: the virtual machine that QEMU emulates.
#[repr(C)]
pub struct Info {
    pub(crate) target: *const c_char,
    pub(crate) least_version: c_int,
    pub(crate) version: c_int,
    pub(crate) is_system: bool,
    pub(crate) vcpus: c_int,
    pub(crate) most_vcpus: c_int,
}

#[repr(C)]
pub(crate) struct Scoreboard {
    _private: [u8; 0],
}

/// `qemu_plugin_u64`: a number in each element of a scoreboard.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Counter {
    pub(crate) scoreboard: *mut Scoreboard,
    pub(crate) offset: usize,
}

#[repr(C)]
pub(crate) struct Physical {
    _private: [u8; 0],
}

/// `GByteArray`, as GLib documents it.
#[repr(C)]
pub(crate) struct ByteArray {
    pub(crate) data: *mut u8,
    pub(crate) length: c_uint,
}

/// `GArray`, as GLib documents it.
#[repr(C)]
pub(crate) struct Array {
    pub(crate) data: *mut c_char,
    pub(crate) length: c_uint,
}

/// `qemu_plugin_reg_descriptor`.
#[repr(C)]
pub(crate) struct RegisterDescriptor {
    pub(crate) handle: *mut c_void,
    pub(crate) name: *const c_char,
    pub(crate) feature: *const c_char,
}

isotherm_qemu_api::api! {
    block_address = c"qemu_plugin_tb_vaddr": fn(*const Block) -> u64;
    /// Copies the beginning of an instruction's bytes and returns their number.
    bytes = c"qemu_plugin_insn_data": fn(*const Instruction, *mut c_void, usize) -> usize;
    /// Translates a virtual address during a memory callback; null if the TLB does not have it.
    hardware_address = c"qemu_plugin_get_hwaddr": fn(u32, u64) -> *mut Physical;
    physical_address = c"qemu_plugin_hwaddr_phys_addr": fn(*const Physical) -> u64;
    new_scoreboard = c"qemu_plugin_scoreboard_new": fn(usize) -> *mut Scoreboard;
    /// Returns a vCPU's element, which may move when a vCPU starts.
    element = c"qemu_plugin_scoreboard_find": fn(*mut Scoreboard, c_uint) -> *mut c_void;
    /// Returns the registers of the vCPU that is starting.
    registers = c"qemu_plugin_get_registers": fn() -> *mut Array;
    /// Appends a register of the current vCPU to an array, and returns its size or a negative number.
    read_register = c"qemu_plugin_read_register": fn(*mut c_void, *mut ByteArray) -> c_int;
    read_memory = c"qemu_plugin_read_memory_vaddr": fn(u64, *mut ByteArray, usize) -> bool;
    new_bytes = c"g_byte_array_new": fn() -> *mut ByteArray;
    resize_bytes = c"g_byte_array_set_size": fn(*mut ByteArray, c_uint) -> *mut ByteArray;
    count_block = c"qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu": fn(*mut Block, c_int, Counter, u64);
    on_instruction = c"qemu_plugin_register_vcpu_insn_exec_cb":
        fn(*mut Instruction, BlockCallback, c_int, *mut c_void);
}
