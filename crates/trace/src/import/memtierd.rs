//! Imports the raw events of memtierd's trackers, which `tracker -dump raw start` and, later and repeatedly,
//! `tracker -dump raw new` print: lines of a time in nanoseconds, a process, the address of a range in
//! hexadecimal, its pages of 4 KiB, and how often the tracker found it accessed and written. Each dump begins
//! with a heading. The facts are those of memtierd's `pkg/memtier/tracker.go`. The rows are *synthetic*.
//!
//! An event tells the heat of a range since the tracker's scan before, but no single accesses. The importer
//! makes them in rounds, as it does for [DAMON](super::damon()): it takes each access and write that was
//! counted as one of every page of the range. This is what the tracker `damon` counts, and `idlepage` and
//! `softdirty` as long as they count one page a range (`MaxCountPerRegion`, 1 by default). A page that is
//! found both accessed and written has the larger of the two counts as accesses, of which the written ones
//! are stores. A process's scan ends where its addresses begin again. Its instructions are the time since
//! its scan before (the first one takes the time until the next, and has 1 instruction a row if there is
//! only one) times [`HeatOptions::instructions_per_microsecond`], spread evenly. The order within a round,
//! the line within its page, further threads, dependences and the number of accesses are made up.

use std::io::BufRead;

use super::lines::{Line, Lines};
use super::output::{Numbering, Output};
use super::rounds::{EXPECTED_SIZE, HeatOptions, PAGE, Region, Snapshot};
use super::{ImportError, ImportSummary};
use crate::Rows;

const EXPECTED: &str =
    "a line of memtierd's 'tracker -dump raw new': timestamp, pid, addr, pages, accs and writes";

/// Imports memtierd's raw events. Every process has one thread.
///
/// # Errors
/// If a line cannot be read or is not memtierd's, or a scan would make more than 2^28 rows.
pub fn memtierd(
    reader: impl BufRead,
    options: &HeatOptions,
    sink: &mut dyn FnMut(&Rows),
) -> Result<ImportSummary, ImportError> {
    let (mut lines, mut line) = (Lines::new(reader), Line::default());
    let (mut processes, mut scans) = (Numbering::new(), Vec::<Scan>::new());
    let mut output = Output::new(sink);
    let mut summary = ImportSummary::default();
    while lines.next(&mut line)? {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with("timestamp") {
            continue;
        }
        let event = Event::parse(text).ok_or_else(|| line.wrong(EXPECTED))?;
        let (process, new) = processes.number(event.pid);
        if new {
            summary.processes.push(format!("process {}", event.pid));
            scans.push(Scan::default());
        }
        let scan = &mut scans[process as usize];
        if event.start < scan.end {
            scan.finish(event.time, options, &mut output);
        }
        if scan.end == 0 {
            scan.time = event.time;
        }
        scan.end = event.end;
        let (start, end, found) = (event.start, event.end, event.accesses.max(event.writes));
        let region = Region { process, start, end, found, stores: event.writes };
        if start < end && !scan.snapshot.add(region, options) {
            return Err(line.wrong(EXPECTED_SIZE));
        }
    }
    for mut scan in scans {
        scan.finish(scan.time, options, &mut output);
    }
    summary.lines = lines.number;
    summary.rows = output.finish();
    summary.accesses = summary.rows;
    Ok(summary)
}

struct Event {
    time: u64,
    pid: u64,
    start: u64,
    end: u64,
    accesses: u64,
    writes: u64,
}

impl Event {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let mut word = |radix| u64::from_str_radix(words.next()?, radix).ok();
        let (time, pid, start, pages) = (word(10)?, word(10)?, word(16)?, word(10)?);
        let (accesses, writes) = (word(10)?, word(10)?);
        let end = start.checked_add(pages.checked_mul(PAGE)?)?;
        words.next().is_none().then_some(Self { time, pid, start, end, accesses, writes })
    }
}

/// Scan of a process's memory by a tracker.
#[derive(Default)]
struct Scan {
    snapshot: Snapshot,
    time: u64,
    /// Time of the scan before.
    before: Option<u64>,
    /// End of the last range; 0 before the first one.
    end: u64,
}

impl Scan {
    /// Makes the scan's rows; the next one is at `next`.
    fn finish(&mut self, next: u64, options: &HeatOptions, output: &mut Output<'_>) {
        let time = self
            .before
            .map_or_else(|| next.saturating_sub(self.time), |before| self.time.saturating_sub(before));
        self.snapshot.nanoseconds = time as f64;
        self.snapshot.expand(options, output);
        (self.before, self.end) = (Some(self.time), 0);
    }
}
