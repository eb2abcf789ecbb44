//! Any greeting of an agent and any words in the memory that it shares give records or a refusal, and never a
//! panic or an endless loop.

#![no_main]

use isotherm_linux::hint_faults::{fuzz_agent, fuzz_mapping};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<(u16, u64)>, &[u8])| {
    let (words, hello) = input;
    fuzz_agent(hello, &words);
    fuzz_mapping(hello);
});
