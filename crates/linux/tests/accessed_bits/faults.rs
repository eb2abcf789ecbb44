//! Programs that end, fork, execute and run many threads while they are scanned.

use std::fs;
use std::time::Duration;

use isotherm_core::Nanos;
use isotherm_linux::LinuxError;
use isotherm_linux::accessed_bits::{BitSource, ClearRefs, Pace, Resolution};
use isotherm_linux::process::Pid;
use isotherm_linux::source::AccessSource;

use crate::program::{Program, until};

const EAGER: Pace = Pace { interval: Nanos(0), budget: 1.0, program_budget: 1e9 };

fn source() -> BitSource<ClearRefs> {
    BitSource::new(ClearRefs::new(Resolution::default()).unwrap(), EAGER)
}

#[test]
fn processes_end_at_any_moment() {
    let mut source = source();
    let mut accesses = Vec::new();
    for round in 0..40 {
        let mut program = Program::start("idle --size 8M --seconds 300");
        source.follow(program.pid()).unwrap();
        std::thread::sleep(Duration::from_micros(700 * round));
        program.kill();
        if round % 2 == 0 {
            // Otherwise it stays a zombie, whose files exist and are empty.
            until("the end", || program.ended().is_some());
        }
        until("the end to be noticed", || !source.follows(program.pid()));
        source.drain(&mut accesses).unwrap();
    }
}

#[test]
fn a_missing_process_has_ended() {
    let mut program = Program::start("idle --seconds 0");
    until("the end", || program.ended().is_some());
    assert!(matches!(source().follow(program.pid()), Err(LinuxError::Ended(_))));
}

#[test]
fn two_hundred_threads() {
    let arguments = "threads --threads 200 --size 64K --operations 100000";
    let alone = Program::start(arguments).output();
    let mut source = source();
    let program = Program::start(arguments);
    source.follow(program.pid()).unwrap();
    until("scans", || source.scans().scans > 1 || !source.follows(program.pid()));
    assert_eq!(program.output(), alone);
    source.drain(&mut Vec::new()).unwrap();
}

#[test]
fn a_storm_of_forks() {
    let mut program = Program::start("fork-storm --children 1000 --size 256K");
    let mut source = source();
    source.follow(program.pid()).unwrap();
    let mut followed = 0;
    while program.ended().is_none() {
        for child in children(program.pid()) {
            match source.follow(child) {
                Ok(()) => followed += 1,
                Err(LinuxError::Ended(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        source.drain(&mut Vec::new()).unwrap();
    }
    assert_eq!(program.output(), "fork-storm: 1000 children checked\n");
    assert!(followed > 0);
    source.drain(&mut Vec::new()).unwrap();
}

#[test]
fn executing_another_program_is_followed() {
    let mut source = source();
    let program = Program::start("exec-chain --times 60");
    source.follow(program.pid()).unwrap();
    until("the end to be noticed", || !source.follows(program.pid()));
    assert_eq!(program.output(), "exec-chain: 60 times checked\n");
    assert!(source.scans().scans > 3, "{:?}", source.scans());
    source.drain(&mut Vec::new()).unwrap();
}

#[test]
fn mappings_that_change_all_the_time() {
    let arguments = "unmap-storm --operations 20000";
    let alone = Program::start(arguments).output();
    let mut source = source();
    let program = Program::start(arguments);
    source.follow(program.pid()).unwrap();
    assert_eq!(program.output(), alone);
    source.drain(&mut Vec::new()).unwrap();
}

/// Returns the children that the kernel lists, if it was compiled to.
fn children(process: Pid) -> Vec<Pid> {
    let text = fs::read_to_string(format!("/proc/{0}/task/{0}/children", process.0)).unwrap_or_default();
    text.split_whitespace().map(|word| Pid(word.parse().unwrap())).collect()
}
