//! `isotherm.toml`: what the daemon does on this machine.
//!
//! Every error names the line and what was expected there. Nothing takes effect unless the whole file is
//! valid. `packaging/isotherm.toml` explains each key.

mod group;
mod value;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use isotherm_core::{Bytes, Nanos};
use isotherm_live::policy_run::PolicyRun;
use serde::Deserialize;
use toml::Spanned;

pub use group::{Group, Mode};
pub use value::Size;

use crate::log::Bounds;

/// Most groups: each has an engine of its own.
pub const MAX_GROUPS: usize = 256;
/// Longest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Where the daemon's page and metrics are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A TCP address, on loopback unless `allow_remote` is set.
    Address(SocketAddr),
    /// Nowhere.
    Off,
}

/// The place of the log of operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPlace {
    /// The service's state directory; nowhere without one.
    Service,
    /// A directory.
    Directory(PathBuf),
    /// Nowhere.
    Off,
}

/// The log of operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// Its place.
    pub place: LogPlace,
    /// Most bytes of all files.
    pub size: Bytes,
    /// Greatest age of a file.
    pub age: Nanos,
}

impl LogSettings {
    /// Returns where the log is kept; `None` for none. `state` holds the directories of systemd's
    /// `STATE_DIRECTORY`.
    pub(crate) fn bounds(&self, state: Option<&OsStr>) -> Option<Bounds> {
        let directory = match &self.place {
            LogPlace::Service => std::env::split_paths(state?).next()?,
            LogPlace::Directory(directory) => directory.clone(),
            LogPlace::Off => return None,
        };
        Some(Bounds { directory, size: self.size, age: self.age })
    }
}

/// The settings of a daemon.
#[derive(Debug, Clone)]
pub struct Config {
    /// Fast memory for all groups together; the whole fast tier if `None`, a quarter of the memory where
    /// tiers are shadows.
    pub fast: Option<Size>,
    /// NUMA nodes of each tier, as in `isotherm run --tiers`.
    pub tiers: Option<String>,
    /// Whether nothing moves.
    pub shadow: bool,
    /// Machine profile with the latencies for estimates.
    pub machine: String,
    /// Where the page and the metrics are served.
    pub listen: Listen,
    /// The log of operations.
    pub log: LogSettings,
    /// Time between two divisions of the fast memory.
    pub interval: Nanos,
    /// The groups, in the order of the file: a program belongs to the first that it fits.
    pub groups: Vec<Group>,
}

/// A mistake in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file.
    pub path: PathBuf,
    /// Line, from 1 on; `None` where the file cannot be read.
    pub line: Option<usize>,
    /// Says what was found and what was expected, in one line.
    pub reason: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))?;
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for ConfigError {}

/// A mistake and its place in the text.
#[derive(Debug)]
struct Mistake {
    place: Range<usize>,
    reason: String,
}

impl Mistake {
    fn at<T>(value: &Spanned<T>, reason: impl fmt::Display) -> Self {
        Self { place: value.span(), reason: reason.to_string() }
    }
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    fast: Option<Spanned<String>>,
    tiers: Option<Spanned<String>>,
    #[serde(default)]
    shadow: bool,
    machine: Option<Spanned<String>>,
    listen: Option<Spanned<String>>,
    #[serde(default)]
    allow_remote: bool,
    log: Option<Spanned<String>>,
    log_size: Option<Spanned<String>>,
    log_age: Option<Spanned<String>>,
    interval: Option<Spanned<String>>,
    policy: Option<Spanned<String>>,
    overhead: Option<Spanned<String>>,
    #[serde(default, rename = "group")]
    groups: Vec<Spanned<group::Written>>,
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        use std::io::Read;
        let failed = |reason: String| ConfigError { path: path.to_owned(), line: None, reason };
        let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
        let mut text = String::new();
        let length =
            file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
        if length as u64 > MAX_BYTES {
            return Err(failed(format!("expected at most {} of text", Bytes(MAX_BYTES))));
        }
        Self::parse(&text).map_err(|(line, reason)| ConfigError { path: path.to_owned(), line, reason })
    }

    /// Parses and checks a file's text. Errors are a line and a reason.
    pub fn parse(text: &str) -> Result<Self, (Option<usize>, String)> {
        let line = |place: usize| Some(1 + text.get(..place).unwrap_or(text).matches('\n').count());
        let file: File = toml::from_str(text).map_err(|error| {
            let reason = error.message().lines().collect::<Vec<_>>().join("; ");
            (error.span().and_then(|span| line(span.start)), reason)
        })?;
        file.check().map_err(|mistake| (line(mistake.place.start), mistake.reason))
    }
}

