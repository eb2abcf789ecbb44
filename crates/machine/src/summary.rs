//! A machine as results show it.

use serde::Serialize;

/// The machine in short, for the head of a table, and in full.
#[derive(Debug, Clone, Serialize)]
pub struct MachineSummary {
    /// Its kebab-case name.
    pub name: String,
    /// One line.
    pub title: String,
    /// Every number in force: path, value, unit and source.
    pub numbers: Vec<MachineNumber>,
}

/// One number of a machine profile.
#[derive(Debug, Clone, Serialize)]
pub struct MachineNumber {
    /// Where it stands, such as `tier.1.latency`.
    pub path: String,
    /// Its value with unit.
    pub value: String,
    /// Where it comes from.
    pub source: String,
}
