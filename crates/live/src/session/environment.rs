//! The environment of a launched program.

use std::ffi::OsString;
use std::path::Path;

use isotherm_linux::LinuxError;
use isotherm_linux::process::preload::Entry;

const PRELOAD: &str = "LD_PRELOAD";

/// Variables to add to this process's own, valid while this exists.
#[derive(Debug, Default)]
pub struct Environment {
    pub variables: Vec<(OsString, OsString)>,
    entries: Vec<Entry>,
}

impl Environment {
    /// Preloads a library before those that this environment, or else this process's own, preloads.
    ///
    /// # Errors
    /// If the library's path cannot stand in a list and cannot be linked to.
    pub fn preload(&mut self, library: &Path) -> Result<(), LinuxError> {
        let entry = Entry::new(library)?;
        let set = self.variables.iter().position(|(name, _)| name == PRELOAD);
        let others = set.map(|index| self.variables.remove(index).1).or_else(|| std::env::var_os(PRELOAD));
        let mut value = entry.text.clone();
        if let Some(others) = others.filter(|others| !others.is_empty()) {
            value.push(":");
            value.push(others);
        }
        self.variables.push((PRELOAD.into(), value));
        self.entries.push(entry);
        Ok(())
    }

    /// Holds `variables` that preload a library by this entry.
    pub(super) fn of_entry(entry: Entry, variables: Vec<(OsString, OsString)>) -> Self {
        Self { variables, entries: vec![entry] }
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.variables.append(&mut other.variables);
        self.entries.append(&mut other.entries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_preloaded_before_the_others() {
        let variables = vec![("A".into(), "b".into()), (PRELOAD.into(), "agent.so".into())];
        let mut environment = Environment { variables, ..Environment::default() };
        environment.preload(Path::new("/lib/alloc.so")).expect("a plain path");
        let entry = Entry::new(Path::new("/lib/alloc.so")).expect("a plain path").text;
        let expected = format!("{}:agent.so", entry.display());
        assert_eq!(environment.variables, [("A".into(), "b".into()), (PRELOAD.into(), expected.into())]);
    }
}
