//! Defines what a guest is started for.

use std::ffi::OsString;
use std::path::PathBuf;

use isotherm_core::Bytes;

use crate::kernel_tiering::KernelTiering;

/// Who moves pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyRun {
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
    /// An engine that is a thread of the program: `libisotherm.so` by `LD_PRELOAD`.
    Inside {
        /// The library, which the guest loads from the host's files.
        library: PathBuf,
        /// What the program's environment holds for it.
        settings: Vec<(OsString, OsString)>,
        /// Whether the kernel's reclaim demotes.
        demotion: bool,
    },
}

impl PolicyRun {
    /// What the kernel itself does.
    pub(crate) fn kernel(&self) -> KernelTiering {
        if let Self::Kernel(kernel) = self { *kernel } else { KernelTiering::NONE }
    }

    /// Whether the kernel's reclaim demotes.
    pub(crate) fn demotes(&self) -> bool {
        match self {
            Self::Kernel(kernel) => kernel.demotes(),
            Self::Engine { demotion, .. } | Self::Inside { demotion, .. } => *demotion,
        }
    }
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
    /// A shell that reads its commands from our input.
    Commands,
}

/// What counts the program's accesses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counting {
    /// QEMU's plugin ([`crate::plugin::find`]).
    pub plugin: PathBuf,
    /// The `isotherm` binary, which begins the counting in the guest.
    pub isotherm: PathBuf,
}

/// One run of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// What it runs.
    pub task: Task,
    /// Who moves pages.
    pub tiering: PolicyRun,
    /// Where memory lies at first.
    pub start: Start,
    /// What of the first node the program may have; all that is free where it is `None`.
    pub fast: Option<Bytes>,
    /// What counts accesses; none are where it is `None`.
    pub counting: Option<Counting>,
    /// Its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub directory: PathBuf,
}
