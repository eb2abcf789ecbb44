//! A policy that does what a library must not do, for tests of its loading: `fault` says what.

use isotherm_core::parameters::Parameters;
use isotherm_core::{
    Bytes, Gauge, Move, Nanos, Outcome, PageId, Plan, Policy, SampleBatch, Sampling, SamplingRate,
    SamplingScope, Setup, Signal, Signals, TierId, View, choices, parameters,
};

choices! {
    /// Kinds of misbehaviour, after the function that shows it.
    pub(crate) enum Fault {
        Nothing = "nothing",
        Build = "build",
        BuildPanic = "build-panic",
        Observe = "observe",
        Step = "step",
        Settle = "settle",
        Metadata = "metadata",
        Gauges = "gauges",
        Drop = "drop",
        FarPage = "far-page",
        FarTier = "far-tier",
        FarArm = "far-arm",
        FarSplit = "far-split",
        FarLook = "far-look",
        TierLook = "tier-look",
        NoTick = "no-tick",
    }
}

parameters! {
    pub(crate) struct Settings {
        /// Kind of misbehaviour.
        fault: Fault = choice("nothing").source("ours: for tests"),
        /// A number that is shown.
        shown: u64 = count(0, u64::MAX, "7").source("ours: for tests"),
        /// A share that is shown.
        share: f64 = number(0.0, 1.0, "0.1").source("ours: for tests"),
    }
}

struct Misbehaving {
    settings: Settings,
    samples: u64,
    settled: u64,
}

impl Misbehaving {
    fn new(parameters: &Parameters, setup: &Setup) -> Result<Self, String> {
        let settings = Settings::read(parameters);
        // Hosts build a policy without pages to ask what it needs.
        match settings.fault {
            Fault::Build if setup.pages > 0 => Err(format!("{} pages are too many", setup.pages)),
            Fault::BuildPanic => panic!("no policy\ntoday"),
            _ => Ok(Self { settings, samples: 0, settled: 0 }),
        }
    }

    fn at(&self, fault: Fault) {
        assert!(self.settings.fault != fault, "asked to");
    }
}

impl Policy for Misbehaving {
    fn signals(&self) -> Signals {
        Signals::NONE.with(Signal::LoadSamples)
    }

    fn sampling(&self) -> Sampling {
        let tick = Nanos(if self.settings.fault == Fault::NoTick { 0 } else { 10_000 });
        Sampling::loads(SamplingRate::Period(1), SamplingScope::AllTiers, 5, tick)
    }

    fn observe(&mut self, batch: &SampleBatch, _: &mut dyn View) {
        self.at(Fault::Observe);
        self.samples += batch.samples.len() as u64;
    }

    fn step(&mut self, _: Nanos, view: &mut dyn View, plan: &mut Plan) {
        self.at(Fault::Step);
        let (page, tier) = (PageId(view.pages() as u32), TierId(view.tiers() as u8));
        let slow = (0..page.0).map(PageId).find(|&page| view.tier_of(page) > Some(TierId::FAST));
        plan.moves.extend(slow.map(|page| Move { page, to: TierId::FAST }));
        match self.settings.fault {
            Fault::FarPage => plan.moves.push(Move { page, to: TierId::FAST }),
            Fault::FarTier => plan.moves.push(Move { page: PageId(0), to: tier }),
            Fault::FarArm => plan.arm.push(PageId(u32::MAX)),
            Fault::FarSplit => plan.split.push(PageId(u32::MAX)),
            Fault::TierLook => plan.work.operations += view.free(tier).0,
            // These are no faults: such a page is nowhere.
            Fault::FarLook => {
                let mut found = Vec::new();
                let next = view.walk(PageId(u32::MAX), usize::MAX, &mut found);
                assert!(next.is_none() && found.is_empty());
                assert!(view.scan_accessed(page, usize::MAX, &mut Vec::new()).is_none());
                let mut tiers = [Some(TierId::FAST); 100];
                tiers[99] = None;
                view.tiers_of(&[page; 99], &mut tiers);
                assert_eq!(tiers, [None; 100]);
                assert_eq!(view.huge_range(PageId(u32::MAX - 1)), u32::MAX - 1..u32::MAX);
            }
            _ => {}
        }
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, _: &mut dyn View) {
        self.at(Fault::Settle);
        assert_eq!(plan.moves.len(), outcome.moves.len());
        self.settled += outcome.moves.len() as u64;
    }

    fn metadata(&self) -> Bytes {
        self.at(Fault::Metadata);
        Bytes(self.settings.shown)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        self.at(Fault::Gauges);
        gauges.push(Gauge { name: "share", value: self.settings.share });
        gauges.push(Gauge { name: "samples", value: self.samples as f64 });
        gauges.push(Gauge { name: "settled", value: self.settled as f64 });
    }
}

impl Drop for Misbehaving {
    fn drop(&mut self) {
        self.at(Fault::Drop);
    }
}

isotherm_policy::export! {
    name: "misbehaving",
    title: "Misbehaving",
    paper: "for tests",
    help: "Does what a library must not do.",
    settings: Settings,
    fallible: Misbehaving,
}
