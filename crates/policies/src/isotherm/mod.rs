//! Isotherm's own policy: moves a page when it will pay, and proves while it runs that it does.
//!
//! # Source
//! Ours; docs/papers/isotherm.md has the mathematics. It has no parameters: costs and latencies are what the
//! host measures, and times follow from them.
//!
//! ```text
//! each batch:  books: costs, prices of a sample and a move, gain of a fast access, savings by samples of
//!              displaced pages
//!              each sample: worth the stall of a slow access, over the threads that ran around it,
//!              and so much more or less that those of a tier come to what its counters tell;
//!              both memories predict it, then count it; so each page that a unit tells of the tier
//!              behind it, in place of that tier's samples
//! each epoch:  counts age; variance is analysed by region
//! each plan:   the memory that predicted better leads
//!              of each pair of tiers, the pair that differs most in latency first:
//!              swap slow and fast pages, most different first, while
//!                  (rate up - rate down - error) x gain x stay > price of a swap and its way back
//!              as long as the allowance, less the way back of all displaced pages, pays for it, and what
//!              all pages that were faster first may lose stays within what may be lost and what is proved
//!              else the most used of these come back for the least used ones in their places, or used less;
//!              it samples as at first until they have
//!              of an overloaded tier: spread pages over the slower one in the ratio of the bandwidths
//!              sampling: denser if it paid, rarer if it did not
//! between:     it plans again when a quarter of the swaps that waited for money can be paid for
//!              the counters wake it when the share of slow accesses changes
//! ```

mod back;
mod books;
mod parts;
mod rates;
mod stake;
mod swaps;

use self::books::Books;
use self::rates::{BLOCK, Rates};
use self::swaps::{CAUTION, Cut, Swaps, bin_of};
use crate::prelude::*;
use crate::support::SAMPLE_BYTES;

/// Samples of an epoch: one for each block of pages. Deciding still costs less than sampling.
const PAGES_PER_SAMPLE: usize = BLOCK;
const LEAST_BATCH: usize = 64;
/// The period of the first samples, which tell the price of one.
const FIRST_PERIOD: u64 = 10_007;
/// Overheads of sampling: at first, at least, and at most.
const FIRST: f64 = 0.003;
const LEAST: f64 = 0.0001;
const MOST: f64 = 0.03;
/// Share of the savings that sampling may take.
const OF_SAVINGS: f64 = 0.2;
/// Overhead of sampling beside it while swaps wait for money.
const WAITING: f64 = 0.001;
/// Share of the waiting swaps that must be paid for before it plans again.
const PAID: f64 = 0.25;
/// Swaps from whose time the price is learned.
const TRIAL: f64 = 32.0;
/// Moves that a swap may come to: two pages, there and back.
const MOVES_OF_SWAP: f64 = 4.0;
/// Times between two looks: a share of the time so far, at least and at most. Looks must tell phases apart: a
/// program's threads may wait for one that loads what they will read, with stalls of its own.
const LOOK: (u64, Nanos, Nanos) = (32, Nanos(100_000), Nanos(4_000_000));
/// 2^32 over the golden section.
const GOLDEN: u32 = 0x9e37_79b9;
/// Pages moved up after as many were moved down.
const CHUNK: usize = 512;
/// Moves of which more than one must find no room for new pages to be said to take it: an eighth of them, a
/// quarter of those that go up.
const CROWDED: usize = 8;

/// Two tiers between which pages are exchanged.
#[derive(Debug, Clone, Copy)]
struct Pair {
    upper: TierId,
    lower: TierId,
}

/// Hotness monitoring units, if the host has any: they count accesses to slower tiers in place of samples.
#[derive(Debug, Default)]
struct Units {
    /// The tiers behind them, a bit each.
    tiers: u32,
    /// Accesses after which a page comes; 0 at first.
    accesses: u32,
}

impl Units {
    /// Returns whether a unit counts the accesses to a tier.
    fn count(&self, tier: TierId) -> bool {
        self.tiers >> tier.0 & 1 == 1
    }

