//! Defines why an ordering is not kept: paragraphs with a command that shows it, found by the ordering's id.

use serde::Deserialize;

const FILE: &str = include_str!("../figures/evidence.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    evidence: Vec<Evidence>,
}

/// One paragraph.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Evidence {
    /// Ids of orderings; `*` stands for anything.
    pub(crate) of: Vec<String>,
    /// What is the case.
    pub(crate) text: String,
    /// What shows it.
    pub(crate) command: String,
}

/// Every paragraph.
///
/// # Panics
/// If the file is malformed: a mistake in the source, found by the first test that reads it.
pub(crate) fn all() -> Vec<Evidence> {
    let file: File = toml::from_str(FILE).unwrap_or_else(|error| panic!("figures/evidence.toml: {error}"));
    file.evidence
}

/// The first paragraph for an ordering.
pub(crate) fn find<'a>(paragraphs: &'a [Evidence], id: &str) -> Option<&'a Evidence> {
    paragraphs.iter().find(|evidence| evidence.of.iter().any(|pattern| matches(pattern, id)))
}

/// Whether `*` in the pattern can stand for something such that it is the text.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices()
                .map(|(index, _)| index)
                .chain([rest.len()])
                .any(|cut| matches(after, &rest[cut..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        assert!(matches("a.t2/x>y/*", "a.t2/x>y/cdn/1:8"));
        assert!(matches("a.*/*>y/*/1:8", "a.t2/x>y/cdn/1:8"));
        assert!(matches("*", "") && matches("a", "a"));
        assert!(!matches("a.*/z>y/*", "a.t2/x>y/cdn/1:8") && !matches("a", "ab"));
    }

    #[test]
    fn every_paragraph_says_something_and_names_a_command() {
        for evidence in all() {
            assert!(!evidence.of.is_empty() && evidence.text.len() > 40, "{evidence:?}");
            assert!(evidence.command.starts_with("isotherm "), "{evidence:?}");
        }
    }
}
