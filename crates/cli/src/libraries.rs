//! Isotherm's shared libraries, installed beside the program or in `../lib`.

use std::path::PathBuf;

use crate::failure::Failure;

pub(crate) const AGENT: &str = "libisotherm.so";
pub(crate) const ALLOCATOR: &str = "libisotherm_alloc.so";

pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
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
