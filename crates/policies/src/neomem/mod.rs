//! NeoMem: a device in front of the slow memory finds the hot pages; its histogram sets the threshold.
//!
//! # Paper
//! Zhou et al., "NeoMem: Hardware/Software Co-Design for CXL-Native Memory Tiering" (MICRO 2024), section V.
//! Every `migration_interval` (10 ms) the daemon promotes the pages that the device found hot; every
//! `clear_interval` (5 s) it clears the device. The threshold follows Algorithm 1 ([`threshold`]); a fixed
//! one is the naive policy of Fig. 14. Defaults are those of Table IV. Cold pages are the kernel's LRU's
//! business.
//!
//! # Deviations
//! `docs/papers/neomem.md` explains the choices where the paper is open.
//!
//! - `PG_demoted`: a page counts as demoted if the host says so or if it was promoted before. A host that
//!   cannot tell what reclaim took misses the first return of a page that was fast from its allocation on.
//! - kswapd runs beside the daemon, while a policy waits for the reclaim that it asked for. So it asks for no
//!   more at a time than the quota earned since the last reading (or kswapd's batch): room never falls behind
//!   the quota, and what was saved up is promoted in steps.
//! - `Q`: the paper does not say which count of a bin it is. Here it is the bin's lowest; the published
//!   daemon takes the bin's number, which is lower still.
//! - Several devices: their histograms and traffic are added up, and all get one threshold.
//! - A clear that falls on a threshold update waits for the reading, or the histogram would be empty.

mod settings;
mod threshold;

use std::collections::VecDeque;

use crate::prelude::*;
use crate::support::numa_balancing::{Watermarks, faults_only};
use crate::support::page_bits::PageBits;
use crate::support::quota::Quota;
pub(crate) use settings::Settings;
use threshold::{Observed, Threshold};

/// Pages that kswapd takes in one go (SWAP_CLUSTER_MAX).
const RECLAIM_BATCH: Pages = Pages(32);
/// Operations of taking one hot page in, and of planning its promotion.
const PAGE_OPERATIONS: u64 = 8;
/// Operations of Algorithm 1 over 64 bins.
const UPDATE_OPERATIONS: u64 = 400;

#[derive(Debug)]
pub(crate) struct NeoMem {
    settings: Settings,
    fixed: Option<u32>,
    threshold: Threshold,
    quota: Quota,
    marks: Watermarks,
    started: bool,
    next_update: Nanos,
    next_clear: Nanos,
    report: Option<DeviceReport>,
    /// The traffic through all devices at the last report.
    traffic: DeviceTraffic,
    hot: VecDeque<PageId>,
    waiting: PageBits,
    /// Pages that are slow because they were demoted, or will be: `PG_demoted`.
    demoted: PageBits,
    promoted: u64,
    ping_pongs: u64,
    /// Pages promoted since the last clear, and how many of all were promoted a second time before the next.
    promoted_now: PageBits,
    promoted_again: u64,
    found: u64,
    work: Work,
}

