//! The access trace: accesses of a program that missed the last-level cache, on disk and in memory.
//!
//! [`record`] records programs, [`import`] reads other tools' records, [`export`] writes them, and
//! [`TraceWriter`] and [`TraceReader`] write and read the format.
//!
//! ```
//! use isotherm_trace::{Provenance, Row, Rows, TraceReader, TraceWriter};
//!
//! let folder = tempfile::tempdir()?;
//! let mut rows = Rows::default();
//! rows.push(Row { process: 0, thread: 0, instructions: 12, line: 0x7f00, store: true, dependence: 0 });
//!
//! let mut writer = TraceWriter::create(folder.path().join("trace"), Provenance::new("true"))?;
//! writer.append(&rows)?;
//! assert_eq!(writer.finish()?.rows, 1);
//!
//! let mut reader = TraceReader::open(folder.path().join("trace"))?;
//! let mut read = Rows::default();
//! assert!(reader.next(&mut read)?);
//! assert_eq!((read, reader.provenance().command.as_str()), (rows, "true"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod contain;
mod contents;
pub mod dataflow;
mod error;
pub mod export;
mod format;
mod group_reader;
pub mod guarded;
pub mod import;
mod mappings;
mod pages;
mod part_reader;
mod part_writer;
mod processes;
mod provenance;
mod reader;
pub mod record;
mod regular;
mod rows;
mod unpack;
mod writer;

pub use contents::{CONTENTS_FILE, Contents, INCOMPRESSIBLE, Shares, read_contents, shares, write_contents};
pub use error::TraceError;
pub use format::{FORMAT_VERSION, PROVENANCE_KEY, VERSION_KEY};
pub use mappings::{
    ALLOCATED, Change, MAPPINGS_FILE, Mapping, MappingEvent, Place, Spaces, copy_mappings, mappings_memory,
    read_mappings,
};
pub use processes::{ProcessName, process_names, select_processes};
pub use provenance::Provenance;
pub use reader::TraceReader;
pub use regular::open_regular;
pub use rows::{Row, Rows};
pub use writer::{TraceSummary, TraceWriter, WRITER_MEMORY};
