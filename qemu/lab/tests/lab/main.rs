//! The plugin in QEMU: what it counts, and what it refuses.

mod machine;
mod refusals;
mod support;
