//! Runs in the lab as lines, as a table, and as JSON.

use isotherm_core::{Bytes, Nanos, PageSize};
use isotherm_lab::counts::{Zswap, settled};
use isotherm_lab::measured::{Measured, Served};
use isotherm_lab::result::LabResult;

use crate::columns::{Cell, Column, headings, narrow, texts};
use crate::format::{count, percent, printable, shortened};
use crate::table::{aligned, answered, named};
use crate::verdict::compared;

/// Characters of a command that are shown.
const COMMAND: usize = 60;
/// Part of a run's misses after which its final hit ratio is measured.
const END: f64 = 0.9;
const COLUMNS: [Column<LabResult>; 12] = [
    ("tiering", |result| result.tiering.as_str().into()),
    ("exit", |result| result.exit_status.to_string().into()),
    ("hit ratio", |result| measured(result, |counted| Cell::percent(counted.hit_ratio))),
    ("at the end", |result| measured(result, |counted| final_ratio(counted).into())),
    ("fast misses", |result| {
        measured(result, |counted| Cell::count(counted.tiers.first().map_or(0, Served::misses)))
    }),
    ("slow misses", |result| measured(result, slow_misses)),
    ("modelled", |result| measured(result, |counted| Cell::time(Nanos(counted.modelled_ns)))),
    ("promoted", |result| Cell::count(result.promoted())),
    ("demoted", |result| Cell::count(result.demoted())),
    ("moved by the kernel", |result| Cell::count(result.counts.moved)),
    ("failed", |result| Cell::count(result.counts.failed)),
    ("fast at the end", |result| at_end(result).into()),
];
/// Columns that a terminal has room for.
const NARROW: [&str; 7] = ["tiering", "exit", "hit ratio", "at the end", "modelled", "promoted", "demoted"];

/// Returns one run in lines.
pub fn lab_text(result: &LabResult) -> String {
    let counts = &result.counts;
    let (promoted, demoted) = (count(result.promoted()), count(result.demoted()));
    let footprint = Bytes(result.footprint_bytes());
    let by = if result.kernel_tiering { "the kernel" } else { "policy" };
    let mut lines = head(result);
    lines.push(("tiering", format!("{} ({by})", result.tiering)));
    lines.extend(result.measured.iter().flat_map(counted));
    lines.extend(counts.zswap.as_ref().map(|zswap| ("zswap", compressed(zswap))));
    lines.extend([
        ("moves", format!("{promoted} pages promoted, {demoted} demoted")),
        ("kernel", format!("{} pages moved, {} failed", count(counts.moved), count(counts.failed))),
        ("memory", format!("{footprint} at most; at the end {} on the fast node", at_end(result))),
        ("exit", result.exit_status.to_string()),
        (
            "time",
            format!(
                "{:.1} s with boot, {:.1} s of the guest's clock",
                result.elapsed_seconds, counts.guest_seconds
            ),
        ),
        ("folder", result.folder.display().to_string()),
    ]);
    named(&lines)
}

