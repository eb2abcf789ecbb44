//! The log of operations: what the daemon saw and did, as a directory of Parquet files.
//!
//! | column | holds |
//! |---|---|
//! | `time` | microseconds since 1970: the daemon's start by the clock and its age by `CLOCK_MONOTONIC` |
//! | `kind` | `machine`, `group`, `heat` or `event` |
//! | `group` | the group's name; empty for the machine |
//! | `share` ... `tier3` | the figures of a `group`'s moment, as the page draws them; otherwise 0 |
//! | `state` | JSON: a [`MachineStatus`] without groups, a [`GroupStatus`], a group's [`MappingStatus`], or an [`Event`] |
//!
//! [`MachineStatus`]: isotherm_core::machine_status::MachineStatus
//! [`GroupStatus`]: isotherm_core::machine_status::GroupStatus
//! [`MappingStatus`]: isotherm_core::machine_status::MappingStatus
//!
//! A row of the machine begins a moment; what follows up to the next one belongs to it. Rows are written
//! every minute, as a file that is complete when it gets its name: a daemon that is killed loses at most the
//! last minute. The oldest files are removed to keep the directory within its size and age. A thread of its
//! own writes, so that a disk that is slow or full never holds up the daemon.

mod reader;
mod writer;

use chrono::{DateTime, NaiveDateTime};
use serde::{Deserialize, Serialize};

pub use reader::{LogError, LogReader, Row};
pub(crate) use writer::{Bounds, EVERY, Log};

/// Version of the format that is written and read.
pub const FORMAT_VERSION: &str = "1";
/// Key of the format's version in a file's key-value metadata.
pub const VERSION_KEY: &str = "isotherm.operations.version";

const TIME: &str = "time";
const KIND: &str = "kind";
const GROUP: &str = "group";
const STATE: &str = "state";

/// The format of the time in a file's name, for chrono.
const NAMED: &str = "isotherm-%Y%m%dT%H%M%S%.6fZ.parquet";

/// Subject of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The machine, at the beginning of a moment.
    Machine,
    /// A group.
    Group,
    /// A group's memory by address.
    Heat,
    /// Something that happened.
    Event,
}

impl Kind {
    const ALL: [(Self, &str); 4] =
        [(Self::Machine, "machine"), (Self::Group, "group"), (Self::Heat, "heat"), (Self::Event, "event")];

    fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    fn parse(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| known.as_bytes() == name).map(|(kind, _)| kind)
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// `came` or `went` for a program; otherwise how important it is: `info`, `warning` or `error`.
    pub what: String,
    /// The program's name, or the message of the journal.
    pub message: String,
    /// The program's process.
    pub pid: Option<u32>,
}

/// Returns the name of a file that begins at a time in microseconds since 1970.
fn file_name(time_us: i64) -> String {
    DateTime::from_timestamp_micros(time_us).unwrap_or_default().format(NAMED).to_string()
}

/// Returns the time at which a file begins, by its name; `None` for other files.
fn begin(name: &str) -> Option<i64> {
    let parsed = NaiveDateTime::parse_from_str(name, &NAMED.replace("%.6f", "%.f")).ok()?;
    Some(parsed.and_utc().timestamp_micros())
}

/// Returns a time in UTC, as [`parse_time`] reads it.
pub fn time(time_us: i64) -> String {
    DateTime::from_timestamp_micros(time_us).unwrap_or_default().format("%Y-%m-%dT%H:%M:%S").to_string()
}

/// Parses a time in UTC such as `2026-11-26T03:00`, with seconds and `Z` if wished, in microseconds since
/// 1970.
pub fn parse_time(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z').unwrap_or(text).replace(' ', "T");
    let parsed = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"]
        .into_iter()
        .find_map(|format| NaiveDateTime::parse_from_str(&text, format).ok());
    parsed.map(|time| time.and_utc().timestamp_micros())
}

#[cfg(test)]
pub(crate) mod tests;
