//! A policy of this crate as a library, so that a changed line runs without building what depends on it:
//!
//! ```sh
//! make edit POLICY=lru
//! target/debug/isotherm simulate --workload gups --policy target/debug/examples/libedited.so,lru
//! ```
//!
//! It is called `edited`: the policy as the program has it runs beside it.

use isotherm_core::parameters::{Parameters, Spec};
use isotherm_core::{
    Allocation, Bytes, Gauge, MigrationContext, Nanos, Outcome, Plan, Policy, Record, SampleBatch, Sampling,
    Setup, Signals, View,
};
use isotherm_policies::{Entry, Kind};

/// The policy's name.
const NAME: &str = match option_env!("ISOTHERM_EDIT") {
    Some(name) => name,
    None => "isotherm",
};

const fn is_named(name: &str) -> bool {
    let (name, wanted) = (name.as_bytes(), NAME.as_bytes());
    let mut at = 0;
    while at < name.len() && at < wanted.len() && name[at] == wanted[at] {
        at += 1;
    }
    at == name.len() && at == wanted.len()
}

const fn entry() -> &'static Entry {
    let mut at = 0;
    while at < isotherm_policies::ALL.len() {
        if is_named(isotherm_policies::ALL[at].name) {
            return &isotherm_policies::ALL[at];
        }
        at += 1;
    }
    panic!("ISOTHERM_EDIT names no policy")
}

struct Settings;

impl Settings {
    const SPECS: &'static [Spec] = entry().specs;
}

struct Edited(Box<dyn Policy>);

impl Edited {
    fn new(parameters: &Parameters, setup: &Setup) -> Result<Self, String> {
        match entry().kind {
            Kind::Policy(build) => build(parameters, setup).map(Self).map_err(|error| error.to_string()),
            Kind::Bound(_) => Err(format!("{NAME} is a bound")),
        }
    }
}

impl Policy for Edited {
    fn signals(&self) -> Signals {
        self.0.signals()
    }

    fn sampling(&self) -> Sampling {
        self.0.sampling()
    }

    fn record(&self) -> Record {
        self.0.record()
    }

    fn allocation(&self) -> Allocation {
        self.0.allocation()
    }

    fn migration_context(&self) -> MigrationContext {
        self.0.migration_context()
    }

    fn grows(&self) -> bool {
        self.0.grows()
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        self.0.observe(batch, view);
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        self.0.step(now, view, plan);
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, view: &mut dyn View) {
        self.0.settle(plan, outcome, view);
    }

    fn metadata(&self) -> Bytes {
        self.0.metadata()
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        self.0.gauges(gauges);
    }

    fn failure(&self) -> Option<String> {
        self.0.failure()
    }
}

isotherm_policy::export! {
    name: "edited",
    title: entry().title,
    paper: entry().paper,
    help: entry().help,
    settings: Settings,
    fallible: Edited,
}
