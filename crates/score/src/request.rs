//! A request for comparisons.

use crate::figures::{Paper, UnknownName, papers};

#[derive(Debug, Clone, Copy)]
pub struct Mode {
    pub quick: bool,
    pub seed: u64,
}

impl Mode {
    /// Returns the accesses of a stream without a limit of its own: a round of its runs.
    pub(crate) fn accesses(self) -> u64 {
        if self.quick { 3_000_000 } else { 9_000_000 }
    }

    /// Returns the accesses of a run that are simulated at most, as long as it changes. A run in which
    /// something is switched is not judged: it gets just what it needs to settle by chance.
    pub(crate) fn most_accesses(self, switched: bool) -> u64 {
        match (self.quick, switched) {
            (true, _) => 12_000_000,
            (false, true) => 216_000_000,
            (false, false) => 480_000_000,
        }
    }
}

#[derive(Debug)]
pub struct Request {
    pub papers: Vec<Paper>,
    pub mode: Mode,
    /// Whether anything is left out, so that the result is not the whole scoreboard.
    pub partial: bool,
    /// Whether runs are repeated with other seeds; a quick run has the smallest margin.
    pub noise: bool,
}

impl Request {
    /// Requests all comparisons of all papers, of one paper, or one comparison.
    ///
    /// # Errors
    /// An unknown paper or comparison.
    pub fn new(paper: Option<&str>, only: Option<&str>, mode: Mode) -> Result<Self, UnknownName> {
        let mut wanted = papers();
        if let Some(name) = paper {
            let names: Vec<String> = wanted.iter().map(|paper| paper.name.clone()).collect();
            wanted.retain(|paper| paper.name == name);
            if wanted.is_empty() {
                return Err(UnknownName::new("paper", name, names.iter().map(String::as_str)));
            }
        }
        if let Some(id) = only {
            let ids: Vec<String> = ids(&wanted).map(str::to_owned).collect();
            for paper in &mut wanted {
                paper.comparison.retain(|comparison| comparison.id == id);
                paper.effect.retain(|effect| effect.id == id);
            }
            wanted.retain(|paper| !paper.comparison.is_empty() || !paper.effect.is_empty());
            if wanted.is_empty() {
                return Err(UnknownName::new("comparison", id, ids.iter().map(String::as_str)));
            }
        }
        Ok(Self {
            papers: wanted,
            mode,
            partial: paper.or(only).is_some(),
            noise: only.is_none() && !mode.quick,
        })
    }
}

fn ids(papers: &[Paper]) -> impl Iterator<Item = &str> {
    papers.iter().flat_map(|paper| {
        let comparisons = paper.comparison.iter().map(|comparison| comparison.id.as_str());
        comparisons.chain(paper.effect.iter().map(|effect| effect.id.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_measured_by_whole_papers_of_a_full_run() {
        let noise =
            |only, quick| Request::new(Some("pact"), only, Mode { quick, seed: 1 }).expect("it exists").noise;
        assert!(noise(None, false));
        assert!(!noise(None, true) && !noise(Some("pact.table2"), false));
    }
}
