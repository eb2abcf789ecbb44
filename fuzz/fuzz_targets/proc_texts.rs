//! Any text in place of `/proc`'s and sysfs's files is read or refused, and never panics.

#![no_main]

use std::path::Path;

use isotherm_linux::accessed_bits::fuzz_smaps;
use isotherm_linux::files::{decimal, hexadecimal, list};
use isotherm_linux::memory::maps;
use isotherm_linux::perf::pmu;
use isotherm_linux::process::ProcessStat;
use isotherm_linux::topology::{cpu::Cpu, fuzz_meminfo, fuzz_zoneinfo};
use isotherm_linux::virtual_pmu::fuzz_symbols;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut mappings = Vec::new();
    if let Err(error) = maps::parse(bytes, Path::new("maps"), &mut mappings) {
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    assert!(mappings.iter().all(|mapping| mapping.start < mapping.end));
    let _ = ProcessStat::parse(bytes);
    fuzz_smaps(bytes);
    fuzz_symbols(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = Cpu::parse(text);
    fuzz_meminfo(text);
    fuzz_zoneinfo(text);
    pmu::fuzz(text);
    let _ = (decimal::<u64>(text), hexadecimal(text));
    assert!(list(text).is_none_or(|numbers| numbers.is_sorted()));
});
