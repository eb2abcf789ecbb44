//! A policy whose reports somebody else sees too.

use isotherm_core::{
    Allocation, Bytes, Gauge, MigrationContext, Nanos, Outcome, Plan, Policy, Record, SampleBatch, Sampling,
    Signals, View,
};

/// A policy, and a function that is called with each batch before the policy observes it.
pub struct Watched<S> {
    /// The policy.
    pub policy: Box<dyn Policy>,
    /// State of the function.
    pub state: S,
    /// The function.
    pub watch: fn(&mut S, &SampleBatch),
}

impl<S: Send> Policy for Watched<S> {
    fn signals(&self) -> Signals {
        self.policy.signals()
    }

    fn sampling(&self) -> Sampling {
        self.policy.sampling()
    }

    fn record(&self) -> Record {
        self.policy.record()
    }

    fn allocation(&self) -> Allocation {
        self.policy.allocation()
    }

    fn migration_context(&self) -> MigrationContext {
        self.policy.migration_context()
    }

    fn grows(&self) -> bool {
        self.policy.grows()
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        (self.watch)(&mut self.state, batch);
        self.policy.observe(batch, view);
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        self.policy.step(now, view, plan);
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, view: &mut dyn View) {
        self.policy.settle(plan, outcome, view);
    }

    fn metadata(&self) -> Bytes {
        self.policy.metadata()
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        self.policy.gauges(gauges);
    }

    fn failure(&self) -> Option<String> {
        self.policy.failure()
    }
}
