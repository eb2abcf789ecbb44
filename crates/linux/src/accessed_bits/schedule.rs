//! Defines when processes are scanned: not more often than asked, and within a budget of processor time.

use std::collections::HashMap;

use isotherm_core::Nanos;

use crate::process::Pid;

/// How often scans may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// The least time between two scans of a process, from start to start.
    pub interval: Nanos,
    /// The share of one processor that all scans together may take, above 0 and at most 1.
    pub budget: f64,
}

impl Default for Pace {
    /// Once a second, with at most 1 % of a processor.
    fn default() -> Self {
        Self { interval: Nanos::SECOND, budget: 0.01 }
    }
}

/// When each process is due.
#[derive(Debug)]
pub(super) struct Schedule {
    pace: Pace,
    due: HashMap<Pid, Nanos>,
    /// Before this no scan begins.
    rest: Nanos,
}

impl Schedule {
    pub(super) fn new(pace: Pace) -> Self {
        let budget = if pace.budget > 0.0 { pace.budget.min(1.0) } else { 1e-6 };
        Self { pace: Pace { budget, ..pace }, due: HashMap::new(), rest: Nanos(0) }
    }

    /// Follows a process, which is due at once.
    pub(super) fn add(&mut self, process: Pid, now: Nanos) {
        self.due.entry(process).or_insert(now);
    }

    pub(super) fn remove(&mut self, process: Pid) {
        self.due.remove(&process);
    }

    /// The process that is due next, and when; the one that waits the longest if several are.
    pub(super) fn next(&self) -> Option<(Pid, Nanos)> {
        let (&process, &due) = self.due.iter().min_by_key(|&(&process, &due)| (due, process))?;
        Some((process, due.max(self.rest)))
    }

    /// A scan that began at `began` took `cost` of processor time.
    pub(super) fn scanned(&mut self, process: Pid, began: Nanos, cost: Nanos) {
        let pause = (cost.0 as f64 / self.pace.budget).ceil() as u64;
        self.rest = Nanos(began.0.saturating_add(pause));
        if let Some(due) = self.due.get_mut(&process) {
            *due = began + self.pace.interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever scans cost and however many processes there are, neither bound is broken and nobody starves.
        #[test]
        fn keeps_interval_and_budget(
            costs in proptest::collection::vec(0u64..5_000_000, 30..60),
            processes in 1u32..6,
            percent in 1u64..100,
            interval in 0u64..50_000_000,
        ) {
            let budget = percent as f64 / 100.0;
            let mut schedule = Schedule::new(Pace { interval: Nanos(interval), budget });
            let start = Nanos(1_000);
            for process in 0..processes {
                schedule.add(Pid(process), start);
            }
            let (mut scans, mut spent, mut now) = (HashMap::<Pid, Vec<Nanos>>::new(), 0, start);
            for cost in costs {
                let (process, when) = schedule.next().unwrap();
                now = now.max(when);
                prop_assert!(spent as f64 <= budget * (now - start).0 as f64 + 1.0);
                scans.entry(process).or_default().push(now);
                schedule.scanned(process, now, Nanos(cost));
                spent += cost;
                now += Nanos(cost);
            }
            for times in scans.values() {
                prop_assert!(times.windows(2).all(|pair| pair[1].0 - pair[0].0 >= interval));
            }
            prop_assert_eq!(scans.len(), processes as usize);
        }
    }

    #[test]
    fn a_process_removed_is_not_due() {
        let mut schedule = Schedule::new(Pace::default());
        schedule.add(Pid(1), Nanos(5));
        schedule.remove(Pid(1));
        schedule.scanned(Pid(1), Nanos(5), Nanos(1));
        assert_eq!(schedule.next(), None);
    }
}
