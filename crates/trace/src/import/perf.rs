//! Imports `perf`'s text: each sample of a data address becomes a row.
//!
//! Two forms are understood, also mixed:
//! - `perf script -F comm,pid,tid,time,event,addr`, with any of `cpu`, `period`, `weight`, `data_src`,
//!   `phys_addr` and more behind `addr`, but without call chains; `time`, `cpu` and `comm` may be absent. A
//!   line reads
//!   `sort 812/813 [001] 99.125: 4000 mem_load_retired.l3_miss:pp: 7f31a0c0 68101042 |OP LOAD|LVL Local RAM hit|...`
//! - `perf mem report -D`, with or without `--phys-data`:
//!   `812 813 0x4014f0 0x7f31a0c0 230 0x68100142 a.out:main`
//!
//! A process whose main thread has another command than before has executed a program; its address space is
//! new, so it gets a new number. Samples are not all accesses, so `instructions` is
//! [`PerfOptions::instructions_per_event`] times the sample's period, and the dependence is 0. The data
//! source tells whether it is a store; without one, an event whose name contains `store` is.

use std::collections::HashMap;
use std::io::BufRead;

use isotherm_core::cache::LINE_SHIFT;

use super::lines::{Line, Lines};
use super::output::{Numbering, Output};
use super::{ImportError, ImportSummary, KERNEL};
use crate::{Row, Rows};

const EXPECTED: &str = "a sample as of 'perf script -F comm,pid,tid,time,event,addr' or 'perf mem report -D'";

/// Rules for what `perf`'s samples do not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerfOptions {
    /// Instructions between two counted events: 1,000 divided by the misses per thousand instructions.
    pub instructions_per_event: u32,
    /// Whether samples whose data source is a cache hit are skipped, since a trace holds misses.
    pub misses_only: bool,
}

impl Default for PerfOptions {
    /// Returns 100 instructions, as of programs with 10 misses per thousand, and misses only.
    fn default() -> Self {
        Self { instructions_per_event: 100, misses_only: true }
    }
}

/// Imports `perf`'s text. Skips samples without an address, of the kernel's addresses, and (by option) of
/// hits.
///
/// # Errors
/// If a line cannot be read or is not `perf`'s.
pub fn perf(
    reader: impl BufRead,
    options: &PerfOptions,
    sink: &mut dyn FnMut(&Rows),
) -> Result<ImportSummary, ImportError> {
    let (mut lines, mut line) = (Lines::new(reader), Line::default());
    let (mut processes, mut threads) = (Processes::default(), Numbering::new());
    let mut output = Output::new(sink);
    let mut summary = ImportSummary::default();
    while lines.next(&mut line)? {
        if line.text.is_empty() || line.text.starts_with('#') {
            continue;
        }
        let sample = parse(&line.text).ok_or_else(|| line.wrong(EXPECTED))?;
        summary.accesses += 1;
        if !sample.is_wanted(options) {
            summary.skipped += 1;
            continue;
        }
        let process = processes.number(&sample);
        let thread = threads.number((process, sample.thread)).0;
        output.push(sample.row(process, thread, options));
    }
    summary.lines = lines.number;
    summary.rows = output.finish();
    summary.processes = processes.names;
    Ok(summary)
}

#[derive(Default)]
struct Processes {
    /// Name of each, by its number.
    names: Vec<String>,
    /// Current number of each process id.
    current: HashMap<u32, usize>,
}

impl Processes {
    fn number(&mut self, sample: &Sample<'_>) -> u32 {
        let known = self.current.get(&sample.process).copied();
        let is_main = sample.thread == sample.process;
        let executed = |&number: &usize| is_main && self.names[number] != sample.name();
        let number = known.filter(|number| !executed(number)).unwrap_or(self.names.len());
        if number == self.names.len() {
            self.names.push(sample.name());
            self.current.insert(sample.process, number);
        }
        // More than 2^32 names do not fit in memory.
        number as u32
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Sample<'a> {
    command: &'a str,
    process: u32,
    thread: u32,
    period: u64,
    address: u64,
    source: Option<DataSource>,
    event: &'a str,
}

impl Sample<'_> {
    fn is_wanted(&self, options: &PerfOptions) -> bool {
        let hit = self.source.is_some_and(DataSource::is_cache_hit);
        self.address != 0 && self.address < KERNEL && !(options.misses_only && hit)
    }

    fn name(&self) -> String {
        if self.command.is_empty() { format!("process {}", self.process) } else { self.command.into() }
    }

    fn row(&self, process: u32, thread: u32, options: &PerfOptions) -> Row {
        let instructions = self.period.saturating_mul(options.instructions_per_event.into());
        let by_name = || self.event.contains("store");
        Row {
            process,
            thread,
            instructions: u32::try_from(instructions).unwrap_or(u32::MAX),
            line: self.address >> LINE_SHIFT,
            store: self.source.and_then(DataSource::is_store).unwrap_or_else(by_name),
            dependence: 0,
        }
    }
}

