//! Defines what a guest is started for.

use std::ffi::OsString;
use std::path::PathBuf;

use isotherm_core::Bytes;

use crate::kernel_tiering::KernelTiering;

/// Who moves pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tiering {
    /// The guest's kernel.
    Kernel(KernelTiering),
    /// `isotherm run` inside of the guest.
    Engine {
        /// The binary, which the guest runs from the host's files.
        isotherm: PathBuf,
        /// What stands between `run` and `--`.
        options: Vec<OsString>,
        /// Whether the kernel's reclaim demotes, which some policies rely on.
        demotion: bool,
    },
}

/// Where the program's memory lies when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Where the kernel puts it: on the fast node as long as there is room.
    FirstTouch,
    /// All on the slow node until its memory stops growing.
    Slow,
    /// All on the fast node until its memory stops growing.
    Fast,
}

impl Start {
    /// As the command line writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::FirstTouch => "first-touch",
            Self::Slow => "slow",
            Self::Fast => "fast",
        }
    }
}

/// What the guest runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// A program of the host; its words.
    Program(Vec<OsString>),
    /// A shell on the terminal.
    Shell,
}

/// One run of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// What it runs.
    pub task: Task,
    /// Who moves pages.
    pub tiering: Tiering,
    /// Where memory lies at first.
    pub start: Start,
    /// What of the first node the program may have; all that is free where it is `None`.
    pub fast: Option<Bytes>,
    /// Its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub directory: PathBuf,
}
