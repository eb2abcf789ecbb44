//! Compares what PACT sees with what the core model knows: Equation 1 with a tier's stalls, PAC with each page's.
//!
//! Everything is placed in one tier. Two replays: one without a policy, in which the model says how long retirement stood
//! still for the loads of each page; one under PACT that moves nothing and samples as it does.

mod correlation;

use isotherm_core::parameters::{Parameters, Scale};
use isotherm_core::{Counters, Nanos, PageId, Pages, TierId};
use isotherm_policies::Pact;
use isotherm_trackers::Window;

pub use correlation::{pearson, spearman};

use crate::machine::Machine;
use crate::placement::Locator;
use crate::replay::{self, Replay};
use crate::simulate::{Input, SimulateError};
use crate::{INTERVALS, Profile};

/// A tier's loads over a whole run, and what Equation 1 makes of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct TierStall {
    /// Loads that it served.
    pub misses: u64,
    /// How long retirement stood still for them, summed over threads: the model's truth.
    pub stall: Nanos,
    /// The sum over windows of misses / MLP, in misses: Equation 1 without its `k`.
    pub serial_misses: f64,
    /// Requests in flight while there were any, over the whole run.
    pub parallelism: f64,
    /// The mean latency of a load.
    pub latency: f64,
}

/// One page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageStall {
    /// The page.
    pub page: PageId,
    /// Its loads.
    pub loads: u32,
    /// How long retirement stood still for them.
    pub stall: Nanos,
    /// What PACT attributed to it, in nanoseconds.
    pub pac: f32,
}

/// Where everything is, and what the loads of each page cost.
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

/// An input on a machine, with all of it in one tier.
#[derive(Debug)]
pub struct Criticality<'a> {
    replay: Replay<'a>,
}

impl<'a> Criticality<'a> {
    /// Sets the input on a machine.
    ///
    /// # Errors
    /// If the machine has a number of tiers that the model does not run.
    pub fn new(
        input: &'a Input,
        profile: &'a Profile,
        scale: Scale,
        seed: u64,
    ) -> Result<Self, SimulateError> {
        replay::check(profile)?;
        let interval_length = input.stream.accesses.len().div_ceil(INTERVALS).max(1);
        Ok(Self {
            replay: Replay {
                stream: &input.stream,
                profile,
                ranges: &input.ranges,
                seed,
                scale,
                interval_length,
            },
        })
    }

    /// Replays with all of it in `tier`, in windows of `window` of the modelled time. Every page that was loaded comes with its
    /// true stall, and no PAC yet.
    pub fn truth(&self, tier: TierId, window: Nanos) -> (TierStall, Vec<PageStall>) {
        let pages = self.replay.stream.pages.len();
        let locator = Everywhere { tier: tier.0, loads: vec![0; pages], stalls: vec![0; pages] };
        let mut machine = self.replay.machine(locator);
        let (mut sum, mut counters, mut end) = (TierStall::default(), Counters::default(), window);
        let mut before = read(&machine, tier, &mut counters);
        while machine.run_block() {
            if machine.now() >= end || machine.ended() {
                let now = read(&machine, tier, &mut counters);
                sum.serial_misses += serial_misses(before, now);
                (before, end) = (now, machine.now() + window);
            }
        }
        sum.misses = before.misses;
        sum.stall = Nanos(machine.tier(tier).load_stall_ps / 1000);
        sum.parallelism = before.parallelism(f64::INFINITY).unwrap_or(1.0);
        sum.latency = before.occupancy as f64 / before.misses.max(1) as f64;
        let found = machine.locator.loads.iter().zip(&machine.locator.stalls).enumerate();
        let found = found.filter(|(_, (loads, _))| **loads > 0);
        let pages = found.map(|(page, (&loads, &stall))| PageStall {
            page: PageId(page as u32),
            loads,
            stall: Nanos(stall / 1000),
            pac: 0.0,
        });
        (sum, pages.collect())
    }

    /// Replays under PACT with all of it in the second tier and nothing moved, and fills in the PAC of each page. The parameters
    /// are unscaled.
    ///
    /// # Errors
    /// If PACT asks for what the simulator lacks.
    ///
    /// # Panics
    /// If `parameters` are another policy's.
    pub fn measure(&self, parameters: &Parameters, pages: &mut [PageStall]) -> Result<(), SimulateError> {
        let mut scaled = parameters.clone();
        scaled.set("batch", "0").expect("PACT's own parameter");
        scaled.scale(self.replay.scale);
        let mut pact = Pact::new(&scaled, &self.replay.setup(Pages(0)));
        self.replay.policy(Pages(0), &mut pact)?;
        pages.iter_mut().for_each(|page| page.pac = pact.pac(page.page));
        Ok(())
    }
}

/// What the counters of a tier's loads say now.
fn read(machine: &Machine<'_, Everywhere>, tier: TierId, counters: &mut Counters) -> Window {
    machine.counters(counters);
    let tier = &counters.tiers[tier.index()];
    Window { misses: tier.load_misses, occupancy: tier.load_occupancy, busy: tier.load_busy }
}

fn serial_misses(before: Window, now: Window) -> f64 {
    let window = Window {
        misses: now.misses - before.misses,
        occupancy: now.occupancy - before.occupancy,
        busy: now.busy - before.busy,
    };
    window.stall(1.0, f64::INFINITY).unwrap_or(0.0)
}
