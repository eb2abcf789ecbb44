//! Helpers of the recorder's tests: compile programs, record them and read the trace.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use isotherm_trace::record::{RecordError, RecordOptions, RecordSummary, record};
use isotherm_trace::{Rows, TraceReader};
use tempfile::TempDir;

/// Directory with compiled programs and traces.
pub(crate) struct Bench {
    pub(crate) directory: TempDir,
}

impl Bench {
    /// Makes an empty bench. Fails without QEMU, since nothing can be tested then.
    pub(crate) fn new() -> Self {
        let qemu = Command::new("qemu-x86_64").arg("--version").output();
        assert!(qemu.is_ok(), "qemu-x86_64 is missing: apt-get install qemu-user (or make setup)");
        Self { directory: TempDir::new().expect("a temporary directory") }
    }

    /// Returns a path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Compiles `tests/programs/NAME.c`.
    pub(crate) fn compile(&self, name: &str) -> PathBuf {
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).with_extension("c");
        let program = self.path(name);
        let status = Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(&program).arg(source).status();
        assert!(status.expect("cc is missing: apt-get install gcc").success());
        program
    }

    /// Runs the command natively.
    pub(crate) fn native(command: &[&str]) -> Output {
        Command::new(command[0]).args(&command[1..]).stdin(Stdio::null()).output().expect("it runs")
    }

    /// Returns options to record `command` to the trace `name`.
    pub(crate) fn options(&self, name: &str, command: &[&str]) -> RecordOptions {
        RecordOptions::new(command.iter().map(OsString::from).collect(), self.path(name))
    }

    /// Records with `options`; the pool must be gone afterwards.
    pub(crate) fn try_record(options: &RecordOptions) -> Result<RecordSummary, RecordError> {
        let result = record(options, &mut |_| {});
        assert!(!options.output.join(".pool").exists(), "the pool was left behind");
        result
    }

    /// Records `command` to the trace `name` without dependences.
    pub(crate) fn record(&self, name: &str, command: &[&str]) -> RecordSummary {
        let options = RecordOptions { dependence: false, ..self.options(name, command) };
        Self::try_record(&options).expect("it records")
    }

    /// Returns all rows of the trace `name`.
    pub(crate) fn rows(&self, name: &str) -> Rows {
        let mut reader = TraceReader::open(self.path(name)).expect("the trace opens");
        let (mut all, mut batch) = (Rows::default(), Rows::default());
        while reader.next(&mut batch).expect("the trace reads") {
            batch.iter().for_each(|row| all.push(row));
        }
        all
    }
}
