//! Helpers that run the binary, and small inputs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// `--set` options for a small run of the cache workload.
pub(crate) const SMALL_CACHE: [&str; 4] =
    ["--set", "cachelib-cdn.footprint=32M", "--set", "cachelib-cdn.operations=20000"];

/// Result of a run of the binary.
#[derive(Debug)]
pub(crate) struct RunStats {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for RunStats {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("output in UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl RunStats {
    /// Returns standard output of a run that succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self.out
    }

    /// Returns it as JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.ok()).expect("standard output is JSON")
    }

    /// Returns standard error without what was said about memory before the run.
    pub(crate) fn after_memory(&self) -> String {
        let said = |line: &str| line.starts_with("isotherm: memory: about ");
        self.err.split_inclusive('\n').filter(|line| !said(line)).collect()
    }

    /// Returns the single line on standard error of a run that was refused with `code`.
    #[track_caller]
    pub(crate) fn refused(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.out, "", "nothing on standard output");
        let err = self.after_memory();
        let line = err.strip_suffix('\n').expect("a whole line");
        assert!(line.starts_with("isotherm: ") && !line.contains('\n'), "one line of Isotherm: {line}");
        assert!(line.len() < 800, "a readable line: {line}");
        line.to_owned()
    }
}

/// Returns the binary's command with arguments and without input.
pub(crate) fn command<A: AsRef<std::ffi::OsStr>>(arguments: &[A]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isotherm"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs the binary.
pub(crate) fn isotherm<A: AsRef<std::ffi::OsStr>>(arguments: &[A]) -> RunStats {
    command(arguments).output().expect("the binary starts").into()
}

/// A temporary folder whose paths are text.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the path of `name` in the folder.
    pub(crate) fn at(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.0.path().join(name), content).expect("a file is written");
        self.at(name)
    }

    /// Exports a small trace and returns its path.
    pub(crate) fn trace(&self) -> String {
        let path = self.at("small.trace");
        let mut arguments = vec!["workloads", "cachelib-cdn", "--export", &path];
        arguments.extend(SMALL_CACHE);
        arguments.extend(["--max-accesses", "50k"]);
        isotherm(&arguments).ok();
        path
    }

    /// Compiles a C program of these tests and returns its path.
    pub(crate) fn compile(&self, name: &str) -> String {
        self.compile_with(name, &[])
    }

    /// As [`Self::compile`], with further options.
    pub(crate) fn compile_with(&self, name: &str, options: &[&str]) -> String {
        let program = self.at(name);
        let source = data(&format!("{name}.c"));
        let status =
            Command::new("cc").args(["-O1", "-g", "-o", &program]).args(options).arg(source).status();
        assert!(status.expect("cc is missing: run `make setup`").success());
        program
    }
}

/// Returns the path of a file of these tests.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/data").join(name)
}

/// Whether programs may open what hint faults need; reports it if not.
pub(crate) fn hint_faults_work() -> bool {
    let opened = isotherm_linux::sys::probe::hint_faults();
    if let Err(error) = &opened {
        eprintln!("skipped: no hint faults here, which need CAP_SYS_PTRACE: {error}");
    }
    opened.is_ok()
}

/// Runs a program in shadow mode and writes its summary to `summary`.
pub(crate) fn shadow(summary: &str, options: &[&str], program: &[&str]) -> RunStats {
    let mut arguments = vec!["run", "--shadow", "--quiet", "--summary", summary];
    arguments.extend(options);
    arguments.push("--");
    arguments.extend(program);
    isotherm(&arguments)
}

/// Reads a summary.
pub(crate) fn read(summary: &str) -> Value {
    let text = std::fs::read_to_string(summary).expect("a summary");
    serde_json::from_str(&text).expect("JSON")
}

/// Runs a program by itself.
pub(crate) fn plain(program: &[&str]) -> RunStats {
    let output = Command::new(program[0]).args(&program[1..]).stdin(Stdio::null()).output();
    output.expect("the program starts").into()
}