/// Returns the plugin's counts in lines.
fn counted(measured: &Measured) -> [(&'static str, String); 4] {
    let by_tier =
        |show: fn(&Served) -> String| measured.tiers.iter().map(show).collect::<Vec<_>>().join(" and ");
    let misses = by_tier(|tier| count(tier.misses()));
    let stalls = by_tier(|tier| Nanos(tier.stall).to_string());
    let (ratio, last) = (percent(measured.hit_ratio), final_ratio(measured));
    let samples = measured.samples;
    [
        ("hit ratio", format!("{ratio} of the misses; {last} of the last tenth")),
        ("accesses", format!("{}, misses by tier {misses}", count(measured.accesses))),
        ("modelled", format!("{}, stalls by tier {stalls}", Nanos(measured.modelled_ns))),
        ("samples", format!("{}, of which {} lost", count(samples.taken), count(samples.lost))),
    ]
}

/// Returns the misses of every tier but the fast one: `9`, or `9+4` of three tiers.
fn slow_misses(measured: &Measured) -> Cell {
    let each: Vec<u64> = measured.tiers.iter().skip(1).map(Served::misses).collect();
    let shown = each.iter().map(|&misses| count(misses)).collect::<Vec<_>>().join("+");
    Cell::count(each.iter().sum()).shown_as(shown)
}

/// Returns what compressed memory did.
fn compressed(zswap: &Zswap) -> String {
    let ratio = zswap.ratio().map_or("-".into(), |ratio| format!("{ratio:.2}"));
    format!(
        "{} pages stored by {}, {} came back; at most {} of pages in {}, ratio {ratio}",
        count(zswap.stored),
        zswap.compressor,
        count(zswap.loaded),
        Bytes(zswap.most_pages << PageSize::Base.shift()),
        Bytes(zswap.most_bytes)
    )
}

/// Returns the hit ratio at the end of a run.
fn final_ratio(measured: &Measured) -> String {
    measured.history.hit_ratio(END, 1.0).map_or("-".into(), percent)
}

/// Returns several runs of the same program: the verdict, and a row each.
pub fn lab_table(results: &[LabResult]) -> String {
    let Some(first) = results.first() else { return "no run\n".into() };
    let refused = |result: &LabResult| Some(format!("{}: {}\n", result.tiering, result.refusal.as_ref()?));
    let notes: String = results.iter().filter_map(refused).collect();
    let columns = narrow(&COLUMNS, &NARROW);
    let rows = results.iter().map(|result| texts(&columns, result));
    let verdict = compared(results).map_or_else(String::new, |verdict| answered(&verdict) + "\n");
    format!("{verdict}{}\n{}{notes}", named(&head(first)), aligned(&headings(&columns), rows, 1))
}

/// Returns runs as one JSON object on one line.
pub fn lab_json(results: &[LabResult]) -> String {
    let object = serde_json::json!({ "version": env!("CARGO_PKG_VERSION"), "verdict": compared(results), "runs": results });
    format!("{object}\n")
}

fn head(result: &LabResult) -> Vec<(&'static str, String)> {
    let command = printable(&result.program.join(" "));
    let fast = result.fast_bytes.map_or("all that is free".into(), |bytes| Bytes(bytes).to_string());
    let start = match result.start {
        "slow" => "on the slow node",
        "fast" => "on the fast node",
        _ => "where it is first touched",
    };
    vec![
        ("program", shortened(&command, COMMAND)),
        ("machine", format!("{}, Linux {}", result.machine, result.kernel)),
        ("fast memory", format!("{fast}; memory starts {start}")),
    ]
}

fn measured(result: &LabResult, cell: impl Fn(&Measured) -> Cell) -> Cell {
    result.measured.as_ref().map_or_else(Cell::unknown, cell)
}

/// Returns the share of the program's memory on the fast node before it ended.
fn at_end(result: &LabResult) -> String {
    let share = |nodes: &[u64]| nodes[0] as f64 / nodes.iter().sum::<u64>() as f64;
    settled(&result.residence).map_or("-".into(), |moment| percent(share(&moment.node_bytes)))
}

#[cfg(test)]
mod tests {
    use isotherm_core::manifest::Manifest;
    use isotherm_lab::counts::{Counts, Residence};
    use isotherm_lab::measured::History;

    use super::*;

    fn measured() -> Measured {
        let tier = |misses, stall| Served { load_misses: misses, store_misses: 1, stall };
        Measured {
            accesses: 1000,
            hit_ratio: 0.75,
            modelled_ns: 3_000_000,
            tiers: vec![tier(29, 1_000_000), tier(9, 2_000_000)],
            history: History {
                interval_ns: 1,
                points: vec![(1, vec![0, 0]), (2, vec![26, 10]), (3, vec![30, 10])],
            },
            ..Measured::default()
        }
    }

    fn result() -> LabResult {
        LabResult {
            version: "1",
            manifest: Manifest::default(),
            machine: "small".into(),
            kernel: "6.12".into(),
            program: vec!["sort".into(), "a\nb".into()],
            tiering: "numab".into(),
            kernel_tiering: true,
            start: "slow",
            fast_bytes: Some(64 << 20),
            exit_status: 3,
            elapsed_seconds: 4.25,
            measured: Some(measured()),
            counts: Counts { promoted: 1500, demoted: 20, moved: 1520, ..Counts::default() },
            residence: vec![Residence {
                seconds: 1.0,
                node_bytes: vec![1 << 20, 3 << 20],
                ..Residence::default()
            }],
            engine: None,
            refusal: None,
            folder: "/tmp/x".into(),
        }
    }

    #[test]
    fn lines_tell_what_the_kernel_counted() {
        let text = lab_text(&result());
        for part in [
            "sort a b",
            "64M; memory starts on the slow node",
            "numab (the kernel)",
            "1.50k pages promoted, 20 demoted",
            "4M at most; at the end 25.0 % on the fast node",
            "exit         3",
            "75.0 % of the misses; 100.0 % of the last tenth",
            "1.00k, misses by tier 30 and 10",
            "stalls by tier 1ms and 2ms",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn compressed_memory_has_its_line() {
        let zswap = Zswap {
            compressor: "lz4".into(),
            stored: 2000,
            loaded: 300,
            most_pages: 1024,
            most_bytes: 2 << 20,
            ..Zswap::default()
        };
        let counts = Counts { zswap: Some(zswap), ..Counts::default() };
        let text = lab_text(&LabResult { counts, ..result() });
        let line = "2.00k pages stored by lz4, 300 came back; at most 4M of pages in 2M, ratio 2.00";
        // A terminal's width breaks it.
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(line), "{text}");
        assert!(!lab_text(&result()).contains("zswap"));
    }

    #[test]
    fn a_policys_own_counts_come_first_in_a_row() {
        let engine = serde_json::json!({ "traffic": { "promotions": 7, "demotions": 2 } });
        let ours =
            LabResult { kernel_tiering: false, engine: Some(engine), tiering: "lru".into(), ..result() };
        let counts = ["lru", "3", "75.0 %", "100.0 %", "30", "10", "3ms", "7", "22", "1.52k"];
        assert_eq!(texts(&COLUMNS, &ours)[..10], counts.map(String::from));
        let bare = LabResult { measured: None, ..result() };
        assert_eq!(texts(&COLUMNS, &bare)[2..8], ["-", "-", "-", "-", "-", "1.50k"].map(String::from));
        assert_eq!(lab_table(&[result(), ours]).lines().count(), 10);
        assert_eq!(lab_table(&[]), "no run\n");
    }

    #[test]
    fn a_policy_that_did_not_run_has_its_reason_under_the_table() {
        let why = "this run lacks device hot pages";
        let refused = LabResult { tiering: "neomem".into(), refusal: Some(why.into()), ..result() };
        let text = lab_table(&[result(), refused]);
        assert_eq!(text.lines().last(), Some("neomem: this run lacks device hot pages"), "{text}");
    }

    #[test]
    fn json_is_one_object_on_one_line() -> Result<(), serde_json::Error> {
        let text = lab_json(&[result()]);
        let value: serde_json::Value = serde_json::from_str(&text)?;
        assert_eq!((text.lines().count(), value["runs"][0]["counts"]["promoted"].as_u64()), (1, Some(1500)));
        Ok(())
    }
}
