//! The lab's QEMU plugin: it sees every access of user-mode code inside `qemu-system-x86_64`, models a last-level cache,
//! finds the memory tier of each miss by its physical address, charges it by the simulator's cost model, and samples
//! misses into memory that it shares with the guest: the *virtual PMU* ([`isotherm_virtual_pmu`]).
//!
//! Arguments: `bar=FILE` (of the `ivshmem-plain` device), `result=FILE` (JSON), `machine=FILE` (a machine profile),
//! `tierN=START-END` (physical addresses; several joined by `+`) for each tier, and to override the profile `llc=SIZE`
//! and `ways=N`. It counts nothing until the guest asks. With `neoprof=FILE` (of a second such device) it is a NeoProf in front of the
//! last tier too: the model, or with `neoprof-rtl=LIBRARY` the simulated hardware; `neoprof-fault=KIND` lets it go wrong.
//!
//! The parts, bottom up: `ranges` and `options`; `sampler`, `history`, `accounts` and `report` (what is counted);
//! `neoprof` (the profiling device); `model` (what becomes of an access); `api`, `shared_memory` and `guest` (what QEMU and the guest tell); `plugin`
//! and `vcpu` (the state); `callbacks` (what QEMU calls).
//!
//! What it does not see: the kernel's own accesses, and so the copying of migrated pages. The cache is looked up by
//! process and virtual address: memory that processes share counts for each of them, and a page that was migrated is
//! still cached.
#![allow(unsafe_code)]

mod accounts;
mod api;
mod callbacks;
mod guest;
mod history;
mod model;
mod neoprof;
mod options;
mod plugin;
mod ranges;
mod report;
mod sampler;
mod shared_memory;
mod vcpu;

use std::ffi::{CStr, c_char, c_int};

use api::{Api, Info, VERSION};
use model::Model;
use neoprof::NeoProf;
use options::Options;
use plugin::Plugin;

/// The API version that QEMU checks.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "QEMU's name")]
pub static qemu_plugin_version: c_int = VERSION;

/// QEMU's entry. A result other than 0 ends QEMU, after one line on standard error that says why.
///
/// # Safety
/// QEMU's contract: `info` is valid and `options` are `count` terminated strings, alive during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    info: *const Info,
    count: c_int,
    options: *const *const c_char,
) -> c_int {
    let text = |index: usize| {
        // SAFETY: the caller's contract.
        unsafe { CStr::from_ptr(*options.add(index)) }.to_string_lossy().into_owned()
    };
    let options: Vec<String> = (0..usize::try_from(count).unwrap_or(0)).map(text).collect();
    // SAFETY: the caller's contract.
    let machine = unsafe { info.as_ref() }.ok_or_else(|| "QEMU tells no machine".to_owned());
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
    let neoprof = profiling_device(&options)?;
    let mut model = Model::new(options, memory, vcpus).map_err(|error| error.to_string())?;
    model.attach(neoprof);
    let plugin = Plugin::install(api, model, memory).ok_or("loaded twice; expected one -plugin option")?;
    callbacks::register(plugin, id);
    Ok(())
}

/// The NeoProf that the machine is to have, if any.
fn profiling_device(options: &Options) -> Result<Option<NeoProf>, String> {
    let (Some(asked), Some(profile)) = (&options.neoprof, &options.profile.device) else { return Ok(None) };
    let wrong = |error: &dyn std::fmt::Display| format!("neoprof={}: {error}", asked.registers.display());
    let registers = shared_memory::map(&asked.registers).map_err(|error| wrong(&error))?;
    let last = options.profile.tiers.len() - 1;
    let ranges = options.ranges.of(last as u8).cloned().collect();
    let device = NeoProf::new(profile, asked.library.as_deref(), (registers, ranges), asked.fault);
    device.map(Some).map_err(|error| wrong(&error))
}

/// The number of vCPUs, if this is a QEMU and a machine that the plugin knows.
fn supported(info: &Info) -> Result<u16, String> {
    if info.version != VERSION {
        let found = info.version;
        return Err(format!(
            "this QEMU's plugin interface has version {found}; expected {VERSION} (QEMU 10.0, see docs/lab.md)"
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
