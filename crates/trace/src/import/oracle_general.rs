//! Imports libCacheSim's traces in the format oracleGeneral: records of 24 bytes, little-endian and packed,
//! of a time in seconds (u32), an object (u64), its size (u32) and the number of the record that uses it next
//! (i64), -1 or the largest number for none. libCacheSim's files with `.zst` at the end are unpacked by
//! `zstd`.
//!
//! An object becomes a page of 4 KiB, whatever its size, and a request one load of it. The format knows
//! neither addresses nor instructions, threads, stores or dependences: pages are numbered from 0 as objects
//! appear, each row has [`INSTRUCTIONS`], and all rows have process 0, thread 0 and distance 0. So the model
//! takes misses as independent, and neighbouring pages hold what was first used at the same time.

use std::io::Read;

use isotherm_core::PageSize;
use isotherm_core::cache::LINE_SHIFT;

use super::output::{Numbering, Output};
use super::records::{Records, word};
use super::{ImportError, ImportSummary};
use crate::{Row, Rows};

/// Bytes of a record.
pub(crate) const RECORD: usize = 24;
/// Instructions of a row: as of programs with 10 misses per thousand.
const INSTRUCTIONS: u32 = 100;
/// Values for an object that is not used again: the writer's, and an older one.
pub(crate) const NEVER: i64 = i64::MAX;
const NEVER_BEFORE: i64 = -1;

const EXPECTED: &str = "a record of oracleGeneral, whose next use comes later";

/// Imports oracleGeneral.
///
/// # Errors
/// If the bytes cannot be read, end within a record, or a record is not one of this format.
pub fn oracle_general(reader: impl Read, sink: &mut dyn FnMut(&Rows)) -> Result<ImportSummary, ImportError> {
    let (mut output, mut objects) = (Output::new(sink), Numbering::new());
    let mut records = Records::<_, RECORD>::new(reader);
    let mut summary = ImportSummary::default();
    while let Some(record) = records.next()? {
        let (object, next) = (word(&record, 4), word(&record, 16).cast_signed());
        let is_later = |next: i64| u64::try_from(next).is_ok_and(|next| next > summary.accesses);
        if next != NEVER_BEFORE && !is_later(next) {
            return Err(records.wrong(format!("next use {next}"), EXPECTED));
        }
        let page = u64::from(objects.number(object).0);
        let line = page << (PageSize::Base.shift() - LINE_SHIFT);
        let instructions = INSTRUCTIONS;
        output.push(Row { process: 0, thread: 0, instructions, line, store: false, dependence: 0 });
        summary.accesses += 1;
    }
    summary.lines = records.number;
    summary.rows = output.finish();
    Ok(summary)
}
