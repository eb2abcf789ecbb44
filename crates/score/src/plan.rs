//! Plans the runs that a request needs, and carries it out.

use crate::request::Request;
use crate::run::{Plan, Progress, Results};
use crate::scoreboard::Scoreboard;
use crate::table::score;

impl Plan {
    /// Collects the runs that scoring asks for, so that planned and judged runs cannot differ.
    pub fn new(request: &Request) -> Self {
        let nothing = Results::dry();
        score(request, &nothing, "");
        Self { runs: nothing.asked() }
    }
}

/// Runs a request and compares it with the papers; then runs the probes of orderings that are not kept.
pub fn compare(request: &Request, version: &str, progress: &mut dyn FnMut(Progress<'_>)) -> Scoreboard {
    let mut results = Plan::new(request).run(&Results::default(), progress);
    loop {
        let board = score(request, &results, version);
        let rest = results.rest();
        if rest.runs() == 0 {
            return board;
        }
        let further = rest.run(&results, progress);
        results.extend(further);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Mode;

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
