//! The configuration of a session.

use std::path::PathBuf;

use isotherm_core::{Bytes, Nanos, PageSize};

use super::tiers::TierRequest;
use crate::host::FastLimit;
use crate::policy_run::PolicyRun;

/// Share of their time that programs may lose to being observed, unless the user says otherwise.
pub(super) const DEFAULT_OVERHEAD: f64 = 0.02;

/// How memory is tiered.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// The policy with its parameters, seed and scale.
    pub policy: PolicyRun,
    /// NUMA nodes of each tier, fastest first (`0,1` or `0+2,1+3`); the kernel's tiers if `None`.
    pub tiers: Option<String>,
    /// Limit of the fast tier; all of it if `None`, or a quarter of the mapped memory in shadow mode.
    pub fast: Option<FastLimit>,
    /// Whether nothing moves. A machine without a slow tier implies it.
    pub shadow: bool,
    /// Latencies of the tiers, fastest first, for tiers whose latency the firmware does not report.
    pub latencies: Vec<Nanos>,
    /// Name of the access source; the best available ones if `None`.
    pub source: Option<String>,
    /// Share of their time that programs may lose to being observed.
    pub overhead: f64,
    /// Whether counters that nothing counts are modelled; in shadow mode only.
    pub model_counters: bool,
    /// Limit of migration in bytes a second.
    pub rate: Option<Bytes>,
    /// Granularity of tracking and migration.
    pub page_size: PageSize,
    /// Socket at which the engine answers requests ([`crate::control`]).
    pub control: Option<PathBuf>,
}

impl SessionConfig {
    /// Returns a configuration with the defaults of `isotherm run` for the policy.
    pub fn new(policy: PolicyRun) -> Self {
        Self {
            policy,
            tiers: None,
            fast: None,
            shadow: false,
            latencies: Vec::new(),
            source: None,
            overhead: DEFAULT_OVERHEAD,
            model_counters: false,
            rate: None,
            page_size: PageSize::Base,
            control: None,
        }
    }

    pub(super) fn tier_request(&self) -> TierRequest<'_> {
        TierRequest {
            tiers: self.tiers.as_deref(),
            fast: self.fast,
            shadow: self.shadow,
            latencies: &self.latencies,
        }
    }
}
