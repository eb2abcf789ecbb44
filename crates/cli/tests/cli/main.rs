//! The `isotherm` binary from end to end: exit codes, what goes to which stream, and what is written.

mod alloc_run;
mod bad_input;
mod calibrate;
mod doctor;
mod documents;
mod generated;
mod golden;
mod listings;
mod live;
mod record;
mod score;
mod simulate;
mod size;
mod support;
mod traces;
