//! The environment of a launched program.

use std::ffi::OsString;
use std::path::Path;

pub type Environment = Vec<(OsString, OsString)>;

const PRELOAD: &str = "LD_PRELOAD";

/// Adds a library in front of those that `environment`, or else this process's own environment, preloads.
pub fn preload(library: &Path, environment: &mut Environment) {
    let set = environment.iter().position(|(name, _)| name == PRELOAD);
    let others = set.map(|index| environment.remove(index).1).or_else(|| std::env::var_os(PRELOAD));
    let mut value = library.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        value.push(":");
        value.push(others);
    }
    environment.push((PRELOAD.into(), value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_preloaded_before_the_others() {
        let mut environment = vec![("A".into(), "b".into()), (PRELOAD.into(), "agent.so".into())];
        preload(Path::new("/lib/alloc.so"), &mut environment);
        let expected = [("A".into(), "b".into()), (PRELOAD.into(), "/lib/alloc.so:agent.so".into())];
        assert_eq!(environment, expected);
    }
}
