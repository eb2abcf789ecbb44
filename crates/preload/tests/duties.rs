//! Whatever happens to a program whose whole memory is armed, its memory stays intact.
//!
//! Each test arms every page of the program `victim`, checks that all are armed, and lets the duty begin.
#![allow(unsafe_code)]

mod support;

use std::os::unix::process::ExitStatusExt;

use isotherm_core::SamplingRate;
use isotherm_linux::source::{AccessSource, Cause};
use support::{Ended, Run, example, generous};

/// Starts the duty and arms all of its memory; `None`, with a line, where that is impossible.
fn armed(duty: &str, least: impl Fn(u64) -> u64) -> Option<(Run, u64)> {
    let mut run = Run::new(&example("victim"), &[duty], generous(), SamplingRate::Off);
    let line = run.line();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!((words.len(), words.first()), (3, Some(&"ready")), "{duty}: {line}");
    let start = u64::from_str_radix(words[1], 16).expect("an address");
    let pages: u64 = words[2].parse().expect("a number");
    assert!(run.drain_until(|run| run.source.counted().agents == 1), "{duty}: no agent");
    let addresses: Vec<u64> = (0..pages).map(|page| start + page * 4096).collect();
    let pid = run.pid();
    let wanted = least(pages);
    let mut done = false;
    // The agent may have read the mappings just before the program made its own, and not since on a busy
    // machine: ask again.
    for attempt in 1..=100 {
        run.source.arm(pid, &addresses).expect("to arm");
        done = run.drain_until(|run| {
            let counted = run.source.counted();
            let armed = wanted > 0 && counted.armed >= wanted;
            run.refusal().is_some() || armed || counted.refused >= attempt * pages
        });
        if run.refusal().is_some() || run.source.counted().armed >= wanted {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    if let Some(reason) = run.refusal() {
        println!("skipped: {reason}");
        return None;
    }
    assert!(done, "{duty}: {:?}", run.source.counted());
    assert!(run.source.counted().armed >= wanted, "{duty}: {:?}", run.source.counted());
    run.go();
    Some((run, start))
}

fn duty(name: &str) -> Option<Ended> {
    let (run, _) = armed(name, |pages| pages)?;
    Some(run.finish())
}

fn expect_ok(name: &str) {
    let Some(ended) = duty(name) else { return };
    if ended.status.code() == Some(77) {
        println!("skipped: see the line above");
        return;
    }
    assert!(ended.status.success() && ended.output == "ok\n", "{name}: {} '{}'", ended.status, ended.output);
}

macro_rules! duties {
    ($($test:ident $name:literal;)*) => {
        $(#[test]
        fn $test() {
            expect_ok($name);
        })*
    };
}

duties! {
    reading_finds_everything "read";
    writing_stays "write";
    unmapped_memory_is_gone "unmap";
    a_mapping_over_it_replaces_it "fixed";
    dropped_memory_is_zero_and_stays_so "dontneed";
    freed_memory_can_be_used_anew "free";
    moved_memory_is_where_it_went "remap";
    a_moved_part_is_where_it_went "remap-part";
    grown_memory_is_itself_and_zeros "grow";
    memory_moved_away_leaves_zeros "dontunmap";
    protected_memory_comes_back "protect";
    locked_memory_is_intact "lock";
    a_program_that_locks_everything_is_left_alone "lock-all";
    guards_hide_and_drop "guard";
    direct_files_read_and_write "direct";
    a_child_has_its_copy "fork";
    a_child_of_a_raw_call_has_its_copy "raw-fork";
    advice_on_forks_is_kept "dont-fork";
    spawning_works "spawn";
    executing_works "exec";
    closing_all_descriptors_does_not_matter "close-all";
    changing_identity_reaches_all_threads "identity";
    two_hundred_threads_find_everything "threads";
    a_child_of_a_raw_call_may_change_its_memory_at_once "raw-fork-changes";
    a_filter_that_refuses_hits_no_agent "filter-error";
    a_filter_that_ends_threads_hits_no_agent "filter-thread";
    a_filter_that_ends_processes_hits_no_agent "filter-process";
    a_program_with_one_thread_stays_one "single";
    a_program_without_children_has_none "childless";
    a_program_that_gives_up_its_rights_finds_everything "drop-rights";
    two_mappings_move_in_one_call "remap-two";
    armed_memory_may_be_registered_by_the_program "register";
}

/// A thread that rings the doorbell reads it although many others wait for a processor.
#[test]
fn programs_that_fork_on_busy_processors_do_not_ring_for_ever() {
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| expect_ok("fork"));
        }
    });
}

