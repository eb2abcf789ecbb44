//! Processes by their names.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use crate::{Change, MappingEvent, TraceError};

/// Name of a process: of the program's file, and what it was called by, where that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessName {
    called: String,
    program: Option<String>,
}

impl ProcessName {
    /// Makes the name from a process's command and, if it is known, the path of its program.
    pub fn new(command: &str, program: Option<&str>) -> Self {
        let called = command.split(' ').next().unwrap_or_default();
        Self { called: file_name(called), program: program.map(file_name) }
    }

    /// Returns whether a user may mean this process.
    pub fn is(&self, name: &str) -> bool {
        self.called == name || self.program.as_deref() == Some(name)
    }

    /// Returns the name that the process was called by.
    pub fn as_str(&self) -> &str {
        &self.called
    }
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.into(), |name| name.to_string_lossy().into_owned())
}

/// Returns the names of a trace's processes, by their numbers.
pub fn process_names(commands: &[String], events: &[MappingEvent]) -> Vec<ProcessName> {
    let mut programs: HashMap<u32, &str> = HashMap::new();
    for MappingEvent { process, change, .. } in events {
        let program = match change {
            Change::Program { name } => Some(name.as_str()),
            Change::Fork { parent } => programs.get(parent).copied(),
            _ => None,
        };
        programs.extend(program.map(|program| (*process, program)));
    }
    let numbered = (0..).zip(commands);
    numbered.map(|(number, command)| ProcessName::new(command, programs.get(&number).copied())).collect()
}

/// Returns which processes have a name, by their numbers.
///
/// # Errors
/// If none has; the error lists the names that there are.
pub fn select_processes(names: &[ProcessName], name: &str) -> Result<Vec<bool>, TraceError> {
    let selected: Vec<bool> = names.iter().map(|process| process.is(name)).collect();
    if selected.contains(&true) { Ok(selected) } else { Err(unknown(names.iter(), name)) }
}

/// Returns the error for a name that no process has.
pub(crate) fn unknown<'a>(names: impl Iterator<Item = &'a ProcessName>, name: &str) -> TraceError {
    const LISTED: usize = 20;
    let names: BTreeSet<&str> = names.map(ProcessName::as_str).filter(|name| !name.is_empty()).collect();
    let mut listed: Vec<&str> = names.iter().copied().take(LISTED).collect();
    if names.len() > LISTED {
        listed.push("...");
    }
    if listed.is_empty() {
        listed.push("a trace that names its processes");
    }
    TraceError::NoProcess { name: name.into(), names: listed.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_found_by_either_name_and_a_copy_has_its_parents() {
        let commands = ["/bin/sh -c x", "python3 a.py", "python3 a.py", "bash /home/me/bin/python3"];
        let event = |process, change| MappingEvent { row: 0, process, change };
        let events = [
            event(1, Change::Program { name: "/usr/bin/python3.11".into() }),
            event(2, Change::Fork { parent: 1 }),
        ];
        let names = process_names(&commands.map(String::from), &events);
        let select = |name| select_processes(&names, name).map_err(|error| error.to_string());
        assert_eq!(select("python3"), Ok(vec![false, true, true, false]));
        assert_eq!(select("python3.11"), Ok(vec![false, true, true, false]));
        assert_eq!(select("sh"), Ok(vec![true, false, false, false]));
        let error = select("ruby").expect_err("no such process");
        assert_eq!(error, "--process ruby: no process has this name; expected one of: bash, python3, sh");
    }
}
