//! Behaviour that a real kernel does not show on demand: failures, and more accesses than are kept.

use std::process::{Child, Command};
use std::time::Instant;

use super::*;

/// Scanner that finds many pages, or fails, from the second scan on.
struct Scripted {
    pages: u64,
    fails: bool,
}

impl Scanner for Scripted {
    /// Number of scans.
    type Target = u64;

    fn name(&self) -> &'static str {
        "scripted"
    }

    fn open(&self, _: Pid) -> Result<u64, LinuxError> {
        Ok(0)
    }

    fn scan(&self, scans: &mut u64, found: &mut Found) -> Result<(), LinuxError> {
        *scans += 1;
        if self.fails && *scans > 1 {
            return Err(LinuxError::Permission { what: "scan", needs: "nothing", remedy: String::new() });
        }
        found.pages.push(0..self.pages * 4096);
        found.mappings.push((0..self.pages * 4096, self.pages, *scans));
        Ok(())
    }
}

fn source(pages: u64, fails: bool) -> BitSource<Scripted> {
    let pace = Pace { interval: Nanos(0), budget: 1.0, program_budget: 1.0 };
    BitSource::new(Scripted { pages, fails }, pace)
}

/// A process that runs: this one.
fn own() -> Pid {
    Pid(std::process::id())
}

fn until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(120), "waited too long");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_failure_is_told_once_and_ends_following() {
    let mut source = source(1, true);
    source.follow(own()).unwrap();
    until(|| !source.follows(own()));
    let error = source.drain(&mut Vec::new()).unwrap_err();
    assert!(matches!(error, LinuxError::Permission { .. }), "{error}");
    source.drain(&mut Vec::new()).unwrap();
    assert_eq!(source.scans().scans, 2);
}

#[test]
fn beside_another_source_mappings_are_told_and_no_accesses() {
    let pace = Pace { interval: Nanos(0), budget: 1.0, program_budget: 1.0 };
    let mut source = BitSource::beside(Scripted { pages: 2048, fails: false }, pace);
    assert_eq!(source.offers(), Signals::NONE);
    let own = own();
    source.follow(own).unwrap();
    until(|| source.scans().scans > 3);
    let (mut accesses, mut mappings) = (Vec::new(), Vec::new());
    source.drain(&mut accesses).unwrap();
    source.mappings(&mut mappings);
    assert!(accesses.is_empty(), "{accesses:?}");
    let [mapping] = &mappings[..] else { panic!("those of the last scan alone: {mappings:?}") };
    assert!(mapping.process == own && mapping.range == (0..2048 * 4096) && mapping.present == 2048);
    assert!(mapping.referenced > 1 && mapping.exposed < Nanos(120 * Nanos::SECOND.0), "{mapping:?}");
    source.forget(own);
}

#[test]
fn scans_beside_another_source_become_rare_where_all_memory_is_used() {
    let pace = Pace { interval: Nanos(5 * Nanos::MILLISECOND.0), budget: 1.0, program_budget: 1.0 };
    // A mapping too small to be told apart, and one of which few pages were accessed.
    let [rare, often] = [64, 2048].map(|pages| {
        let mut source = BitSource::beside(Scripted { pages, fails: false }, pace);
        source.follow(own()).unwrap();
        source
    });
    until(|| often.scans().scans >= 100);
    let scans = rare.scans().scans;
    assert!(scans < 40, "{scans}");
}

#[test]
fn what_nobody_drains_is_lost_and_counted() {
    let mut source = source(MAX_PER_SCAN * 3, false);
    source.follow(own()).unwrap();
    until(|| source.statistics().lost > 0);
    source.forget(own());
    let mut accesses = Vec::new();
    source.drain(&mut accesses).unwrap();
    assert_eq!(accesses.len(), MAX_KEPT);
    assert!(accesses.iter().all(|access| access.weight == 3), "a third of the pages of each scan");
    assert_eq!(source.statistics().delivered, MAX_KEPT as u64);
    assert!(source.statistics().memory.0 >= (MAX_KEPT * size_of::<Access>()) as u64);
}

#[test]
fn sampling_off_delivers_nothing_and_marks_go_on() {
    let mut source = source(8, false);
    let (rate, scope) = (isotherm_core::SamplingRate::Off, isotherm_core::SamplingScope::AllTiers);
    let off = Sampling::loads(rate, scope, 1, Nanos(1));
    source.request(&off).unwrap();
    source.follow(own()).unwrap();
    until(|| source.scans().scans > 3);
    let mut accesses = Vec::new();
    source.drain(&mut accesses).unwrap();
    assert!(accesses.is_empty());
    assert_eq!(source.statistics().delivered, 0);
}

#[test]
fn a_process_that_is_not_followed_has_no_marks() {
    let mut source = source(8, false);
    let mut answers = Vec::new();
    source.accessed(Pid(9), &[0..4096, 4096..8192], &mut answers).unwrap();
    assert_eq!(answers, [false, false]);
}

#[test]
fn a_process_that_sleeps_is_not_scanned_again() {
    let mut sleeper = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let (mut asleep, mut awake) = (source(1, false), source(1, false));
    asleep.follow(Pid(sleeper.id())).unwrap();
    awake.follow(own()).unwrap();
    until(|| awake.scans().scans > 20);
    std::thread::sleep(Duration::from_millis(100));
    let scans = asleep.scans().scans;
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(scans <= 1, "{scans}");
}

/// Ends the process during its first scan, which still finds its memory; afterwards it is a zombie.
struct Deadly(Mutex<Child>);

impl Scanner for Deadly {
    /// Number of scans.
    type Target = u64;

    fn name(&self) -> &'static str {
        "deadly"
    }

    fn open(&self, _: Pid) -> Result<u64, LinuxError> {
        Ok(0)
    }

    fn scan(&self, scans: &mut u64, _: &mut Found) -> Result<(), LinuxError> {
        *scans += 1;
        let mut child = self.0.lock().expect("lock");
        if *scans > 1 {
            return Err(LinuxError::Ended(child.id()));
        }
        child.kill().expect("killed");
        let stat = format!("/proc/{}/stat", child.id());
        while !std::fs::read_to_string(&stat).expect("a zombie has files").contains(") Z ") {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// A zombie's processor time stays what it was at its end: it was taken for asleep, and followed for ever.
#[test]
fn regression_a_process_that_ends_during_a_scan_is_noticed() {
    let child = Command::new("sleep").arg("300").spawn().expect("sleep");
    let process = Pid(child.id());
    let pace = Pace { interval: Nanos(0), budget: 1.0, program_budget: 1.0 };
    let mut source = BitSource::new(Deadly(Mutex::new(child)), pace);
    source.follow(process).expect("it runs");
    let start = Instant::now();
    while source.follows(process) {
        assert!(start.elapsed() < Duration::from_secs(20), "it is a zombie, and still followed");
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut child = source.scanner.0.lock().expect("lock");
    child.wait().expect("reaped");
}
