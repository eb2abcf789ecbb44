//! Imports ChampSim's traces: records of 64 bytes, little-endian, one for each instruction, plain or packed
//! by xz or gzip. The facts are those of ChampSim's `inc/trace_instruction.h` and `tracer/pin`.
//!
//! A record holds the instruction's address (u64), whether it is a branch and one that was taken (bytes), 2
//! registers that it writes, 4 that it reads (bytes), 2 addresses that it writes and 4 that it reads (u64); 0
//! is an unused place. The data accesses pass through a model of the last-level cache, loads first, and its
//! misses become rows. The number of instructions is exact. There are no sizes, so an access is of one line.
//! The format knows neither processes nor threads: all rows have process 0 and thread 0.
//!
//! Dependences follow the values through the registers and the lines in flight. A record does not tell which
//! of the registers read make up the address, so an address is known to depend on a register only if a load
//! reads no other one, as in a chase of pointers. Other addresses, such as those of stores and of indexed
//! loads, have distance 0: the model takes them as known early. So it has an instruction that writes two
//! registers bring no value that a later address depends on. Values that go through memory are not followed.

use std::io::Read;

use isotherm_core::cache::{Geometry, LINE_SHIFT};

use super::misses::Misses;
use super::packed::unpack;
use super::records::{Records, word};
use super::{ImportError, ImportSummary};
use crate::dataflow::{Dataflow, Token};
use crate::{Row, Rows};

const RECORD: usize = 64;
/// Places in a record.
const BRANCH: std::ops::Range<usize> = 8..10;
const WRITTEN: std::ops::Range<usize> = 10..12;
const READ: std::ops::Range<usize> = 12..16;
const STORES: [usize; 2] = [16, 24];
const LOADS: [usize; 4] = [32, 40, 48, 56];
/// Registers that never bring an address from memory: the stack's pointer, the flags, the instruction's.
const SPECIAL: [u8; 3] = [6, 25, 26];

const EXPECTED: &str = "ChampSim's record of 64 bytes, in which two bytes that tell a branch are 0 or 1";

/// Imports ChampSim's instructions through a cache of this geometry.
///
/// # Errors
/// If the bytes cannot be read or unpacked, end within a record, or are not of this format.
pub fn champsim(
    reader: impl Read,
    geometry: Geometry,
    sink: &mut dyn FnMut(&Rows),
) -> Result<ImportSummary, ImportError> {
    let reader = unpack(reader).map_err(|source| ImportError::Unreadable { record: 0, source })?;
    let mut records = Records::<_, RECORD>::new(reader);
    let mut thread = Thread {
        misses: Misses::new(geometry, sink),
        dataflow: Dataflow::new(0, 1.0),
        registers: [Token::NONE; 256],
    };
    let mut summary = ImportSummary::default();
    while let Some(record) = records.next()? {
        if let Some(byte) = record[BRANCH].iter().find(|&&byte| byte > 1) {
            return Err(records.wrong(format!("a branch of {byte}"), EXPECTED));
        }
        summary.accesses += thread.execute(&record);
    }
    summary.lines = records.number;
    summary.rows = thread.misses.finish();
    Ok(summary)
}

struct Thread<'a> {
    misses: Misses<'a>,
    dataflow: Dataflow,
    /// Names of the values in the registers.
    registers: [Token; 256],
}

impl Thread<'_> {
    /// Executes an instruction and returns its accesses.
    fn execute(&mut self, record: &[u8; RECORD]) -> u64 {
        self.dataflow.execute(1);
        let token = |register: u8| self.registers[usize::from(register)];
        let read = registers(&record[READ]).map(token).max().unwrap_or_default();
        let after = if registers(&record[READ]).count() == 1 { read } else { Token::NONE };
        let (mut accesses, mut value) = (0, read);
        for address in addresses(record, &LOADS) {
            value = value.max(self.access(address >> LINE_SHIFT, false, after));
            accesses += 1;
        }
        for address in addresses(record, &STORES) {
            self.access(address >> LINE_SHIFT, true, Token::NONE);
            accesses += 1;
        }
        let written = || registers(&record[WRITTEN]).filter(|register| !SPECIAL.contains(register));
        let value = if written().count() == 1 { value } else { Token::NONE };
        written().for_each(|register| self.registers[usize::from(register)] = value);
        accesses
    }

    /// Returns the name of the value that an access brings.
    fn access(&mut self, line: u64, store: bool, after: Token) -> Token {
        if self.misses.touch(0, line) {
            return self.dataflow.hit(line, after);
        }
        let (instructions, dependence, token) = self.dataflow.record(line, after);
        self.misses.push(Row { process: 0, thread: 0, instructions, line, store, dependence });
        token
    }
}

fn registers(places: &[u8]) -> impl Iterator<Item = u8> {
    places.iter().copied().filter(|&register| register != 0)
}

fn addresses(record: &[u8; RECORD], places: &[usize]) -> impl Iterator<Item = u64> {
    places.iter().map(|&place| word(record, place)).filter(|&address| address != 0)
}
