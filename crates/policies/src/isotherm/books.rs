//! The books: what tiering has cost by the host's measurement, and what it has saved by samples of pages that
//! are not where they were first. All in time of the program: of `n` running threads, one that loses a
//! nanosecond delays the program by an `n`-th of it.

use super::parts::parts;
use isotherm_core::{Nanos, Sample, SampleBatch, Spent, TierCounters, TierId};

/// Share of the program's time that may be lost without proof of a saving.
const TRUST: f64 = 0.005;
/// Share of the proved savings that may be spent: the rest covers costs that no host can measure.
const REINVESTED: f64 = 0.5;
/// Share of a move's time that the program loses while it has a processor for each thread: interrupts, and
/// waits for the page. It is what the simulator shows of isotherm's moves (docs/papers/isotherm.md). A
/// processor that the program lacks meanwhile is counted apart.
const LOST: f64 = 0.25;
/// Pages that could be moved in the time that a call takes whatever it moves: 27 us, at 1.8 us a page on the
/// default machine. Without it a batch of few pages would make moves look so dear that no more are tried.
const CALL: f64 = 16.0;
/// Weight of what is known against what an entry adds.
const MEMORY: f64 = 0.75;
/// Accesses from which on their slow share counts.
const LEAST_ACCESSES: f64 = 1000.0;
/// Misses of an entry from which on their own stall counts.
const LEAST_MISSES: f64 = 100.0;
/// Standard errors by which samples must tell of more events than there were misses.
const CERTAIN: f64 = 2.0;
/// Bound on how much more or less the samples of a tier count in an entry than they would by themselves.
const EVENED: f64 = 4.0;
/// Samples of a tier beside which another without any is idle.
const TOLD: f64 = 64.0;
/// A change of that share that wakes: in standard deviations, and beside them.
const UNUSUAL: f64 = 4.0;
const LEAST_CHANGE: f64 = 0.02;

/// A mean in which old events count ever less.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mean {
    sum: f64,
    events: f64,
}

impl Mean {
    fn add(&mut self, sum: f64, events: f64) {
        if events > 0.0 {
            self.sum = self.sum * MEMORY + sum;
            self.events = self.events * MEMORY + events;
        }
    }

    /// Returns the mean; `None` before the first event.
    pub(crate) fn get(&self) -> Option<f64> {
        (self.events > 0.0).then(|| self.sum / self.events)
    }
}

/// Costs, savings and prices, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Books {
    spent: Spent,
    counters: Vec<(u64, u64)>,
    /// Share of the program's time that a thread's is, and the least that it has been.
    part: f64,
    least_part: f64,
    passed: f64,
    cost: f64,
    looking: f64,
    /// Saved so far, less what displaced pages lost.
    pub(crate) saved: f64,
    /// The sum of its entries' squares: its variance, if samples come by chance.
    saved_squares: f64,
    /// A sample's price, of its thread.
    pub(crate) sample: Mean,
    /// A moved page's price without its call's, of the program.
    pub(crate) page_move: Mean,
    /// A thread's time per access.
    access: Mean,
    /// Recent time of threads, misses, events that samples stand for, and the sum of their squares.
    recent: [f64; 4],
    /// Events and time of threads of the whole run, in which older entries count less.
    events: (f64, f64),
    /// Stall of a slow access, and of one of each tier.
    stall: Mean,
    stalls: Vec<Mean>,
    /// Stall of the accesses to each tier in this entry.
    stalled: Vec<f64>,
    /// The worth of each tier's accesses by the counters, less what its samples came to.
    owed: Vec<f64>,
    /// Stall and number of slow accesses while most were slow.
    together: (f64, f64),
    /// Share of all accesses that each tier serves.
    served: Vec<Mean>,
    /// Stall of an access to each tier in this entry alone.
    now: Vec<f64>,
    /// Latencies of the tiers that samples have shown.
    latency: Vec<Mean>,
    /// The same of all but the fast tier together.
    slow_latency: Mean,
    /// The same of idle tiers, for sources whose samples tell no latency.
    idle: Vec<f64>,
    /// The worth of a count, and the fraction of one that is left over.
    unit: f64,
    rest: f64,
    /// The share of slow accesses: its mean and variance.
    slow: (f64, f64),
    changed: bool,
    /// Sums that wait for the entry's end.
    moved: f64,
    latencies: Vec<(f64, f64)>,
    worths: (f64, f64),
    /// The same of the whole run, in which older entries count less.
    worth: (f64, f64),
}

