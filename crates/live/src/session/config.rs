//! The configuration of a session.

use std::path::PathBuf;

use isotherm_core::{Bytes, PageSize};

use super::tiers::TierRequest;
use crate::control::Requests;
use crate::host::Share;
use crate::policy_run::PolicyRun;

/// Share of their time that programs may lose to being observed, unless the user says otherwise.
pub(super) const DEFAULT_OVERHEAD: f64 = 0.02;

#[derive(Debug, Clone)]
pub struct SessionConfig {
    pub policy: PolicyRun,
    pub tiers: TierRequest,
    /// Name of the access source; the best available ones if `None`.
    pub source: Option<String>,
    /// Share of their time that programs may lose to being observed.
    pub overhead: f64,
    /// Whether counters that nothing counts are modelled; in shadow mode only.
    pub model_counters: bool,
    /// Limit of migration in bytes a second.
    pub rate: Option<Bytes>,
    pub page_size: PageSize,
    /// Socket at which the engine answers requests ([`crate::control`]).
    pub control: Option<PathBuf>,
    /// Requests of other threads of this process, which the engine answers instead of a socket's.
    pub requests: Option<Requests>,
    /// The session's share of the machine, where others have shares of it too.
    pub share: Option<Share>,
}

impl SessionConfig {
    pub fn new(policy: PolicyRun) -> Self {
        Self {
            policy,
            tiers: TierRequest::default(),
            source: None,
            overhead: DEFAULT_OVERHEAD,
            model_counters: false,
            rate: None,
            page_size: PageSize::Base,
            control: None,
            requests: None,
            share: None,
        }
    }
}
