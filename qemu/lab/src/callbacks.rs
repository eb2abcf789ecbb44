//! The functions that QEMU calls.
//!
//! User-mode code lies in the lower half of the address space, the kernel in the upper. Of the kernel only
//! the instructions that return to user mode are instrumented, so that it costs nothing else.

use std::ffi::{c_uint, c_void};
use std::ptr::{NonNull, null_mut};

use isotherm_qemu_api::{Block, NO_REGISTERS, PluginId, READS_AND_WRITES};

use crate::api::ADD;
use crate::guest::Guest;
use crate::plugin::{self, Plugin};
use crate::vcpu;

/// Registers every callback that does not belong to a block.
pub(crate) fn register(plugin: &Plugin, id: PluginId) {
    let api = &plugin.api;
    // SAFETY: `id` is this plugin's, and the callbacks have the types that QEMU expects.
    unsafe {
        (api.on_start)(id, started);
        (api.on_translate)(id, translated);
        (api.on_exit)(id, exiting, null_mut());
    }
}

extern "C" fn started(_: PluginId, index: c_uint) {
    let Some(plugin) = plugin::get() else { return };
    let guest = Guest::find(&plugin.api);
    // SAFETY: this is a callback of this vCPU, and there is no other reference.
    unsafe { vcpu::get(index) }.guest = guest;
}

extern "C" fn exiting(_: PluginId, _: *mut c_void) {
    if let Some(plugin) = plugin::get() {
        plugin.lock_at_exit().finish();
    }
}

extern "C" fn translated(_: PluginId, block: *mut Block) {
    let Some(plugin) = plugin::get() else { return };
    let api = &plugin.api;
    // SAFETY: `block` is valid during this call.
    let (address, length) = unsafe { ((api.block_address)(block), (api.block_length)(block)) };
    if address >> 47 != 0 {
        watch_return(plugin, block, length);
        return;
    }
    // SAFETY: the block and its instructions are valid during translation; the callbacks have the expected
    // types.
    unsafe {
        (api.count_block)(block, ADD, plugin.instructions(), length as u64);
        for index in 0..length {
            let instruction = (api.instruction)(block, index);
            (api.on_memory)(instruction, accessed, NO_REGISTERS, READS_AND_WRITES, null_mut());
        }
    }
}

/// Watches the block's last instruction if it may return to user mode; such an instruction ends a block.
fn watch_return(plugin: &Plugin, block: *mut Block, length: usize) {
    let api = &plugin.api;
    let Some(last) = length.checked_sub(1) else { return };
    let mut bytes = [0; 3];
    // SAFETY: `last` is an instruction of the block, which is valid during translation; copies no more than
    // fits.
    let (instruction, copied) = unsafe {
        let instruction = (api.instruction)(block, last);
        (instruction, (api.bytes)(instruction, bytes.as_mut_ptr().cast(), bytes.len()))
    };
    if returns(&bytes[..copied.min(bytes.len())]) {
        // SAFETY: as above; the callback has the expected type.
        unsafe { (api.on_instruction)(instruction, returning, NO_REGISTERS, null_mut()) };
    }
}

/// Returns whether an instruction is SYSRET, SYSEXIT or IRET of any operand size.
fn returns(bytes: &[u8]) -> bool {
    let rest = match bytes {
        [0x40..=0x4f | 0x66, rest @ ..] => rest,
        all => all,
    };
    matches!(rest, [0xcf, ..] | [0x0f, 0x07 | 0x35, ..])
}

extern "C" fn returning(index: c_uint, _: *mut c_void) {
    if let Some(plugin) = plugin::get() {
        // SAFETY: the scoreboard is the plugin's and has an element for every vCPU that has started. Another
        // vCPU that starts may move all elements, so each return looks the element up.
        let place = unsafe { (plugin.api.element)(plugin.instructions().scoreboard, index) };
        // SAFETY: this is a callback of this vCPU, and there is no other reference.
        let vcpu = unsafe { vcpu::get(index) };
        vcpu.instructions = NonNull::new(place.cast());
        vcpu.enter_user_mode(plugin, index);
    }
}

extern "C" fn accessed(index: c_uint, access: u32, address: u64, _: *mut c_void) {
    // SAFETY: this is a callback of this vCPU; the only reference ends before `other_line`.
    let vcpu = unsafe { vcpu::get(index) };
    if vcpu.repeats(access, address) {
        return;
    }
    let Some(plugin) = plugin::get() else { return };
    if !vcpu.changes_nothing(plugin, access, address) {
        other_line(index, access, address);
    }
}

#[inline(never)]
extern "C" fn other_line(index: c_uint, access: u32, address: u64) {
    if let Some(plugin) = plugin::get() {
        // SAFETY: this is a callback of this vCPU, and there is no other reference.
        unsafe { vcpu::get(index) }.access(plugin, index, access, address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_to_user_mode_are_recognised() {
        let all: [&[u8]; 5] = [&[0x48, 0x0f, 0x07], &[0x48, 0xcf], &[0xcf], &[0x0f, 0x07], &[0x0f, 0x35]];
        assert!(all.into_iter().all(returns));
        let others: [&[u8]; 6] = [&[0xc3], &[0x0f, 0x05], &[0x48, 0x8b, 0xcf], &[], &[0x48], &[0x0f]];
        assert!(!others.into_iter().any(returns));
    }
}
