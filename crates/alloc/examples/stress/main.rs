//! Calls every function of the allocator at random from several threads, which begin, end and fork, and
//! verifies every block:
//!
//! `alloc-stress [OPERATIONS] [THREADS] [BLOCKS]`: calls per thread, concurrent threads, live blocks per
//! thread.
//!
//! Under `libisotherm_alloc.so` it also verifies that blocks lie in regions and, with
//! `ISOTHERM_ALLOC_DEPTH=1`, that each call site's blocks lie in one. It ends with a line `ok OPERATIONS
//! calls, PEAK KiB, REST KiB`, where the rest is resident after all is released, or reports a fault and
//! aborts.
#![allow(unsafe_code)]

mod blocks;
mod calls;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use blocks::{Blocks, Generator};

/// Calls of a thread before another takes its place.
const TURN: u64 = 100_000;
/// Turns per fork.
const FORKS: u64 = 4;

fn main() {
    // A failing thread ends the process: the others could wait for it, as could a child for a lock that it
    // holds.
    std::panic::set_hook(Box::new(|failure| {
        eprintln!("{failure}");
        std::process::abort();
    }));
    let argument =
        |index, default| std::env::args().nth(index).map_or(default, |text| text.parse().expect("a number"));
    let (operations, threads, live) = (argument(1, 200_000_u64), argument(2, 8), argument(3, 4_000));
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let done = &done;
            scope.spawn(move || {
                let mut blocks = Blocks::new(live as usize);
                for turn in 0..operations.div_ceil(TURN) {
                    let calls = TURN.min(operations - turn * TURN);
                    // Blocks move from thread to thread, so one thread releases what another allocated.
                    blocks = std::thread::spawn(move || work(blocks, (thread << 32) | turn, calls))
                        .join()
                        .expect("no panic");
                    done.fetch_add(calls, Relaxed);
                }
                blocks.clear();
            });
        }
    });
    println!("ok {} calls, {} KiB, {} KiB", done.load(Relaxed), memory("VmHWM:"), memory("VmRSS:"));
}

fn work(mut blocks: Blocks, seed: u64, calls: u64) -> Blocks {
    let mut random = Generator::new(seed);
    for call in 0..calls {
        blocks.step(&mut random);
        if call == calls / 2 && seed.is_multiple_of(FORKS) {
            in_a_child(&mut blocks, &mut random);
        }
    }
    blocks
}

/// Continues in a child while the parent's other threads allocate, and waits for the child.
fn in_a_child(blocks: &mut Blocks, random: &mut Generator) {
    // SAFETY: the child only allocates, which an allocator made for forks permits, and leaves by `_exit`.
    unsafe {
        match libc::fork() {
            -1 => panic!("fork: {}", std::io::Error::last_os_error()),
            0 => {
                for _ in 0..10_000 {
                    blocks.step(random);
                }
                blocks.clear();
                libc::_exit(0);
            }
            child => {
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &raw mut status, 0), child, "the child");
                assert_eq!(status, 0, "the child's status");
            }
        }
    }
}

/// Returns an amount of memory of this process, in KiB.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find(|line| line.starts_with(name)).expect(name);
    line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number")
}
