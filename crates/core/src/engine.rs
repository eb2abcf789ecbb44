//! The engine: the one loop that joins a policy to a host.

use crate::{Host, Outcome, Plan, Policy, SampleBatch, Signal};

/// Why a run could not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The policy needs what the host cannot observe.
    #[error("this host lacks {signal}, which the policy needs: {remedy}")]
    MissingSignal {
        /// What is missing.
        signal: Signal,
        /// What would provide it.
        remedy: String,
    },
}

/// What passed through the engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EngineStatistics {
    /// Steps taken.
    pub steps: u64,
    /// Samples that reached the policy.
    pub samples: u64,
    /// Samples lost on the way.
    pub lost: u64,
}

/// Runs the policy on the host until the program ends.
///
/// `watch` is called after every step with host and policy, to record what should be shown over time.
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
        statistics.lost += batch.lost;
        if !running {
            watch(host, policy);
            return Ok(statistics);
        }
        policy.observe(&batch, host.view());
        plan.clear();
        policy.step(host.now(), host.view(), &mut plan);
        host.spend(plan.work, policy.metadata(), plan.sleep);
        if plan.moves_pages() {
            outcome.clear();
            host.carry_out(&plan, &mut outcome);
            policy.settle(&plan, &outcome, host.view());
        }
        if let Some(request) = plan.sampling {
            host.sample(request);
        }
        watch(host, policy);
    }
}
