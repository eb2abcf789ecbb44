//! Replaces parts of a scoreboard by newer ones.

use crate::figures::{Paper, papers};
use crate::scoreboard::{PaperScore, Scoreboard, Tally, Updated};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the scoreboard there is of {there}, this part of {here}; run all of it, or the part as the board was run"
)]
pub struct NotTheSame {
    there: String,
    here: String,
}

impl Scoreboard {
    /// Replaces comparisons and effects by those of `part` with the same name, each with the `date` of its
    /// run, and recounts. Drops those that the papers' files no longer have.
    ///
    /// # Errors
    /// Boards of which one is of the quick run or has another seed.
    pub fn update(&mut self, part: Self, date: &str) -> Result<(), NotTheSame> {
        let mode = |board: &Self| {
            format!("{} run with seed {}", if board.quick { "the quick" } else { "a full" }, board.seed)
        };
        if mode(self) != mode(&part) {
            return Err(NotTheSame { there: mode(self), here: mode(&part) });
        }
        let updated = Updated { version: part.version, date: date.into(), seed: part.seed };
        for newer in part.papers {
            match self.papers.iter_mut().find(|paper| paper.name == newer.name) {
                Some(paper) => paper.update(newer, &updated),
                None => self.papers.push(newer),
            }
        }
        papers().iter().for_each(|file| self.papers.iter_mut().for_each(|paper| paper.arrange(file)));
        self.tally = self.papers.iter().map(|paper| paper.tally).fold(Tally::default(), Tally::plus);
        Ok(())
    }

    /// Restores infinite values, which JSON writes as null: values that are absent without a reason.
    pub fn restore_infinities(&mut self) {
        let infinite = |value: &mut Option<f64>, known: bool| {
            if known && value.is_none() {
                *value = Some(f64::INFINITY);
            }
        };
        for paper in &mut self.papers {
            for one in &mut paper.comparisons {
                let cells = one.rows.iter_mut().flat_map(|row| &mut row.cells);
                cells.for_each(|cell| infinite(&mut cell.ours, cell.missing.is_none()));
                one.gains.iter_mut().for_each(|gain| infinite(&mut gain.ours, gain.cases.0 > 0));
                let judged = one.orderings.iter_mut();
                judged.for_each(|judged| infinite(&mut judged.advantage, judged.missing.is_none()));
            }
            for row in paper.effects.iter_mut().flat_map(|effect| &mut effect.rows) {
                infinite(&mut row.with, row.missing.is_none());
                infinite(&mut row.without, row.missing.is_none());
            }
        }
    }
}

impl PaperScore {
    fn update(&mut self, newer: Self, updated: &Updated) {
        for mut one in newer.comparisons {
            one.updated = Some(updated.clone());
            self.comparisons.retain(|old| old.id != one.id);
            self.comparisons.push(one);
        }
        for mut one in newer.effects {
            one.updated = Some(updated.clone());
            self.effects.retain(|old| old.id != one.id);
            self.effects.push(one);
        }
        for (metric, spread) in newer.noise {
            if self.noise.iter().all(|(known, _)| *known != metric) {
                self.noise.push((metric, spread));
            }
        }
        self.noise.sort_unstable_by_key(|(metric, _)| *metric);
    }

    /// Puts everything in the order of the paper's file and recounts.
    fn arrange(&mut self, file: &Paper) {
        if self.name != file.name {
            return;
        }
        let place = |id: &str| file.comparison.iter().position(|one| one.id == id);
        self.comparisons.retain(|one| place(&one.id).is_some());
        self.comparisons.sort_by_key(|one| place(&one.id));
        let place = |id: &str| file.effect.iter().position(|one| one.id == id);
        self.effects.retain(|one| place(&one.id).is_some());
        self.effects.sort_by_key(|one| place(&one.id));
        self.tally = self.comparisons.iter().map(|one| one.tally).fold(Tally::default(), Tally::plus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Mode, Request};
    use crate::run::Results;
    use crate::table::score;

    /// Returns a board of which nothing was run.
    fn board(only: Option<&str>, seed: u64, version: &str) -> Scoreboard {
        let mode = Mode { quick: true, seed };
        let request = Request::new(Some("pact"), only, mode).expect("it exists");
        score(&request, &Results::dry(), version)
    }

    #[test]
    fn a_part_takes_its_place_and_nothing_else_changes() {
        let (mut all, before) = (board(None, 1, "1"), board(None, 1, "1"));
        let mut part = board(Some("pact.table2"), 1, "2");
        part.papers[0].comparisons[0].tally = Tally { kept: 1000, ..Tally::default() };
        all.update(part, "2026-11-22").expect("both are quick");
        let (old, new) = (&before.papers[0].comparisons, &all.papers[0].comparisons);
        assert_eq!(old.len(), new.len());
        for (old, new) in old.iter().zip(new) {
            assert_eq!(old.id, new.id, "the order stays");
            let updated =
                new.updated.as_ref().map(|updated| (updated.version.as_str(), updated.date.as_str()));
            assert_eq!(updated, (new.id == "pact.table2").then_some(("2", "2026-11-22")));
        }
        assert_eq!((all.tally.kept, all.papers[0].tally.kept), (1000, 1000), "recounted");
        assert_eq!(all.version, "1");
    }

    #[test]
    fn what_was_run_otherwise_is_refused() {
        let error =
            board(None, 1, "1").update(board(Some("pact.table2"), 2, "1"), "").expect_err("another seed");
        assert!(error.to_string().contains("seed 2"), "{error}");
    }
}
