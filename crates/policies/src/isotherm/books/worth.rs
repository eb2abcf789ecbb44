//! An access's worth: how long it would stall in a slow tier, and what it saves in a faster one.

use super::{Books, Mean};
use isotherm_core::TierId;

impl Books {
    /// Returns how long an access that `tier` served would stall if the page were slow: as long as the tier's
    /// do in this entry, in the proportion of the latencies. Stores of a phase may not stall at all while
    /// its loads wait for each other, and pages of the fast tier may be those that are waited for.
    pub(super) fn worth(&self, tier: TierId) -> f64 {
        match self.now.get(tier.index()) {
            Some(stall) if self.tell_stalls() => stall * self.slowed(tier),
            _ => self.stall(),
        }
    }

    /// Returns the stall of a slow access: the counters' mean, or else its latency, of which the program
    /// cannot have waited longer than it ran.
    fn stall(&self) -> f64 {
        match (self.stall.get(), self.slow_latency()) {
            (Some(stall), _) if stall > 0.0 => stall,
            (_, Some(latency)) => latency.min(self.access.get().unwrap_or(latency)),
            _ => 0.0,
        }
    }

    /// Returns the share of a slow access's stall that a page saves in `upper` against `lower`; negative
    /// where `upper` is overloaded.
    pub(crate) fn saving(&self, upper: TierId, lower: TierId) -> f64 {
        let [own, with_queue] = self.savings(upper, lower);
        own.min(with_queue)
    }

    /// Returns the same by what an access waits itself, and by what it costs those behind it too.
    fn savings(&self, upper: TierId, lower: TierId) -> [f64; 2] {
        match (self.latency(upper), self.latency(lower), self.slow_latency()) {
            (Some(fast), Some(slow), Some(mean)) if slow > 0.0 && mean > 0.0 => {
                [slow - fast, self.marginal(lower, slow) - self.marginal(upper, fast)]
                    .map(|saved| saved / mean)
            }
            _ => [0.0; 2],
        }
    }

    /// Returns what one more access to a tier of such a latency costs: its own wait, and that of those behind
    /// it. If latency is `idle / (1 - load)`, `d (load x latency) / d load` is `latency^2 / idle`.
    fn marginal(&self, tier: TierId, latency: f64) -> f64 {
        let idle = self.idle[tier.index()];
        if idle > 0.0 { latency * (latency / idle).max(1.0) } else { latency }
    }

    /// Returns the share of the program's time that it would save if all pages of `upper`, which is
    /// overloaded, were in `lower` and the latencies stayed; 0 where it is not.
    pub(crate) fn overload(&self, upper: TierId, lower: TierId) -> f64 {
        let known = (self.latency(upper), self.idle.get(lower.index()), self.now.get(upper.index()));
        let (Some(here), Some(&idle), Some(stall)) = known else { return 0.0 };
        let (Some(served), Some(access)) = (self.served(upper), self.access.get()) else { return 0.0 };
        let there = self.latency(lower).unwrap_or(idle);
        let saved = self.marginal(upper, here) - self.marginal(lower, there);
        if here > 0.0 && access > 0.0 { (saved / here).max(0.0) * stall * served / access } else { 0.0 }
    }

    /// Returns the share of all accesses that a tier serves; `None` without counters.
    pub(crate) fn served(&self, tier: TierId) -> Option<f64> {
        self.served.get(tier.index())?.get()
    }

    /// Returns how much of a thread's time an access to a page in `tier` saves by not being in `home`, or
    /// loses if negative.
    pub(super) fn saved_by(&self, tier: TierId, home: TierId) -> f64 {
        if tier > home {
            let [own, with_queue] = self.savings(home, tier);
            return -self.stall() * if with_queue < 0.0 { with_queue } else { own };
        }
        // By the stall of slow accesses, or of fast ones: the few left to slow pages of a well placed program
        // may be of those that nothing waits for, and fast accesses may be hidden where slow ones are not.
        let (stall, slow) = self.together;
        let together = if stall > 0.0 { stall / slow } else { f64::INFINITY };
        let by_slow = self.stall().min(together) * self.saving(tier, home);
        match (self.latency(tier), self.latency(home), self.stalls.get(tier.index()).and_then(Mean::get)) {
            (Some(here), Some(there), Some(stall)) if here > 0.0 => by_slow.max(stall * (there / here - 1.0)),
            _ => by_slow,
        }
    }

    /// Returns a tier's latency as samples have shown it, or that of the idle tier before they have.
    pub(super) fn latency(&self, tier: TierId) -> Option<f64> {
        let shown = self.latency.get(tier.index()).and_then(Mean::get);
        shown.or_else(|| self.idle.get(tier.index()).copied())
    }

    /// Returns the mean latency of slow accesses.
    fn slow_latency(&self) -> Option<f64> {
        if self.has_latencies() {
            return self.slow_latency.get();
        }
        let slow = self.idle.get(1..).filter(|slow| !slow.is_empty())?;
        Some(slow.iter().sum::<f64>() / slow.len() as f64)
    }

    fn has_latencies(&self) -> bool {
        self.latency.iter().any(|mean| mean.get().is_some())
    }

    /// Returns whether the host's counters tell stalls.
    pub(super) fn tell_stalls(&self) -> bool {
        self.stalls.iter().any(|stall| stall.get().is_some_and(|stall| stall > 0.0))
    }

    /// Returns how much longer a slow access takes than one that this tier serves.
    pub(super) fn slowed(&self, tier: TierId) -> f64 {
        match (self.latency(tier), self.slow_latency()) {
            (Some(here), Some(slow)) if here > 0.0 => slow / here,
            _ => 1.0,
        }
    }
}
