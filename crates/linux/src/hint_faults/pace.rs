//! How fast windows are armed, and for how long.
//!
//! Three accounts fill with time and pay for costs: the program's lost time, the agent's processor time and
//! the number of faults. Windows are armed while none is overdrawn; savings are capped against storms.

use crate::sys::plain::plain;

/// Shortest and longest window time in nanoseconds.
const WINDOW_TIMES: (u64, u64) = (30_000, 1_000_000_000);
const FIRST_WINDOW_TIME: u64 = 100_000;
/// Wanted share of armed pages that fault, in hundredths: the window grows below it and shrinks above it.
const WANTED_SHARE: (u64, u64) = (3, 12);
/// Share above which the open windows are closed at once, in hundredths.
const MAX_SHARE: u64 = 25;
const LOOK: u64 = 1024;
/// Part of the budget that is used, in hundredths: the rest covers costs that the estimate misses.
pub(super) const USED: u64 = 55;
/// Longest answer in nanoseconds; longer ones are waits for a processor.
const DEAREST: u64 = 60_000;
/// Most nanoseconds that an account may owe before a race.
const LENT: i64 = 500_000;
const SECOND: u64 = 1_000_000_000;
const MILLION: u64 = 1_000_000;

#[derive(Debug, Clone, Copy, Default)]
struct Account {
    balance: i64,
    most: i64,
}

plain!(Zeroed for Account { balance, most });

impl Account {
    fn pay_in(&mut self, amount: u64) {
        self.balance = self.balance.saturating_add(amount as i64).min(self.most);
    }

