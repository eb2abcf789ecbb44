//! The rows of the view's tables.

use std::cmp::Ordering;

use isotherm_core::Bytes;
use isotherm_core::machine_status::{GroupStatus, MappingStatus, ProgramStatus};
use isotherm_report::slower;

use super::view::View;
use crate::output::one_line;

pub(super) const GROUPS: [&str; 11] =
    ["group", "policy", "programs", "share", "fast", "slow", "hits", "moves/s", "cost", "saved", "hit ratio"];
pub(super) const PROGRAMS: [&str; 5] = ["process", "program", "fast", "slow", "accesses"];
pub(super) const MAPPINGS: [&str; 6] = ["address", "size", "fast", "slow", "accesses", "heat"];

/// One cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Text(String),
    Number(f64, String),
    /// Hit ratios, oldest first.
    Ratios(Vec<Option<f64>>),
    /// Sampled accesses in each MiB, and the percentage that is fast.
    Heat(Vec<(f64, u8)>),
}

impl Cell {
    fn bytes(bytes: Bytes) -> Self {
        Self::Number(bytes.0 as f64, bytes.to_string())
    }

    /// Returns the memory on every tier but the fast one, and in swap; sums are ordered.
    fn slower(resident: &[Bytes], swapped: Bytes) -> Self {
        let sum = resident.iter().skip(1).copied().sum::<Bytes>() + swapped;
        Self::Number(sum.0 as f64, slower(resident, swapped))
    }

    /// Orders numbers from the largest down, then texts from A.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(one, _), Self::Number(other, _)) => other.total_cmp(one),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::Number(..), _) => Ordering::Less,
            (_, Self::Number(..)) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }
}

/// A row and what it stands for.
pub(super) struct Row {
    pub(super) key: String,
    pub(super) cells: Vec<Cell>,
}

/// Returns the row of a group.
pub(super) fn group(view: &View, group: &GroupStatus) -> Row {
    let hits = group.hit_ratio.map_or_else(|| "unknown".into(), |hits| format!("{:.1} %", 100.0 * hits));
    let cost = (group.engine_ns + group.observing_ns).as_seconds();
    let saved = group.saved_ns.as_seconds();
    let moves = view.moves_per_s(group);
    let programs = group.programs.len();
    let moved = !["pinned", "excluded"].contains(&group.mode.as_str());
    let cells = vec![
        Cell::Text(one_line(&group.name).into()),
        Cell::Text(one_line(if moved { &group.policy } else { &group.mode }).into()),
        Cell::Number(programs as f64, programs.to_string()),
        Cell::bytes(group.share_bytes),
        Cell::bytes(group.fast()),
        Cell::slower(&group.resident_bytes, group.swapped_bytes),
        Cell::Number(group.hit_ratio.unwrap_or(-1.0), hits),
        Cell::Number(moves, format!("{moves:.0}")),
        Cell::Number(cost, format!("{cost:.2} s")),
        Cell::Number(saved, format!("{saved:.2} s")),
        Cell::Ratios(view.ratios(&group.name)),
    ];
    Row { key: group.name.clone(), cells }
}

/// Returns the row of a program.
pub(super) fn program(program: &ProgramStatus) -> Row {
    let accesses = match &program.refused {
        Some(_) => Cell::Text("not tiered".into()),
        None => Cell::Number(program.accesses as f64, program.accesses.to_string()),
    };
    let cells = vec![
        Cell::Number(-f64::from(program.pid), program.pid.to_string()),
        Cell::Text(one_line(&program.command).into()),
        Cell::bytes(program.resident_bytes.first().copied().unwrap_or_default()),
        Cell::slower(&program.resident_bytes, program.swapped_bytes),
        accesses,
    ];
    Row { key: program.pid.to_string(), cells }
}

/// Returns the row of a mapping.
pub(super) fn mapping(mapping: &MappingStatus) -> Row {
    let mib = mapping.bytes.0 as f64 / mapping.cells.len().max(1) as f64 / f64::from(1 << 20);
    let address = format!("{:x}", mapping.start);
    let cells = vec![
        Cell::Number(-(mapping.start as f64), address.clone()),
        Cell::bytes(mapping.bytes),
        Cell::bytes(mapping.resident_bytes.first().copied().unwrap_or_default()),
        Cell::slower(&mapping.resident_bytes, Bytes(0)),
        Cell::Number(mapping.accesses() as f64, mapping.accesses().to_string()),
        Cell::Heat(mapping.cells.iter().map(|&(accesses, fast)| (accesses as f64 / mib, fast)).collect()),
    ];
    Row { key: address, cells }
}
