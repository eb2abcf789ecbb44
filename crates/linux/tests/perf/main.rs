//! The whole sampling path on the real kernel, by page faults with addresses, which need no PMU.
//!
//! The observed programs are this test binary in another role ([`child`]).

mod child;
mod counters;
mod inheritance;
mod rates;
mod refusals;
mod rings;
mod support;