/// Kernel's `perf_mem_data_src` (include/uapi/linux/perf_event.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DataSource(u64);

impl DataSource {
    const LOAD: u64 = 0x02;
    const STORE: u64 = 0x04;
    const LEVEL_HIT: u64 = 0x02 << 5;
    /// L1, line fill buffer, L2 and L3.
    const CACHES: u64 = 0x78 << 5;

    /// Returns whether it is a store; `None` where the source does not tell.
    fn is_store(self) -> Option<bool> {
        (self.0 & (Self::LOAD | Self::STORE) != 0).then_some(self.0 & Self::STORE != 0)
    }

    fn is_cache_hit(self) -> bool {
        self.0 & Self::LEVEL_HIT != 0 && self.0 & Self::CACHES != 0
    }
}

fn parse(text: &str) -> Option<Sample<'_>> {
    memory_report(text).or_else(|| script(text))
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// Reads a line of `perf mem report -D`: process, thread, instruction, address, optional physical address and
/// page size, weight, data source, symbol.
fn memory_report(text: &str) -> Option<Sample<'_>> {
    let mut words = text.split_whitespace();
    let (process, thread) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next()?.strip_prefix("0x")?;
    let address = hexadecimal(words.next()?.strip_prefix("0x")?)?;
    words.find(|word| word.bytes().all(|byte| byte.is_ascii_digit()))?;
    let source = hexadecimal(words.next()?.strip_prefix("0x")?).map(DataSource);
    Some(Sample { command: "", process, thread, period: 1, address, source, event: "" })
}

/// Reads a line of `perf script`. The command may hold spaces and digits: each word may be the process.
fn script(text: &str) -> Option<Sample<'_>> {
    let starts = text.split_whitespace().map(|word| word.as_ptr().addr() - text.as_ptr().addr());
    starts.take(16).find_map(|start| script_from(text, start))
}

fn script_from(text: &str, start: usize) -> Option<Sample<'_>> {
    let mut words = text[start..].split_whitespace();
    let identity = words.next()?;
    let (process, thread) = identity.split_once('/').unwrap_or((identity, identity));
    let (process, thread) = (process.parse().ok()?, thread.parse().ok()?);
    let mut word = words.next()?;
    if word.starts_with('[') && word.ends_with(']') {
        word = words.next()?;
    }
    if is_time(word) {
        word = words.next()?;
    }
    let mut period = 1;
    if let Ok(number) = word.parse() {
        period = number;
        word = words.next()?;
    }
    let event = word.strip_suffix(':').filter(|event| !event.is_empty())?;
    let address = hexadecimal(words.next()?)?;
    let source = text.split_once("|OP").and_then(|(before, _)| before.split_whitespace().last());
    let source = source.and_then(hexadecimal).map(DataSource);
    Some(Sample { command: text[..start].trim(), process, thread, period, address, source, event })
}

/// Returns whether the word is a time such as `1240.505375:`.
fn is_time(word: &str) -> bool {
    word.strip_suffix(':').is_some_and(|word| word.contains('.') && word.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_may_hold_spaces_and_numbers() {
        let text = "  Web 12 content 812/813 [001]    99.125000:       4000 cpu/mem-loads,ldlat=30/P:     7f31a0c0 \
                        68101042 |OP LOAD|LVL Local RAM hit|SNP None|TLB N/A|LCK No 230 1c0de";
        let expected = Sample {
            command: "Web 12 content",
            process: 812,
            thread: 813,
            period: 4000,
            address: 0x7f31_a0c0,
            source: Some(DataSource(0x6810_1042)),
            event: "cpu/mem-loads,ldlat=30/P",
        };
        assert_eq!(parse(text), Some(expected));
    }

    #[test]
    fn what_may_be_absent_may_be_absent() {
        let sample = parse("812 dummy: 1000").expect("a sample");
        assert_eq!((sample.process, sample.thread, sample.address, sample.period), (812, 812, 0x1000, 1));
        let sample =
            parse("12934 12934 0x402831 0x4ab210 0x1fffe000 4K 77 0x1e05080021 a:main").expect("a sample");
        assert_eq!((sample.address, sample.source), (0x4a_b210, Some(DataSource(0x1e_0508_0021))));
    }

    #[test]
    fn the_data_source_tells_stores_and_hits() {
        // perf_event.h: op LOAD 2, STORE 4; level HIT 2, MISS 4, L1 8, L3 0x40, local RAM 0x80, from bit 5.
        let source = |op: u64, level: u64| DataSource(op | level << 5);
        assert_eq!(source(2, 0).is_store(), Some(false));
        assert_eq!(source(4, 0).is_store(), Some(true));
        assert_eq!(source(1, 0).is_store(), None);
        assert!(source(2, 2 | 0x40).is_cache_hit());
        assert!(!source(2, 2 | 0x80).is_cache_hit());
        assert!(!source(4, 4 | 8).is_cache_hit());
    }
}
