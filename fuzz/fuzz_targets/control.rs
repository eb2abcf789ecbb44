//! Any line at the control socket is an order or gets one line of error, and a policy takes its settings or
//! refuses them.

#![no_main]

use isotherm_live::policy_run::fuzz_order;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &str| fuzz_order(line));
