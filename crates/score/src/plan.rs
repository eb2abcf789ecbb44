//! A request for comparisons, and the runs that it needs.

use std::collections::BTreeSet;

use crate::figures::{Paper, UnknownName, papers};
use crate::key::RunKey;
use crate::run::{Progress, Results};
use crate::scoreboard::Scoreboard;
use crate::table::score;

#[derive(Debug, Clone, Copy)]
pub struct Mode {
    pub quick: bool,
    pub seed: u64,
}

impl Mode {
    /// Returns the accesses of a stream without a limit: it replays in about 1.5 s per policy, or 0.3 s.
    pub(crate) fn accesses(self) -> u64 {
        if self.quick { 10_000_000 } else { 50_000_000 }
    }
}

#[derive(Debug)]
pub struct Request {
    pub papers: Vec<Paper>,
    pub mode: Mode,
    /// Whether anything is left out, so that the result is not the whole scoreboard.
    pub partial: bool,
    /// Whether runs are repeated with other seeds.
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
            if wanted.iter().all(|paper| paper.name != name) {
                return Err(UnknownName::new("paper", name, wanted.iter().map(|paper| paper.name.as_str())));
            }
            wanted.retain(|paper| paper.name == name);
        }
        if let Some(id) = only {
            if ids(&wanted).all(|known| known != id) {
                return Err(UnknownName::new("comparison", id, ids(&wanted)));
            }
            for paper in &mut wanted {
                paper.comparison.retain(|comparison| comparison.id == id);
                paper.effect.retain(|effect| effect.id == id);
            }
            wanted.retain(|paper| !paper.comparison.is_empty() || !paper.effect.is_empty());
        }
        Ok(Self { papers: wanted, mode, partial: paper.or(only).is_some(), noise: only.is_none() })
    }
}

fn ids(papers: &[Paper]) -> impl Iterator<Item = &str> {
    papers.iter().flat_map(|paper| {
        let comparisons = paper.comparison.iter().map(|comparison| comparison.id.as_str());
        comparisons.chain(paper.effect.iter().map(|effect| effect.id.as_str()))
    })
}

#[derive(Debug)]
pub struct Plan {
    pub(crate) runs: BTreeSet<RunKey>,
}

impl Plan {
    /// Collects the runs that scoring asks for, so that planned and judged runs cannot differ.
    pub fn new(request: &Request) -> Self {
        let nothing = Results::dry();
        score(request, &nothing, "");
        Self { runs: nothing.asked() }
    }

    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    pub fn streams(&self) -> usize {
        self.runs.iter().map(|run| &run.testbed.stream).collect::<BTreeSet<_>>().len()
    }
}

/// Runs a request and compares it with the papers; then runs the probes of orderings that are not kept.
pub fn compare(request: &Request, version: &str, progress: &mut dyn FnMut(Progress<'_>)) -> Scoreboard {
    let mut results = Plan::new(request).run(progress);
    loop {
        let board = score(request, &results, version);
        let rest = results.rest();
        if rest.runs() == 0 {
            return board;
        }
        results.extend(rest.run(progress));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Mode = Mode { quick: true, seed: 1 };

    #[test]
    fn unknown_names_get_advice() {
        let refused = |paper, only| Request::new(paper, only, QUICK).expect_err("no such name").to_string();
        assert_eq!(refused(Some("freqteir"), None), "there is no paper 'freqteir'; did you mean freqtier?");
        assert!(refused(None, Some("freqtier.tabel2")).contains("freqtier.table2"));
    }

    #[test]
    fn a_quick_plan_is_smaller_and_comparisons_share_runs() {
        let plan = |only, quick| {
            let mode = Mode { quick, seed: 1 };
            Plan::new(&Request::new(Some("freqtier"), only, mode).expect("it exists"))
        };
        assert!(plan(None, true).runs() < plan(None, false).runs());
        let (table, hits) = (plan(Some("freqtier.table2"), false), plan(Some("freqtier.fig9"), false));
        assert!(table.runs.intersection(&hits.runs).count() > 0, "one run serves both");
    }
}
