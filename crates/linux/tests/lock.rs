//! The lock that allows one engine per process.

mod support;

use std::fs;
use std::process::Command;

use isotherm_linux::process::lock::EngineLock;
use isotherm_linux::process::{Pid, ProcRoot};
use support::{helper, started, until};

const TARGET: &str = "ISOTHERM_TEST_TARGET";

fn take(pid: u32) -> Result<EngineLock, String> {
    EngineLock::take(&ProcRoot::default(), Pid(pid)).map_err(|error| error.to_string())
}

#[test]
#[ignore = "a helper of the test below"]
fn holder() {
    let target = std::env::var(TARGET).expect("the target").parse().expect("a number");
    let _lock = take(target).expect("taken");
    println!("ready");
    std::thread::sleep(std::time::Duration::from_secs(1000));
}

#[test]
fn a_second_engine_is_refused_until_the_first_is_dead() {
    let mut target = Command::new("sleep").arg("1000").spawn().expect("sleep");
    let (mut engine, _lines) = started(helper("holder").env(TARGET, target.id().to_string()));
    for _ in 0..3 {
        let error = take(target.id()).expect_err("held");
        let holder = format!("process {} is tiered by process {};", target.id(), engine.id());
        assert!(error.starts_with("a second engine") && error.contains(&holder), "{error}");
    }
    engine.kill().expect("killed");
    engine.wait().expect("waited");
    until("the dead engine's lock", || take(target.id()).is_ok());
    let lock = take(target.id()).expect("free");
    assert!(take(target.id()).is_err(), "held by this process");
    drop(lock);
    drop(take(target.id()).expect("free again"));
    target.kill().expect("killed");
    target.wait().expect("waited");
    assert!(take(target.id()).expect_err("no process").ends_with("has ended"));
}

#[test]
fn a_number_that_is_used_again_has_another_lock() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let put = |start: u32| {
        fs::create_dir_all(directory.path().join("7")).expect("made");
        let line = format!("7 (x) S 1 7 7 0 -1 0 1 0 0 0 1 1 0 0 20 0 1 0 {start} 99 9 1 4096 1 5 0 0");
        fs::write(directory.path().join("7/stat"), line).expect("written");
    };
    // No process has this start time: boot was not that long ago.
    let root = ProcRoot::at(directory.path());
    let start = 3_000_000_000 + std::process::id();
    put(start);
    let _first = EngineLock::take(&root, Pid(7)).expect("taken");
    assert!(EngineLock::take(&root, Pid(7)).is_err());
    put(start + 1);
    assert!(EngineLock::take(&root, Pid(7)).is_ok());
}
