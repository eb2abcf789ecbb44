//! The access trace: what is recorded of a program, on disk and in memory.

mod rows;

pub use rows::{Row, Rows};
