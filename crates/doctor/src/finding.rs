//! Findings: what was examined, its state, what is lost and what fixes it.

use serde::Serialize;

/// Part of the examination that a finding belongs to; findings are shown in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// The kernel, tiers, devices, and reclaim of memory.
    Memory,
    /// Access sources, and the settings that limit them.
    Sources,
    /// Rights of this process, and its confinement.
    Capabilities,
    /// Other software that moves pages.
    Conflicts,
}

impl Area {
    /// All areas, in the order shown.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Sources, Self::Capabilities, Self::Conflicts];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sources => "sources",
            Self::Capabilities => "capabilities",
            Self::Conflicts => "conflicts",
        }
    }

    pub(super) const fn topic(self, name: &'static str) -> Topic {
        Topic { area: self, name }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As Isotherm wants it, or not needed.
    Ok,
    /// Absent or not permitted.
    Missing,
    /// Present, but runs are worse for it.
    Warning,
    /// Could not be determined.
    Unknown,
}

impl State {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Missing => "missing",
            Self::Warning => "warning",
            Self::Unknown => "unknown",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// Command for a root shell.
    Command(String),
    /// Options that the kernel must be built with, such as `CONFIG_USERFAULTFD=y`.
    KernelOption(String),
    /// Parameter for the kernel's command line.
    BootParameter(String),
    /// Advice that no single command carries out.
    Advice(String),
}

impl Remedy {
    pub(super) fn command(text: impl Into<String>) -> Self {
        Self::Command(text.into())
    }

    pub(super) fn advice(text: impl Into<String>) -> Self {
        Self::Advice(text.into())
    }

    pub(super) fn option(text: impl Into<String>) -> Self {
        Self::KernelOption(text.into())
    }

    pub(super) fn as_root() -> Self {
        Self::command("sudo isotherm run -- PROGRAM")
    }

    pub(super) fn sysctl(key: &str, value: i64) -> Self {
        Self::Command(format!("sysctl -w {key}={value}"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub area: Area,
    /// Name in kebab-case; unique together with [`Self::subject`].
    pub name: &'static str,
    /// One of several things of that name, such as `dax0.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub state: State,
    /// Explanation in one sentence; the reason where the state is unknown.
    pub meaning: String,
    /// Loss to a run; present where the state is [`State::Missing`] or [`State::Warning`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// Fix; present where something is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

impl Finding {
    #[must_use]
    pub(super) fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Returns the name, followed by the subject where there is one: `dax-device dax0.0`.
    pub fn title(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{} {subject}", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// Finding of a check, or early the finding that its state is unknown.
pub(super) type Checked = Result<Finding, Box<Finding>>;

pub(super) fn settled(checked: Checked) -> Finding {
    checked.unwrap_or_else(|unknown| *unknown)
}

/// Area and name of a finding, from which checks make it.
#[derive(Clone, Copy)]
pub(super) struct Topic {
    area: Area,
    name: &'static str,
}

impl Topic {
    fn finding(self, state: State, meaning: impl Into<String>) -> Finding {
        let Self { area, name } = self;
        Finding { area, name, subject: None, state, meaning: meaning.into(), lost: None, remedy: None }
    }

    pub(super) fn ok(self, meaning: impl Into<String>) -> Finding {
        self.finding(State::Ok, meaning)
    }

    pub(super) fn missing(self, meaning: impl Into<String>, lost: impl Into<String>, fix: Remedy) -> Finding {
        Finding { lost: Some(lost.into()), remedy: Some(fix), ..self.finding(State::Missing, meaning) }
    }

    pub(super) fn warning(self, meaning: impl Into<String>, lost: impl Into<String>, fix: Remedy) -> Finding {
        Finding { state: State::Warning, ..self.missing(meaning, lost, fix) }
    }

    pub(super) fn unknown(self, reason: impl ToString) -> Finding {
        self.finding(State::Unknown, reason.to_string())
    }

    /// Returns the value, or the finding that the state is unknown because of this error.
    pub(super) fn known<T>(self, value: Result<T, impl ToString>) -> Result<T, Box<Finding>> {
        value.map_err(|reason| Box::new(self.unknown(reason)))
    }
}
