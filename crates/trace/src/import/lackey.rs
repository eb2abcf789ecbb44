//! Imports the output of `valgrind --tool=lackey --trace-mem=yes --log-file=FILE CMD`.
//!
//! Lackey prints every instruction (`I  address,size`), load (` L`), store (` S`) and modification (` M`),
//! with addresses in hexadecimal. The data accesses pass through a model of the last-level cache, and its
//! misses become rows. Instructions are counted from the `I` lines. Lackey tells neither threads nor
//! dependences: all rows have process 0, thread 0 and distance 0. A modification loads first, so its miss is
//! a load's.

use std::io::BufRead;

use isotherm_core::cache::{Cache, Geometry, LINE_SHIFT};

use super::lines::{Line, Lines};
use super::output::Output;
use super::{ImportError, ImportSummary};
use crate::{Row, Rows};

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
    let mut misses = Misses { cache: Cache::new(geometry), instructions: 0, output: Output::new(sink) };
    let mut summary = ImportSummary::default();
    while lines.next(&mut line)? {
        if line.text.is_empty() || line.text.starts_with("==") {
            continue;
        }
        let (kind, address, size) = parse(&line.text).ok_or_else(|| line.wrong(EXPECTED))?;
        if kind == Kind::Instruction {
            misses.instructions = misses.instructions.saturating_add(1);
            continue;
        }
        summary.accesses += 1;
        misses.access(address, size, kind == Kind::Store);
    }
    summary.lines = lines.number;
    summary.rows = misses.output.finish();
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

struct Misses<'a> {
    cache: Cache,
    /// Instructions since the last row.
    instructions: u32,
    output: Output<'a>,
}

impl Misses<'_> {
    fn access(&mut self, address: u64, size: u64, store: bool) {
        for line in address >> LINE_SHIFT..=(address + size - 1) >> LINE_SHIFT {
            if !self.cache.touch(line) {
                let instructions = std::mem::take(&mut self.instructions);
                self.output.push(Row { process: 0, thread: 0, instructions, line, store, dependence: 0 });
            }
        }
    }
}
