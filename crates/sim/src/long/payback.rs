//! When a policy pays back what learning and moving cost.

use isotherm_core::Nanos;

use crate::result::LongRun;

/// Share of a round's time below which two runs are equally fast.
const NO_GAIN: f64 = 0.001;

impl LongRun {
    /// Returns the time of the first `rounds` rounds: simulated, then extrapolated.
    pub(crate) fn after(&self, rounds: u64) -> Nanos {
        let each = self.each.iter().take(usize::try_from(rounds).unwrap_or(usize::MAX));
        let simulated: u64 = each.map(|round| round.modelled_ns.0).sum();
        let beyond = rounds.saturating_sub(self.simulated);
        Nanos(simulated.saturating_add(self.round_ns.0.saturating_mul(beyond)))
    }
}

/// Returns how long a run is from which on it is always shorter than the baseline's over the same rounds, to
/// the end of a round; `None` if that never happens.
pub(crate) fn pays_back(run: &LongRun, baseline: &LongRun) -> Option<Nanos> {
    let gain = baseline.round_ns.0.checked_sub(run.round_ns.0)?;
    if gain as f64 <= baseline.round_ns.0 as f64 * NO_GAIN {
        return None;
    }
    let simulated = run.simulated.max(baseline.simulated);
    let behind = |rounds: u64| run.after(rounds).0.checked_sub(baseline.after(rounds).0);
    let last = (1..=simulated).rev().find_map(|rounds| Some((rounds, behind(rounds)?)));
    let rounds = match last {
        Some((rounds, behind)) if rounds == simulated => rounds + behind / gain + 1,
        Some((rounds, _)) => rounds + 1,
        None => 1,
    };
    Some(run.after(rounds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Round;

    /// Returns a run of these rounds, in seconds; the last one goes on for ever.
    fn run(seconds: &[u64]) -> LongRun {
        let time = |seconds: u64| Nanos(seconds * Nanos::SECOND.0);
        let round = |&seconds: &u64| Round { modelled_ns: time(seconds), ..Round::default() };
        LongRun {
            simulated: seconds.len() as u64,
            round_ns: time(*seconds.last().expect("a round")),
            each: seconds.iter().map(round).collect(),
            ..LongRun::default()
        }
    }

    fn seconds(one: &[u64], baseline: &[u64]) -> Option<u64> {
        pays_back(&run(one), &run(baseline)).map(|time| time.0 / Nanos::SECOND.0)
    }

    #[test]
    fn it_pays_back_when_what_it_cost_is_earned() {
        // 10 s behind after one round, then 2 s earned in each: level after six, ahead after seven.
        assert_eq!(seconds(&[20, 8], &[10]), Some(20 + 6 * 8));
        assert_eq!(seconds(&[20, 8, 8, 8, 8, 8, 8, 8, 8], &[10, 10, 10]), Some(20 + 6 * 8));
        assert_eq!(seconds(&[9], &[10]), Some(9), "from the first round on");
    }

    #[test]
    fn being_ahead_for_a_while_is_not_paying_back() {
        // Ahead by 5, behind by 5, then 1 earned in each round: ahead for good after six more.
        assert_eq!(seconds(&[5, 20, 9], &[10]), Some(25 + 6 * 9));
        assert_eq!(seconds(&[5, 12], &[10]), None, "a loser in the long run, ahead at first");
    }

    #[test]
    fn it_never_pays_back_at_the_same_speed() {
        assert_eq!(seconds(&[20, 10], &[10]), None);
        assert_eq!(seconds(&[10_000, 9_999], &[10_000]), None, "within a thousandth");
        assert_eq!(seconds(&[10_000, 9_989], &[10_000]), Some(10_000 + 9_989));
    }
}
