//! QEMU's plugin interface, as Isotherm's two plugins share it: its types, the lookup of its functions in
//! the running QEMU, the meaning of an access, the reading of options and shared mappings.
//!
//! No package has QEMU's header, and plugins do not link against its functions. A plugin declares those that
//! it uses with [`api!`](crate::api!) and finds them when it is loaded, so one shared object serves several
//! versions of QEMU.
//!
//! ```
//! // A function of the running program is found by its name; one that it lacks is not.
//! assert!(isotherm_qemu_api::find(c"malloc").is_some());
//! assert!(isotherm_qemu_api::find(c"qemu_plugin_of_another_version").is_none());
//! ```
#![allow(unsafe_code)]
#![allow(missing_docs, reason = "an internal crate: documented where a name does not say it")]

pub mod access;
mod mapping;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

pub use mapping::map_shared;

pub type PluginId = u64;

#[repr(C)]
pub struct Block {
    _private: [u8; 0],
}

#[repr(C)]
pub struct Instruction {
    _private: [u8; 0],
}

/// Callback before a block or an instruction runs: the vCPU and the data registered with it.
pub type BlockCallback = extern "C" fn(c_uint, *mut c_void);
/// Callback after a memory access: vCPU, access ([`access::kind`]), address, and the data registered with it.
pub type MemoryCallback = extern "C" fn(c_uint, u32, u64, *mut c_void);
pub type VcpuCallback = extern "C" fn(PluginId, c_uint);
pub type TranslateCallback = extern "C" fn(PluginId, *mut Block);
pub type SimpleCallback = extern "C" fn(PluginId);
pub type ExitCallback = extern "C" fn(PluginId, *mut c_void);

/// `QEMU_PLUGIN_CB_NO_REGS`: the callback reads no registers.
pub const NO_REGISTERS: c_int = 0;
/// `QEMU_PLUGIN_MEM_RW`. Narrower filters fail: 7.2 gives loads to callbacks registered for stores.
pub const READS_AND_WRITES: c_int = 3;

/// Looks up a function of QEMU, or of a library that it is linked with.
pub fn find(symbol: &CStr) -> Option<*mut c_void> {
    // SAFETY: a lookup by a terminated name in the objects loaded already.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Returns the options that QEMU passes to a plugin's `qemu_plugin_install`.
///
/// # Safety
/// `options` points to `count` pointers to terminated strings, all alive and unchanged for `'a`.
pub unsafe fn options<'a>(count: c_int, options: *const *const c_char) -> impl Iterator<Item = &'a CStr> {
    // SAFETY: the caller's contract; every index is below `count`.
    (0..usize::try_from(count).unwrap_or(0)).map(move |index| unsafe { CStr::from_ptr(*options.add(index)) })
}

/// Declares a struct `Api` of QEMU's functions: those that both plugins use, and the given ones.
///
/// `Api::load` looks all of them up by their symbols, and `Api::access` tells what an access is. Each
/// function must have the declared signature in every version of QEMU that the plugin loads in.
#[macro_export]
macro_rules! api {
    ($($own:tt)*) => {
        $crate::declare_api! {
            block_length = c"qemu_plugin_tb_n_insns": fn(*const $crate::Block) -> usize;
            instruction = c"qemu_plugin_tb_get_insn": fn(*const $crate::Block, usize) -> *mut $crate::Instruction;
            /// Returns the size of an access, as a power of two.
            access_shift = c"qemu_plugin_mem_size_shift": fn(u32) -> ::std::ffi::c_uint;
            is_store = c"qemu_plugin_mem_is_store": fn(u32) -> bool;
            /// Registers a callback after an instruction's accesses.
            on_memory = c"qemu_plugin_register_vcpu_mem_cb": fn(
                *mut $crate::Instruction,
                $crate::MemoryCallback,
                ::std::ffi::c_int,
                ::std::ffi::c_int,
                *mut ::std::ffi::c_void,
            );
            on_translate = c"qemu_plugin_register_vcpu_tb_trans_cb":
                fn($crate::PluginId, $crate::TranslateCallback);
            on_start = c"qemu_plugin_register_vcpu_init_cb": fn($crate::PluginId, $crate::VcpuCallback);
            on_exit = c"qemu_plugin_register_atexit_cb":
                fn($crate::PluginId, $crate::ExitCallback, *mut ::std::ffi::c_void);
            $($own)*
        }

        impl Api {
            /// Tells what the word `access` of a memory callback means.
            #[inline]
            pub(crate) fn access(&self, access: u32) -> $crate::access::Kind {
                // SAFETY: these are QEMU's two functions, and the word is a callback's.
                unsafe { $crate::access::kind(self.access_shift, self.is_store, access) }
            }
        }
    };
}

/// Declares a struct `Api` of exactly the given functions, for [`api!`](crate::api!).
#[doc(hidden)]
#[macro_export]
macro_rules! declare_api {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal: fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        #[derive(Clone, Copy)]
        pub(crate) struct Api {
            $($(#[$doc])* pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Api {
            /// Looks all functions up. The error is the first symbol that this QEMU lacks.
            pub(crate) fn load() -> Result<Self, &'static ::std::ffi::CStr> {
                Ok(Self {
                    $($name: {
                        let symbol = $crate::find($symbol).ok_or($symbol)?;
                        // SAFETY: QEMU's function of this name has this signature in all declared versions.
                        unsafe {
                            ::std::mem::transmute::<
                                *mut ::std::ffi::c_void,
                                unsafe extern "C" fn($($argument),*) $(-> $result)?,
                            >(symbol)
                        }
                    },)*
                })
            }
        }
    };
}
