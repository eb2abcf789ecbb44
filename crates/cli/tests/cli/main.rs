//! The `isotherm` binary from end to end: exit codes, output streams and written files.

mod alloc_run;
mod bad_input;
mod calibrate;
mod compare;
mod daemon;
mod doctor;
mod documents;
mod generated;
mod golden;
mod limits;
mod listings;
mod live;
mod long;
mod objects;
mod paths;
mod policy;
mod record;
mod record_faults;
mod score;
mod security;
mod simulate;
mod size;
mod support;
mod top;
mod traces;
#[allow(unreachable_pub, reason = "shared with the tests of reports")]
#[path = "../../../report/tests/support/validator.rs"]
mod validator;