impl Default for Books {
    fn default() -> Self {
        Self {
            spent: Spent::default(),
            counters: Vec::new(),
            part: 1.0,
            least_part: 1.0,
            passed: 0.0,
            cost: 0.0,
            looking: 0.0,
            saved: 0.0,
            saved_squares: 0.0,
            sample: Mean::default(),
            page_move: Mean::default(),
            access: Mean::default(),
            recent: [0.0; 4],
            events: (0.0, 0.0),
            stall: Mean::default(),
            stalls: Vec::new(),
            stalled: Vec::new(),
            owed: Vec::new(),
            together: (0.0, 0.0),
            served: Vec::new(),
            now: Vec::new(),
            latency: Vec::new(),
            slow_latency: Mean::default(),
            idle: Vec::new(),
            unit: 0.0,
            slow: (0.0, 0.0),
            changed: false,
            rest: 0.0,
            moved: 0.0,
            latencies: Vec::new(),
            worths: (0.0, 0.0),
            worth: (0.0, 0.0),
        }
    }
}

impl Books {
    /// Begins an entry with the host's measurements; `idle`: latencies of the idle tiers.
    pub(crate) fn begin(&mut self, batch: &SampleBatch, idle: impl Iterator<Item = Nanos>) {
        self.idle.clear();
        self.idle.extend(idle.map(|latency| latency.0 as f64));
        self.latency.resize(self.idle.len(), Mean::default());
        self.latencies.resize(self.idle.len(), (0.0, 0.0));
        let (spent, counters) = (&batch.spent, &batch.counters);
        let before = std::mem::replace(&mut self.spent, *spent);
        let since = |part: fn(&Spent) -> Nanos| (part(spent) - part(&before)).0 as f64;
        self.passed = since(|spent| spent.elapsed);
        let running = since(|spent| spent.running);
        if running > 0.0 && self.passed > 0.0 {
            self.part = (self.passed / running).min(1.0);
            self.least_part = self.least_part.min(self.part);
        }
        let (sampling, moving) = (since(|spent| spent.sampling), since(|spent| spent.moving));
        let looking = (sampling + since(|spent| spent.deciding)) * self.part;
        self.looking += looking;
        self.cost += looking + moving * self.part * LOST;
        let moved = std::mem::take(&mut self.moved);
        if moved > 0.0 {
            self.page_move.add(moving * self.part, moved + CALL);
        }
        self.counters.resize(counters.tiers.len(), (0, 0));
        self.stalls.resize(counters.tiers.len(), Mean::default());
        self.now.resize(counters.tiers.len(), 0.0);
        self.served.resize(counters.tiers.len(), Mean::default());
        self.stalled.resize(counters.tiers.len(), 0.0);
        let missed = |tier: &TierCounters| tier.load_misses + tier.store_misses;
        let since = |(tier, before): (&TierCounters, &(u64, u64))| (missed(tier) - before.0) as f64;
        let mut all: f64 = counters.tiers.iter().zip(&self.counters).map(since).sum();
        let (mut stall, mut slow) = (0.0, 0.0);
        let known = self.counters.iter_mut().zip(&mut self.stalls).zip(&mut self.now).zip(&mut self.served);
        for (index, (tier, (((before, mean), now), served))) in counters.tiers.iter().zip(known).enumerate() {
            let misses = since((tier, before));
            let stalled = (tier.stall.0 - before.1) as f64;
            self.stalled[index] = stalled;
            mean.add(stalled, misses);
            *now = if misses >= LEAST_MISSES { stalled / misses } else { mean.get().unwrap_or(0.0) };
            served.add(misses, all);
            if index > 0 {
                stall += stalled;
                slow += misses;
            }
            *before = (missed(tier), tier.stall.0);
        }
        self.stall.add(stall, slow);
        self.note_together(stall, slow, all);
        if all >= LEAST_ACCESSES {
            self.watch(slow / all);
        }
        let weights = batch.samples.iter().map(|sample| f64::from(sample.weight));
        let (sampled, squares) =
            weights.fold((0.0, 0.0), |(sum, squares), weight| (sum + weight, squares + weight * weight));
        if counters.tiers.is_empty() {
            all = sampled;
        }
        self.access.add(running, all);
        let kept = self.kept();
        self.events = (self.events.0 * kept + all.max(sampled), self.events.1 * kept + running);
        let recent = [running, all, sampled, squares];
        self.recent.iter_mut().zip(recent).for_each(|(sum, new)| *sum = *sum * MEMORY + new);
        self.sample.add(sampling, batch.samples.len() as f64 + batch.lost as f64);
    }

