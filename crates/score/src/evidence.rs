//! Evidence for why orderings are not kept: paragraphs with commands, found by the ordering's id.

use serde::Deserialize;

use crate::figures::Effect;
use crate::scoreboard::Proof;

const FILE: &str = include_str!("../figures/evidence.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    probe: Vec<Effect>,
    unexplained: String,
    #[serde(default)]
    evidence: Vec<Evidence>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Evidence {
    /// Ids of orderings, `COMPARISON/BETTER>THAN/WORKLOAD/SIZE`; `*` stands for anything.
    pub(crate) of: Vec<String>,
    pub(crate) text: String,
    pub(crate) command: String,
}

#[derive(Debug)]
pub(crate) struct Paragraphs {
    /// Effects to switch for each speed that is not in order.
    pub(crate) probes: Vec<Effect>,
    /// Said where no experiment explains an ordering.
    unexplained: String,
    evidence: Vec<Evidence>,
}

/// # Panics
/// A malformed file: a mistake in the source, found by the first test that reads it.
pub(crate) fn all() -> Paragraphs {
    let file: File = toml::from_str(FILE).unwrap_or_else(|error| panic!("figures/evidence.toml: {error}"));
    Paragraphs { probes: file.probe, unexplained: file.unexplained, evidence: file.evidence }
}

impl Paragraphs {
    /// Returns the experiment that explains an ordering: a paragraph, or the probe under which it is kept.
    pub(crate) fn proof(&self, id: &str, back: Option<&Effect>) -> Proof {
        if let Some(Evidence { text, command, .. }) = find(&self.evidence, id) {
            return Proof { text: text.clone(), command: command.clone() };
        }
        let comparison = id.split('/').next().unwrap_or(id);
        let text = back.map_or(&self.unexplained, |probe| &probe.what).clone();
        Proof { text, command: format!("isotherm score --only {comparison}") }
    }
}

fn find<'a>(paragraphs: &'a [Evidence], id: &str) -> Option<&'a Evidence> {
    paragraphs.iter().find(|evidence| evidence.of.iter().any(|pattern| matches(pattern, id)))
}

/// Returns whether the text matches the pattern, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
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
    fn an_ordering_is_explained_by_an_experiment_or_unexplained() {
        let paragraphs = all();
        let text = |back| paragraphs.proof("a.t2/x>y/cdn/1:8", back);
        assert!(!paragraphs.probes.is_empty());
        for probe in &paragraphs.probes {
            let proof = text(Some(probe));
            assert_eq!(
                (proof.text, proof.command.as_str()),
                (probe.what.clone(), "isotherm score --only a.t2")
            );
            assert!(probe.what.len() > 40, "{}", probe.id);
        }
        assert!(text(None).text.starts_with("Unexplained"));
    }

    #[test]
    fn every_paragraph_says_something_and_names_a_command() {
        for evidence in all().evidence {
            assert!(!evidence.of.is_empty() && evidence.text.len() > 40, "{evidence:?}");
            let runs = ["isotherm ", "make "].iter().any(|program| evidence.command.starts_with(program));
            assert!(runs, "{evidence:?}");
        }
    }
}