    /// Returns the request for a period of the sampling: a page comes after about as many accesses as a
    /// sample stands for. They change by powers of two, because a unit with a new threshold
    /// counts from 0 again.
    fn request(&mut self, period: u64) -> Option<DeviceRequest> {
        let accesses = 1 << period.clamp(1, 1 << 30).ilog2();
        if self.tiers == 0 || accesses == self.accesses {
            return None;
        }
        self.accesses = accesses;
        // One more exceeds the threshold.
        Some(DeviceRequest { threshold: Some(accesses - 1), ..DeviceRequest::default() })
    }
}

#[derive(Debug)]
pub(crate) struct Isotherm {
    books: Books,
    rates: Rates,
    /// Share of the program's time that sampling may take.
    overhead: f64,
    period: u64,
    units: Units,
    /// The tier that each page of the plan leaves.
    origins: Vec<TierId>,
    /// Samples since the last epoch, and since it woke.
    fresh: usize,
    evidence: usize,
    /// Pages that are not where they were first.
    displaced: usize,
    /// Those of them that were faster first.
    demoted: usize,
    /// How many of these there were when enough samples had told what they lose.
    known: usize,
    /// Whether new pages took much of the room that the last plan had made.
    crowded: bool,
    /// Samples since pages moved last, or since it was found that none can come back.
    since: usize,
    /// While swaps wait for money: how many must be paid for before it plans again.
    due: Option<f64>,
    /// Whether what is at stake keeps swaps back that could be paid for.
    held: bool,
    /// The cost of looking then, what had been saved, and when.
    before: (f64, f64, f64),
    /// Savings as a share of the program's time, recently.
    saving: f64,
    work: Work,
}

impl Isotherm {
    pub(crate) fn new(_: &Parameters, setup: &Setup) -> Self {
        Self {
            books: Books::default(),
            rates: Rates::new(setup.pages),
            overhead: FIRST,
            period: FIRST_PERIOD,
            units: Units::default(),
            origins: Vec::new(),
            fresh: 0,
            evidence: 0,
            displaced: 0,
            demoted: 0,
            known: 0,
            crowded: false,
            since: 0,
            due: None,
            held: false,
            before: (0.0, 0.0, 0.0),
            saving: 0.0,
            work: Work::default(),
        }
    }

    fn batch(&self) -> usize {
        (self.rates.pages() / PAGES_PER_SAMPLE).max(LEAST_BATCH)
    }

    /// Returns the time for which pages are expected to keep their rates: as long as the leading memory looks
    /// back, and no longer than the program ran.
    fn stay(&self) -> f64 {
        self.rates.memory_time().min(self.books.elapsed())
    }

    /// Returns the swaps that may be paid for now, beside the way back of all displaced pages.
    fn afforded(&self) -> f64 {
        let price = self.books.loss_of_move();
        let left = self.books.allowance() - self.displaced as f64 * price;
        let allowed = left / (MOVES_OF_SWAP * price).max(1.0);
        if self.books.page_move.get().is_some() && !self.crowded { allowed } else { allowed.min(TRIAL) }
    }

