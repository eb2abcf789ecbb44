//! The work of a guest.

use std::ffi::OsString;
use std::path::PathBuf;

use isotherm_core::Bytes;

use crate::kernel_tiering::KernelTiering;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyRun {
    Kernel(KernelTiering),
    /// `isotherm run` inside the guest.
    Engine {
        /// Words that start isotherm, which the guest runs from the host's files.
        isotherm: Vec<OsString>,
        /// Words between `run` and `--`.
        options: Vec<OsString>,
        /// Whether the kernel's reclaim demotes, which some policies rely on.
        demotion: bool,
    },
    /// An engine that is a thread of the program: `libisotherm.so` by `LD_PRELOAD`.
    Inside {
        /// Library, which the guest loads from the host's files.
        library: PathBuf,
        /// Its variables in the program's environment.
        settings: Vec<(OsString, OsString)>,
        demotion: bool,
    },
}

impl PolicyRun {
    pub(crate) fn kernel(&self) -> KernelTiering {
        if let Self::Kernel(kernel) = self { *kernel } else { KernelTiering::NONE }
    }

    pub(crate) fn demotes(&self) -> bool {
        match self {
            Self::Kernel(kernel) => kernel.demotes(),
            Self::Engine { demotion, .. } | Self::Inside { demotion, .. } => *demotion,
        }
    }
}

/// Place of the program's memory when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The kernel's choice: the fast node as long as there is room.
    FirstTouch,
    /// The slow node until the memory stops growing.
    Slow,
    /// The fast node until the memory stops growing.
    Fast,
}

impl Start {
    pub fn name(self) -> &'static str {
        match self {
            Self::FirstTouch => "first-touch",
            Self::Slow => "slow",
            Self::Fast => "fast",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// A program of the host, with its arguments.
    Program(Vec<OsString>),
    /// A shell on the terminal.
    Shell,
    /// A shell that reads its commands from standard input.
    Commands,
}

/// Files that count the program's accesses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counting {
    pub plugin: PathBuf,
    /// Words that start isotherm, as for [`PolicyRun::Engine`].
    pub isotherm: Vec<OsString>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub task: Task,
    pub tiering: PolicyRun,
    pub start: Start,
    /// Bytes of the first nodes for the program, fastest first; of the others, all that are free.
    pub room: Vec<Bytes>,
    /// Seconds of the guest's clock for a modelled one: the kernel's tiering is that much slower.
    pub clock_ratio: u32,
    pub counting: Option<Counting>,
    pub environment: Vec<(OsString, OsString)>,
    pub directory: PathBuf,
}
