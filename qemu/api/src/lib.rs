//! Defines what Isotherm's plugins share of QEMU's plugin interface: its types, the lookup of its functions in the
//! running QEMU, and what an access is.
//!
//! QEMU's header is in no package, and its functions are not linked against: a plugin declares those that it uses with
//! [`api!`](crate::api!) and finds them when it is loaded, so one shared object serves several versions.
#![allow(unsafe_code)]

pub mod access;

use std::ffi::{CStr, c_int, c_uint, c_void};

/// QEMU's handle of a plugin.
pub type PluginId = u64;

/// A translation block, opaque.
#[repr(C)]
pub struct Block {
    _private: [u8; 0],
}

/// An instruction of a translation block, opaque.
#[repr(C)]
pub struct Instruction {
    _private: [u8; 0],
}

/// Called before a block, or an instruction, runs: the vCPU and the data registered with it.
pub type BlockCallback = extern "C" fn(c_uint, *mut c_void);
/// Called after a memory access, with what it was, where, and the data registered with it.
pub type MemoryCallback = extern "C" fn(c_uint, u32, u64, *mut c_void);
/// Called with a vCPU's index.
pub type VcpuCallback = extern "C" fn(PluginId, c_uint);
/// Called when a block is translated.
pub type TranslateCallback = extern "C" fn(PluginId, *mut Block);
/// Called without arguments.
pub type SimpleCallback = extern "C" fn(PluginId);
/// Called when QEMU ends.
pub type ExitCallback = extern "C" fn(PluginId, *mut c_void);

/// `QEMU_PLUGIN_CB_NO_REGS`: the callback reads no registers.
pub const NO_REGISTERS: c_int = 0;
/// `QEMU_PLUGIN_MEM_RW`. The narrower filters do not work: 7.2 gives loads to callbacks registered for stores.
pub const READS_AND_WRITES: c_int = 3;

/// A function of QEMU, or of what it is linked with; `None` where it has none of this name.
pub fn find(symbol: &CStr) -> Option<*mut c_void> {
    // SAFETY: a lookup by a terminated name in the objects loaded already.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Declares a struct `Api` of functions that are looked up by their symbols, with `Api::load`. Each has to have the
/// declared signature in every version of QEMU that the plugin loads in.
#[macro_export]
macro_rules! api {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal: fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        /// QEMU's functions.
        #[derive(Clone, Copy)]
        pub(crate) struct Api {
            $($(#[$doc])* pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Api {
            /// Looks all of them up; the symbol of the first that is missing if there is one.
            pub(crate) fn load() -> Result<Self, &'static ::std::ffi::CStr> {
                Ok(Self {
                    $($name: {
                        let symbol = $crate::find($symbol).ok_or($symbol)?;
                        // SAFETY: the symbol is QEMU's function of this name, which has this signature in every version
                        // that the plugin declares to work with.
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
