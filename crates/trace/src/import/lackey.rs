//! Imports the output of `valgrind --tool=lackey --trace-mem=yes --log-file=FILE CMD`.
//!
//! Lackey prints every instruction (`I  address,size`), load (` L`), store (` S`) and modification (` M`),
//! with addresses in hexadecimal. The data accesses pass through a model of the last-level cache, and its
//! misses become rows. Instructions are counted from the `I` lines. Lackey tells neither threads nor
//! dependences: all rows have process 0, thread 0 and distance 0. A modification loads first, so its miss is
//! a load's.

use std::io::BufRead;

use isotherm_core::cache::Geometry;

use super::lines::{Line, Lines};
use super::misses::Misses;
use super::{ImportError, ImportSummary};
use crate::Rows;

const EXPECTED: &str = "Lackey's 'I  address,size', ' L address,size', ' S ...' or ' M ...'";
/// Widest access; a whole `xsave` area is smaller.
const WIDEST: u64 = 1 << 16;

/// Imports Lackey's trace through a cache of this geometry. Skips Valgrind's own lines (`==PID==`).
///
/// # Errors
/// If a line cannot be read or is not Lackey's.
pub fn lackey(
    reader: impl BufRead,
    geometry: Geometry,
    sink: &mut dyn FnMut(&Rows),
) -> Result<ImportSummary, ImportError> {
    let (mut lines, mut line) = (Lines::new(reader), Line::default());
    let (mut misses, mut instructions) = (Misses::new(geometry, sink), 0u32);
    let mut summary = ImportSummary::default();
    while lines.next(&mut line)? {
        if line.text.is_empty() || line.text.starts_with("==") {
            continue;
        }
        let (kind, address, size) = parse(&line.text).ok_or_else(|| line.wrong(EXPECTED))?;
        if kind == Kind::Instruction {
            instructions = instructions.saturating_add(1);
            continue;
        }
        summary.accesses += 1;
        misses.access((0, 0), address, size, kind == Kind::Store, &mut instructions);
    }
    summary.lines = lines.number;
    summary.rows = misses.finish();
    Ok(summary)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Instruction,
    Load,
    Store,
}

/// Reads ` L 1ffefff7e0,8` as kind, address and size.
fn parse(text: &str) -> Option<(Kind, u64, u64)> {
    let (kind, rest) = text.trim_start().split_at_checked(1)?;
    let kind = match kind {
        "I" => Kind::Instruction,
        "L" | "M" => Kind::Load,
        "S" => Kind::Store,
        _ => return None,
    };
    let (address, size) = rest.strip_prefix(' ')?.trim_start().split_once(',')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let size = size.parse().ok().filter(|size| (1..=WIDEST).contains(size))?;
    address.checked_add(size)?;
    Some((kind, address, size))
}
