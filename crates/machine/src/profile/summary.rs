//! A machine as results show it.

use serde::Serialize;

/// A machine in results: its title and all of its numbers.
#[derive(Debug, Clone, Serialize)]
pub struct MachineSummary {
    /// Kebab-case name.
    pub name: String,
    /// One-line title.
    pub title: String,
    /// Every number in force.
    pub numbers: Vec<MachineNumber>,
}

/// One number of a machine profile.
#[derive(Debug, Clone, Serialize)]
pub struct MachineNumber {
    /// Path, such as `tier.1.latency`.
    pub path: String,
    /// Value with its unit.
    pub value: String,
    /// Source of the number.
    pub source: String,
}
