//! The text of `damo report raw`.

use std::io::BufRead;

use super::super::ImportError;
use super::super::lines::{Line, Lines};
use super::super::rounds::{EXPECTED_SIZE, Region};
use super::Import;

const EXPECTED: &str = "a line of 'damo report raw': monitoring_start, monitoring_duration, target_id or 'START-END(SIZE): ACCESSES'";
const IGNORED: [&str; 5] =
    ["base_time_absolute:", "data source:", "monitoring_end:", "nr_regions:", "# start_addr"];

/// Reads records, and returns the lines read.
pub(super) fn read(reader: impl BufRead, import: &mut Import<'_>) -> Result<u64, ImportError> {
    let (mut lines, mut line) = (Lines::new(reader), Line::default());
    let mut target = None;
    while lines.next(&mut line)? {
        let text = line.text.trim();
        if text.is_empty() || IGNORED.iter().any(|ignored| text.starts_with(ignored)) {
            continue;
        }
        if text.starts_with("monitoring_start:") {
            import.expand();
        } else if let Some(text) = text.strip_prefix("monitoring_duration:") {
            import.snapshot.nanoseconds =
                duration(text).ok_or_else(|| line.wrong("a duration such as '104.599 ms'"))?;
        } else if let Some(id) = text.strip_prefix("target_id:") {
            target = Some(import.process(id.trim()));
        } else {
            let process = target.ok_or_else(|| line.wrong("a target_id before its regions"))?;
            let region = region(text, process).ok_or_else(|| line.wrong(EXPECTED))?;
            if !import.snapshot.add(region, import.options) {
                return Err(line.wrong(EXPECTED_SIZE));
            }
        }
    }
    import.expand();
    Ok(lines.number)
}

/// Reads `563ebaa00000-563ebc99e000(  31.617 MiB):        1`, or the same without the colon and with an age.
fn region(text: &str, process: u32) -> Option<Region> {
    let (range, counts) = text.split_once(')')?;
    let (start, end) = range.split_once('(')?.0.split_once('-')?;
    let address = |text: &str| u64::from_str_radix(text.trim(), 16).ok();
    let (start, end) = (address(start)?, address(end)?);
    let counts = counts.strip_prefix(':').unwrap_or(counts);
    let found = counts.split_whitespace().next()?.parse().ok()?;
    (start < end).then_some(Region { process, start, end, found, stores: 0 })
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
    fn regions_are_read_as_older_and_newer_versions_print_them() {
        let expected = Some(Region { process: 3, start: 0x1000, end: 0x3000, found: 7, stores: 0 });
        assert_eq!(region("1000-3000(   8.000 KiB):        7", 3), expected);
        assert_eq!(region("1000-3000 (   8.000 KiB)           7    -1", 3), expected);
        assert_eq!(region("2000-1000(1 KiB): 1", 3), None);
        assert_eq!(region("1000-3000(1 KiB):: 1", 3), None);
    }
}
