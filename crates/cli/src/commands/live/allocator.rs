//! Defines how a program gets another allocator.

use std::ffi::OsString;

use super::sources::{Environment, library};
use crate::args::AllocatorArg;
use crate::failure::Failure;

/// The library with the allocator, beside the program or in `../lib`.
const LIBRARY: &str = "libisotherm_alloc.so";
const PRELOAD: &str = "LD_PRELOAD";

/// Puts the allocator's library before others that are preloaded, if it is asked for.
///
/// # Errors
/// If it is not there.
pub(in crate::commands) fn preload(
    allocator: AllocatorArg,
    environment: &mut Environment,
) -> Result<(), Failure> {
    if allocator == AllocatorArg::Own {
        return Ok(());
    }
    let library = library(LIBRARY).ok_or_else(|| {
        Failure::failed(format!(
            "--alloc context: {LIBRARY} must lie beside isotherm or in ../lib; `make build` puts it there"
        ))
    })?;
    let mut value = library.into_os_string();
    let set = environment.iter().position(|(name, _)| name == PRELOAD);
    let others = match set {
        Some(index) => Some(environment.remove(index).1),
        None => std::env::var_os(PRELOAD),
    };
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        value.push(":");
        value.push(others);
    }
    environment.push((OsString::from(PRELOAD), value));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_changes_unless_asked() {
        let mut environment = vec![(PRELOAD.into(), "other.so".into())];
        preload(AllocatorArg::Own, &mut environment).expect("nothing to do");
        assert_eq!(environment, [(PRELOAD.into(), "other.so".into())]);
    }
}
