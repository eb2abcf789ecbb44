//! Restoring after signals: by the engine itself, and after SIGKILL by the next one.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isotherm_linux::memory::restore::{Restore, Restored, recover};
use isotherm_linux::process::signals::Signals;
use support::{helper, kill, started};

const DIRECTORY: &str = "ISOTHERM_TEST_DIRECTORY";

/// An engine that changes a value and ends at a signal.
#[test]
#[ignore = "a helper of the tests below"]
fn engine() {
    let directory = PathBuf::from(std::env::var_os(DIRECTORY).expect("the directory"));
    let mut signals = Signals::receive().expect("signals");
    let mut restore = Restore::new(&directory.join("run")).expect("made");
    restore.set(&directory.join("value"), "changed").expect("set");
    println!("ready");
    while signals.take().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn value(directory: &Path) -> String {
    fs::read_to_string(directory.join("value")).expect("read")
}

fn after(signal: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("value"), "original").expect("written");
    let (mut engine, _lines) = started(helper("engine").env(DIRECTORY, directory.path()));
    assert_eq!(value(directory.path()), "changed");
    assert!(recover(&directory.path().join("run")).expect("recovered").is_empty(), "the engine lives");
    kill(signal, engine.id());
    engine.wait().expect("waited");
    directory
}

#[test]
fn signals_that_ask_to_end_restore() {
    for signal in ["-TERM", "-INT", "-HUP", "-QUIT"] {
        let directory = after(signal);
        assert_eq!(value(directory.path()), "original", "{signal}");
        assert_eq!(fs::read_dir(directory.path().join("run")).expect("listed").count(), 0);
    }
}

#[test]
fn after_a_kill_the_next_engine_restores() {
    let directory = after("-KILL");
    assert_eq!(value(directory.path()), "changed");
    let restored = recover(&directory.path().join("run")).expect("recovered");
    assert!(matches!(&restored[..], [(_, Restored::Back)]), "{restored:?}");
    assert_eq!(value(directory.path()), "original");
}
