//! PACT: pages are placed by the stall that they cause (PAC), not by how often they are accessed.
//!
//! # Paper
//! "PACT: A Criticality-First Design for Tiered Memory", ASPLOS 2026, sections 3 to 5; numbers that it leaves
//! open are those of the daemon published with it. `settings` names the source of each.
//!
//! - Algorithm 1: every 20 ms the slow tier's stalls are estimated from misses, T1 and T2 and shared out
//!   among the pages sampled (`attribution`), summed up in [`PacTable`].
//! - Algorithm 3: what a sample lifts into the last of the adaptive bins is a candidate (`bins`).
//! - Algorithm 2: each window promotes its candidates, those of highest value first, and has the kernel's LRU
//!   demote until as many pages (and `margin`) were demoted as were promoted, whether there is room or not.
//! - `score=frequency` is the variant of section 5.6, `attribution=latency` that of 4.3.7; `exposed` takes
//!   the part of a load's latency that nothing hid.
//!
//! # Deviations
//! Samples are attributed at the end of their window; the kernel is asked for a number of pages. Where paper
//! and daemon differ:
//! - N_c is the number of promotion candidates in the paper and here; in the daemon, of those that its
//!   migrating thread has not taken yet. Only whether there are any matters: the ratio is never below 1.
//! - T2 counts the cycles in which a queue of the CHA holds an entry. The daemon filters each slice's queue
//!   to one core and sums over slices; hosts here sum over threads.
//!
//! For the others (short windows, room that new pages took, `t_scale`, `whole`) see
//! `docs/reference/policies.md`.

mod attribution;
mod bins;
mod demotion;
mod settings;

use isotherm_trackers::{Cooling, PacTable};

use isotherm_core::Record;

use crate::prelude::*;
use attribution::{Attribution, Model, Weight};
use bins::Bins;
use demotion::Demotion;
pub(crate) use settings::Settings;
use settings::{DemotionBy, Score, Track};

/// Samples that its thread takes in at once, unless the window ends before.
const BATCH: usize = 4096;
/// Operations of sorting, sharing out and binning one sample.
const SAMPLE_OPERATIONS: u64 = 40;

#[derive(Debug, Clone, Copy)]
struct Candidate {
    page: PageId,
    value: f32,
}

/// PACT. See the module.
#[derive(Debug)]
pub struct Pact {
    signals: Signals,
    sampling: Sampling,
    window: Nanos,
    window_start: Nanos,
    attribution: Attribution,
    table: PacTable,
    bins: Bins,
    values: Vec<f32>,
    candidates: Vec<Candidate>,
    /// Candidates of the last window, before the batch's limit.
    found: usize,
    batch: usize,
    limit: u64,
    margin: u64,
    move_huge: bool,
    demotion: Demotion,
    promoted: u64,
    demoted: u64,
    work: Work,
}

fn signals(settings: &Settings) -> Signals {
    let mut signals = Signals::NONE.with(Signal::LoadSamples).with(Signal::TierHits).with(Signal::TierStalls);
    if settings.demotion == DemotionBy::Kernel && settings.batch > 0 {
        signals = signals.with(Signal::KernelReclaim);
    }
    match settings.attribution {
        Weight::Accesses => signals,
        Weight::Latency => signals.with(Signal::SampleLatency),
        Weight::Exposed => signals.with(Signal::ExposedLatency),
    }
}

impl Pact {
    /// Creates PACT without tracked pages.
    pub fn new(parameters: &Parameters, setup: &Setup) -> Self {
        let settings = Settings::read(parameters);
        let slow = settings.track == Track::Slow;
        let window = settings.window.max(settings.shortest_window);
        let model = Model {
            k: settings.k.0 as f64,
            most_parallelism: settings.most_parallelism,
            frequency: settings.score == Score::Frequency,
        };
        let cooling = Cooling { keep: settings.cooling as f32, distance: settings.cooling_distance };
        Self {
            signals: signals(&settings),
            sampling: Sampling::loads(
                SamplingRate::Period(settings.sampling_period),
                if slow { SamplingScope::EachSlowTier } else { SamplingScope::EachTier },
                BATCH,
                window,
            ),
            window,
            window_start: Nanos(0),
            attribution: Attribution::new(settings.attribution, TierId(slow.into()), model),
            table: PacTable::new(setup.pages, settings.tracked_pages, cooling),
            bins: Bins::new(&settings, setup.seed),
            values: Vec::new(),
            candidates: Vec::new(),
            found: 0,
            batch: settings.batch,
            limit: match settings.promotions {
                0 => u64::MAX,
                limit => limit,
            },
            margin: setup.pages_in(settings.margin),
            move_huge: settings.move_huge,
            demotion: Demotion::new(settings.demotion == DemotionBy::Kernel),
            promoted: 0,
            demoted: 0,
            work: Work::default(),
        }
    }

