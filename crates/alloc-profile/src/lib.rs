//! The file in which `libisotherm_alloc.so` records what calling contexts allocate, and its reader.
//!
//! The program maps the file and changes it while it runs. The file consists of 64-bit words in the machine's
//! byte order: a header, then tables of a fixed size ([`layout`]). [`Profile`] is a reader's view of it.
//!
//! ```
//! use isotherm_alloc_profile::{Profile, layout as at};
//!
//! let mut words = vec![0_u64; at::WORDS];
//! (words[at::MAGIC_AT], words[at::VERSION_AT], words[at::PROCESS_AT]) = (at::MAGIC, at::VERSION, 42);
//! let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
//!
//! let profile = Profile::parse(&bytes)?;
//! assert_eq!((profile.process, profile.contexts.len()), (42, 0));
//! let heat = profile.heat([(0x1000, 3.0)]);
//! assert_eq!(heat.elsewhere, 3.0, "three accesses outside of all regions");
//! # Ok::<(), isotherm_alloc_profile::ProfileError>(())
//! ```

#![allow(missing_docs, reason = "an internal crate: documented where a name does not say it")]

/// First argument of the `prctl(2)` by which the allocator tells a recorder of a region: "ISOS".
pub const SITE_CALL: i32 = 0x4953_4f53;

pub mod layout;
mod read;

pub use read::{Block, Context, Frame, Heat, Module, Profile, ProfileError, Region};
