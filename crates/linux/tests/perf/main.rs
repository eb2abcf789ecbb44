//! The whole sampling path on the real kernel, by page faults with addresses: no PMU is needed for these.
//!
//! The programs that are observed are this test binary again, in a role ([`child`]).

mod child;
mod counters;
mod inheritance;
mod rates;
mod refusals;
mod rings;
mod support;