/// A child that moves a mapping just as a page is copied to it got zeros there.
#[test]
fn children_of_raw_calls_find_what_they_move_on_busy_processors() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..8).for_each(|_| expect_ok("raw-fork-changes")));
        }
    });
}

/// Robust mutexes in armed memory: the kernel does not wait for their page when an owner dies.
#[test]
fn dead_owners_of_robust_mutexes_are_told() {
    expect_ok_while_sampled("robust");
}

/// `CLONE_CHILD_CLEARTID` in armed memory: the kernel does not wait for the word's page.
#[test]
fn words_of_threads_that_end_are_cleared() {
    expect_ok_while_sampled("thread-words");
}

/// Performs a duty whose pages are sampled all the while, as an engine does.
fn sampled(name: &str) -> Option<Run> {
    let mut run = Run::new(&example("victim"), &[name], generous(), SamplingRate::Frequency(1_000_000));
    run.line();
    assert!(run.drain_until(|run| run.source.counted().faults > 0 || run.refusal().is_some()), "{name}");
    if let Some(reason) = run.refusal() {
        println!("skipped: {reason}");
        return None;
    }
    run.go();
    Some(run)
}

fn expect_ok_while_sampled(name: &str) {
    let Some(run) = sampled(name) else { return };
    let ended = run.finish();
    assert!(ended.status.success() && ended.output == "ok\n", "{name}: {} '{}'", ended.status, ended.output);
}

/// More than 16,384 threads on different stacks, as many as the gate excludes at a time: the agent forgets
/// those that ended, and samples still.
#[test]
fn short_threads_do_not_end_sampling() {
    let Some(mut run) = sampled("short-threads") else { return };
    let mut status = None;
    let (mut before, mut since, mut looks) = (0, 0, 0);
    run.drain_until(|run| {
        let faults = run.source.counted().faults;
        looks += 1;
        (before, since) = if faults > before { (faults, 0) } else { (before, since + 1) };
        status = run.child.try_wait().expect("a child");
        status.is_some()
    });
    let refusal = run.refusal();
    let ended = run.finish();
    assert!(ended.status.success() && ended.output == "ok\n", "{} '{}'", ended.status, ended.output);
    let told = format!("{refusal:?}, {before} faults, none in the last {since} of {looks} looks");
    println!("{told}");
    assert!(refusal.is_none() && 4 * since < looks, "{told}");
}

/// A child that shared the program's memory ended the program's agent by `syscall(SYS_exit)`.
#[test]
fn a_child_that_shares_memory_may_exit_without_the_agent() {
    let Some((mut run, _)) = armed("vfork-exits", |pages| pages) else { return };
    let mut refusal = None;
    run.drain_until(|run| {
        refusal = refusal.take().or(run.refusal());
        run.child.try_wait().expect("a child").is_some()
    });
    let ended = run.finish();
    assert!(ended.status.success() && ended.output == "ok\n", "{} '{}'", ended.status, ended.output);
    assert_eq!(refusal, None);
}

