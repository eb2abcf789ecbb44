//! Any text as a machine of the lab gives a valid machine or one line of error.

#![no_main]

use isotherm_lab::machine::Machine;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = Machine::parse(text, "fuzz.toml") {
        assert!(!error.to_string().contains('\n'), "{error}");
    }
});