    /// Plans the swaps that pay, and that can be paid for.
    fn decide(&mut self, view: &dyn View, plan: &mut Plan) {
        let (pages, stay) = (self.rates.pages(), self.stay());
        self.work.swept += self.rates.bytes() as u64;
        let (swap, mut afforded) = (MOVES_OF_SWAP * self.books.price_of_move(), self.afforded());
        let mut demotable = self.demotable(view).max(0.0);
        let (mut earned, mut waiting, mut held) = (0.0, 0.0, false);
        let mut filled = vec![0; view.tiers()];
        for pair in self.pairs(view.tiers()) {
            self.work.operations += 12 * pages as u64;
            let value = self.books.saving(pair.upper, pair.lower) * stay / self.rates.exposure();
            if value > 0.0 {
                let margin = swap / value;
                let planned = sorted(plan);
                let filled = &mut filled[pair.upper.index()];
                let kept = spare(view, pair.upper) + *filled;
                let free = view.free(pair.upper).0.saturating_sub(kept);
                let mut swaps = Swaps::new();
                self.each_page(view, pair, &planned, CAUTION, |_, bin, fast| swaps.add(bin, fast));
                let paying = swaps.cut(free as u32, margin, u32::MAX).promoted;
                let most = afforded.min(free as f64 + demotable);
                let cut = swaps.cut(free as u32, margin, most as u32);
                earned += cut.gain * value - cut.swaps * swap;
                let payable = f64::from(paying).min(afforded.max(0.0));
                waiting += f64::from(paying) - payable;
                held |= f64::from(cut.promoted) + 1.0 < payable;
                afforded -= f64::from(cut.promoted);
                demotable -= (f64::from(cut.promoted) - free as f64).max(0.0);
                if cut.promoted > 0 {
                    self.make_room(view, pair.lower, plan);
                    *filled += self.swap(cut, view, pair, &sorted(plan), plan);
                }
            } else if self.books.overload(pair.upper, pair.lower) * stay > swap / 2.0 * pages as f64 {
                afforded -= self.relieve(view, pair, afforded, plan) / MOVES_OF_SWAP;
            }
        }
        let most = if self.books.page_move.get().is_some() { PAID * waiting } else { TRIAL };
        self.due = (waiting > TRIAL).then(|| most.max(TRIAL));
        self.held = held;
        let (looking, saved, running) = (self.books.looking(), self.books.saved, self.books.elapsed());
        let passed = (running - self.before.2).max(1.0);
        self.saving += ((saved - self.before.1) / passed - self.saving) / 4.0;
        let cost = looking - self.before.0;
        // While swaps wait it knows more than it can pay for.
        if self.due.is_none() {
            if earned > 4.0 * cost {
                self.overhead *= 2.0;
            } else if earned < cost && self.evidence > 2 * pages {
                self.overhead /= 1.5;
            }
        }
        self.before = (looking, saved, running);
    }

    /// Spreads pages of an overloaded tier over a slower one, as weighted interleaving would: half of those
    /// that this lacks for all bandwidths to be used alike. Then the latencies are measured again.
    /// Neighbours are often one thread's, so the pages lie as evenly as multiples of the golden section do.
    /// Returns how many moves there are.
    fn relieve(&mut self, view: &dyn View, pair: Pair, afforded: f64, plan: &mut Plan) -> f64 {
        let tiers = 0..view.tiers() as u8;
        let bandwidths: Vec<f64> = tiers.map(|tier| view.bandwidth(TierId(tier)) as f64).collect();
        let best = best_shares(f64::INFINITY, &bandwidths)[pair.lower.index()];
        let Some(served) = self.books.served(pair.lower).filter(|&served| served < best) else { return 0.0 };
        let room = view.free(pair.lower).0.saturating_sub(spare(view, pair.lower));
        let most = room.min((afforded * MOVES_OF_SWAP / 2.0) as u64) as usize;
        let share = (served + best) / 2.0;
        let mut pages = Vec::new();
        self.each_page(view, pair, &sorted(plan), CAUTION, |page, _, upper| {
            let place = page.0.wrapping_mul(GOLDEN);
            if upper && f64::from(place) < share * f64::from(u32::MAX) {
                pages.push((place, page));
            }
        });
        if pages.len() > most {
            pages.select_nth_unstable(most);
            pages.truncate(most);
            pages.sort_unstable_by_key(|&(_, page)| page);
        }
        plan.moves.extend(pages.iter().map(|&(_, page)| Move { page, to: pair.lower }));
        self.origins.resize(plan.moves.len(), pair.upper);
        self.work.operations += 4 * self.rates.pages() as u64;
        pages.len() as f64
    }

