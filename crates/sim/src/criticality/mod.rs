//! Compares PACT's estimates with the core model's truth: Equation 1 with a tier's stalls, PAC with a page's.
//!
//! Everything is placed in one tier and replayed twice: without a policy, to learn each page's stalls from
//! the model, and under PACT, which samples as usual and moves nothing.

mod correlation;

use isotherm_core::parameters::{Parameters, Scale};
use isotherm_core::{Bytes, Nanos, PageId, Pages, TierId};
use isotherm_machine::{LINE_BYTES, Profile};
use isotherm_policies::Pact;
use isotherm_trackers::Window;

pub use correlation::{pearson, spearman};

use crate::INTERVALS;
use crate::page_table::Locator;
use crate::processor::Processor;
use crate::replay::Replay;
use crate::{Input, SimulateError};

/// PACT's window and its minimum here, in nanoseconds.
const WINDOW: u64 = 20_000_000;
const MIN_WINDOW: u64 = 200_000;

/// A tier's loads over a whole run, and Equation 1's view of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct TierStall {
    /// Loads that it served.
    pub misses: u64,
    /// Time for which retirement stalled on them, summed over threads: the model's truth.
    pub stall: Nanos,
    /// Stall for loads that were no misses because their prefetched lines were in flight.
    pub late: Nanos,
    /// Sum over windows of misses / MLP, in misses: Equation 1 without its `k`.
    pub serial_misses: f64,
    /// Mean number of requests in flight while there were any, over the whole run.
    pub parallelism: f64,
    /// Mean latency of a load in nanoseconds.
    pub latency: f64,
}

/// A tier over one window of PACT.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowStall {
    /// Length of the window.
    pub time: Nanos,
    /// Loads that the tier served.
    pub misses: u64,
    /// Time for which retirement stalled on them, summed over threads.
    pub stall: Nanos,
    /// Mean latency of a load in nanoseconds.
    pub latency: f64,
    /// Mean number of loads in flight while there were any: T1 / T2.
    pub parallelism: f64,
    /// Bytes that the tier read and wrote.
    pub bytes: Bytes,
}

impl WindowStall {
    /// Returns the requests in flight by Little's law, from bandwidth and latency, 64 bytes each.
    pub fn littles_law(&self) -> f64 {
        self.bytes.0 as f64 / LINE_BYTES as f64 * self.latency / self.time.0 as f64
    }
}

/// The core model's knowledge of a run with all memory in one tier.
#[derive(Debug, Clone)]
pub struct Truth {
    /// The tier over the whole run.
    pub tier: TierStall,
    /// The tier in windows, without those that lack a load or a stall.
    pub windows: Vec<WindowStall>,
    /// Every loaded page, with no PAC yet.
    pub pages: Vec<PageStall>,
}

/// One page's stalls and attribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageStall {
    /// The page.
    pub page: PageId,
    /// Its loads.
    pub loads: u32,
    /// Time for which retirement stalled on them.
    pub stall: Nanos,
    /// PACT's attribution to it, in nanoseconds.
    pub pac: f32,
}

impl PageStall {
    /// Returns the rank correlation of PACT's attributions with the pages' true stalls.
    pub fn rank_correlation(pages: &[Self]) -> Option<f64> {
        let pairs: Vec<_> = pages.iter().map(|page| (f64::from(page.pac), page.stall.0 as f64)).collect();
        spearman(&pairs)
    }
}

/// Returns PACT's window in the time of a scaled run: 20 ms, and at least some blocks of the replay.
pub fn stall_window(scale: Scale) -> Nanos {
    Nanos(((WINDOW as f64 / scale.time) as u64).max(MIN_WINDOW))
}

/// Places every page in one tier, and counts the stalls of each page's loads.
struct Everywhere {
    tier: u8,
    loads: Vec<u32>,
    stalls: Vec<u64>,
}

impl Locator for Everywhere {
    fn serve(&mut self, _index: usize, _page: u32) -> u8 {
        self.tier
    }

    fn stalled(&mut self, page: u32, store: bool, stall: u64) {
        if !store {
            self.loads[page as usize] += 1;
            self.stalls[page as usize] += stall;
        }
    }
}

/// An input on a machine with all memory in one tier.
#[derive(Debug)]
pub struct Criticality<'a> {
    replay: Replay<'a>,
}

