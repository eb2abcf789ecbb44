//! Imports DAMON's records as `damo report raw` prints them. The rows are *synthetic*.
//!
//! DAMON tells how often a page of a region was found accessed in each aggregation interval, but no single
//! accesses. The importer makes a stream that would have looked the same to DAMON, in rounds: in round `r` of
//! a snapshot, it walks every region once that was found accessed at least `r` times, with one access per
//! [`DamonOptions::bytes_per_access`]. The regions' heat over time is real. The order within a round, the
//! line within its page, the absence of stores, further threads and dependences, and the number of accesses
//! are made up (DAMON cannot tell one access in its sampling interval from a million). Instructions are the
//! interval's duration times [`DamonOptions::instructions_per_microsecond`], spread evenly.

use std::io::BufRead;

use isotherm_core::cache::LINE_SHIFT;

use super::lines::{Line, Lines};
use super::output::{Numbering, Output};
use super::{ImportError, ImportSummary};
use crate::{Row, Rows};

const EXPECTED: &str = "a line of 'damo report raw': monitoring_start, monitoring_duration, target_id or 'START-END(SIZE): ACCESSES'";
const EXPECTED_SIZE: &str = "fewer accesses: a snapshot may make 2^28 rows; more bytes per access make fewer";
const IGNORED: [&str; 3] = ["base_time_absolute:", "monitoring_end:", "nr_regions:"];
const MAX_ROWS: u64 = 1 << 28;
const PAGE: u64 = 4096;

/// Rules for what DAMON does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DamonOptions {
    /// Bytes of a region per access in a round; at least 64.
    pub bytes_per_access: u64,
    /// Speed of the program.
    pub instructions_per_microsecond: u64,
}

impl Default for DamonOptions {
    /// Returns one access per page and round, and 1,000 instructions per microsecond, as at 1 IPC and 1 GHz.
    fn default() -> Self {
        Self { bytes_per_access: PAGE, instructions_per_microsecond: 1000 }
    }
}

/// Imports DAMON's records. Every target is a process with one thread.
///
/// # Errors
/// If a line cannot be read or is not DAMON's, or a snapshot would make more than 2^28 rows.
pub fn damon(
    reader: impl BufRead,
    options: &DamonOptions,
    sink: &mut dyn FnMut(&Rows),
) -> Result<ImportSummary, ImportError> {
    let (mut lines, mut line) = (Lines::new(reader), Line::default());
    let mut targets = Numbering::new();
    let mut output = Output::new(sink);
    let mut summary = ImportSummary::default();
    let (mut snapshot, mut target) = (Snapshot::default(), None);
    while lines.next(&mut line)? {
        let text = line.text.trim();
        if text.is_empty() || IGNORED.iter().any(|ignored| text.starts_with(ignored)) {
            continue;
        }
        if text.starts_with("monitoring_start:") {
            snapshot.expand(options, &mut output);
        } else if let Some(text) = text.strip_prefix("monitoring_duration:") {
            snapshot.nanoseconds =
                duration(text).ok_or_else(|| line.wrong("a duration such as '104.599 ms'"))?;
        } else if let Some(id) = text.strip_prefix("target_id:") {
            let (number, new) = targets.number(id.trim().to_owned());
            if new {
                summary.processes.push(format!("target {}", id.trim()));
            }
            target = Some(number);
        } else {
            let process = target.ok_or_else(|| line.wrong("a target_id before its regions"))?;
            let region = region(text, process).ok_or_else(|| line.wrong(EXPECTED))?;
            if !snapshot.add(region, options) {
                return Err(line.wrong(EXPECTED_SIZE));
            }
        }
    }
    snapshot.expand(options, &mut output);
    summary.lines = lines.number;
    summary.rows = output.finish();
    summary.accesses = summary.rows;
    Ok(summary)
}