/// The agent's process is killed while it holds pages: the program must not go on without them.
#[test]
fn a_killed_agent_ends_its_program_rather_than_lose_memory() {
    let Some((mut run, _)) = armed("read", |pages| pages) else { return };
    let agent = support::agents(run.child.id()).pop().expect("an agent");
    // SAFETY: a process that this test's program started.
    unsafe { libc::kill(agent as i32, libc::SIGKILL) };
    let mut status = None;
    run.drain_until(|run| {
        status = run.child.try_wait().expect("a child");
        status.is_some()
    });
    let reason = run.refusal();
    let ended = run.finish();
    assert_eq!((ended.status.signal(), ended.output.as_str()), (Some(libc::SIGKILL), ""));
    assert!(reason.is_some_and(|reason| reason.contains("was killed")));
}

/// After an exec the old memory goes, although the agent shared it.
#[test]
fn an_exec_leaves_no_agent_behind() {
    let Some((run, _)) = armed("exec", |pages| pages) else { return };
    let old = support::agents(run.child.id());
    let ended = run.finish();
    assert!(ended.status.success(), "{}", ended.status);
    let start = std::time::Instant::now();
    let lives = |agent: &u32| std::fs::read_to_string(format!("/proc/{agent}/comm")).is_ok();
    while old.iter().any(lives) && start.elapsed() < std::time::Duration::from_secs(20) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(!old.iter().any(lives));
}

#[test]
fn huge_pages_stay_huge() {
    // Two windows of 512 pages each.
    let Some((run, _)) = armed("huge", |_| 1024) else { return };
    let ended = run.finish();
    assert!(ended.status.success() && ended.output == "ok\n", "{} '{}'", ended.status, ended.output);
}

#[test]
fn a_program_with_a_userfaultfd_of_its_own_is_not_disturbed() {
    let Some((run, _)) = armed("own-userfaultfd", |_| 0) else { return };
    assert_eq!(run.source.counted().refused, 256);
    let ended = run.finish();
    assert!(ended.status.success() && ended.output == "ok\n", "{} '{}'", ended.status, ended.output);
}

#[test]
fn ends_are_told_as_they_were() {
    if let Some(ended) = duty("exit") {
        assert_eq!(ended.status.code(), Some(42));
    }
    if let Some(ended) = duty("abort") {
        assert_eq!(ended.status.signal(), Some(libc::SIGABRT));
    }
    if let Some(ended) = duty("kill") {
        assert_eq!(ended.status.signal(), Some(libc::SIGKILL));
    }
}

#[test]
fn a_main_thread_may_leave_its_process() {
    let run = Run::new(&example("leaver"), &[], generous(), SamplingRate::Frequency(1_000_000));
    let ended = run.finish();
    assert!(ended.status.success() && ended.output == "ok\n", "{} '{}'", ended.status, ended.output);
}

/// Every page is touched once, in the order of addresses, by a load.
#[test]
fn each_touch_of_an_armed_page_is_told_once() {
    let Some((run, start)) = armed("read", |pages| pages) else { return };
    let ended = run.finish();
    let inside = |address: u64| (start..start + 256 * 4096).contains(&address);
    let pages: Vec<u64> = ended
        .accesses
        .iter()
        .filter(|access| inside(access.address) && matches!(access.cause, Cause::Armed { .. }))
        .map(|access| (access.address - start) / 4096)
        .collect();
    assert_eq!(pages, (0..256).collect::<Vec<_>>());
    assert!(ended.accesses.iter().all(|access| access.operation == isotherm_core::Operation::Load));
}

/// The engine ends while everything is armed.
#[test]
fn a_program_outlives_its_engine() {
    let Some((run, _)) = armed("protect", |pages| pages) else { return };
    let Run { source, child, .. } = run;
    drop(source);
    let ended = child.wait_with_output().expect("to wait");
    assert!(ended.status.success(), "{}", ended.status);
}

/// When a thread ends, the kernel does not wait for a missing page: a thread that joins it would wait for
/// ever.
#[test]
fn stacks_of_threads_are_never_armed() {
    let Some((run, _)) = armed("stack", |_| 0) else { return };
    assert_eq!(run.source.counted().refused, 64);
    let ended = run.finish();
    assert!(ended.status.success() && ended.output == "ok\n", "{} '{}'", ended.status, ended.output);
}