impl NeoMem {
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        let settings = Settings::read(parameters);
        let quota = Quota::new(settings.quota, settings.quota_period, setup);
        Self {
            fixed: (settings.threshold > 0).then_some(settings.threshold),
            threshold: Threshold::new(settings.clone(), quota.pages_in(settings.update_interval)),
            quota,
            marks: Watermarks::new(&settings.marks, setup),
            started: false,
            next_update: Nanos(0),
            next_clear: Nanos(0),
            report: None,
            traffic: DeviceTraffic::default(),
            hot: VecDeque::new(),
            waiting: PageBits::new(setup.pages),
            demoted: PageBits::new(setup.pages),
            promoted: 0,
            ping_pongs: 0,
            promoted_now: PageBits::default(),
            promoted_again: 0,
            found: 0,
            work: Work::default(),
            settings,
        }
    }

    fn take(&mut self, reading: &DeviceReading, view: &dyn View) {
        for &page in &reading.hot {
            let slow = view.tier_of(page).is_some_and(|tier| tier != TierId::FAST);
            if slow && self.waiting.insert(page) {
                self.hot.push_back(page);
                self.found += 1;
            }
        }
        self.work.operations += PAGE_OPERATIONS * reading.hot.len() as u64;
        self.work.touches += 2 * reading.hot.len() as u64;
        if let Some(report) = &reading.report {
            self.report = Some(match self.report.take() {
                Some(before) => merged(before, report),
                None => report.clone(),
            });
        }
    }

    /// Runs Algorithm 1 if there is a new report. Returns the new threshold.
    fn update(&mut self) -> Option<u32> {
        let report = self.report.take()?;
        let bandwidth = report.traffic.since(self.traffic).utilisation();
        self.traffic = report.traffic;
        let observed =
            Observed { bandwidth, ping_pongs: self.ping_pongs, promoted: self.promoted, report: &report };
        self.threshold.update(&observed);
        (self.promoted, self.ping_pongs) = (0, 0);
        self.work.operations += UPDATE_OPERATIONS;
        Some(self.threshold.theta)
    }

    fn request(&mut self, now: Nanos) -> Option<DeviceRequest> {
        if !self.started {
            self.started = true;
            (self.next_update, self.next_clear) =
                (now + self.settings.update_interval, now + self.settings.clear_interval);
            return Some(DeviceRequest { threshold: self.fixed, clear: true, report: false });
        }
        let mut request = DeviceRequest { threshold: self.update(), ..DeviceRequest::default() };
        if self.fixed.is_none() && now >= self.next_update {
            self.next_update = now + self.settings.update_interval;
            request.report = true;
        } else if now >= self.next_clear {
            self.next_clear = now + self.settings.clear_interval;
            request.clear = true;
            self.forget();
        }
        (request != DeviceRequest::default()).then_some(request)
    }

    /// Clears: waiting pages are found again if they are still hot.
    fn forget(&mut self) {
        self.traffic = DeviceTraffic::default();
        self.promoted_now = PageBits::default();
        self.hot.drain(..).for_each(|page| self.waiting.remove(page));
    }

    /// Plans as many promotions as the quota has saved up, and the room that they need.
    fn promote(&mut self, now: Nanos, view: &dyn View, plan: &mut Plan) {
        let reclaim = Pages(self.quota.earn(now) as u64).max(RECLAIM_BATCH);
        if !self.settings.migrate {
            return;
        }
        let room = (view.free(TierId::FAST) + reclaim).0 as usize;
        while self.quota.available() > 0
            && plan.moves.len() < room
            && let Some(page) = self.hot.pop_front()
        {
            self.waiting.remove(page);
            if view.tier_of(page).is_some_and(|tier| tier != TierId::FAST) {
                plan.moves.push(Move { page, to: TierId::FAST });
                self.quota.spend(1);
            }
            self.work.operations += PAGE_OPERATIONS;
        }
        self.marks.keep(plan.moves.len() as u64, view, plan);
        plan.reclaim.iter_mut().for_each(|request| request.pages = request.pages.min(reclaim));
    }
}

fn merged(one: DeviceReport, other: &DeviceReport) -> DeviceReport {
    let (a, b) = (one.traffic, other.traffic);
    DeviceReport {
        histogram: one.histogram.merged(other.histogram.clone()),
        lanes: one.lanes.min(other.lanes),
        traffic: DeviceTraffic {
            cycles: a.cycles + b.cycles,
            reads: a.reads + b.reads,
            writes: a.writes + b.writes,
        },
        refused: one.refused + other.refused,
        dropped: one.dropped + other.dropped,
    }
}

impl Policy for NeoMem {
    fn signals(&self) -> Signals {
        let needs = Signals::NONE.with(Signal::DeviceHotPages).with(Signal::KernelReclaim);
        if self.fixed.is_some() { needs } else { needs.with(Signal::DeviceReports) }
    }

    fn sampling(&self) -> Sampling {
        faults_only(self.settings.migration_interval)
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        batch.devices.iter().for_each(|reading| self.take(reading, view));
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        plan.device = self.request(now);
        self.promote(now, view, plan);
        plan.work = self.work.take();
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, _view: &mut dyn View) {
        outcome.demoted.iter().for_each(|&page| _ = self.demoted.insert(page));
        for (step, status) in plan.moves.iter().zip(&outcome.moves) {
            match status {
                MoveStatus::Moved => {
                    self.promoted += 1;
                    // Whatever is promoted again was demoted between.
                    self.ping_pongs += u64::from(!self.demoted.insert(step.page));
                    self.promoted_again += u64::from(!self.promoted_now.insert(step.page));
                }
                MoveStatus::NoRoom | MoveStatus::Busy if self.waiting.insert(step.page) => {
                    self.hot.push_back(step.page);
                }
                _ => {}
            }
            self.work.touches += 1;
        }
    }

    fn metadata(&self) -> Bytes {
        let queue = self.hot.capacity() * size_of::<PageId>();
        Bytes((queue + self.waiting.bytes() + self.demoted.bytes() + self.promoted_now.bytes()) as u64)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        let mut gauge = |name, value| gauges.push(Gauge { name, value });
        gauge("hot-threshold", f64::from(self.fixed.unwrap_or(self.threshold.theta)));
        gauge("hot-pages-found", self.found as f64);
        gauge("hot-pages-waiting", self.hot.len() as f64);
        gauge("promoted-again", self.promoted_again as f64);
        if self.fixed.is_none() {
            gauge("percentile", self.threshold.p);
            gauge("bandwidth", self.threshold.bandwidth);
            gauge("ping-pong", self.threshold.ping_pong);
            gauge("error-bound", f64::from(self.threshold.error));
        }
    }
}

#[cfg(test)]
mod tests;