impl<'a> Criticality<'a> {
    /// Sets the input on a machine.
    ///
    /// # Errors
    /// A machine with a number of tiers that the model does not run.
    pub fn new(
        input: &'a Input,
        profile: &'a Profile,
        scale: Scale,
        seed: u64,
    ) -> Result<Self, SimulateError> {
        let replay = Replay::new(&input.stream, &input.ranges, profile, scale, seed, INTERVALS)?;
        Ok(Self { replay })
    }

    /// Replays with everything in `tier`, in windows of `window` of the modelled time.
    pub fn truth(&self, tier: TierId, window: Nanos) -> Truth {
        let pages = self.replay.stream.pages.len();
        let locator = Everywhere { tier: tier.0, loads: vec![0; pages], stalls: vec![0; pages] };
        let mut processor = self.replay.processor(locator);
        let (mut sum, mut windows) = (TierStall::default(), Vec::new());
        let mut before = Reading::of(&mut processor, tier);
        while processor.run_block() {
            if processor.now() >= before.time + window || processor.ended() {
                let now = Reading::of(&mut processor, tier);
                sum.serial_misses += before.loads_until(&now).stall(1.0, f64::INFINITY).unwrap_or(0.0);
                windows.extend(before.until(&now));
                before = now;
            }
        }
        sum.misses = before.loads.misses;
        sum.stall = before.stall;
        sum.late = Nanos(processor.tier(tier).late_stall_ps() / 1000);
        sum.parallelism = before.loads.parallelism(f64::INFINITY).unwrap_or(1.0);
        sum.latency = before.loads.occupancy as f64 / before.loads.misses.max(1) as f64;
        let found = processor.locator.loads.iter().zip(&processor.locator.stalls).enumerate();
        let found = found.filter(|(_, (loads, _))| **loads > 0);
        let pages = found.map(|(page, (&loads, &stall))| PageStall {
            page: PageId(page as u32),
            loads,
            stall: Nanos(stall / 1000),
            pac: 0.0,
        });
        Truth { tier: sum, windows, pages: pages.collect() }
    }

    /// Replays under PACT with everything in the second tier and no moves, and fills in each page's PAC. The
    /// parameters are unscaled.
    ///
    /// # Errors
    /// A signal that PACT asks for and the simulator lacks.
    ///
    /// # Panics
    /// If `parameters` are another policy's.
    pub fn measure(&self, parameters: &Parameters, pages: &mut [PageStall]) -> Result<(), SimulateError> {
        let mut parameters = parameters.clone();
        parameters.set("batch", "0").expect("PACT's own parameter");
        let scaled = self.replay.scaled(&parameters)?;
        let mut pact = Pact::new(&scaled.parameters, &self.replay.setup(Pages(0)));
        self.replay.policy(Pages(0), &mut pact, &scaled)?;
        pages.iter_mut().for_each(|page| page.pac = pact.pac(page.page));
        Ok(())
    }
}

struct Reading {
    time: Nanos,
    loads: Window,
    stall: Nanos,
    bytes: Bytes,
}

impl Reading {
    fn of(processor: &mut Processor<'_, Everywhere>, tier: TierId) -> Self {
        let (time, tier) = (processor.now(), processor.tier(tier));
        let counters = tier.snapshot();
        let loads = Window {
            misses: counters.load_misses,
            occupancy: counters.load_occupancy,
            busy: counters.load_busy,
        };
        let bytes = Bytes(counters.bytes_read.0 + counters.bytes_written.0);
        Self { time, loads, stall: Nanos(tier.load_stall_ps() / 1000), bytes }
    }

    fn loads_until(&self, later: &Self) -> Window {
        Window {
            misses: later.loads.misses - self.loads.misses,
            occupancy: later.loads.occupancy - self.loads.occupancy,
            busy: later.loads.busy - self.loads.busy,
        }
    }

    /// Returns the window from here to a later time; `None` without a load or a stall.
    fn until(&self, later: &Self) -> Option<WindowStall> {
        let loads = self.loads_until(later);
        let stall = later.stall - self.stall;
        Some(WindowStall {
            time: later.time - self.time,
            misses: loads.misses,
            stall,
            latency: loads.occupancy as f64 / loads.misses.max(1) as f64,
            parallelism: loads.parallelism(f64::INFINITY)?,
            bytes: Bytes(later.bytes.0 - self.bytes.0),
        })
        .filter(|_| loads.misses > 0 && stall.0 > 0)
    }
}
