//! `libisotherm_alloc.so`: `malloc` and its relatives, which group objects by their calling context.
//!
//! Objects that one call stack allocates are alike, hot or cold (Jenga, section 4). A hash of an allocation's
//! return addresses names two regions, and the context gets one of them. Each region is an arena of jemalloc
//! in an address range of its own, so pages never mix contexts of different regions; see
//! `docs/reference/alloc.md`.
//!
//! `exports` holds the functions that a program calls, and `heap` serves them from a thread's free lists
//! (`thread`) and the arenas (`regions`); `context` finds the return addresses and `placing` the region.
#![cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
#![allow(unsafe_code)]
#![allow(missing_docs, reason = "an internal crate: documented where a name does not say it")]
// Tests leave out the exported functions, which use the rest: they would run on them.
#![cfg_attr(test, allow(dead_code))]

mod classes;
mod context;
mod deferred;
mod early;
#[cfg(not(test))]
pub mod exports;
mod fork;
mod heap;
mod jemalloc;
mod library;
mod lock;
mod misuse;
mod options;
mod page_map;
mod placing;
mod profile;
mod refill;
mod regions;
mod sites;
mod start;
mod sys;
mod text;
mod thread;
mod tls;
