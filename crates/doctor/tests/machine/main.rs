//! The doctor on the running kernel: as root, as nobody and in namespaces, and self-tests of several kinds of
//! sources. The program is `examples/doctor`.

mod confined;
mod self_test;
mod sources;

use std::path::{Path, PathBuf};

/// Returns the example's path; Cargo builds examples beside the tests' directory.
fn doctor_program() -> PathBuf {
    let test = std::env::current_exe().expect("this test's path");
    let path = test.parent().and_then(Path::parent).expect("a target directory").join("examples/doctor");
    assert!(
        path.exists(),
        "{} is not built: run 'cargo build -p isotherm-doctor --examples'",
        path.display()
    );
    path
}
