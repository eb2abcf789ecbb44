//! `libisotherm_alloc.so`: `malloc` and its relatives, grouping objects by the calling context that allocates them.
//!
//! Objects that one call stack allocates are alike, hot or cold (Jenga, section 4). Each allocation is served from one of
//! some regions, one of two that a hash of its return addresses names, and each region is an arena of jemalloc in an address range of
//! its own: pages never mix contexts of different regions. See `docs/alloc.md`.
//!
//! The parts: `exports` are the functions a program calls, `heap` serves them from a thread's free lists (`thread`)
//! and the arenas (`regions`); `context` finds the return addresses, `placing` the region.
#![cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
#![allow(unsafe_code)]
// The exported functions, which use the rest, are left out of tests: these would run on them.
#![cfg_attr(test, allow(dead_code))]

mod classes;
mod context;
mod deferred;
mod early;
#[cfg(not(test))]
pub mod exports;
#[cfg(not(test))]
pub mod exports_cxx;
#[cfg(not(test))]
pub mod exports_jemalloc;
#[cfg(not(test))]
pub mod exports_own;
mod fork;
mod heap;
mod jemalloc;
mod library;
mod lock;
mod message;
mod options;
mod page_map;
mod placing;
mod profile;
mod refill;
mod regions;
mod start;
mod sys;
mod text;
mod thread;
mod tls;
