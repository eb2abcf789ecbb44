//! The engine: the one loop that joins a policy to a host.

use std::error::Error;
use std::fmt;

use crate::{Host, Outcome, Plan, Policy, SampleBatch, Signal};

/// An error that keeps a run from starting, or ends it.
#[derive(Debug)]
pub enum EngineError {
    /// The policy needs what the host cannot observe.
    MissingSignal {
        /// The missing signal.
        signal: Signal,
        /// The change that would provide it.
        remedy: String,
    },
    /// The policy has failed ([`Policy::failure`]), and says how.
    Policy(String),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingSignal { signal, remedy } => {
                write!(f, "this host lacks {signal}, which the policy needs: {remedy}")
            }
            Self::Policy(failure) => f.write_str(failure),
        }
    }
}

impl Error for EngineError {}

/// Counts of what passed through the engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EngineStatistics {
    /// Steps taken.
    pub steps: u64,
    /// Samples that reached the policy.
    pub samples: u64,
    /// Hint faults that reached the policy.
    pub faults: u64,
    /// Samples lost on the way.
    pub lost: u64,
}

/// Runs the policy until the program ends; `watch` is called after every step, to record values over time.
pub fn run<H: Host, P: Policy + ?Sized>(
    host: &mut H,
    policy: &mut P,
    mut watch: impl FnMut(&mut H, &P),
) -> Result<EngineStatistics, EngineError> {
    if let Some(signal) = policy.signals().missing(host.offers()).next() {
        return Err(EngineError::MissingSignal { signal, remedy: host.remedy(signal) });
    }
    let mut statistics = EngineStatistics::default();
    let (mut batch, mut plan, mut outcome) = (SampleBatch::default(), Plan::default(), Outcome::default());
    host.sample(policy.sampling());
    loop {
        let running = host.advance(&mut batch);
        statistics.steps += 1;
        statistics.samples += batch.samples.len() as u64;
        statistics.faults += batch.faults.len() as u64;
        statistics.lost += batch.lost;
        if let Some(failure) = policy.failure() {
            return Err(EngineError::Policy(failure));
        }
        if !running {
            watch(host, policy);
            return Ok(statistics);
        }
        policy.observe(&batch, host.view());
        plan.clear();
        policy.step(host.now(), host.view(), &mut plan);
        if let Some(failure) = policy.failure() {
            return Err(EngineError::Policy(failure));
        }
        host.spend(plan.work, policy.metadata(), plan.sleep);
        if plan.acts() {
            outcome.clear();
            host.carry_out(&plan, &mut outcome);
        }
        if plan.moves_pages() {
            policy.settle(&plan, &outcome, host.view());
        }
        if let Some(request) = plan.sampling {
            host.sample(request);
        }
        watch(host, policy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Bytes, Move, MoveStatus, Nanos, PageId, PageSize, Pages, Sampling, SamplingRate, SamplingScope,
        Signals, TierId, View, Work,
    };

    /// Two pages, one step a batch, and a record of what was asked.
    struct Scripted {
        offers: Signals,
        batches: u32,
        calls: Vec<&'static str>,
    }

    impl View for Scripted {
        fn tiers(&self) -> usize {
            2
        }
        fn page_size(&self) -> PageSize {
            PageSize::Base
        }
        fn latency(&self, _tier: TierId) -> Nanos {
            Nanos(100)
        }
        fn capacity(&self, _tier: TierId) -> Pages {
            Pages(2)
        }
        fn free(&self, _tier: TierId) -> Pages {
            Pages(1)
        }
        fn pages(&self) -> usize {
            2
        }
        fn tier_of(&self, _page: PageId) -> Option<TierId> {
            Some(TierId(1))
        }
        fn walk(&mut self, _: PageId, _: usize, _: &mut Vec<(PageId, TierId)>) -> Option<PageId> {
            None
        }
        fn scan_accessed(
            &mut self,
            _: PageId,
            _: usize,
            _: &mut Vec<(PageId, TierId, bool)>,
        ) -> Option<PageId> {
            None
        }
        fn huge_range(&self, page: PageId) -> std::ops::Range<u32> {
            page.0..page.0 + 1
        }
    }

    impl Host for Scripted {
        fn offers(&self) -> Signals {
            self.offers
        }
        fn remedy(&self, _missing: Signal) -> String {
            "raise perf_event_paranoid".into()
        }
        fn view(&mut self) -> &mut dyn View {
            self
        }
        fn now(&self) -> Nanos {
            Nanos(0)
        }
        fn sample(&mut self, _request: Sampling) {
            self.calls.push("sample");
        }
        fn advance(&mut self, batch: &mut SampleBatch) -> bool {
            self.calls.push("advance");
            batch.lost = 2;
            self.batches -= 1;
            self.batches > 0
        }
        fn spend(&mut self, _work: Work, _metadata: Bytes, _sleep: Nanos) {
            self.calls.push("spend");
        }
        fn carry_out(&mut self, plan: &Plan, outcome: &mut Outcome) {
            self.calls.push("carry out");
            outcome.moves.extend(plan.moves.iter().map(|_| MoveStatus::Busy));
        }
    }

    /// Asks for one move in its first step only.
    #[derive(Default)]
    struct OneMove {
        steps: u32,
        settled: Vec<MoveStatus>,
    }

    impl Policy for OneMove {
        fn signals(&self) -> Signals {
            Signals::NONE.with(Signal::LoadSamples)
        }
        fn sampling(&self) -> Sampling {
            Sampling::loads(SamplingRate::Period(1), SamplingScope::AllTiers, 1, Nanos::SECOND)
        }
        fn observe(&mut self, _batch: &SampleBatch, _view: &mut dyn View) {}
        fn step(&mut self, _now: Nanos, _view: &mut dyn View, plan: &mut Plan) {
            self.steps += 1;
            if self.steps == 1 {
                plan.moves.push(Move { page: PageId(0), to: TierId::FAST });
            }
        }
        fn settle(&mut self, _plan: &Plan, outcome: &Outcome, _view: &mut dyn View) {
            self.settled.extend(&outcome.moves);
        }
        fn metadata(&self) -> Bytes {
            Bytes(0)
        }
    }

    #[test]
    fn a_host_that_lacks_a_signal_refuses_and_says_what_would_mend_it() {
        let mut host = Scripted { offers: Signals::NONE, batches: 1, calls: Vec::new() };
        let error = run(&mut host, &mut OneMove::default(), |_, _| ()).expect_err("no samples");
        let expected = "this host lacks samples of loads, which the policy needs: raise perf_event_paranoid";
        assert_eq!(error.to_string(), expected);
        assert!(host.calls.is_empty(), "nothing was started");
    }

    /// Orders a move in each step, and fails in the second.
    struct Failing(u32);

    impl Policy for Failing {
        fn signals(&self) -> Signals {
            Signals::NONE
        }
        fn sampling(&self) -> Sampling {
            Sampling::loads(SamplingRate::Off, SamplingScope::AllTiers, 1, Nanos::SECOND)
        }
        fn observe(&mut self, _batch: &SampleBatch, _view: &mut dyn View) {}
        fn step(&mut self, _now: Nanos, _view: &mut dyn View, plan: &mut Plan) {
            self.0 += 1;
            plan.moves.push(Move { page: PageId(0), to: TierId::FAST });
        }
        fn metadata(&self) -> Bytes {
            Bytes(0)
        }
        fn failure(&self) -> Option<String> {
            (self.0 == 2).then(|| "it has failed".into())
        }
    }

    #[test]
    fn a_policy_that_fails_ends_the_run_and_its_last_plan_is_not_carried_out() {
        let mut host = Scripted { offers: Signals::NONE, batches: 9, calls: Vec::new() };
        let error = run(&mut host, &mut Failing(0), |_, _| ()).expect_err("it fails").to_string();
        assert_eq!(error, "it has failed");
        assert_eq!(host.calls, ["sample", "advance", "spend", "carry out", "advance"]);
    }

    #[test]
    fn a_policy_learns_what_became_of_its_moves_and_losses_are_counted() {
        let offers = Signals::NONE.with(Signal::LoadSamples);
        let mut host = Scripted { offers, batches: 3, calls: Vec::new() };
        let mut policy = OneMove::default();
        let statistics = run(&mut host, &mut policy, |_, _| ()).expect("the signal is there");
        assert_eq!(statistics, EngineStatistics { steps: 3, samples: 0, faults: 0, lost: 6 });
        assert_eq!(policy.settled, [MoveStatus::Busy]);
        let expected = ["sample", "advance", "spend", "carry out", "advance", "spend", "advance"];
        assert_eq!(host.calls, expected);
    }
}
