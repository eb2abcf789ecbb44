//! The papers' applications: the real algorithm over a [`Memory`], seeded and scalable.

mod memory;

pub use memory::{Memory, Token};
