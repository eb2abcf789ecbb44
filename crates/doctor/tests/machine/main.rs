//! The doctor on the running kernel: as root, as nobody and in namespaces, and its self-test with sources of several kinds.
//! The programs are `examples/doctor`.

mod confined;
mod self_test;
mod sources;

use std::path::{Path, PathBuf};

/// Cargo builds examples beside the tests' directory.
fn doctor_program() -> PathBuf {
    let test = std::env::current_exe().expect("this test's path");
    let path = test.parent().and_then(Path::parent).expect("a target directory").join("examples/doctor");
    assert!(path.exists(), "{} is not built: run 'cargo build -p isotherm-linux --examples'", path.display());
    path
}
