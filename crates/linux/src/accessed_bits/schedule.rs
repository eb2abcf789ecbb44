//! Schedule of scans: not more often than requested, and within a budget of processor time.

use std::collections::HashMap;

use isotherm_core::Nanos;

use super::Pace;
use crate::process::Pid;

#[derive(Debug)]
pub(super) struct Schedule {
    pace: Pace,
    /// Bound of both budgets that a policy sets.
    most: f64,
    due: HashMap<Pid, Nanos>,
    /// Time before which no scan begins.
    rest: Nanos,
}

impl Schedule {
    pub(super) fn new(pace: Pace) -> Self {
        let positive = |share: f64| if share > 0.0 { share } else { 1e-6 };
        let (budget, program_budget) = (positive(pace.budget).min(1.0), positive(pace.program_budget));
        let pace = Pace { budget, program_budget, ..pace };
        Self { pace, most: f64::INFINITY, due: HashMap::new(), rest: Nanos(0) }
    }

    /// Limits both budgets to this share; `None` ends that.
    pub(super) fn limit(&mut self, share: Option<f64>) {
        self.most = share.map_or(f64::INFINITY, |share| share.max(1e-6));
    }

    pub(super) fn add(&mut self, process: Pid, now: Nanos) {
        self.due.entry(process).or_insert(now);
    }

    pub(super) fn remove(&mut self, process: Pid) {
        self.due.remove(&process);
    }

    /// Returns the next process and its time; the one that waits longest if several are due.
    pub(super) fn next(&self) -> Option<(Pid, Nanos)> {
        let (&process, &due) = self.due.iter().min_by_key(|&(&process, &due)| (due, process))?;
        Some((process, due.max(self.rest)))
    }

    /// Records a scan that began at `began`, took `cost` of processor time, and costs the process `program`;
    /// the next one is `intervals` later at the earliest.
    pub(super) fn scanned(
        &mut self,
        process: Pid,
        began: Nanos,
        (cost, program): (Nanos, Nanos),
        intervals: u64,
    ) {
        let after = |time: Nanos, share: f64| {
            Nanos(began.0.saturating_add((time.0 as f64 / share.min(self.most)).ceil() as u64))
        };
        self.rest = after(cost, self.pace.budget);
        if let Some(due) = self.due.get_mut(&process) {
            let interval = Nanos(self.pace.interval.0 * intervals);
            *due = after(program, self.pace.program_budget).max(began + interval);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// No limit is exceeded and no process starves, whatever the costs and the number of processes.
        #[test]
        fn keeps_interval_and_budgets(
            costs in proptest::collection::vec((0u64..5_000_000, 0u64..5_000_000), 30..60),
            processes in 1u32..6,
            percent in 1u64..100,
            program_percent in 1u64..200,
            limit in 1u64..200,
            interval in 0u64..50_000_000,
        ) {
            let [budget, program_budget, limit] =
                [percent, program_percent, limit].map(|percent| percent as f64 / 100.0);
            let mut schedule = Schedule::new(Pace { interval: Nanos(interval), budget, program_budget });
            schedule.limit(Some(limit));
            let (budget, program_budget) = (budget.min(limit), program_budget.min(limit));
            let start = Nanos(1_000);
            for process in 0..processes {
                schedule.add(Pid(process), start);
            }
            let (mut scans, mut spent, mut now) = (HashMap::<Pid, Vec<(Nanos, u64)>>::new(), 0, start);
            for (cost, program) in costs {
                let (process, when) = schedule.next().unwrap();
                now = now.max(when);
                prop_assert!(spent as f64 <= budget * (now - start).0 as f64 + 1.0);
                scans.entry(process).or_default().push((now, program));
                schedule.scanned(process, now, (Nanos(cost), Nanos(program)), 1);
                spent += cost;
                now += Nanos(cost);
            }
            for times in scans.values() {
                for pair in times.windows(2) {
                    let between = pair[1].0.0 - pair[0].0.0;
                    prop_assert!(between >= interval);
                    prop_assert!(pair[0].1 as f64 <= program_budget * between as f64 + 1.0);
                }
            }
            // A process that scans cost much is scanned rarely, but each has had its first turn.
            prop_assert_eq!(scans.len(), processes as usize);
        }
    }

    #[test]
    fn a_process_removed_is_not_due() {
        let mut schedule = Schedule::new(Pace::default());
        schedule.add(Pid(1), Nanos(5));
        schedule.remove(Pid(1));
        schedule.scanned(Pid(1), Nanos(5), (Nanos(1), Nanos(1)), 1);
        assert_eq!(schedule.next(), None);
    }
}
