//! The lab's QEMU plugin. It sees every access of user-mode code inside `qemu-system-x86_64`, models a
//! last-level cache, finds the memory tier of each miss by its physical address, charges it by the
//! simulator's cost model, and samples misses into memory that it shares with the guest: the *virtual PMU*
//! ([`isotherm_virtual_pmu`]).
//!
//! `docs/reference/virtual-pmu.md` lists its arguments. It counts nothing until the guest asks.
//!
//! The parts, bottom up: `ranges` and `options`; `sampler`, `history`, `accounts` and `report` (counts);
//! `device` (the profiling device); `model` (the effects of an access); `latest` (the filter before it) and
//! `exclusive` (who uses it); `api`, `shared_memory` and `guest` (QEMU's and the guest's state); `plugin` and
//! `vcpu` (the plugin's state); `callbacks` (the functions that QEMU calls).
//!
//! It does not see the kernel's own accesses, and so not the copying of migrated pages. The cache is looked
//! up by process and virtual address: memory that processes share counts for each of them, and a migrated
//! page is still cached.
#![allow(unsafe_code)]
#![allow(missing_docs, reason = "an internal crate: documented where a name does not say it")]

mod accounts;
mod api;
mod callbacks;
mod device;
mod exclusive;
mod guest;
mod history;
mod latest;
mod model;
mod options;
mod plugin;
mod ranges;
mod report;
mod sampler;
mod shared_memory;
mod vcpu;

use std::ffi::{CStr, c_char, c_int};

use api::{Api, Info, VERSION};
use device::Profiler;
use model::Model;
use options::Options;
use plugin::Plugin;

#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "QEMU's name")]
pub static qemu_plugin_version: c_int = VERSION;

/// QEMU's entry. A result other than 0 ends QEMU, after one line on standard error that tells the reason.
///
/// # Safety
/// QEMU's contract: `info` is valid and `options` points to `count` terminated strings, all alive during the
/// call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    info: *const Info,
    count: c_int,
    options: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's contract.
    let options = unsafe { isotherm_qemu_api::options(count, options) };
    let options: Vec<String> = options.map(|option| option.to_string_lossy().into_owned()).collect();
    // SAFETY: the caller's contract.
    let machine = unsafe { info.as_ref() }.ok_or_else(|| "QEMU does not describe its machine".to_owned());
    match machine.and_then(|info| install(id, info, &options)) {
        Ok(()) => 0,
        Err(message) => {
            eprintln!("isotherm-lab-plugin: {message}");
            1
        }
    }
}

fn install(id: u64, info: &Info, options: &[String]) -> Result<(), String> {
    let vcpus = supported(info)?;
    let options = Options::read(options).map_err(|error| error.to_string())?;
    let memory = shared_memory::map(&options.bar)
        .map_err(|error| format!("bar={}: {error}", options.bar.display()))?;
    let api = Api::load().map_err(|symbol| {
        format!("this QEMU has no {}; expected QEMU 10.0 with plugins", symbol.to_string_lossy())
    })?;
    let profiler = profiling_device(&options)?;
    let mut model = Model::new(options, memory, vcpus).map_err(|error| error.to_string())?;
    model.profiler = profiler;
    let plugin =
        Plugin::install(api, model, memory, vcpus).ok_or("loaded twice; expected one -plugin option")?;
    callbacks::register(plugin, id);
    Ok(())
}

fn profiling_device(options: &Options) -> Result<Option<Profiler>, String> {
    let (Some(asked), Some(profile)) = (&options.device, &options.profile.device) else { return Ok(None) };
    let wrong = |error: &dyn std::fmt::Display| format!("device={}: {error}", asked.registers.display());
    let registers = shared_memory::map(&asked.registers).map_err(|error| wrong(&error))?;
    let last = options.profile.tiers.len() - 1;
    let ranges = options.ranges.of(last as u8).cloned().collect();
    let device =
        Profiler::new(asked.kind, profile, asked.library.as_deref(), (registers, ranges), asked.fault);
    device.map(Some).map_err(|error| wrong(&error))
}

/// Returns the number of vCPUs, or an error unless the plugin supports this QEMU and virtual machine.
fn supported(info: &Info) -> Result<u16, String> {
    if info.version != VERSION {
        let found = info.version;
        return Err(format!(
            "this QEMU's plugin interface has version {found}; expected {VERSION} (QEMU 10.0, see docs/guide/lab.md)"
        ));
    }
    // SAFETY: QEMU's name of its target is a terminated string.
    let target = (!info.target.is_null()).then(|| unsafe { CStr::from_ptr(info.target) });
    if !info.is_system || target != Some(c"x86_64") {
        return Err("expected qemu-system-x86_64".into());
    }
    match usize::try_from(info.most_vcpus) {
        Ok(count @ 1..=vcpu::MAX) => Ok(count as u16),
        _ => Err(format!("{} processors; expected 1 to {}", info.most_vcpus, vcpu::MAX)),
    }
}
