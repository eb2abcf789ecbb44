//! The program around this library: the binary, or another that embeds it.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use isotherm_policies::Entry;

/// A program other than the binary that runs this library.
#[derive(Debug)]
pub struct Embedding {
    /// The file that holds this code. Isotherm's libraries lie beside it.
    pub file: PathBuf,
    /// The words of a command line that runs [`crate::main`], before a verb.
    pub command: Vec<OsString>,
    /// Loads a policy that is written as `FILE.py:CLASS`. Fails with one line.
    pub load_policy: fn(&str) -> Result<&'static Entry, String>,
}

static EMBEDDING: OnceLock<Embedding> = OnceLock::new();

/// Tells this library about the program around it, once in a process; later calls change nothing.
pub fn embed(embedding: Embedding) {
    let _ = EMBEDDING.set(embedding);
}

pub(crate) fn embedding() -> Option<&'static Embedding> {
    EMBEDDING.get()
}

/// Returns the file that holds this code.
pub(crate) fn file() -> io::Result<PathBuf> {
    embedding().map_or_else(std::env::current_exe, |embedding| Ok(embedding.file.clone()))
}

/// Returns the words that run this program again, before a verb.
pub(crate) fn words() -> Vec<OsString> {
    // If /proc is hidden, finds the program as the shell did.
    let own = || {
        vec![file().map_or_else(|_| std::env::args_os().next().unwrap_or_default(), PathBuf::into_os_string)]
    };
    embedding().map_or_else(own, |embedding| embedding.command.clone())
}

/// Returns a command that runs this program again.
pub(crate) fn command() -> Command {
    let mut words = words().into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}
