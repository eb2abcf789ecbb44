//! The live host: tiers the memory of running programs.
//!
//! - [`session`] assembles a run on this machine: launched, attached to, or inside a program.
//! - [`policy_run`] builds a policy of the registry and runs it on a host, resized and replaced as needed.
//! - [`host`] is the host: running programs as the engine sees them.
//! - [`control`] is the socket at which a running engine is inspected and changed.
//! - [`inside`] reads the settings of an engine that is a thread of the program.
//!
//! ```
//! use isotherm_live::policy_run::PolicyRun;
//! use isotherm_live::session::{Session, SessionConfig, Target, TierRequest};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut config = SessionConfig::new(PolicyRun::new(&isotherm_policies::ALL[0]));
//! config.tiers = TierRequest { shadow: true, ..TierRequest::default() };
//! let target = Target::Launch {
//!     program: "true".into(),
//!     arguments: Vec::new(),
//!     agent: None,
//!     library: None,
//!     cgroup: None,
//!     descendants: false,
//! };
//! let result = Session::open(config, target)?.start()?.run().result?;
//! assert_eq!((result.exit_status, result.summary.shadow), (Some(0), true));
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "an internal crate: documented where a name does not say it")]

pub mod control;
pub mod host;
pub mod inside;
pub mod policy_run;
pub mod session;
