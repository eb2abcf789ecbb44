//! Checks a library's file before it is loaded: loading runs code, and a file that is cut off ends the
//! process.

use std::path::Path;

use isotherm_core::manifest::Fingerprint;
use isotherm_policy::abi::{TABLE_SYMBOL, VERSION, VERSION_SYMBOL};
use object::{Object, ObjectSegment, ObjectSymbol};
use twox_hash::XxHash64;

use crate::LoadError;

/// Checks that the file is a whole library of this machine which exports a policy of our version. Returns its
/// build id, or else a hash of its contents.
pub(crate) fn check(path: &Path) -> Result<Fingerprint, LoadError> {
    let unreadable = |error| LoadError::Unreadable { path: path.into(), error };
    // A pipe would be waited for.
    if !path.metadata().map_err(unreadable)?.is_file() {
        let reason = "it is not a file".into();
        return Err(LoadError::NoLibrary { path: path.into(), reason });
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let no_library = |reason: String| LoadError::NoLibrary { path: path.into(), reason };
    let library = object::File::parse(&*bytes).map_err(|error| no_library(error.to_string()))?;
    if !(library.is_64() && library.is_little_endian()) || library.kind() != object::ObjectKind::Dynamic {
        return Err(no_library("an ELF file, but no shared library of this machine".into()));
    }
    if library.segments().any(|segment| segment.data().is_err()) {
        return Err(no_library("cut off".into()));
    }
    let find = |symbol: &'static str| {
        let mut exports = library.dynamic_symbols().filter(ObjectSymbol::is_definition);
        let found = exports.find(|export| export.name() == Ok(symbol));
        found.map(|export| export.address()).ok_or_else(|| LoadError::NoPolicy { path: path.into(), symbol })
    };
    let (address, _) = (find(VERSION_SYMBOL)?, find(TABLE_SYMBOL)?);
    let mut data = library.segments().filter_map(|segment| segment.data_range(address, 4).ok()?);
    let version = data.next().and_then(|data| data.try_into().ok()).map(u32::from_le_bytes);
    match version {
        Some(VERSION) => Ok(match library.build_id() {
            Ok(Some(id)) => Fingerprint::Build(id.to_vec()),
            _ => Fingerprint::Contents(XxHash64::oneshot(0, &bytes)),
        }),
        Some(found) => Err(LoadError::OtherVersion { path: path.into(), found }),
        None => Err(LoadError::NoPolicy { path: path.into(), symbol: VERSION_SYMBOL }),
    }
}