    /// Notes the stall of slow accesses, weighed by the square of their share of all. Slow accesses wait
    /// together. The few that are left beside fast ones wait alone, each for longer, and tell nothing of what
    /// those that are fast now would wait if they were slow.
    fn note_together(&mut self, stall: f64, slow: f64, all: f64) {
        if all > 0.0 {
            let (kept, weight) = (self.kept(), (slow / all).powi(2));
            self.together = (self.together.0 * kept + weight * stall, self.together.1 * kept + weight * slow);
        }
    }

    /// Returns how much of a sum over the whole run is kept beside this entry, so that older ones count less.
    fn kept(&self) -> f64 {
        1.0 - (self.passed / self.elapsed().max(1.0)).min(1.0)
    }

    /// Compares the share of slow accesses with what it was.
    fn watch(&mut self, share: f64) {
        let (mean, variance) = &mut self.slow;
        let distance = share - *mean;
        self.changed |= distance.abs() > UNUSUAL * variance.sqrt() + LEAST_CHANGE;
        *variance += (distance * distance - *variance) / 16.0;
        *mean += distance / 4.0;
    }

    /// Returns whether the share of slow accesses has changed by more than it usually does, since last asked.
    pub(crate) fn changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Returns how much a thread's time around each sample of the entry weighs: its share of the program's
    /// time, such that the samples of a tier come to the worth of its accesses by the counters.
    ///
    /// Where one thread waits for each of its accesses, few samples stand for much of the stall, and may be
    /// missing for long; and sources sample stores that wait for nothing.
    pub(crate) fn parts(&mut self, samples: &[Sample]) -> Vec<f64> {
        let mut parts = parts(samples, self.part, self.least_part);
        if !self.tell_stalls() {
            return parts;
        }
        self.owed.resize(self.stalled.len(), 0.0);
        let mut sampled = vec![0.0; self.stalled.len()];
        for (sample, part) in samples.iter().zip(&parts) {
            if let Some(sum) = sampled.get_mut(sample.tier.index()) {
                *sum += f64::from(sample.weight) * part;
            }
        }
        let factors: Vec<f64> =
            (0..).map(TierId).zip(sampled).map(|(tier, sampled)| self.even(tier, sampled)).collect();
        for (part, sample) in parts.iter_mut().zip(samples) {
            *part *= factors.get(sample.tier.index()).unwrap_or(&1.0);
        }
        parts
    }

    /// Returns by how much more the samples of a tier must count than by themselves, so that what is owed is
    /// paid. `sampled`: the accesses that they stand for, each over the threads around it.
    fn even(&mut self, tier: TierId, sampled: f64) -> f64 {
        let worth = sampled * self.worth(tier);
        let told = self.stalled[tier.index()] * self.part * self.slowed(tier);
        let owed = self.owed[tier.index()] * self.kept() + told;
        let factor = if worth > 0.0 { (owed / worth).clamp(1.0 / EVENED, EVENED) } else { 1.0 };
        self.owed[tier.index()] = owed - factor * worth;
        factor
    }

    /// Returns whether the host's counters tell stalls.
    fn tell_stalls(&self) -> bool {
        self.stalls.iter().any(|stall| stall.get().is_some_and(|stall| stall > 0.0))
    }

    /// Returns how much longer a slow access takes than one that this tier serves.
    fn slowed(&self, tier: TierId) -> f64 {
        match (self.latency(tier), self.slow_latency()) {
            (Some(here), Some(slow)) if here > 0.0 => slow / here,
            _ => 1.0,
        }
    }

    /// Notes a sample; `home`: where its page was first, if it is not there; `part`: its own of
    /// [`Self::parts`]. Returns how often it counts.
    pub(crate) fn note(&mut self, sample: &Sample, home: Option<TierId>, part: f64) -> u16 {
        if sample.latency > 0
            && let Some((sum, count)) = self.latencies.get_mut(sample.tier.index())
        {
            *sum += f64::from(sample.latency);
            *count += 1.0;
        }
        let worth = self.worth(sample.tier) * part;
        self.worths.0 += worth;
        self.worths.1 += worth * worth;
        if let Some(home) = home {
            let saved = f64::from(sample.weight) * part * self.saved_by(sample.tier, home);
            self.saved += saved;
            self.saved_squares += saved * saved;
        }
        self.counts(worth)
    }

    /// Returns how often accesses to `tier` count that stand for so many samples.
    pub(crate) fn note_accesses(&mut self, tier: TierId, samples: f64) -> u16 {
        self.counts(self.worth(tier) * self.part * samples)
    }

