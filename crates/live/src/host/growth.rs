//! Defines by how much memory may outgrow the policy that was sized for it.

/// What has grown less than by this part between two looks has settled.
const SETTLED: u64 = 20;
/// By how much memory may grow before a policy is sized anew.
const OUTGROWN: f64 = 2.0;
/// The same once, when memory that still grew as the policy was sized has settled: the policy then keeps that size for long.
const OUTGROWN_UNSETTLED: f64 = 1.125;

/// Whether memory still grows, from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// Whether the policy's size follows the memory in use.
    pub(super) resizes: bool,
    /// Whether memory had stopped growing at some look, since the program began.
    settled: bool,
}

impl Growth {
    /// Another program begins.
    pub(super) fn restart(&mut self) {
        self.settled = false;
    }

    /// So much was mapped at the look before, and at this one: whether memory has stopped growing, now or before.
    pub(super) fn settles(&mut self, before: u64, mapped: u64) -> bool {
        self.settled |= mapped > 0 && mapped.saturating_sub(before) <= mapped / SETTLED;
        self.settled
    }

    /// How many times the size that a policy was built for may be mapped at this look.
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
        let mut bounds = |looks: [(u64, u64); 5]| looks.map(|(before, mapped)| growth.bound(before, mapped));
        let grown = [(0, 100), (100, 200), (200, 210), (210, 210), (210, 400)];
        assert_eq!(bounds(grown), [2.0, 2.0, 1.125, 2.0, 2.0]);
        growth.restart();
        assert_eq!([growth.bound(0, 50), growth.bound(50, 50)], [2.0, 1.125]);
    }
}
