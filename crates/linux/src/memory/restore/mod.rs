//! A guard that restores host settings: files of `/sys` and `/proc/sys` with one value each.
//!
//! The old value goes into a state file before the new one is written, so that it outlives SIGKILL:
//! [`recover`] restores what a killed engine left. Drop restores in reverse order, after success, an error or
//! a panic; SIGTERM and SIGINT lead to the same end by [`crate::process::signals`]. A value that others have
//! changed since stays.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use self::state::{Change, parse, record};
use crate::LinuxError;
use crate::process::{make_private, read_all};

mod state;

/// Prefix of state files' names.
const PREFIX: &str = "restore-";

/// Outcome of restoring a change.
#[derive(Debug)]
pub enum Restored {
    /// The old value is in force again.
    Back,
    /// It was changed to this value since, and stays.
    Overridden(String),
    /// Writing the old value failed.
    Failed(LinuxError),
}

/// Changes files and restores them.
#[derive(Debug)]
pub struct Restore {
    path: PathBuf,
    /// Locked while this process lives.
    state: File,
    changes: Vec<Change>,
    finished: bool,
}

impl Restore {
    /// Returns a guard with nothing to restore; `directory` is [`crate::process::run_directory`]'s.
    pub fn new(directory: &Path) -> Result<Self, LinuxError> {
        make_private(directory)?;
        let failed = |error| LinuxError::file(directory, error);
        let unique = state_name();
        let (hidden, path) = (directory.join(format!(".{unique}")), directory.join(unique));
        let state = OpenOptions::new().append(true).create_new(true).open(&hidden).map_err(failed)?;
        // Locked before it has its name: no recovery takes it for a dead owner's.
        state.lock().and_then(|()| fs::rename(&hidden, &path)).map_err(failed)?;
        Ok(Self { path, state, changes: Vec::new(), finished: false })
    }

    /// Records the file's value and writes `value`; does nothing where it is set already.
    pub fn set(&mut self, file: &Path, value: &str) -> Result<(), LinuxError> {
        let failed = |error| LinuxError::file(file, error);
        let old = read_value(file).map_err(failed)?;
        if old == value {
            return Ok(());
        }
        let change = Change { file: file.into(), old, left: None };
        self.note(&change)?;
        self.changes.push(change);
        write_value(file, value).map_err(failed)?;
        // The kernel may show a value differently ("true" for "1").
        let left = read_value(file).map_err(failed)?;
        if let Some(change) = self.changes.last_mut() {
            change.left = Some(left);
        }
        let change = self.changes[self.changes.len() - 1].clone();
        self.note(&change)
    }

    /// Restores everything now; returns each change's outcome, the last one first.
    pub fn finish(mut self) -> Vec<(PathBuf, Restored)> {
        self.finished = true;
        self.restore()
    }

    fn note(&mut self, change: &Change) -> Result<(), LinuxError> {
        // One write: a line is in the file whole or not at all.
        self.state.write_all(&record(change)).map_err(|error| LinuxError::file(&self.path, error))
    }

    fn restore(&mut self) -> Vec<(PathBuf, Restored)> {
        let restored = restore_all(std::mem::take(&mut self.changes));
        if restored.iter().all(|(_, outcome)| !matches!(outcome, Restored::Failed(_))) {
            // If it stays, the next recovery finds the old values in force.
            let _ = fs::remove_file(&self.path);
        }
        restored
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        if !self.finished {
            self.restore();
        }
    }
}

/// Restores the changes of killed engines; returns each change's outcome.
pub fn recover(directory: &Path) -> Result<Vec<(PathBuf, Restored)>, LinuxError> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    make_private(directory)?;
    let mut restored = Vec::new();
    for path in left_behind(directory)? {
        let failed = |error| LinuxError::file(&path, error);
        let mut state = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(state) => state,
            // Another recovery came first.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        match state.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut text = Vec::new();
        read_all(&mut state, &mut text).map_err(failed)?;
        let changes = restore_all(parse(&text, &path)?);
        if changes.iter().all(|(_, outcome)| !matches!(outcome, Restored::Failed(_))) {
            fs::remove_file(&path).map_err(failed)?;
        }
        restored.extend(changes);
    }
    Ok(restored)
}

fn left_behind(directory: &Path) -> Result<Vec<PathBuf>, LinuxError> {
    let entries = fs::read_dir(directory).map_err(|error| LinuxError::file(directory, error))?;
    let named = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(named).collect();
    paths.sort();
    Ok(paths)
}

/// Returns a new name for a state file: process numbers are reused, clocks go on.
fn state_name() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{PREFIX}{}-{}", std::process::id(), now.as_nanos())
}

fn restore_all(changes: Vec<Change>) -> Vec<(PathBuf, Restored)> {
    let restore = |change: Change| {
        let outcome = restore_one(&change)
            .unwrap_or_else(|error| Restored::Failed(LinuxError::file(&change.file, error)));
        (change.file, outcome)
    };
    changes.into_iter().rev().map(restore).collect()
}

fn restore_one(change: &Change) -> io::Result<Restored> {
    let now = read_value(&change.file)?;
    if now == change.old {
        return Ok(Restored::Back);
    }
    // Without the second record the engine was killed in between, and the value found is its own.
    if change.left.as_ref().is_some_and(|left| *left != now) {
        return Ok(Restored::Overridden(now));
    }
    write_value(&change.file, &change.old).map(|()| Restored::Back)
}

/// Returns the value; of a choice such as `always [madvise] never`, the chosen one.
fn read_value(file: &Path) -> io::Result<String> {
    let text = fs::read_to_string(file)?;
    let mut chosen =
        text.split_ascii_whitespace().filter_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    match (chosen.next(), chosen.next()) {
        (Some(word), None) => Ok(word.into()),
        _ => Ok(text.trim_end().into()),
    }
}

/// Writes a value at once, as these files require; never creates or truncates a special file.
fn write_value(file: &Path, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(file)?;
    file.write_all(value.as_bytes())
}

#[cfg(test)]
mod tests;