impl File {
    fn check(self) -> Result<Config, Mistake> {
        let listen = match &self.listen {
            None => Listen::Address(SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT))),
            Some(text) if text.as_ref() == "off" => Listen::Off,
            Some(text) => {
                let address: SocketAddr = text.as_ref().parse().map_err(|_| {
                    Mistake::at(
                        text,
                        format!("listen: expected ADDRESS:PORT or \"off\", found '{}'", text.as_ref()),
                    )
                })?;
                if !address.ip().is_loopback() && !self.allow_remote {
                    return Err(Mistake::at(
                        text,
                        format!(
                            "listen: {address} is open to other machines; set allow_remote = true to allow that"
                        ),
                    ));
                }
                Listen::Address(address)
            }
        };
        let log = self.log()?;
        let interval = match &self.interval {
            None => Nanos::SECOND,
            Some(text) => {
                value::nanos(text, "interval", Nanos(Nanos::SECOND.0 / 10)..Nanos(60 * Nanos::SECOND.0))?
            }
        };
        let fast = self.fast.as_ref().map(|text| value::size(text, "fast")).transpose()?;
        let policy = match &self.policy {
            Some(name) => group::policy(name)?,
            None => PolicyRun::new(default_policy()),
        };
        let overhead = self.overhead.as_ref().map(value::overhead).transpose()?;
        let mut names = BTreeSet::new();
        let mut groups = Vec::new();
        for written in &self.groups {
            let group = written.get_ref().check(&policy, overhead)?;
            if !names.insert(group.name.clone()) {
                let name = &written.get_ref().name;
                return Err(Mistake::at(name, format!("group '{}' is named twice", group.name)));
            }
            groups.push(group);
            if groups.len() > MAX_GROUPS {
                return Err(Mistake::at(written, format!("expected at most {MAX_GROUPS} groups")));
            }
        }
        if let (Some(Size::Bytes(fast)), [first, ..]) = (fast, &self.groups[..]) {
            let protect = |group: &Group| group.protect.of(fast).0;
            let protected: u64 = groups.iter().map(protect).fold(0, u64::saturating_add);
            if protected > fast.0 {
                return Err(Mistake::at(
                    first,
                    format!("the groups protect {} together, more than fast = {fast}", Bytes(protected)),
                ));
            }
        }
        Ok(Config {
            fast,
            tiers: self.tiers.map(Spanned::into_inner),
            shadow: self.shadow,
            machine: self.machine.map_or_else(|| DEFAULT_MACHINE.into(), Spanned::into_inner),
            listen,
            log,
            interval,
            groups,
        })
    }

    fn log(&self) -> Result<LogSettings, Mistake> {
        let place = match &self.log {
            None => LogPlace::Service,
            Some(text) if text.as_ref() == "off" => LogPlace::Off,
            Some(text) if text.as_ref().starts_with('/') => LogPlace::Directory(text.as_ref().into()),
            Some(text) => {
                let found = text.as_ref();
                return Err(Mistake::at(
                    text,
                    format!("log: expected a directory's path from / on, or \"off\", found '{found}'"),
                ));
            }
        };
        let size = match &self.log_size {
            None => LOG_SIZE,
            Some(text) => text.as_ref().parse().ok().filter(|&size| size >= LEAST_LOG).ok_or_else(|| {
                let found = text.as_ref();
                Mistake::at(
                    text,
                    format!("log_size: expected a size such as 256M, at least {LEAST_LOG}, found '{found}'"),
                )
            })?,
        };
        let age = match &self.log_age {
            None => LOG_AGE,
            Some(text) => value::nanos(
                text,
                "log_age",
                Nanos(3600 * Nanos::SECOND.0)..Nanos(10_000 * 3600 * Nanos::SECOND.0),
            )?,
        };
        Ok(LogSettings { place, size, age })
    }
}

/// Size and age of the log unless the file says otherwise.
const LOG_SIZE: Bytes = Bytes(256 << 20);
const LOG_AGE: Nanos = Nanos(168 * 3600 * Nanos::SECOND.0);
/// Least size: a file has up to a megabyte.
const LEAST_LOG: Bytes = Bytes(4 << 20);

/// Port of the page and the metrics.
pub const DEFAULT_PORT: u16 = 9467;
/// The machine profile of `isotherm run`.
const DEFAULT_MACHINE: &str = "sapphire-rapids";

fn default_policy() -> &'static isotherm_policies::Entry {
    isotherm_policies::find(DEFAULT_POLICY).unwrap_or(&isotherm_policies::ALL[0])
}

/// The policy of `isotherm run`.
pub const DEFAULT_POLICY: &str = "isotherm";

#[cfg(test)]
mod tests;
