//! The daemon: groups of programs that share a machine's fast memory.
//!
//! - [`config`] reads `isotherm.toml`.
//! - [`groups`] decides to which group a program belongs.
//! - [`daemon`] runs an engine for each group, divides the fast memory among them every second
//!   ([`isotherm_shares`]), answers at a socket, and serves metrics.
//! - [`log`] keeps what the daemon saw and did, and [`replay`] shows a past hour of it.
//! - [`join`] is the end of an `isotherm run` that shares the machine with the daemon.
//! - [`journal`] writes messages with fields.
//! - [`notify`] tells the service manager that the daemon is ready and lives.
//!
//! Each group's engine is a [`Session`](isotherm_live::session::Session) on a thread of its own. Programs
//! run on untouched if the daemon ends, whatever the reason: they have no part of it in them.
//!
//! ```
//! use isotherm_daemon::config::Config;
//!
//! let config = Config::parse("[[group]]\nname = \"database\"\ncommand = \"postgres\"\nprotect = \"2G\"");
//! assert_eq!(config.expect("valid").groups[0].name, "database");
//! let (line, why) = Config::parse("\nfast = \"much\"").expect_err("no size");
//! assert_eq!((line, why.starts_with("fast: expected a size")), (Some(2), true));
//! ```

#![forbid(unsafe_code)]

pub mod config;
pub mod daemon;
pub mod groups;
pub mod join;
pub mod journal;
pub mod log;
pub mod notify;
pub mod replay;
