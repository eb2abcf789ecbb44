//! Decides when memory has outgrown the policy that was sized for it.

/// Memory has settled if it grew by less than one part in this many between two scans.
const SETTLED: u64 = 20;
/// Growth that resizes a policy.
const OUTGROWN: f64 = 2.0;
/// The same, once, when memory settles that still grew as the policy was sized.
const OUTGROWN_UNSETTLED: f64 = 1.125;

#[derive(Debug, Default)]
pub(super) struct Growth {
    /// Whether the policy's size follows the memory in use.
    pub(super) resizes: bool,
    /// Whether the policy follows it by itself.
    pub(super) stays: bool,
    /// Whether memory has stopped growing at some scan since the program began.
    settled: bool,
}

impl Growth {
    pub(super) fn restart(&mut self) {
        self.settled = false;
    }

    /// Compares the mapped memory of two scans; returns whether growth has ever stopped.
    pub(super) fn settles(&mut self, before: u64, mapped: u64) -> bool {
        self.settled |= mapped > 0 && mapped.saturating_sub(before) <= mapped / SETTLED;
        self.settled
    }

    /// Returns how many times the policy's size may be mapped at this scan.
    pub(super) fn bound(&mut self, before: u64, mapped: u64) -> f64 {
        let settled = self.settled;
        if self.settles(before, mapped) && !settled { OUTGROWN_UNSETTLED } else { OUTGROWN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_near_once_as_memory_settles_and_again_in_another_program() {
        let mut growth = Growth::default();
        let mut bounds = |scans: [(u64, u64); 5]| scans.map(|(before, mapped)| growth.bound(before, mapped));
        let grown = [(0, 100), (100, 200), (200, 210), (210, 210), (210, 400)];
        assert_eq!(bounds(grown), [2.0, 2.0, 1.125, 2.0, 2.0]);
        growth.restart();
        assert_eq!([growth.bound(0, 50), growth.bound(50, 50)], [2.0, 1.125]);
    }
}