    fn counts(&mut self, worth: f64) -> u16 {
        if self.unit == 0.0 {
            return 0;
        }
        self.rest += worth / self.unit;
        let counts = self.rest.floor().min(1000.0);
        self.rest -= counts;
        counts as u16
    }

    /// Ends the entry. Returns the time that it covers, and what a count stood for in it.
    pub(crate) fn end(&mut self) -> (f64, f64) {
        let mut slow = (0.0, 0.0);
        let told = self.latencies.iter().any(|&(_, count)| count >= TOLD);
        let tiers = self.latency.iter_mut().zip(&mut self.latencies).zip(&self.idle);
        for (tier, ((mean, sum), &idle)) in tiers.enumerate() {
            let (sum, count) = std::mem::take(sum);
            // Who is not seen beside others is idle: what it was under load is forgotten.
            let unseen = told && count == 0.0 && mean.get().is_some();
            let (sum_told, events) = if unseen { (idle, 1.0) } else { (sum, count) };
            mean.add(sum_told, events);
            if tier > 0 {
                slow = (slow.0 + sum, slow.1 + count);
            }
        }
        self.slow_latency.add(slow.0, slow.1);
        let unit = self.unit;
        self.settle_unit();
        (self.passed, unit)
    }

    /// Sets the worth of a count from now on, so that counts vary as by chance: a sum of independent worths
    /// has the variance of their squares' sum, and in this unit that is the sum itself (Poisson).
    fn settle_unit(&mut self) {
        let (sum, squares) = std::mem::take(&mut self.worths);
        // It changes slowly: until it has doubled, time in a smaller unit counts more.
        let kept = self.kept();
        self.worth = (self.worth.0 * kept + sum, self.worth.1 * kept + squares);
        if self.worth.1 > 0.0 {
            self.unit = self.worth.1 / self.worth.0;
        }
    }

    /// Returns how long an access that `tier` served would stall if the page were slow: as long as the tier's
    /// do in this entry, in the proportion of the latencies. Stores of a phase may not stall at all while
    /// its loads wait for each other, and pages of the fast tier may be those that are waited for.
    fn worth(&self, tier: TierId) -> f64 {
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
    fn saved_by(&self, tier: TierId, home: TierId) -> f64 {
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
    fn latency(&self, tier: TierId) -> Option<f64> {
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

    /// Returns the standard error of what was saved.
    pub(crate) fn saved_error(&self) -> f64 {
        self.saved_squares.sqrt()
    }

    /// Returns what a count stands for.
    pub(crate) fn unit(&self) -> f64 {
        self.unit
    }

    /// Returns a thread's time per event that is sampled: per miss, or less where samples tell of more.
    /// Sources sample stores that the counters of misses leave out.
    pub(crate) fn pace(&self) -> Option<f64> {
        let [time, misses, sampled, squares] = self.recent;
        let events = misses.max(sampled - CERTAIN * squares.sqrt());
        (events > 0.0).then(|| time / events)
    }

    /// Returns the share of a thread's time that sampled events would be worth if each were worth a count.
    pub(crate) fn share(&self) -> f64 {
        if self.events.1 > 0.0 { self.unit * self.events.0 / self.events.1 } else { 0.0 }
    }

    /// Returns how long the program ran.
    pub(crate) fn elapsed(&self) -> f64 {
        self.spent.elapsed.0 as f64
    }

    pub(crate) fn spent(&self) -> f64 {
        self.cost
    }

    /// Returns what looking at the program has cost, without moves.
    pub(crate) fn looking(&self) -> f64 {
        self.looking
    }

    /// Adds to the cost.
    #[cfg(test)]
    pub(crate) fn spend(&mut self, cost: f64) {
        self.cost += cost;
    }

    /// Notes pages that were moved.
    pub(crate) fn note_moves(&mut self, pages: usize) {
        self.moved += pages as f64;
    }

    /// Returns the price of moving a page. Until moves have been timed it is taken to be that of a sample.
    pub(crate) fn price_of_move(&self) -> f64 {
        let sample = || self.sample.get().unwrap_or(0.0) * self.part;
        self.page_move.get().unwrap_or_else(sample)
    }

    /// Returns what the program loses by a moved page.
    pub(crate) fn loss_of_move(&self) -> f64 {
        LOST * self.price_of_move()
    }

    /// Returns what may be spent now.
    pub(crate) fn allowance(&self) -> f64 {
        let kept = if self.saved > 0.0 { REINVESTED } else { 1.0 };
        TRUST * self.elapsed() + kept * self.saved - self.cost
    }
}

#[cfg(test)]
mod tests;
