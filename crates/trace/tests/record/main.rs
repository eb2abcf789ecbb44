//! The recorder, on programs compiled here and on Debian's own. Needs qemu-user and gcc.

mod bench;
mod dependence;
mod endings;
mod programs;
mod refusals;
mod untraced;

pub(crate) use bench::Bench;
