//! The recorder's QEMU plugin: it runs inside `qemu-x86_64`, sees every memory access of the guest program,
//! and records those that miss a modelled last-level cache.
//!
//! One shared object serves QEMU's plugin API 1 (Debian 12's 7.2) to 4 (10.0): a constructor sets
//! `qemu_plugin_version`, which QEMU reads after loading the object, to a version that this QEMU offers.
//!
//! The parts, bottom up: `pool` (the chunks of the file shared with the recorder), `filter` and `cache` (the
//! model), `address`, `summary` and `group` (what an instruction does, and which accesses one call reports),
//! `dependence` and `follower` (the miss that an address depends on), `vcpu` (a guest thread), `recorder`
//! (the process), `mappings` (what its memory holds), `invocation` and `exec` (recording what the guest
//! executes), `callbacks` (the functions that QEMU calls).
//!
//! Nothing here may panic or print: the guest's output, descriptors and exit status are its own.
#![allow(unsafe_code)]
#![allow(missing_docs, reason = "an internal crate: documented where a name does not say it")]

mod address;
mod api;
mod cache;
mod callbacks;
mod dependence;
mod exec;
mod filter;
mod follower;
mod group;
mod invocation;
mod mappings;
mod pool;
mod recorder;
mod stamp;
mod summary;
mod vcpu;

use std::ffi::{OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};

use isotherm_qemu_api::PluginId;

#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "QEMU's name")]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE_VERSION: extern "C" fn() = choose_version;

extern "C" fn choose_version() {
    qemu_plugin_version.store(api::version(), Ordering::Relaxed);
}

/// QEMU's entry. Its options are `pool=PATH` and, after an `exec`, `previous=PROCESS`. A result other than 0
/// would end QEMU: where the plugin cannot work, the program runs untraced.
///
/// # Safety
/// QEMU's contract: `options` points to `count` terminated strings, alive during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: PluginId,
    _info: *const c_void,
    count: c_int,
    options: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's contract.
    let options = unsafe { isotherm_qemu_api::options(count, options) };
    let (mut path, mut previous) = (None, None);
    for option in options {
        let bytes = option.to_bytes();
        if let Some(value) = bytes.strip_prefix(b"pool=") {
            path = Some(OsStr::from_bytes(value).into());
        } else if let Some(value) = bytes.strip_prefix(b"previous=") {
            previous = str::from_utf8(value).ok().and_then(|number| number.parse().ok());
        }
    }
    let _ = install(id, path, previous);
    0
}

fn install(id: PluginId, path: Option<PathBuf>, previous: Option<u32>) -> Option<()> {
    let pool = pool::Pool::open(path?)?;
    if let Some(process) = previous {
        pool.release_process(process);
    }
    let recorder = recorder::Recorder::new(api::Api::load().ok()?, pool, invocation::Invocation::current()?)?;
    callbacks::register(recorder.install()?, id);
    Some(())
}