    fn draw(&mut self, amount: u64) {
        self.balance = self.balance.saturating_sub(amount as i64);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allowed {
    pub(super) rate: u64,
    /// Lost time of the program, in millionths.
    pub(super) program: u64,
    /// The agent's processor time, in millionths of a core.
    pub(super) agent: u64,
}

/// The accounts and the window time. All zero until [`Pace::begin`].
#[derive(Default)]
pub(super) struct Pace {
    program: Account,
    agent: Account,
    /// In millionths of a fault.
    faults: Account,
    last: u64,
    /// The agent's processor time so far.
    pub(super) last_cpu: u64,
    /// Pages of open windows, and how many of them have faulted.
    open: u64,
    open_faults: u64,
    armed: u64,
    faulted: u64,
    /// Nanoseconds that a window stays armed.
    pub(super) window_time: u64,
    /// Nanoseconds that a fault costs the program.
    pub(super) fault_cost: u64,
    calibrated_cost: u64,
    calibrated_handling: u64,
    /// The agent's part of a fault, in nanoseconds, smoothed.
    pub(super) handling: u64,
    /// Estimated nanoseconds that the program has lost.
    pub(super) program_time: u64,
}

plain!(Zeroed for Pace {
    program, agent, faults, last, last_cpu, open, open_faults, armed, faulted, window_time, fault_cost,
    calibrated_cost, calibrated_handling, handling, program_time,
});

impl Pace {
    /// Starts with a measured cost of a fault and of its handling by the agent.
    pub(super) fn begin(&mut self, now: u64, cpu: u64, fault_cost: u64, handling: u64) {
        *self = Self {
            last: now,
            last_cpu: cpu,
            window_time: FIRST_WINDOW_TIME,
            fault_cost,
            calibrated_cost: fault_cost,
            calibrated_handling: handling,
            handling,
            program_time: self.program_time,
            ..Self::default()
        };
    }

    /// Fills the accounts for the time since the last call, and draws the agent's processor time.
    pub(super) fn tick(&mut self, now: u64, cpu: u64, allowed: Allowed) {
        let passed = now.saturating_sub(self.last).min(SECOND);
        (self.program.most, self.agent.most) = (2_000_000, 2_000_000);
        self.faults.most = (allowed.rate.min(MILLION) * MILLION / 50).max(MILLION) as i64;
        self.program.pay_in(passed * allowed.program / MILLION * USED / 100);
        self.agent.pay_in(passed * allowed.agent / MILLION * USED / 100);
        self.faults.pay_in((u128::from(passed) * u128::from(allowed.rate.min(MILLION)) / 1000) as u64);
        self.agent.draw(cpu.saturating_sub(self.last_cpu));
        (self.last, self.last_cpu) = (now, cpu);
    }

    pub(super) fn allows(&self) -> bool {
        self.can_pay() && self.faults.balance > (self.expected() * MILLION) as i64
    }

    /// Returns whether windows that policies asked for may be armed: they do not count as sampling.
    pub(super) fn can_pay(&self) -> bool {
        self.program.balance > (self.expected() * self.fault_cost) as i64 && self.agent.balance > 0
    }

    /// Returns whether a race may be paid later: sampling, which waits for it, spends all that there is.
    pub(super) fn can_lend(&self) -> bool {
        self.program.balance > -LENT && self.agent.balance > -LENT
    }

    /// Returns whether the agent has used far more than it may.
    pub(super) fn is_overdrawn(&self) -> bool {
        self.agent.balance < -1_000_000
    }

    /// Returns how many faults the open windows may still cause.
    fn expected(&self) -> u64 {
        self.open * WANTED_SHARE.1 / 100
    }

    pub(super) fn opened(&mut self, armed: u64) {
        self.open += armed;
    }

    /// Returns the nanoseconds until [`Self::allows`] holds for several windows.
    pub(super) fn pause(&self, allowed: Allowed) -> u64 {
        let wait = |account: &Account, wanted: i64, per_million: u64| -> u64 {
            let missing = wanted.saturating_sub(account.balance).max(0) as u64;
            let rate = (per_million * USED / 100).max(1);
            (u128::from(missing) * u128::from(MILLION) / u128::from(rate)) as u64
        };
        let program = wait(&self.program, 500_000, allowed.program);
        let agent = wait(&self.agent, 400_000, allowed.agent);
        let faults = if self.faults.balance > 0 {
            0
        } else {
            self.faults.balance.unsigned_abs() * 1000 / allowed.rate.clamp(1, MILLION)
        };
        program.max(agent).max(faults).clamp(100_000, SECOND)
    }

    /// Draws the cost of a fault; `handling` is the agent's part, from the message to the wake-up.
    pub(super) fn fault(&mut self, handling: u64, requested: bool) {
        self.handling = self.handling - self.handling / 32 + handling.min(DEAREST) / 32;
        let least = self.calibrated_cost / 2;
        self.fault_cost =
            (self.calibrated_cost + self.handling).saturating_sub(self.calibrated_handling).max(least);
        self.lose(self.fault_cost);
        if !requested {
            self.faults.draw(MILLION);
            self.open_faults += 1;
        }
    }

    /// Returns whether far too many pages fault: all windows close now, and the next are half as long.
    pub(super) fn overshoots(&mut self) -> bool {
        let too_many = self.open_faults >= 16 && self.open_faults * 100 > self.open * MAX_SHARE;
        if too_many {
            (self.open_faults, self.armed, self.faulted) = (0, 0, 0);
            self.window_time = (self.window_time / 2).max(WINDOW_TIMES.0);
        }
        too_many
    }

    /// Draws time that the program lost otherwise.
    pub(super) fn lose(&mut self, time: u64) {
        self.program.draw(time);
        self.program_time += time;
    }

    pub(super) fn closed(&mut self, armed: u64, faults: u64) {
        self.open = self.open.saturating_sub(armed);
        self.open_faults = self.open_faults.saturating_sub(faults);
    }

    /// Adjusts the window time: `faults` of the `armed` pages of a window faulted in time.
    pub(super) fn observe(&mut self, armed: u64, faults: u64) {
        self.armed += armed;
        self.faulted += faults;
        if self.armed < LOOK {
            return;
        }
        let share = self.faulted * 100 / self.armed;
        let time = if share > WANTED_SHARE.1 {
            let (most, faulted) = (self.armed * WANTED_SHARE.1, self.faulted * 100);
            (self.window_time * most / faulted).max(self.window_time / 2)
        } else if share < WANTED_SHARE.0 {
            self.window_time * 3 / 2
        } else {
            self.window_time
        };
        self.window_time = time.clamp(WINDOW_TIMES.0, WINDOW_TIMES.1);
        (self.armed, self.faulted) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: Allowed = Allowed { rate: MILLION, program: 20_000, agent: 30_000 };

    fn pace() -> Pace {
        let mut pace = Pace::default();
        pace.begin(0, 0, 10_000, 2_000);
        pace
    }

    /// One fault each time it is allowed, in steps of 100 us.
    fn faults_in_ten_seconds(allowed: Allowed, cpu_of_a_fault: u64) -> u64 {
        let (mut pace, mut faults) = (pace(), 0);
        for step in 1..=100_000u64 {
            pace.tick(step * 100_000, faults * cpu_of_a_fault, allowed);
            if pace.allows() {
                pace.fault(2_000, false);
                faults += 1;
            }
        }
        faults
    }

    #[test]
    fn the_program_loses_no_more_than_allowed() {
        // 2 % of 10 s, 55 % of it used, at 10 us a fault: 11,000 faults.
        let faults = faults_in_ten_seconds(ALLOWED, 0);
        assert!((10_900..=11_100).contains(&faults), "{faults}");
    }

    #[test]
    fn the_agent_uses_no_more_than_allowed() {
        // 3 % of 10 s, 55 % of it used, at 50 us a fault: 3,300 faults.
        let faults = faults_in_ten_seconds(ALLOWED, 50_000);
        assert!((3_200..=3_400).contains(&faults), "{faults}");
    }

    #[test]
    fn the_policy_bounds_the_rate() {
        let faults = faults_in_ten_seconds(Allowed { rate: 100, ..ALLOWED }, 0);
        assert!((990..=1010).contains(&faults), "{faults}");
        assert_eq!(faults_in_ten_seconds(Allowed { rate: 0, ..ALLOWED }, 0), 0);
    }

    #[test]
    fn the_window_time_follows_the_share_of_faults() {
        let mut pace = pace();
        for _ in 0..200 {
            pace.observe(LOOK, LOOK / 2);
        }
        assert_eq!(pace.window_time, WINDOW_TIMES.0);
        for _ in 0..200 {
            pace.observe(LOOK, 0);
        }
        assert_eq!(pace.window_time, WINDOW_TIMES.1);
        pace.observe(LOOK, LOOK / 10);
        assert_eq!(pace.window_time, WINDOW_TIMES.1);
    }

    #[test]
    fn the_cost_of_a_fault_follows_its_handling() {
        let mut pace = pace();
        for _ in 0..1000 {
            pace.fault(7_000, false);
        }
        assert!((14_500..=15_100).contains(&pace.fault_cost), "{}", pace.fault_cost);
    }
}
