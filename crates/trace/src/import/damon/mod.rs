//! Imports DAMON's records: the text of `damo report raw`, or the file that `damo record` writes, as JSON or
//! packed by zlib (`damon.data`). The first bytes tell which. The rows are *synthetic*.
//!
//! DAMON tells how often a page of a region was found accessed in each aggregation interval, but no single
//! accesses. The importer makes a stream that would have looked the same to DAMON, in rounds: in round `r` of
//! a snapshot, it walks every region once that was found accessed at least `r` times, with one access per
//! [`HeatOptions::bytes_per_access`]. The regions' heat over time is real. The order within a round, the
//! line within its page, the absence of stores, further threads and dependences, and the number of accesses
//! are made up (DAMON cannot tell one access in its sampling interval from a million). Instructions are the
//! interval's duration times [`HeatOptions::instructions_per_microsecond`], spread evenly.

mod json;
mod text;

use std::io::{BufRead, BufReader, Cursor, Read};

use flate2::bufread::ZlibDecoder;

use super::output::{Numbering, Output};
use super::packed::Packed;
use super::rounds::{HeatOptions, Snapshot};
use super::{ImportError, ImportSummary};
use crate::Rows;

/// Imports DAMON's records. Every target is a process with one thread.
///
/// # Errors
/// If the records cannot be read or are not DAMON's, or a snapshot would make more than 2^28 rows.
pub fn damon(
    mut reader: impl BufRead,
    options: &HeatOptions,
    sink: &mut dyn FnMut(&Rows),
) -> Result<ImportSummary, ImportError> {
    let mut start = Vec::new();
    let read = reader.by_ref().take(2).read_to_end(&mut start);
    read.map_err(|source| ImportError::Io { line: 1, source })?;
    let kind = [0, 1].map(|at| start.get(at).copied().unwrap_or(b'\n'));
    let reader = Cursor::new(start).chain(reader);
    let mut import = Import {
        targets: Numbering::new(),
        snapshot: Snapshot::default(),
        output: Output::new(sink),
        options,
        summary: ImportSummary::default(),
    };
    import.summary.lines = if is_zlib(kind) {
        json::read(BufReader::new(Packed::new("zlib", ZlibDecoder::new(reader))), &mut import)?
    } else if kind[0] == b'[' {
        json::read(reader, &mut import)?
    } else {
        text::read(reader, &mut import)?
    };
    let Import { mut summary, output, .. } = import;
    summary.rows = output.finish();
    summary.accesses = summary.rows;
    Ok(summary)
}

/// Returns whether data begin so: deflated, with a window of 32 KiB, and a checksum of both bytes.
fn is_zlib(start: [u8; 2]) -> bool {
    start[0] == 0x78 && u16::from_be_bytes(start).is_multiple_of(31)
}

struct Import<'a> {
    targets: Numbering<String>,
    snapshot: Snapshot,
    output: Output<'a>,
    options: &'a HeatOptions,
    summary: ImportSummary,
}

impl Import<'_> {
    /// Returns the process of a target.
    fn process(&mut self, target: &str) -> u32 {
        let (number, new) = self.targets.number(target.to_owned());
        if new {
            self.summary.processes.push(format!("target {target}"));
        }
        number
    }

    fn expand(&mut self) {
        self.snapshot.expand(self.options, &mut self.output);
    }
}