    /// Returns the stall attributed to a page so far, in nanoseconds; 0 if it is not tracked.
    pub fn pac(&self, page: PageId) -> f32 {
        self.table.get(page.0)
    }

    fn close(&mut self) {
        let samples = self.attribution.len() as u64;
        let updates = self.attribution.close();
        self.table.add_batch(updates, &mut self.values);
        self.candidates.clear();
        for (&(page, _), &value) in updates.iter().zip(&self.values) {
            if self.bins.add(value) {
                self.candidates.push(Candidate { page: PageId(page), value });
            }
        }
        self.work.touches += updates.len() as u64;
        self.work.operations += SAMPLE_OPERATIONS * samples;
    }

    /// Plans the promotion of this window's candidates, the highest first.
    fn promote(&mut self, view: &dyn View, plan: &mut Plan) {
        self.candidates.retain(|candidate| is_slow(view, candidate.page));
        self.found = self.candidates.len();
        self.candidates
            .sort_unstable_by(|one, other| other.value.total_cmp(&one.value).then(one.page.cmp(&other.page)));
        self.work.touches += self.found as u64;
        let left = self.limit.saturating_sub(self.promoted);
        let most = self.batch.min(usize::try_from(left).unwrap_or(usize::MAX));
        for candidate in &self.candidates {
            if plan.moves.len() >= most {
                break;
            }
            // Another of its pages may have been a candidate before.
            let first = Move { page: candidate.page, to: TierId::FAST };
            if self.move_huge && plan.moves.contains(&first) {
                continue;
            }
            let own = candidate.page.0..candidate.page.0 + 1;
            let range = if self.move_huge { view.huge_range(candidate.page) } else { own };
            let slow = range.map(PageId).filter(|&page| is_slow(view, page));
            plan.moves.extend(slow.map(|page| Move { page, to: TierId::FAST }));
        }
    }

    /// Demotes what is promoted, and the margin (Algorithm 2, lines 5 and 6); more if new pages took the
    /// room.
    fn make_room(&mut self, view: &mut dyn View, plan: &mut Plan) {
        let moves = Pages(plan.moves.len() as u64);
        let owed = Pages(self.promoted + moves.0 + self.margin) - Pages(self.demoted);
        let lacking = moves - view.free(TierId::FAST);
        let wanted = owed.max(lacking).min(view.capacity(TierId::FAST));
        if plan.moves.is_empty() || wanted.0 == 0 {
            return;
        }
        if self.demotion.by_kernel {
            plan.reclaim.push(Reclaim { from: TierId::FAST, pages: wanted });
        } else {
            self.demotion.pick(wanted, &self.table, view, plan, &mut self.work);
        }
    }
}

fn is_slow(view: &dyn View, page: PageId) -> bool {
    view.tier_of(page).is_some_and(|tier| tier != TierId::FAST)
}

impl Policy for Pact {
    fn signals(&self) -> Signals {
        self.signals
    }

    fn sampling(&self) -> Sampling {
        self.sampling
    }

    /// Its artifact asks for times of `CLOCK_MONOTONIC`.
    fn record(&self) -> Record {
        Record::Clocked
    }

    /// Section 4.6: one thread for PEBS, one for migrations.
    fn migration_context(&self) -> MigrationContext {
        MigrationContext::Dedicated
    }

    fn observe(&mut self, batch: &SampleBatch, _view: &mut dyn View) {
        self.attribution.observe(batch);
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        if now - self.window_start >= self.window {
            self.window_start = now;
            self.close();
            if view.tiers() > 1 && self.batch > 0 {
                self.promote(view, plan);
                self.make_room(view, plan);
            }
            self.bins.adapt(self.table.len(), self.found);
        }
        plan.work = self.work.take();
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, _view: &mut dyn View) {
        for (step, status) in plan.moves.iter().zip(&outcome.moves) {
            match (status, step.to) {
                (MoveStatus::Moved, TierId::FAST) => self.promoted += 1,
                (MoveStatus::Moved, _) => self.demoted += 1,
                (MoveStatus::Gone, _) => self.table.remove(step.page.0),
                _ => {}
            }
        }
        self.demoted += outcome.reclaimed.iter().map(|pages| pages.0).sum::<u64>();
    }

    fn metadata(&self) -> Bytes {
        let candidates = self.candidates.capacity() * size_of::<Candidate>();
        Bytes((self.table.bytes() + self.attribution.bytes() + candidates) as u64)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        gauges.extend([
            Gauge { name: "tracked-pages", value: self.table.len() as f64 },
            Gauge { name: "displaced-pages", value: self.table.displaced() as f64 },
            Gauge { name: "bin-width-ns", value: self.bins.width },
            Gauge { name: "candidates", value: self.found as f64 },
            Gauge { name: "slow-parallelism", value: self.attribution.parallelism },
            Gauge { name: "rejected-windows", value: self.attribution.rejected as f64 },
        ]);
    }
}

#[cfg(test)]
mod tests;
