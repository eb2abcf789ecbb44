//! The live host: tiers the memory of programs that run on this machine.
//!
//! The [`engine`] runs a policy on a [`host`] that learns accesses from `isotherm_linux`'s sources and moves pages by
//! its mover. [`inside`] is the same engine as a thread of the program itself; [`control`] changes a running engine.

#![forbid(unsafe_code)]

pub mod control;
pub mod engine;
pub mod host;
pub mod inside;
