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

/// Item 15 of the attack of 2026: `attach` by a thread's number passed the lock, and two engines ran.
#[test]
fn every_thread_has_its_processs_lock() {
    let own = Pid(std::process::id());
    let (give, take_number) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            let thread = fs::read_link("/proc/thread-self").expect("its number");
            give.send(thread.file_name().expect("a name").to_string_lossy().into_owned()).expect("sent");
            let _ = ended.recv();
        });
        let thread = Pid(take_number.recv().expect("its number").parse().expect("a number"));
        assert_ne!(thread, own);
        let lock = EngineLock::take(&ProcRoot::default(), thread).expect("free");
        assert_eq!(lock.pid(), own);
        assert!(take(own.0).is_err() && take(thread.0).is_err());
        drop((lock, end));
    });
}

/// Item 15 of the attack of 2026: any user could take the abstract name that was root's lock.
#[test]
fn no_other_user_can_hold_a_lock() {
    const NOBODY: &str = "65534";
    let mut target = Command::new("sleep").arg("1000").spawn().expect("sleep");
    let path = format!("/proc/{}/maps", target.id());
    let words =
        ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "flock", "--nonblock", &path, "true"];
    let theirs = Command::new("setpriv").args(words).output().expect("setpriv(1)");
    let errors = String::from_utf8_lossy(&theirs.stderr).into_owned();
    if errors.contains("setpriv:") {
        println!("skipped: only root can be another user");
    } else {
        assert!(!theirs.status.success() && errors.contains("Permission denied"), "{errors}");
        let _lock = take(target.id()).expect("free");
        // Names there are for everybody to take.
        let names = fs::read_to_string("/proc/net/unix").expect("abstract names");
        assert!(!names.contains(&format!("@isotherm-engine-{}-", target.id())));
    }
    target.kill().expect("killed");
    target.wait().expect("waited");
}

#[test]
fn a_number_that_is_used_again_has_another_lock() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let put = || {
        fs::create_dir_all(directory.path().join("7")).expect("made");
        fs::write(directory.path().join("7/status"), "Name:\tx\nTgid:\t7\nPid:\t7\n").expect("written");
        fs::write(directory.path().join("7/maps"), "").expect("written");
    };
    let root = ProcRoot::at(directory.path());
    put();
    let _first = EngineLock::take(&root, Pid(7)).expect("taken");
    assert!(EngineLock::take(&root, Pid(7)).is_err());
    fs::remove_dir_all(directory.path().join("7")).expect("ended");
    put();
    assert!(EngineLock::take(&root, Pid(7)).is_ok());
}
