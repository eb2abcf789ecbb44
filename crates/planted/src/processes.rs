//! Programs of many threads and of many processes.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use crate::arguments::Arguments;
use crate::memory::{Mapping, fork, pattern, wait};
use crate::random::{Random, mix};
use crate::{Failure, ensure};

/// Runs waves of threads; each uses a mapping of its own until the limit and checks it.
pub(crate) fn threads(arguments: &mut Arguments) -> Result<(), Failure> {
    let count = arguments.number("threads", 200)?;
    let waves = arguments.number("waves", 1)?.max(1);
    let size = arguments.size("size", 256 << 10)?;
    let limit = arguments.limit()?;
    arguments.finish()?;
    let mut checksum = 0;
    for wave in 0..waves {
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..count)
                .map(|thread| scope.spawn(move || one_thread(wave << 32 | thread, size, limit)))
                .collect();
            threads.into_iter().map(ScopedJoinHandle::join).collect()
        });
        for outcome in outcomes {
            let sum = outcome.map_err(|_| Failure::Wrong("a thread panicked".into()))??;
            checksum = mix(checksum ^ sum);
        }
    }
    if matches!(limit, crate::arguments::Limit::Operations(_)) {
        println!("threads: {count} of {waves} waves checked, checksum {checksum:016x}");
    } else {
        println!("threads: {count} of {waves} waves checked");
    }
    Ok(())
}

/// Writes words in any order and finds them as it left them.
fn one_thread(seed: u64, size: usize, limit: crate::arguments::Limit) -> Result<u64, Failure> {
    let (memory, start) = (Mapping::new(size)?, Instant::now());
    memory.fill(seed);
    let words = memory.words();
    let mut random = Random::new(seed);
    let (mut done, mut checksum) = (0, 0u64);
    while limit.goes_on(start, done) {
        done += 1;
        let at = random.below(words.len());
        let value = words[at].load(Relaxed);
        ensure(value == pattern(seed, at), || format!("threads: thread {seed} word {at} holds {value:#x}"))?;
        checksum = checksum.rotate_left(5).wrapping_add(value);
        words[at].store(value, Relaxed);
        if done.is_multiple_of(1024) {
            std::thread::yield_now();
        }
    }
    memory.check(seed)?;
    Ok(checksum)
}

/// Forks children, some at a time; each checks its copy of memory, refills it and checks that.
pub(crate) fn fork_storm(arguments: &mut Arguments) -> Result<(), Failure> {
    let children = arguments.number("children", 1000)?;
    let parallel = arguments.number("parallel", 8)?.max(1);
    let memory = Mapping::new(arguments.size("size", 1 << 20)?)?;
    arguments.finish()?;
    memory.fill(0);
    let mut running = 0;
    for child in 1..=children {
        if running == parallel {
            reap()?;
            running -= 1;
        }
        fork(|| {
            let intact =
                memory.words().iter().enumerate().all(|(at, word)| word.load(Relaxed) == pattern(0, at));
            memory.fill(child);
            intact
                && memory
                    .words()
                    .iter()
                    .enumerate()
                    .all(|(at, word)| word.load(Relaxed) == pattern(child, at))
        })?;
        running += 1;
    }
    for _ in 0..running {
        reap()?;
    }
    memory.check(0)?;
    println!("fork-storm: {children} children checked");
    Ok(())
}

fn reap() -> Result<(), Failure> {
    let (process, right) = wait()?;
    ensure(right, || format!("fork-storm: child {process} failed"))
}

/// Executes itself repeatedly; each time fills memory and checks it. The process stays the same.
pub(crate) fn exec_chain(arguments: &mut Arguments) -> Result<(), Failure> {
    let times = arguments.number("times", 10)?;
    let size = arguments.size("size", 1 << 20)?;
    let done = arguments.number("done", 0)?;
    let first = arguments.number("process", u64::from(std::process::id()))?;
    arguments.finish()?;
    ensure(first == u64::from(std::process::id()), || format!("exec-chain: process {first} has changed"))?;
    let memory = Mapping::new(size)?;
    memory.fill(done);
    memory.check(done)?;
    if done == times {
        println!("exec-chain: {times} times checked");
        return Ok(());
    }
    let words = [("times", times), ("size", size as u64), ("done", done + 1), ("process", first)];
    let options = words.iter().flat_map(|(name, value)| [format!("--{name}"), value.to_string()]);
    let program = std::env::current_exe()?;
    Err(Command::new(program).arg("exec-chain").args(options).exec().into())
}