    /// Returns all pairs of tiers, that with the greatest difference in latency first.
    fn pairs(&self, tiers: usize) -> Vec<Pair> {
        let tier = |index: usize| TierId(index as u8);
        let below =
            |upper| (upper + 1..tiers).map(move |lower| Pair { upper: tier(upper), lower: tier(lower) });
        let mut pairs: Vec<Pair> = (0..tiers).flat_map(below).collect();
        let saving = |pair: &Pair| self.books.saving(pair.upper, pair.lower);
        pairs.sort_by(|one, other| saving(other).total_cmp(&saving(one)));
        pairs
    }

    /// Calls `each` with every such page of a pair of tiers that is not `planned`: its bin by so many
    /// standard errors, and whether it is in the upper one.
    fn each_page(
        &self,
        view: &dyn View,
        pair: Pair,
        planned: &[PageId],
        caution: f64,
        mut each: impl FnMut(PageId, usize, bool),
    ) {
        let of_pair = |tier: &TierId| *tier == pair.upper || *tier == pair.lower;
        let mut tiers = [None; BLOCK];
        let mut pages = [PageId(0); BLOCK];
        for first in (0..self.rates.pages()).step_by(BLOCK) {
            let count = BLOCK.min(self.rates.pages() - first);
            pages.iter_mut().enumerate().for_each(|(index, page)| *page = PageId((first + index) as u32));
            view.tiers_of(&pages[..count], &mut tiers[..count]);
            let block = self.rates.block(pages[0]);
            // Most pages have been counted as often as their neighbour.
            let mut known = [None; 2];
            for (&page, tier) in pages[..count].iter().zip(tiers) {
                if let Some(tier) = tier.filter(of_pair) {
                    if !planned.is_empty() && planned.binary_search(&page).is_ok() {
                        continue;
                    }
                    let (counted, fast) = (self.rates.counted(page), tier == pair.upper);
                    let bin = match known[usize::from(fast)] {
                        Some((count, bin)) if count == counted => bin,
                        _ => bin_of(block.rate(counted), fast, caution),
                    };
                    known[usize::from(fast)] = Some((counted, bin));
                    each(page, bin, fast);
                }
            }
        }
    }

    /// Appends moves that leave the least room to exchange pages with a tier that has none: its coldest pages
    /// go to the slowest one.
    fn make_room(&mut self, view: &dyn View, tier: TierId, plan: &mut Plan) {
        let last = TierId(view.tiers() as u8 - 1);
        let lacking = spare(view, tier).saturating_sub(view.free(tier).0) as usize;
        if tier == last || lacking == 0 {
            return;
        }
        let mut pages = Vec::new();
        let pair = Pair { upper: tier, lower: last };
        self.each_page(view, pair, &sorted(plan), CAUTION, |page, bin, upper| {
            if upper {
                pages.push((bin, page));
            }
        });
        let count = lacking.min(pages.len());
        if count < pages.len() {
            pages.select_nth_unstable(count);
        }
        plan.moves.extend(pages[..count].iter().map(|&(_, page)| Move { page, to: last }));
        self.origins.resize(plan.moves.len(), tier);
    }

    /// Appends the moves of a cut; returns how many of them take free room of the upper tier.
    fn swap(
        &mut self,
        mut cut: Cut,
        view: &dyn View,
        pair: Pair,
        planned: &[PageId],
        plan: &mut Plan,
    ) -> u64 {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        self.each_page(view, pair, planned, CAUTION, |page, bin, fast| {
            if cut.takes(bin, fast) {
                if fast { down.push(page) } else { up.push(page) }
            }
        });
        self.exchange(&up, &down, pair, view, plan);
        self.work.operations += 6 * self.rates.pages() as u64;
        up.len().saturating_sub(down.len()) as u64
    }

