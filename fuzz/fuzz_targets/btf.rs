//! Any bytes as the kernel's type information give offsets or none, in bounded time.

#![no_main]

use isotherm_linux::virtual_pmu::fuzz_btf;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzz_btf(bytes));
