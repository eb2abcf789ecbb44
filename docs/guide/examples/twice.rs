//! Promotes pages that were sampled twice within a window, and leaves demotion to the kernel's LRU.

use isotherm_core::parameters::Parameters;
use isotherm_core::{
    Bytes, Move, Nanos, PageId, Pages, Plan, Policy, Reclaim, SampleBatch, Sampling, SamplingRate,
    SamplingScope, Setup, Signal, Signals, TierId, View, parameters,
};

parameters! {
    /// The parameters of "Twice".
    pub(crate) struct Settings {
        /// How long a sample is remembered.
        window: Nanos = interval("10s").source("ours: an example").scaled(),
    }
}

pub(crate) struct Twice { seen: Vec<bool>, hot: Vec<PageId>, window: Nanos, window_end: Nanos }

impl Twice {
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        let window = Settings::read(parameters).window;
        Self { seen: vec![false; setup.pages], hot: Vec::new(), window, window_end: window }
    }
}

impl Policy for Twice {
    fn signals(&self) -> Signals {
        Signals::NONE.with(Signal::LoadSamples).with(Signal::KernelReclaim)
    }

    fn sampling(&self) -> Sampling {
        let rate = SamplingRate::Frequency(100_000);
        let tick = Nanos(self.window.0 / 8);
        Sampling::loads(rate, SamplingScope::AllTiers, 1000, tick)
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        // A live program's memory grows after the policy was built.
        self.seen.resize(view.pages().max(self.seen.len()), false);
        for page in batch.samples.iter().map(|sample| sample.page) {
            let again = std::mem::replace(&mut self.seen[page.index()], true);
            self.hot.extend((again && view.tier_of(page) > Some(TierId::FAST)).then_some(page));
        }
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        (plan.work.touches, plan.work.operations) = (1000, self.hot.len() as u64);
        plan.moves.extend(self.hot.drain(..).map(|page| Move { page, to: TierId::FAST }));
        let lacking = Pages(plan.moves.len() as u64) - view.free(TierId::FAST);
        plan.reclaim.extend((lacking.0 > 0).then_some(Reclaim { from: TierId::FAST, pages: lacking }));
        if now >= self.window_end {
            self.window_end = now + self.window;
            self.seen.fill(false);
        }
    }

    fn metadata(&self) -> Bytes { Bytes(self.seen.len() as u64) }
}
