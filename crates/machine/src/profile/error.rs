//! Errors of a machine profile, one line each.

use isotherm_core::Nanos;

use super::fields::Field;

/// A profile that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The text is no TOML.
    #[error("{file}: line {line}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The TOML parser's message.
        message: String,
    },
    /// A field is missing.
    #[error("{file}: {field} is missing; expected {expected}")]
    Missing {
        /// The file.
        file: String,
        /// The field's path.
        field: String,
        /// What belongs there.
        expected: String,
    },
    /// A field does not exist.
    #[error("{file}: unknown field {field} of {section}; {advice}")]
    Unknown {
        /// The file, or the machine's name.
        file: String,
        /// The field's path.
        field: String,
        /// Section in which it was found.
        section: String,
        /// The nearest names of the section, or all of them.
        advice: String,
    },
    /// A value of another type or unit, or out of range.
    #[error("{file}: {field}: '{text}' is not {expected}")]
    Invalid {
        /// The file, or the machine's name.
        file: String,
        /// The field's path.
        field: String,
        /// The given text.
        text: String,
        /// The valid values.
        expected: String,
    },
    /// A tier is faster than the one before it.
    #[error(
        "{file}: tier.{tier}.latency: {latency} is below the {before} of the tier before; tiers stand fastest first"
    )]
    Order {
        /// The file, or the machine's name.
        file: String,
        /// The tier's index.
        tier: usize,
        /// Its latency.
        latency: Nanos,
        /// Latency of the tier before it.
        before: Nanos,
    },
    /// No built-in profile has that name.
    #[error("there is no machine '{name}' (a name, or the path of a TOML file); {advice}")]
    UnknownMachine {
        /// The given name.
        name: String,
        /// The nearest names, or all of them.
        advice: String,
    },
}

impl ProfileError {
    pub(super) fn missing(file: &str, field: &str, expected: &str) -> Self {
        Self::Missing { file: one_line(file), field: field.into(), expected: expected.into() }
    }

    pub(super) fn unknown(file: &str, field: &str, section: &str, advice: String) -> Self {
        Self::Unknown { file: one_line(file), field: shortened(field), section: section.into(), advice }
    }

    pub(super) fn invalid(file: &str, path: &str, text: &str, field: &Field) -> Self {
        Self::unexpected(file, path, text, field.quantity.expected())
    }

    pub(super) fn unexpected(file: &str, field: &str, text: &str, expected: impl Into<String>) -> Self {
        Self::Invalid {
            file: one_line(file),
            field: one_line(field),
            text: shortened(text),
            expected: expected.into(),
        }
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
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        None => one_line(text),
        Some((end, _)) => format!("{}...", one_line(&text[..end])),
    }
}
