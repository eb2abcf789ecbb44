//! Policies from shared libraries, which `isotherm policy new` begins and [`isotherm_policy::export!`] makes.
//!
//! [`load`] checks a file before it runs any of its code, and enters its policy into the registry: from then
//! on it is found by its name as any other. Here alone the program believes what a library's pointers say;
//! its numbers are checked, and a policy that fails ends the run with one line ([`Policy::failure`]).
//!
//! ```no_run
//! let entry = isotherm_plugin::load("target/release/libmine.so".as_ref())?;
//! assert!(isotherm_policies::find(entry.name).is_ok());
//! # Ok::<(), isotherm_plugin::LoadError>(())
//! ```
//!
//! [`Policy::failure`]: isotherm_core::Policy::failure

#![allow(unsafe_code)]

mod description;
mod file;
mod memory;
mod orders;
mod policy;

use std::error::Error;
use std::path::{Path, PathBuf};

use isotherm_policies::{BuildError, Entry};
use isotherm_policy::abi::{GetTable, TABLE_SYMBOL, VERSION};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::policy::Remote;

/// Why a policy cannot be loaded from a file.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The file is no library, is cut off, or lacks a library that it needs.
    #[error("{}: not a shared library that can be loaded ({reason}); expected what `cargo build --release` writes \
             to target/release/lib*.so", .path.display())]
    NoLibrary {
        /// The file.
        path: PathBuf,
        /// The loader's reason.
        reason: String,
    },
    /// The library exports no policy.
    #[error("{}: a library, but no policy: it lacks the symbol {symbol}, which `isotherm_policy::export!` writes; \
             `isotherm policy new` makes a crate with it", .path.display())]
    NoPolicy {
        /// The file.
        path: PathBuf,
        /// The missing symbol.
        symbol: &'static str,
    },
    /// The library speaks another version of the interface.
    #[error("{}: built for version {found} of the policies' interface; this isotherm has version {VERSION}: \
             replace the crate's folder `isotherm` by that of a crate of this isotherm's `policy new`, and build it \
             again", .path.display())]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// The policy's description is wrong.
    #[error("{}: {problem}", .path.display())]
    Description {
        /// The file.
        path: PathBuf,
        /// The problem, and what was expected.
        problem: String,
    },
    /// Another policy has its name.
    #[error("{}: there is a policy '{name}' already; give this one another name in `isotherm_policy::export!`",
            .path.display())]
    Taken {
        /// The file.
        path: PathBuf,
        /// The name.
        name: &'static str,
    },
}

/// Loads the policy of a library, for the rest of the process, and adds it to the registry. The same file
/// gives the same entry again.
///
/// # Errors
/// A file that is no library, exports no policy or one of another version of the interface, a description
/// that is wrong, or a name that another policy has.
pub fn load(path: &Path) -> Result<&'static Entry, LoadError> {
    let place = path.canonicalize().map_err(|error| LoadError::Unreadable { path: path.into(), error })?;
    let fingerprint = file::check(path)?;
    let refused = |error: libloading::Error| LoadError::NoLibrary {
        path: path.into(),
        // The error itself says that the call failed, and its source why.
        reason: error.source().map_or_else(|| error.to_string(), ToString::to_string),
    };
    // SAFETY: a library's initialisers run. The user asks for it by its path, and `file` has seen that it
    // exports a policy of our version; one that `isotherm_policy` made has those of Rust's library alone.
    let library = unsafe { Library::open(Some(&place), RTLD_NOW | RTLD_LOCAL) }.map_err(refused)?;
    // SAFETY: the symbol belongs to the version that `file` has read, and has this type in it.
    let get = unsafe { library.get::<GetTable>(TABLE_SYMBOL) }.map(|symbol| *symbol);
    let get = get.map_err(|_| LoadError::NoPolicy { path: path.into(), symbol: TABLE_SYMBOL })?;
    // The table, its texts and the policies' code stay in use until the process ends.
    std::mem::forget(library);
    // SAFETY: by its version, the function returns a table that is valid for ever, or null.
    let table = unsafe { get().as_ref() };
    let wrong = |problem: String| LoadError::Description { path: path.into(), problem };
    let table = table.ok_or_else(|| wrong("it returns no table of functions".into()))?;
    // SAFETY: by the version, the table's slices and texts are valid for ever.
    let description = unsafe { description::read(table) }.map_err(wrong)?;
    let (name, specs) = (description.name, description.specs);
    let library = isotherm_policies::Library { path: place.clone(), fingerprint };
    let build = move |parameters: &_, setup: &_| {
        let failed = |message| BuildError::Library {
            policy: name,
            message: format!("{}: {message}", place.display()),
        };
        let built = Remote::build(table, (name, &place), parameters, setup);
        built.map(|policy| Box::new(policy) as _).map_err(failed)
    };
    let mut entry = Entry::policy(name, description.title, specs, Box::leak(Box::new(build)))
        .paper(description.paper)
        .help(description.help);
    entry.hosts = isotherm_policies::Hosts::NONE;
    entry.library = Some(library.clone());
    isotherm_policies::add(entry).or_else(|taken| match &taken.library {
        Some(other) if other.path == library.path => Ok(taken),
        _ => Err(LoadError::Taken { path: path.into(), name }),
    })
}
