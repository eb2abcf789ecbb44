//! Policies by their names, or by the paths of their libraries.

use std::collections::BTreeMap;
use std::path::Path;

use isotherm_core::manifest::Fingerprint;
use isotherm_policies::Entry;

use crate::failure::Failure;
use crate::program;

/// Returns the policy of a name, or loads it: from Python's source if the name is `FILE.py:CLASS`,
/// from a library if it ends in `.so` or contains a `/`.
pub(crate) fn find(name: &str) -> Result<&'static Entry, Failure> {
    if name.contains(".py:") {
        return match program::embedding() {
            Some(embedding) => (embedding.load_policy)(name).map_err(Failure::Usage),
            None => Err(Failure::Usage(format!(
                "{name}: a policy in Python; expected `python -m isotherm` of the Python package, which runs it"
            ))),
        };
    }
    if name.contains('/') || name.ends_with(".so") {
        return isotherm_plugin::load(Path::new(name)).map_err(Failure::usage);
    }
    isotherm_policies::find(name).map_err(Failure::usage)
}

/// Returns the fingerprints of the libraries that these policies were loaded from.
pub(crate) fn libraries(names: impl IntoIterator<Item = impl AsRef<str>>) -> BTreeMap<String, Fingerprint> {
    let library = |name: &str| isotherm_policies::find(name).ok()?.library.as_ref();
    let known = |name: &str| Some((name.to_owned(), library(name)?.fingerprint.clone()));
    names.into_iter().filter_map(|name| known(name.as_ref())).collect()
}
