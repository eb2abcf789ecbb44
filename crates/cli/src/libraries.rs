//! Isotherm's shared libraries, installed beside the program or in `../lib`.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::program;

pub(crate) const AGENT: &str = "libisotherm.so";
pub(crate) const ALLOCATOR: &str = "libisotherm_alloc.so";
pub(crate) const RECORDER: &str = "libisotherm_recorder_plugin.so";

pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let own = program::file().ok()?;
    let folder = own.parent()?;
    let places = [folder.join("deps").join(name), folder.join(name), folder.join("../lib").join(name)];
    places.into_iter().find(|place| place.is_file())
}

/// Returns the absolute path of a library that an option needs.
pub(crate) fn require(name: &str, option: &str) -> Result<PathBuf, Failure> {
    find(name).ok_or_else(|| {
        Failure::failed(format!(
            "{option}: {name} must lie beside isotherm or in ../lib; `make build` puts it there"
        ))
    })
}
