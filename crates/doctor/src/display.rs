//! Findings as plain text of 80 columns, without colour.

use std::fmt::{self, Write as _};

use super::finding::{Area, Finding, Remedy, State};
use super::policies::PolicySupport;
use super::{Findings, Lack};

/// Columns of a line; only commands may be longer, so that they can be copied whole.
const WIDTH: usize = 80;
/// Column where text begins, beside the word for the state.
const INDENT: usize = 11;

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for area in Area::ALL {
            let mut findings = self.findings.iter().filter(|finding| finding.area == area).peekable();
            if findings.peek().is_some() {
                writeln!(f, "{}", area.name())?;
            }
            let mut said = None;
            for finding in findings {
                write_finding(f, finding, said)?;
                said = finding.remedy.as_ref().or(said);
            }
        }
        if !self.policies.is_empty() {
            writeln!(f, "policies")?;
        }
        self.policies.iter().try_for_each(|policy| write_policy(f, policy))?;
        if self.verdict.is_empty() { Ok(()) } else { writeln!(f, "verdict: {}", self.verdict) }
    }
}

fn write_finding(f: &mut fmt::Formatter<'_>, finding: &Finding, said: Option<&Remedy>) -> fmt::Result {
    write_head(f, finding.state, &format!("{}: {}", finding.title(), finding.meaning))?;
    if let Some(lost) = &finding.lost {
        write_text(f, "lost: ", lost)?;
    }
    match &finding.remedy {
        None => Ok(()),
        Some(remedy) if said == Some(remedy) => write_text(f, "fix: ", "as above"),
        Some(Remedy::Command(command)) => writeln!(f, "{:INDENT$}fix: {command}", ""),
        Some(Remedy::KernelOption(option)) => write_text(f, "fix: ", &format!("a kernel with {option}")),
        Some(Remedy::BootParameter(parameter)) => write_text(f, "fix: ", &format!("boot with {parameter}")),
        Some(Remedy::Advice(advice)) => write_text(f, "fix: ", advice),
    }
}

fn write_policy(f: &mut fmt::Formatter<'_>, policy: &PolicySupport) -> fmt::Result {
    if policy.usable {
        let by = if policy.sources.is_empty() { "" } else { ", by " };
        let sources = policy.sources.join(" and ");
        return write_head(f, State::Ok, &format!("{}: usable{by}{sources}", policy.policy));
    }
    let lack = |lack: &Lack| match lack.mended_by.as_slice() {
        [] => format!("{} (unavailable on this machine)", lack.signal),
        findings => format!("{} (see {})", lack.signal, findings.join(", ")),
    };
    let lacks: Vec<String> = policy.lacks.iter().map(lack).collect();
    write_head(f, State::Missing, &format!("{}: lacks {}", policy.policy, lacks.join("; ")))
}

fn write_head(f: &mut fmt::Formatter<'_>, state: State, text: &str) -> fmt::Result {
    let mut lines = wrapped(text, WIDTH - INDENT).into_iter();
    writeln!(f, "  {:<width$}{}", state.name(), lines.next().unwrap_or_default(), width = INDENT - 2)?;
    lines.try_for_each(|line| writeln!(f, "{:INDENT$}  {line}", ""))
}

/// Writes text beneath after a word, further lines aligned with the first.
fn write_text(f: &mut fmt::Formatter<'_>, word: &str, text: &str) -> fmt::Result {
    let indent = word.len();
    for (index, line) in wrapped(text, WIDTH - INDENT - indent).into_iter().enumerate() {
        let word = if index == 0 { word } else { "" };
        writeln!(f, "{:INDENT$}{word:indent$}{line}", "")?;
    }
    Ok(())
}

/// Breaks text at blanks into lines of at most `width - 2` columns; a longer word gets its own line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace().map(plain) {
        let line = lines.last_mut().expect("one line at least");
        if line.is_empty() {
            line.push_str(&word);
        } else if line.chars().count() + 1 + word.chars().count() <= width - 2 {
            let _ = write!(line, " {word}");
        } else {
            lines.push(word);
        }
    }
    lines
}

/// Replaces control characters, which names of processes and files may contain.
fn plain(word: &str) -> String {
    word.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
