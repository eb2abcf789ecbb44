//! Defines what people and programs read of runs in the lab: lines, a table, JSON.

use isotherm_core::Bytes;
use isotherm_lab::counts::settled;
use isotherm_lab::result::LabResult;

use crate::format::{count, percent, printable, shortened};
use crate::table::{aligned, named};

/// Characters of a command that are shown.
const COMMAND: usize = 60;
const HEADER: [&str; 8] =
    ["tiering", "exit", "promoted", "demoted", "moved by the kernel", "failed", "fast at the end", "seconds"];

/// One run in lines.
pub fn lab_text(result: &LabResult) -> String {
    let counts = &result.counts;
    let mut lines = head(result);
    let by = if result.kernel_tiering { "the kernel" } else { "policy" };
    lines.push(("tiering", format!("{} ({by})", result.tiering)));
    lines.push((
        "moves",
        format!("{} pages promoted, {} demoted", count(result.promoted()), count(result.demoted())),
    ));
    lines.push(("kernel", format!("{} pages moved, {} failed", count(counts.moved), count(counts.failed))));
    lines.push((
        "memory",
        format!("{} at most; at the end {} on the fast node", footprint(result), at_end(result)),
    ));
    lines.push(("exit", result.exit_status.to_string()));
    lines.push((
        "time",
        format!(
            "{:.1} s with boot, {:.1} s of the guest's clock",
            result.elapsed_seconds, counts.guest_seconds
        ),
    ));
    lines.push(("folder", result.folder.display().to_string()));
    named(&lines)
}

/// Several runs of the same program: a row each.
pub fn lab_table(results: &[LabResult]) -> String {
    let Some(first) = results.first() else { return "no run\n".into() };
    format!("{}\n{}", named(&head(first)), aligned(&HEADER, results.iter().map(row), 1))
}

/// Runs as one JSON object on one line.
pub fn lab_json(results: &[LabResult]) -> String {
    let object = serde_json::json!({ "version": env!("CARGO_PKG_VERSION"), "runs": results });
    format!("{object}\n")
}

fn head(result: &LabResult) -> Vec<(&'static str, String)> {
    let command = printable(&result.program.join(" "));
    let fast = result.fast_bytes.map_or("all that is free".into(), |bytes| Bytes(bytes).to_string());
    vec![
        ("program", shortened(&command, COMMAND)),
        ("machine", format!("{}, Linux {}", result.machine, result.kernel)),
        ("fast memory", format!("{fast}; memory starts {}", start(result.start))),
    ]
}

fn start(name: &str) -> &'static str {
    match name {
        "slow" => "on the slow node",
        "fast" => "on the fast node",
        _ => "where it is first touched",
    }
}

fn row(result: &LabResult) -> [String; 8] {
    [
        result.tiering.clone(),
        result.exit_status.to_string(),
        count(result.promoted()),
        count(result.demoted()),
        count(result.counts.moved),
        count(result.counts.failed),
        at_end(result),
        format!("{:.1}", result.elapsed_seconds),
    ]
}

fn footprint(result: &LabResult) -> String {
    Bytes(result.footprint_bytes()).to_string()
}

/// The share of the program's memory on the fast node before it ended.
fn at_end(result: &LabResult) -> String {
    let share = |nodes: &[u64]| nodes[0] as f64 / nodes.iter().sum::<u64>() as f64;
    settled(&result.residence).map_or("-".into(), |moment| percent(share(&moment.node_bytes)))
}

#[cfg(test)]
mod tests {
    use isotherm_lab::counts::{Counts, Residence};

    use super::*;

    fn result() -> LabResult {
        LabResult {
            version: "1",
            machine: "small".into(),
            kernel: "6.12".into(),
            program: vec!["sort".into(), "a\nb".into()],
            tiering: "numab".into(),
            kernel_tiering: true,
            start: "slow",
            fast_bytes: Some(64 << 20),
            exit_status: 3,
            elapsed_seconds: 4.25,
            counts: Counts { promoted: 1500, demoted: 20, moved: 1520, ..Counts::default() },
            residence: vec![Residence { seconds: 1.0, node_bytes: vec![1 << 20, 3 << 20] }],
            engine: None,
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
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn a_policys_own_counts_come_first_in_a_row() {
        let engine = serde_json::json!({ "traffic": { "promotions": 7, "demotions": 2 } });
        let ours =
            LabResult { kernel_tiering: false, engine: Some(engine), tiering: "lru".into(), ..result() };
        assert_eq!(row(&ours)[..5], ["lru", "3", "7", "22", "1.52k"].map(String::from));
        assert_eq!(lab_table(&[result(), ours]).lines().count(), 8);
        assert_eq!(lab_table(&[]), "no run\n");
    }

    #[test]
    fn json_is_one_object_on_one_line() -> Result<(), serde_json::Error> {
        let text = lab_json(&[result()]);
        let value: serde_json::Value = serde_json::from_str(&text)?;
        assert_eq!((text.lines().count(), value["runs"][0]["counts"]["promoted"].as_u64()), (1, Some(1500)));
        Ok(())
    }
}
