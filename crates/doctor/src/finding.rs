//! Defines one finding of the doctor: what was looked at, how it is, and what mends it.

use serde::Serialize;

/// What a finding is about; findings are shown in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// The kernel, tiers, devices, and how memory is reclaimed.
    Memory,
    /// Where accesses can be learned from, and the settings that bound it.
    Sources,
    /// What this process may do, and what confines it.
    Capabilities,
    /// Others that move pages too.
    Conflicts,
}

impl Area {
    /// All, in the order shown.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Sources, Self::Capabilities, Self::Conflicts];

    /// Its heading.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sources => "sources",
            Self::Capabilities => "capabilities",
            Self::Conflicts => "conflicts",
        }
    }
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As Isotherm wants it, or not needed.
    Ok,
    /// Not there, or not permitted.
    Missing,
    /// There, yet in a way that makes runs worse.
    Warning,
    /// It could not be found out.
    Unknown,
}

impl State {
    /// The word shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Missing => "missing",
            Self::Warning => "warning",
            Self::Unknown => "unknown",
        }
    }
}

/// What mends something.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// A command for a root shell.
    Command(String),
    /// An option that the kernel must be built with, such as `CONFIG_USERFAULTFD=y`.
    KernelOption(String),
    /// A parameter for the kernel's command line.
    BootParameter(String),
    /// What no command does.
    Advice(String),
}

impl Remedy {
    /// A command for a root shell.
    pub(super) fn command(text: impl Into<String>) -> Self {
        Self::Command(text.into())
    }

    /// What no command does.
    pub(super) fn advice(text: impl Into<String>) -> Self {
        Self::Advice(text.into())
    }

    /// An option of the kernel.
    pub(super) fn option(text: impl Into<String>) -> Self {
        Self::KernelOption(text.into())
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub area: Area,
    /// Kebab-case; with [`Self::subject`] it is unique.
    pub name: &'static str,
    /// Which of several things of that name, such as `dax0.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// How it is.
    pub state: State,
    /// What that means, in one sentence; where the state is unknown, why.
    pub meaning: String,
    /// What is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// What mends it; always there where something is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

impl Finding {
    fn new(area: Area, name: &'static str, state: State, meaning: impl Into<String>) -> Self {
        Self { area, name, subject: None, state, meaning: meaning.into(), lost: None, remedy: None }
    }

    /// As it should be.
    pub(super) fn ok(area: Area, name: &'static str, meaning: impl Into<String>) -> Self {
        Self::new(area, name, State::Ok, meaning)
    }

    /// Not there: what is lost and what mends it.
    pub(super) fn missing(
        area: Area,
        name: &'static str,
        meaning: impl Into<String>,
        lost: impl Into<String>,
        remedy: Remedy,
    ) -> Self {
        Self::new(area, name, State::Missing, meaning).losing(lost).mended_by(remedy)
    }

    /// There, and worse than it should be.
    pub(super) fn warning(
        area: Area,
        name: &'static str,
        meaning: impl Into<String>,
        lost: impl Into<String>,
        remedy: Remedy,
    ) -> Self {
        Self::new(area, name, State::Warning, meaning).losing(lost).mended_by(remedy)
    }

    /// It could not be found out, for this reason.
    pub(super) fn unknown(area: Area, name: &'static str, reason: impl ToString) -> Self {
        Self::new(area, name, State::Unknown, reason.to_string())
    }

    /// Of several things of that name, this one.
    #[must_use]
    pub(super) fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    #[must_use]
    fn losing(mut self, lost: impl Into<String>) -> Self {
        self.lost = Some(lost.into());
        self
    }

    #[must_use]
    fn mended_by(mut self, remedy: Remedy) -> Self {
        self.remedy = Some(remedy);
        self
    }

    /// The name, and the subject where there is one: `dax-device dax0.0`.
    pub fn title(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{} {subject}", self.name),
            None => self.name.to_owned(),
        }
    }
}
