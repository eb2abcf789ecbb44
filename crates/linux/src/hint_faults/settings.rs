//! Settings of hint faults.

use std::time::Duration;

use crate::LinuxError;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HintFaultOptions {
    /// Part of the program's time that may be lost; 0.02 by default.
    pub program_budget: f64,
    /// Agents' processor time in each program as a part of one core; 0.03 by default.
    pub agent_budget: f64,
    /// Pages armed together, 1 to 64; 32 by default.
    pub window: u32,
    /// Time that a page armed for a policy stays armed if no thread touches it; 10 s by default.
    pub armed_bound: Duration,
    pub seed: u64,
}

impl Default for HintFaultOptions {
    fn default() -> Self {
        Self {
            program_budget: 0.02,
            agent_budget: 0.03,
            window: 32,
            armed_bound: Duration::from_secs(10),
            seed: 1,
        }
    }
}

/// Nanoseconds that a fault costs the program, on the machines measured: how many fit a budget.
const FAULT_NANOS: f64 = 10_000.0;
/// The agent's processor time per time that the program may lose: 3 % of a core for the default of 2 %.
const AGENT_SHARE: f64 = 1.5;

impl HintFaultOptions {
    /// Returns options under which the program loses at most `overhead`, a part of its time.
    pub fn of(overhead: f64) -> Self {
        Self {
            program_budget: overhead.max(1e-4),
            agent_budget: (AGENT_SHARE * overhead).clamp(1e-3, 1.0),
            ..Self::default()
        }
    }

    /// Returns these options with at most `overhead`.
    pub(super) fn within(self, overhead: f64) -> Self {
        let most = Self::of(overhead);
        Self {
            program_budget: self.program_budget.min(most.program_budget),
            agent_budget: self.agent_budget.min(most.agent_budget),
            ..self
        }
    }

    /// Returns the most samples per second that cost the program `overhead`.
    pub fn fastest(overhead: f64) -> u64 {
        (overhead * 1e9 / FAULT_NANOS).max(1.0) as u64
    }

    pub(super) fn check(&self) -> Result<(), LinuxError> {
        let fraction = |value: f64| value > 0.0 && value <= 1.0;
        let remedy = if !fraction(self.program_budget) || !fraction(self.agent_budget) {
            "budgets lie above 0 and up to 1"
        } else if !(1..=64).contains(&self.window) {
            "a window has 1 to 64 pages"
        } else {
            return Ok(());
        };
        Err(LinuxError::Unsupported { what: "this setting of hint faults", remedy: remedy.to_owned() })
    }
}
