//! Threads and processes created before and after a program is followed.

use isotherm_linux::LinuxError;
use isotherm_linux::process::Pid;
use isotherm_linux::source::AccessSource;

use super::support::{Program, drained, every, page_faults};

/// Each thread touches page `64 * thread + round`.
fn of_threads(threads: u64, rounds: u64) -> Vec<u64> {
    (0..threads).flat_map(|thread| (0..rounds).map(move |round| 64 * thread + round)).collect()
}

#[test]
fn two_hundred_threads_made_before_and_after_are_seen_once_each() {
    let mut program = Program::start("threads 100");
    let mut source = page_faults(16);
    source.request(&every(1)).expect("granted");
    source.follow(program.pid).expect("it runs");
    source.follow(program.pid).expect("twice is no error");
    let mut accesses = Vec::new();
    for _ in 0..10 {
        program.order("go");
        accesses.extend(drained(&mut source));
    }
    program.assert_pages(&accesses, of_threads(200, 10));
    assert_eq!(source.statistics().lost, 0);
    program.finish();
    drained(&mut source);
    assert_eq!(source.open_events(), 0, "the ends of all threads were noticed");
}

#[test]
fn a_program_followed_while_threads_live_is_seen_whole_after_a_new_request() {
    let mut program = Program::start("threads 20");
    let mut source = page_faults(16);
    source.follow(program.pid).expect("it runs");
    program.order("go");
    // 20 of the threads inherit the events that report forks, but get sampling events only now.
    source.request(&every(1)).expect("granted");
    let mut accesses = drained(&mut source);
    for _ in 0..5 {
        program.order("go");
        accesses.extend(drained(&mut source));
    }
    let expected: Vec<u64> = of_threads(40, 6).into_iter().filter(|page| page % 64 != 0).collect();
    program.assert_pages(&accesses, expected);
}

#[test]
fn children_and_grandchildren_are_seen_and_their_events_closed() {
    let mut program = Program::start("fork");
    let mut source = page_faults(16);
    source.request(&every(1)).expect("granted");
    source.follow(program.pid).expect("it runs");
    let before = source.open_events();
    let mut accesses = Vec::new();
    for _ in 0..200 {
        program.order("go");
        accesses.extend(drained(&mut source));
    }
    program.assert_pages(&accesses, 0..6_000);
    let mut processes: Vec<Pid> = accesses.iter().map(|access| access.process).collect();
    processes.sort_unstable();
    processes.dedup();
    assert_eq!(processes.len(), 401);
    assert_eq!(source.open_events(), before);
    program.finish();
    drained(&mut source);
    assert_eq!(source.open_events(), 0);
}

/// A host follows children as it notices them, although they inherit.
#[test]
fn a_child_that_inherits_and_is_followed_is_seen_once() {
    let mut program = Program::start("pair");
    let mut source = page_faults(16);
    source.request(&every(1)).expect("granted");
    source.follow(program.pid).expect("it runs");
    program.tell("fork");
    let child = Pid(program.expect("CHILD").parse().expect("a number"));
    let before = source.open_events();
    source.follow(child).expect("it runs");
    assert_eq!(source.open_events(), before, "it inherits");
    (0..10).for_each(|_| program.order("go"));
    let accesses = drained(&mut source);
    program.assert_pages(&accesses, (0..10).chain(100..110));

    // Forgetting the child leaves the parent.
    source.forget(child);
    (0..10).for_each(|_| program.order("go"));
    let accesses = drained(&mut source);
    program.assert_pages(&accesses, 10..20);
    assert!(source.statistics().foreign >= 10);

    // And forgetting the parent leaves the child.
    source.follow(child).expect("it runs");
    source.forget(program.pid);
    (0..10).for_each(|_| program.order("go"));
    let accesses = drained(&mut source);
    program.assert_pages(&accesses, 120..130);
}

#[test]
fn an_exec_keeps_the_events() {
    let mut program = Program::start("exec");
    let mut source = page_faults(128);
    source.request(&every(1)).expect("granted");
    source.follow(program.pid).expect("it runs");
    program.tell("go");
    let before = program.pid;
    program.ready();
    assert_eq!(program.pid, before);
    let seen_before = drained(&mut source).len();
    assert!(seen_before > 100, "the new program's own start faults: {seen_before}");
    program.order("1000");
    let accesses = drained(&mut source);
    program.assert_pages(&accesses, 0..1_000);
    program.finish();
    drained(&mut source);
    assert_eq!(source.open_events(), 0);
}

#[test]
fn a_program_that_is_killed_while_it_is_sampled_leaves_nothing_behind() {
    let mut source = page_faults(16);
    source.request(&every(1)).expect("granted");
    for _ in 0..10 {
        let mut program = Program::start("touch 100000");
        source.follow(program.pid).expect("it runs");
        program.tell("100000");
        program.child.kill().expect("it runs");
        program.child.wait().expect("it ends");
        drained(&mut source);
        assert_eq!(source.open_events(), 0);
        let error = source.follow(program.pid).expect_err("it has ended");
        assert!(matches!(error, LinuxError::Ended(pid) if pid == program.pid.0), "{error}");
        source.forget(program.pid);
    }
}
