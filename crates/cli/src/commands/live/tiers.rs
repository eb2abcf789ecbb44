//! Defines which tiers the arguments of a live run mean.

use std::path::Path;

use isotherm_core::Nanos;
use isotherm_live::host::tiers::{TierPlan, TierPlanError, TierRequest};

use crate::args::LiveArgs;
use crate::commands::machines::load_profile;
use crate::failure::Failure;

/// Decides about the tiers, by what is below `root` and what the user asks for.
pub(in crate::commands) fn memory(args: &LiveArgs, root: &Path) -> Result<TierPlan, Failure> {
    let profile = load_profile(&args.machine)?;
    let latencies: Vec<Nanos> = profile.tiers.iter().map(|tier| tier.latency).collect();
    let request = TierRequest {
        tiers: args.tiers.as_deref(),
        fast: args.fast,
        shadow: args.shadow,
        latencies: &latencies,
    };
    TierPlan::read(root, &request).map_err(|error| match error {
        TierPlanError::Machine(error) => Failure::failed(error),
        TierPlanError::Request(error) => Failure::usage(error),
    })
}
