//! Exports traces to other tools' formats.

use std::collections::HashMap;
use std::io::{self, Write};

use isotherm_core::PageSize;
use isotherm_core::cache::LINE_SHIFT;

use crate::import::oracle_general::{NEVER, RECORD};
use crate::{Rows, TraceError, TraceReader};

/// Bits of an address, above which an object's number holds the process.
const ADDRESS_BITS: u32 = 56;
/// Memory that [`oracle_general`] takes for a row: its object and its next use, and room to grow.
pub const ORACLE_ROW_MEMORY: u64 = 48;

/// Reason why a trace could not be exported.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ExportError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(
        "row {row}: {problem}; expected addresses below 2^56 and at most 2^20 processes, or 2^11 with huge pages"
    )]
    Row { row: u64, problem: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes a trace as libCacheSim's oracleGeneral, and returns its records: one for each row, whose object is
/// the row's page. Instructions, threads, stores and dependences are lost; the time is 0.
///
/// # Errors
/// If the trace cannot be read or has what no object's number holds, or the records cannot be written.
pub fn oracle_general(
    reader: &mut TraceReader,
    page_size: PageSize,
    out: &mut dyn Write,
) -> Result<u64, ExportError> {
    let page_bits = ADDRESS_BITS - page_size.shift();
    let (mut objects, mut rows) = (Vec::new(), Rows::default());
    while reader.next(&mut rows)? {
        for (&process, &line) in rows.process.iter().zip(&rows.line) {
            let page = line >> (page_size.shift() - LINE_SHIFT);
            if page >> page_bits != 0 || u64::from(process) >> (64 - page_bits) != 0 {
                let (row, problem) = (objects.len() as u64, format!("line {line:#x} of process {process}"));
                return Err(ExportError::Row { row, problem });
            }
            objects.push(u64::from(process) << page_bits | page);
        }
    }
    let mut next = vec![NEVER; objects.len()];
    let mut uses = HashMap::new();
    for (index, object) in objects.iter().enumerate().rev() {
        next[index] = uses.insert(object, index as i64).unwrap_or(NEVER);
    }
    let size = (page_size.bytes().0 as u32).to_le_bytes();
    for (object, next) in objects.iter().zip(next) {
        let mut record = [0; RECORD];
        record[4..12].copy_from_slice(&object.to_le_bytes());
        record[12..16].copy_from_slice(&size);
        record[16..24].copy_from_slice(&next.to_le_bytes());
        out.write_all(&record)?;
    }
    out.flush()?;
    Ok(objects.len() as u64)
}
