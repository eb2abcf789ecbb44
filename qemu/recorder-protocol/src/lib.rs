//! Shared by the recorder and its QEMU plugin: the pool of records that both use, and the test whether QEMU
//! can run a program.
//!
//! ```
//! use isotherm_recorder_protocol::{Executable, Record, resolve};
//!
//! // The plugin packs a miss into two words of the pool, and the recorder unpacks it.
//! let miss = Record { line: 0x1234, store: true, dependence: 3, instructions: 40, stamp: 7 };
//! assert_eq!(Record::unpack(miss.pack()), miss);
//!
//! // Both refuse what QEMU cannot run.
//! let refused = resolve("/etc/passwd".as_ref(), &["passwd".into()])?;
//! assert_eq!(refused, Err(("/etc/passwd".into(), Executable::Other)));
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "an internal crate: documented where a name does not say it")]

mod executable;
pub mod layout;
mod note;

pub use executable::{Executable, Resolved, resolve};
pub use layout::Record;
pub use note::{ANONYMOUS, Note};
