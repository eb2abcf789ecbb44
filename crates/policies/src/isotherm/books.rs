//! The books: what tiering has cost by the host's measurement, and what it has saved by samples of pages that
//! are not where they were first. All in time of the program: of `n` running threads, one that loses a
//! nanosecond delays the program by an `n`-th of it.

mod worth;

use super::parts::parts;
use super::stake::{Entry, Stake};
use isotherm_core::{Nanos, Sample, SampleBatch, Spent, TierCounters, TierId};

/// Share of the program's time that may be lost without proof of a saving.
const TRUST: f64 = 0.005;
/// Share of the proved savings that may be spent: the rest covers costs that no host can measure.
const REINVESTED: f64 = 0.5;
/// Share of the proved savings that may be at stake besides: half of what costs leave of them.
const AT_STAKE: f64 = 0.25;
/// Claims of samples count up to so many times what counters confirm: savings, and that pages lose little.
const CLAIMED: f64 = 8.0;
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
    /// Load misses of each tier.
    loads: Vec<u64>,
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
    /// Savings before this entry.
    before: f64,
    stake: Stake,
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
            loads: Vec::new(),
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
            before: 0.0,
            stake: Stake::default(),
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
        self.before = self.saved;
        self.loads.resize(counters.tiers.len(), 0);
        let (part, kept) = (self.part, self.kept());
        let loads = counters.tiers.iter().zip(&mut self.loads).map(|(tier, before)| {
            let loads = tier.load_misses - std::mem::replace(before, tier.load_misses);
            loads as f64
        });
        self.stake.begin(&self.stalled, loads, part, kept);
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
        let saved = home.map_or(0.0, |home| self.saving(home, sample.tier));
        self.stake.note(sample, home, saved, part);
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

    /// Ends the entry. Returns the time that it covers, and what a count stood for in it. `demoted`: the
    /// share of the pages that were faster first that are slower now.
    pub(crate) fn end(&mut self, demoted: f64) -> (f64, f64) {
        let latencies: Vec<f64> =
            (0..self.idle.len() as u8).map(|tier| self.latency(TierId(tier)).unwrap_or(0.0)).collect();
        self.stake.end(Entry {
            passed: self.passed,
            kept: self.kept(),
            part: self.part,
            demoted,
            stalled: &self.stalled,
            latencies: &latencies,
            saved: (self.saved - self.before).max(0.0),
        });
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

    /// Returns the share of the pages that were faster first that may still go to slower tiers, `demoted` of
    /// which are there, and samples have told what `known` of them lose: all of it must stay within what may
    /// be lost without proof, less what was spent beyond that and the proof, a part of what the counters
    /// confirm of the savings, and less what was lost so far. If negative, so many are too many.
    pub(crate) fn demotable(&self, demoted: f64, known: f64) -> f64 {
        let (proved, time) = (self.stake.proved(), self.elapsed().max(1.0));
        let overspent = (self.cost - TRUST * time - proved).max(0.0);
        let unproved = (TRUST - overspent / time).max(0.0);
        let allowed = unproved + (AT_STAKE * proved + self.saved.min(0.0)) / time;
        let most = CLAIMED * (TRUST + self.confirmed().max(0.0) / time);
        self.stake.left(allowed.max(0.0), most, demoted, known)
    }

    /// Returns the savings that count.
    fn confirmed(&self) -> f64 {
        if self.tell_stalls() { self.saved.min(CLAIMED * self.stake.proved()) } else { self.saved }
    }

    /// Returns what may be spent now.
    pub(crate) fn allowance(&self) -> f64 {
        let kept = if self.saved > 0.0 { REINVESTED } else { 1.0 };
        TRUST * self.elapsed() + kept * self.confirmed() - self.cost
    }
}

#[cfg(test)]
mod tests;