#[derive(Debug, PartialEq, Eq)]
struct Region {
    process: u32,
    start: u64,
    end: u64,
    /// Number of times that a page was found accessed.
    found: u64,
}

impl Region {
    fn accesses(&self, options: &DamonOptions) -> u64 {
        (self.end - self.start).div_ceil(options.bytes_per_access.max(1 << LINE_SHIFT))
    }

    /// Returns an access of a round; the line in its page changes from round to round.
    fn row(&self, access: u64, round: u64, instructions: u32, options: &DamonOptions) -> Row {
        let mut address = self.start + access * options.bytes_per_access.max(1 << LINE_SHIFT);
        if options.bytes_per_access >= PAGE {
            let lines = PAGE >> LINE_SHIFT;
            let line = (address / PAGE).wrapping_add(round).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            address = (address & !(PAGE - 1)) + ((line % lines) << LINE_SHIFT);
        }
        let line = address >> LINE_SHIFT;
        Row { process: self.process, thread: self.process, instructions, line, store: false, dependence: 0 }
    }
}

/// Reads `563ebaa00000-563ebc99e000(  31.617 MiB):        1`.
fn region(text: &str, process: u32) -> Option<Region> {
    let (range, counts) = text.split_once("):")?;
    let (start, end) = range.split_once('(')?.0.split_once('-')?;
    let address = |text: &str| u64::from_str_radix(text.trim(), 16).ok();
    let (start, end) = (address(start)?, address(end)?);
    let found = counts.split_whitespace().next()?.parse().ok()?;
    (start < end).then_some(Region { process, start, end, found })
}

/// Reads `104.599 ms` or `8 m 59.809 s` as nanoseconds.
fn duration(text: &str) -> Option<f64> {
    let words: Vec<_> = text.split_whitespace().collect();
    let (pairs, []) = words.as_chunks::<2>() else { return None };
    let nanoseconds = pairs.iter().map(|[number, unit]| {
        let factor = match *unit {
            "ns" => 1.0,
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return None,
        };
        Some(number.replace(',', "").parse::<f64>().ok()? * factor)
    });
    let sum = nanoseconds.sum::<Option<f64>>()?;
    (!pairs.is_empty() && sum.is_finite() && sum >= 0.0).then_some(sum)
}

#[derive(Default)]
struct Snapshot {
    regions: Vec<Region>,
    nanoseconds: f64,
    rows: u64,
}

impl Snapshot {
    /// Adds a region. Returns false if there are too many rows.
    fn add(&mut self, region: Region, options: &DamonOptions) -> bool {
        self.rows = self.rows.saturating_add(region.accesses(options).saturating_mul(region.found));
        self.regions.push(region);
        self.rows <= MAX_ROWS
    }

    fn expand(&mut self, options: &DamonOptions, output: &mut Output<'_>) {
        let rounds = self.regions.iter().map(|region| region.found).max().unwrap_or(0);
        let instructions = self.nanoseconds / 1000.0 * options.instructions_per_microsecond as f64;
        // Conversion from floating point saturates.
        let instructions = (instructions / self.rows.max(1) as f64) as u32;
        for round in 0..rounds {
            for region in self.regions.iter().filter(|region| region.found > round) {
                for access in 0..region.accesses(options) {
                    output.push(region.row(access, round, instructions.max(1), options));
                }
            }
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_damos_units() {
        assert_eq!(duration("  104.599 ms"), Some(104_599_000.0));
        assert_eq!(duration("8 m 59.5 s"), Some(539_500_000_000.0));
        for text in ["", "5", "5 parsecs", "nan ms", "-1 ms", "1 s 2"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn an_absurd_region_is_refused() {
        let mut snapshot = Snapshot::default();
        let region = region("0-ffffffffffffffff(  16 EiB): 20", 0).expect("a region");
        assert!(!snapshot.add(region, &DamonOptions::default()));
        assert_eq!(super::region("2000-1000(1 KiB): 1", 0), None);
    }
}
