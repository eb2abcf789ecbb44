//! Errors of a machine profile, one line each.

use super::TierProfile;
use super::quantity::Quantity;

/// A profile that cannot be used: one line that names the file or machine, the field and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProfileError(String);

impl ProfileError {
    /// The text is no TOML; lines count from 1.
    pub(super) fn syntax(file: &str, line: usize, message: &str) -> Self {
        Self(format!("{}: line {line}: {}", one_line(file), one_line(message)))
    }

    pub(super) fn missing(file: &str, field: &str, expected: &str) -> Self {
        Self(format!("{}: {field} is missing; expected {expected}", one_line(file)))
    }

    /// The section has no such field; `advice` names the nearest ones.
    pub(super) fn unknown(file: &str, field: &str, section: &str, advice: &str) -> Self {
        Self(format!("{}: unknown field {} of {section}; {advice}", one_line(file), shortened(field)))
    }

    pub(super) fn unexpected(file: &str, field: &str, text: &str, expected: &str) -> Self {
        let (file, field, text) = (one_line(file), one_line(field), shortened(text));
        Self(format!("{file}: {field}: '{text}' is not {expected}"))
    }

    /// A tier is nearer than the one before it.
    pub(super) fn order(file: &str, tier: usize, [nearer, before]: [&TierProfile; 2]) -> Self {
        let text = |tier: &TierProfile| {
            let bandwidth = Quantity::bandwidth().format(tier.read_bandwidth as f64);
            format!("{} at {bandwidth}", tier.latency)
        };
        let (here, there) = (text(nearer), text(before));
        Self(format!(
            "{}: tier.{tier}: {here} is nearer than the {there} of the tier before; tiers stand nearest first, by \
                latency over bandwidth",
            one_line(file)
        ))
    }

    /// The profile that this one starts from cannot be used.
    pub(super) fn base(file: &str, what: &str) -> Self {
        Self(format!("{}: base: {}", one_line(file), one_line(what)))
    }

    /// A tier's curve, or what stands beside it, cannot be used.
    pub(crate) fn curve(file: &str, path: &str, what: &str) -> Self {
        Self(format!("{}: {path}: {}", one_line(file), one_line(what)))
    }

    /// No built-in profile has that name; `advice` names the nearest ones.
    pub(super) fn unknown_machine(name: &str, advice: &str) -> Self {
        Self(format!(
            "there is no machine '{}' (a name, or the path of a TOML file); {advice}",
            one_line(name)
        ))
    }
}

/// Escapes line breaks and control characters, so that foreign text fits a one-line message.
pub(super) fn one_line(text: &str) -> String {
    let breaks = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
    if !text.contains(breaks) {
        return text.into();
    }
    text.chars().map(|c| if breaks(c) { c.escape_default().to_string() } else { c.into() }).collect()
}

/// Cuts a foreign value or key, which may be endless, to a message's length.
fn shortened(text: &str) -> String {
    const MAX_LETTERS: usize = 80;
    match text.char_indices().nth(MAX_LETTERS) {
        None => one_line(text),
        Some((end, _)) => format!("{}...", one_line(&text[..end])),
    }
}
