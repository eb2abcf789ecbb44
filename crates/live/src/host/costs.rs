//! The program's time and what tiering took of it, for policies that count it.

use isotherm_core::{Nanos, Spent};
use isotherm_linux::clock;
use isotherm_linux::process::Pid;

#[derive(Debug, Default)]
pub(super) struct Costs {
    /// In the programs' time, since the policy began.
    spent: Spent,
    /// Time of the policy's beginning, on the programs' clock.
    began: Nanos,
    /// The last reading, by this machine's clocks.
    read: Spent,
    /// Followed processes, with the processor time that each had had at that reading.
    processors: Vec<(Pid, Nanos)>,
    ran: Nanos,
    /// The same at the last look.
    looked: Nanos,
    /// Processor time of the engine for moves.
    pub(super) moving: Nanos,
    /// Cost of moves so far by a modelled machine's prices.
    pub(super) modelled_moves: Nanos,
    /// The last costs in a modelled machine's time.
    modelled: Modelled,
}

/// Costs that are known in the programs' own time, since it is a modelled machine's: what an emulated kernel
/// takes for a move tells nothing of a real one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Modelled {
    pub(super) sampling: Nanos,
    pub(super) moving: Nanos,
}

impl Costs {
    /// Begins the sums for another policy.
    pub(super) fn begin(&mut self, now: Nanos) {
        (self.spent, self.began) = (Spent::default(), now);
    }

    pub(super) fn follow(&mut self, process: Pid) {
        self.processors.push((process, clock::cpu_of(process)));
    }

    pub(super) fn forget(&mut self, process: Pid) {
        self.ran();
        self.processors.retain(|&(followed, _)| followed != process);
    }

    /// Returns the processor time that processes have had while they were followed.
    pub(super) fn ran(&mut self) -> Nanos {
        for (process, before) in &mut self.processors {
            // One that has ended has none.
            let now = clock::cpu_of(*process).max(*before);
            self.ran += now - std::mem::replace(before, now);
        }
        self.ran
    }

    /// Whether a process has had processor time since the last call.
    pub(super) fn have_run(&mut self) -> bool {
        let ran = self.ran();
        ran > std::mem::replace(&mut self.looked, ran)
    }

    /// Adds what has come since the last reading; `now`: the programs' clock. Where that is not this
    /// machine's (an emulated one's), a cost counts by how far it went on meanwhile. Deciding counts where it
    /// `displaces` threads, which is told as of now.
    pub(super) fn add(&mut self, now: Nanos, reading: Spent, modelled: Modelled, displaces: bool) -> Spent {
        let before = std::mem::replace(&mut self.read, reading);
        let modelled_before = std::mem::replace(&mut self.modelled, modelled);
        let passed = (now - self.began) - self.spent.elapsed;
        let pace = passed.0 as f64 / (reading.elapsed - before.elapsed).0.max(1) as f64;
        let scaled = |part: fn(&Spent) -> Nanos| {
            Nanos((part(&reading).0.saturating_sub(part(&before).0) as f64 * pace).round() as u64)
        };
        self.spent.elapsed += passed;
        self.spent.running += scaled(|spent| spent.running);
        self.spent.sampling +=
            scaled(|spent| spent.sampling) + (modelled.sampling - modelled_before.sampling);
        if displaces {
            self.spent.deciding += scaled(|spent| spent.deciding);
        }
        self.spent.moving += scaled(|spent| spent.moving) + (modelled.moving - modelled_before.moving);
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(ms: u64) -> Spent {
        let part = |share: u64| Nanos(ms * share * 10_000);
        Spent {
            elapsed: part(100),
            running: part(200),
            sampling: part(2),
            deciding: part(3),
            moving: part(4),
        }
    }

    #[test]
    fn costs_of_an_emulated_machine_are_in_its_time() {
        let mut costs = Costs::default();
        costs.add(Nanos(0), Spent::default(), Modelled::default(), true);
        let modelled = Modelled { sampling: Nanos(700), moving: Nanos(900) };
        let spent = costs.add(Nanos(100_000), reading(10), modelled, true);
        assert_eq!(spent.elapsed, Nanos(100_000), "it ran a hundred times more slowly");
        assert_eq!((spent.running, spent.deciding), (Nanos(200_000), Nanos(3000)));
        let own = "what the modelled machine's prices tell is in its time already";
        assert_eq!((spent.sampling, spent.moving), (Nanos(2700), Nanos(4900)), "{own}");
    }

    #[test]
    fn deciding_on_a_free_processor_costs_the_programs_nothing() {
        let mut costs = Costs::default();
        costs.add(Nanos(10_000_000), reading(10), Modelled::default(), false);
        let spent = costs.add(Nanos(15_000_000), reading(15), Modelled::default(), true);
        assert_eq!(spent, Spent { deciding: reading(5).deciding, ..reading(15) });
    }

    #[test]
    fn another_policy_is_not_charged_for_the_one_before() {
        let mut costs = Costs::default();
        costs.add(Nanos(10_000_000), reading(10), Modelled::default(), true);
        costs.begin(Nanos(10_000_000));
        let spent = costs.add(Nanos(15_000_000), reading(15), Modelled::default(), true);
        assert_eq!(spent, reading(5));
    }

    #[test]
    fn processes_count_from_the_moment_they_are_followed() {
        let mut costs = Costs::default();
        let own = Pid(std::process::id());
        costs.follow(own);
        let start = clock::cpu_of(own);
        while clock::cpu_of(own) - start < Nanos::MILLISECOND {}
        assert!(costs.ran() >= Nanos::MILLISECOND);
        costs.forget(own);
        let before = costs.ran();
        while clock::cpu_of(own) - start < Nanos(2 * Nanos::MILLISECOND.0) {}
        assert_eq!(costs.ran(), before, "it is no longer followed");
    }
}
