//! When writing fails, the trace stays readable up to the last finished part.

mod common;

use std::process::Command;

use common::{provenance, read, sample};
use isotherm_trace::{TraceError, TraceReader, TraceWriter};

/// Set when the test starts itself as the writer that fails.
const DIRECTORY: &str = "ISOTHERM_FULL_DISK_TEST";

/// Writes under a limit of the file's size, which fails like a full disk: in the middle of a write.
fn write_until_it_fails(path: &str) {
    let mut writer = TraceWriter::create(path, provenance()).expect("a new trace");
    writer.append(&sample(3000)).expect("fits");
    writer.flush_part().expect("fits");
    let error = writer.append(&sample(1 << 18)).expect_err("too large for the limit");
    assert!(matches!(error, TraceError::Io { action: "write", .. }), "{error:?}");
    assert!(error.to_string().contains(".part-00001.tmp: cannot write: File too large"), "{error}");
}

#[test]
fn a_write_that_fails_leaves_every_finished_part_readable() {
    if let Ok(path) = std::env::var(DIRECTORY) {
        return write_until_it_fails(&path);
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.trace");
    // The signal is ignored, so that the write fails instead: 256 blocks are 128 or 256 KiB, by the shell.
    let script = "trap '' XFSZ; ulimit -f 256; exec \"$0\" --exact \"$1\" --nocapture";
    let program = std::env::current_exe().expect("this test");
    let arguments = ["a_write_that_fails_leaves_every_finished_part_readable"];
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(program).args(arguments).env(DIRECTORY, &path);
    let output = command.output().expect("a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "the child ran");
    assert_eq!(read(&path).expect("the first part"), sample(3000));
    assert_eq!(TraceReader::open(&path).expect("the first part").parts(), 1);
    let names = std::fs::read_dir(&path).expect("a directory").count();
    assert_eq!(names, 1, "the failed part gave its space back");
}