    /// Appends the moves that exchange pages of a pair of tiers.
    fn exchange(&mut self, up: &[PageId], down: &[PageId], pair: Pair, view: &dyn View, plan: &mut Plan) {
        let mut add = |pages: &[PageId], from, to| {
            plan.moves.extend(pages.iter().map(|&page| Move { page, to }));
            self.origins.resize(plan.moves.len(), from);
        };
        let Pair { upper, lower } = pair;
        // Free room first, then room that was made.
        let ahead = up.len().saturating_sub(down.len());
        add(&up[..ahead], lower, upper);
        let last = lower.index() + 1 == view.tiers();
        let chunk = if last { CHUNK } else { CHUNK.min(spare(view, lower) as usize) };
        for (up, down) in up[ahead..].chunks(chunk).zip(down.chunks(chunk)) {
            add(down, upper, lower);
            add(up, lower, upper);
        }
    }

    /// Returns the sampling that the overhead allows; the first one's while pages are `owed` to the tiers
    /// where they were first: it must know which.
    fn resample(&mut self, now: Nanos, owed: bool) -> Sampling {
        let most = (2.0 * FIRST + OF_SAVINGS * self.saving.max(0.0)).min(MOST);
        self.overhead = self.overhead.clamp(LEAST, most);
        let allowed = if owed {
            FIRST
        } else if self.books.allowance() <= 0.0 {
            LEAST
        } else if self.due.is_some() {
            self.overhead.min(OF_SAVINGS * self.saving.max(0.0) + WAITING)
        } else {
            self.overhead
        };
        // A host that cannot tell what a sample costs keeps the first, rare one.
        let sample = self.books.sample.get().filter(|&price| price > 0.0);
        if let (Some(sample), Some(pace)) = (sample, self.books.pace()) {
            let period = (sample / (allowed * pace)).clamp(1.0, 1e9);
            // A new period begins all countdowns anew.
            if !(0.8..1.25).contains(&(period / self.period as f64)) {
                self.period = period as u64;
            }
        }
        let (share, least, most) = LOOK;
        let tick = Nanos(now.0 / share).clamp(least, most);
        let rate = SamplingRate::Period(self.period.max(1));
        request(rate, self.batch(), tick, allowed)
    }
}

/// Returns the room that is kept free on a tier: for new pages, and behind the fast tier for exchanges.
fn spare(view: &dyn View, tier: TierId) -> u64 {
    (view.capacity(tier).0 / 1000).max(u64::from(tier != TierId::FAST))
}

/// Returns the pages that a plan moves, in order.
fn sorted(plan: &Plan) -> Vec<PageId> {
    let mut pages: Vec<PageId> = plan.moves.iter().map(|step| step.page).collect();
    pages.sort_unstable();
    pages
}

fn request(rate: SamplingRate, batch: usize, tick: Nanos, overhead: f64) -> Sampling {
    let budget = Nanos((overhead * Nanos::SECOND.0 as f64) as u64);
    Sampling::loads(rate, SamplingScope::AllTiers, batch, tick).and_stores().within(budget)
}

impl Policy for Isotherm {
    fn signals(&self) -> Signals {
        Signals::NONE.with(Signal::LoadSamples)
    }

    fn uses(&self) -> Signals {
        Signals::NONE.with(Signal::DeviceHotPages)
    }

    fn sampling(&self) -> Sampling {
        let rate = SamplingRate::Period(FIRST_PERIOD);
        request(rate, self.batch(), LOOK.1, FIRST)
    }

