//! The state as lines for a terminal.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use isotherm_core::Bytes;
use isotherm_core::machine_status::{GroupStatus, MachineStatus};

/// Longest name of a program in the table, in characters.
const COMMAND: usize = 20;

/// Formats the state of the machine in a line.
pub fn machine_line(status: &MachineStatus) -> String {
    let used: Bytes = status.groups.iter().map(GroupStatus::fast).sum();
    let cpu = 100.0 * status.cpu_ns.as_seconds() / status.time_ns.as_seconds().max(1e-9);
    let alone = status.groups.iter().any(|group| group.mode == "alone");
    format!(
        "fast {used} of {} in use, {} programs in {} groups, {} left alone; {} {cpu:.2} % of one processor{}",
        status.fast_bytes,
        status.groups.iter().map(|group| group.programs.len()).sum::<usize>(),
        status.groups.len(),
        status.left_alone,
        if alone { "engine" } else { "daemon" },
        if status.shadow { "; shadow tiers: nothing moves" } else { "" },
    )
}

/// Formats the state: a line for the machine, a table of groups, and of programs where `programs` is set.
pub fn machine_text(status: &MachineStatus, programs: bool) -> String {
    let mut text = machine_line(status) + "\n";
    let mut table =
        plain(&["group", "policy", "programs", "share", "fast", "slow", "hits", "moves/s", "cost", "saved"]);
    for group in &status.groups {
        let hits = group.hit_ratio.map_or_else(|| "unknown".into(), |hits| format!("{:.1} %", 100.0 * hits));
        let cost = (group.engine_ns + group.observing_ns).as_seconds();
        table.add_row([
            clean(&group.name),
            clean(if ["pinned", "excluded"].contains(&&*group.mode) { &group.mode } else { &group.policy }),
            group.programs.len().to_string(),
            group.share_bytes.to_string(),
            group.fast().to_string(),
            slower(&group.resident_bytes, group.swapped_bytes),
            hits,
            format!("{:.0}", group.moves_per_s),
            format!("{cost:.2} s"),
            format!("{:.2} s", group.saved_ns.as_seconds()),
        ]);
    }
    let _ = writeln!(text, "\n{table}");
    if programs {
        text += &program_table(status);
    }
    for group in &status.groups {
        group.warnings.iter().for_each(|warning| {
            let _ = writeln!(text, "{}: {}", clean(&group.name), clean(warning));
        });
    }
    status.rivals.iter().for_each(|rival| {
        let _ = writeln!(text, "rival: {}", clean(rival));
    });
    status.log_warning().iter().for_each(|warning| {
        let _ = writeln!(text, "{}", clean(warning));
    });
    text
}

fn program_table(status: &MachineStatus) -> String {
    let mut table = plain(&["process", "group", "program", "fast", "slow", "accesses"]);
    for (group, program) in
        status.groups.iter().flat_map(|group| group.programs.iter().map(move |one| (group, one)))
    {
        let state =
            program.refused.as_ref().map_or_else(|| program.accesses.to_string(), |_| "not tiered".into());
        table.add_row([
            program.pid.to_string(),
            clean(&group.name),
            clean(&program.command).chars().take(COMMAND).collect(),
            program.resident_bytes.first().copied().unwrap_or_default().to_string(),
            slower(&program.resident_bytes, program.swapped_bytes),
            state,
        ]);
    }
    format!("\n{table}\n")
}

/// Returns memory on every tier but the fast one, of which `resident` is the first: `4G`, or `4G+1G` of three
/// tiers, and behind them what is in swap: `4G+1G+2G swapped`.
pub fn slower(resident: &[Bytes], swapped: Bytes) -> String {
    let slow = resident.get(1..).filter(|tiers| !tiers.is_empty()).unwrap_or(&[Bytes(0)]);
    let swapped = (swapped.0 > 0).then(|| format!("{swapped} swapped"));
    slow.iter().map(Bytes::to_string).chain(swapped).collect::<Vec<_>>().join("+")
}

/// Returns a text for one line of a terminal.
fn clean(text: &str) -> String {
    let letter = |letter: char| match letter {
        '\n' => ' ',
        _ if letter.is_control() => '?',
        _ => letter,
    };
    text.chars().map(letter).collect()
}

fn plain(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for (place, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if place > 2 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use isotherm_core::Nanos;
    use isotherm_core::machine_status::ProgramStatus;

    use super::*;

    #[test]
    fn each_slower_tier_has_its_memory() {
        let shown = |gibibytes: &[u64]| {
            slower(&gibibytes.iter().map(|gibibytes| Bytes(gibibytes << 30)).collect::<Vec<_>>(), Bytes(0))
        };
        assert_eq!([shown(&[]), shown(&[2]), shown(&[2, 4])], ["0B", "0B", "4G"]);
        assert_eq!(shown(&[2, 4, 1]), "4G+1G");
        assert_eq!(slower(&[Bytes(9), Bytes(8)], Bytes(4096)), "8B+4K swapped");
    }

    #[test]
    fn groups_and_programs_are_lines() {
        let program = ProgramStatus { pid: 7, command: "post\u{1b}gres".into(), ..ProgramStatus::default() };
        let group = GroupStatus {
            name: "database".into(),
            mode: "tiered".into(),
            policy: "isotherm".into(),
            resident_bytes: vec![Bytes(1 << 30), Bytes(3 << 30)],
            hit_ratio: Some(0.913),
            saved_ns: Nanos(1_500_000_000),
            programs: vec![program],
            warnings: vec!["accessed-bits:\nlate".into()],
            ..GroupStatus::default()
        };
        let status = MachineStatus {
            fast_bytes: Bytes(2 << 30),
            groups: vec![group],
            rivals: vec!["numad runs".into()],
            ..MachineStatus::default()
        };
        let text = machine_text(&status, true);
        assert!(text.starts_with("fast 1G of 2G in use, 1 programs in 1 groups"), "{text}");
        let row: Vec<&str> = text
            .lines()
            .find(|line| line.starts_with("database"))
            .expect("a row")
            .split_whitespace()
            .collect();
        assert_eq!(row[..8], ["database", "isotherm", "1", "0B", "1G", "3G", "91.3", "%"], "{text}");
        assert!(text.contains("post?gres") && !text.contains('\u{1b}'), "{text}");
        assert!(text.ends_with("database: accessed-bits: late\nrival: numad runs\n"), "{text}");
    }
}
