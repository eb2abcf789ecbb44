//! The access trace: what is recorded of a program, on disk and in memory.

#![forbid(unsafe_code)]

mod contain;
mod error;
mod format;
mod group_reader;
pub mod import;
mod pages;
mod part_reader;
mod part_writer;
mod provenance;
mod reader;
pub mod record;
mod rows;
mod writer;

pub use error::TraceError;
pub use format::{FORMAT_VERSION, PROVENANCE_KEY, VERSION_KEY};
pub use provenance::Provenance;
pub use reader::TraceReader;
pub use rows::{Row, Rows};
pub use writer::{TraceSummary, TraceWriter};