    fn grows(&self) -> bool {
        true
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        self.rates.grow(view.pages());
        let tiers = 0..view.tiers() as u8;
        self.books.begin(batch, tiers.map(|tier| view.latency(TierId(tier))));
        // A device that tells a page once does not count it, and a unit may vanish.
        let units = batch.devices.iter().filter(|reading| reading.again);
        self.units.tiers = units.clone().fold(0, |tiers, reading| tiers | 1 << reading.tier.0);
        for (sample, part) in batch.samples.iter().zip(self.books.parts(&batch.samples)) {
            let counts = self.books.note(sample, self.rates.home(sample.page, sample.tier), part);
            if !self.units.count(sample.tier) {
                self.rates.count(sample.page, counts);
            }
        }
        for reading in units {
            let samples = f64::from(self.units.accesses) / self.period as f64;
            for &page in &reading.hot {
                if view.tier_of(page) == Some(reading.tier) {
                    let counts = self.books.note_accesses(reading.tier, samples);
                    self.rates.count(page, counts);
                }
            }
            self.work.touches += 2 * reading.hot.len() as u64;
            self.work.operations += 40 * reading.hot.len() as u64;
        }
        let samples = batch.samples.len();
        let (passed, unit) = self.books.end(self.demoted as f64 / Self::faster(view));
        if unit > 0.0 {
            self.rates.expose(passed, self.period as f64 * unit);
        }
        self.work.swept += self.rates.count_by(self.books.share()) * self.rates.bytes() as u64;
        self.fresh += samples;
        self.since += samples;
        if self.since >= LEAST_BATCH {
            self.known = self.demoted;
        }
        self.evidence += samples;
        self.work.touches += 2 * samples as u64;
        self.work.operations += 60 * samples as u64;
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        let ends = self.fresh >= self.batch();
        // Samples must tell what the last moves did; where none can come back, it is not tried at each look.
        let seen = self.since >= LEAST_BATCH;
        let paid = (seen || !self.crowded) && self.due.is_some_and(|due| self.afforded() >= due);
        let owed = self.owed(view);
        let back = seen && owed > 0;
        let told = seen && self.held && !self.crowded;
        if (ends || paid || back || told) && view.tiers() > 1 {
            if ends {
                self.fresh = 0;
                self.rates.age();
            } else {
                self.rates.choose_leader();
            }
            self.origins.clear();
            if back {
                self.go_back(view, owed, plan);
                self.since = if plan.moves.is_empty() { 0 } else { self.since };
            }
            if plan.moves.is_empty() && (ends || paid || told) {
                self.since = if told { 0 } else { self.since };
                self.decide(view, plan);
            }
        }
        if self.books.changed() {
            // What was seen before does not tell that nothing is to be gained now.
            self.evidence = 0;
            if self.overhead < FIRST {
                // As much as recent savings allow: what was saved tells what there is to lose.
                self.overhead = MOST;
            }
        }
        plan.sampling = Some(self.resample(now, owed > 0));
        plan.device = self.units.request(self.period);
        plan.work = self.work.take();
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, _view: &mut dyn View) {
        if !plan.moves.is_empty() {
            let failed = outcome.moves.iter().filter(|status| **status == MoveStatus::NoRoom);
            self.crowded = failed.count() > plan.moves.len() / CROWDED;
            self.since = 0;
        }
        let moved = |(_, status): &(_, &MoveStatus)| **status == MoveStatus::Moved;
        let steps = plan.moves.iter().zip(&self.origins).zip(&outcome.moves).filter(moved);
        let mut count = 0;
        for ((step, &from), _) in steps {
            self.displaced -= usize::from(self.rates.displaced(step.page));
            let was = self.rates.home(step.page, from).is_some_and(|home| home < from);
            // Others may have moved it since.
            self.demoted = self.demoted.saturating_sub(usize::from(was));
            self.rates.displace(step.page, from, step.to);
            self.displaced += usize::from(self.rates.displaced(step.page));
            self.demoted +=
                usize::from(self.rates.home(step.page, step.to).is_some_and(|home| home < step.to));
            count += 1;
        }
        self.books.note_moves(count);
    }

    fn metadata(&self) -> Bytes {
        Bytes((self.rates.bytes() + size_of::<Swaps>()) as u64 + SAMPLE_BYTES)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        let share = 100.0 / self.books.elapsed().max(1.0);
        let values = [
            ("saved-percent", self.books.saved * share),
            ("saved-error-percent", self.books.saved_error() * share),
            ("spent-percent", self.books.spent() * share),
            ("sampling-percent", self.overhead * 100.0),
            ("samples-per-page", self.rates.half_life() / self.rates.pages().max(1) as f64),
            ("worth-ns", self.books.unit()),
        ];
        gauges.extend(values.map(|(name, value)| Gauge { name, value }));
    }
}

#[cfg(test)]
mod tests;
