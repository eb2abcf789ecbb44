//! Observed program, which touches pages of a region on orders.
#![allow(unsafe_code)]

use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Barrier};

/// Environment variable with the role.
pub(crate) const ROLE: &str = "ISOTHERM_TEST_ROLE";
const PAGE: usize = 4096;

/// Untouched memory in base pages.
#[derive(Clone, Copy)]
struct Region {
    base: usize,
    pages: usize,
}

impl Region {
    fn new(pages: usize) -> Self {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping at an address of the kernel's choice affects no memory in use.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), pages * PAGE, protection, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        // SAFETY: the range is the mapping just made; the hint does not change its contents.
        unsafe { libc::madvise(base, pages * PAGE, libc::MADV_NOHUGEPAGE) };
        Self { base: base as usize, pages }
    }

    fn touch(self, pages: std::ops::Range<usize>) {
        for page in pages {
            assert!(page < self.pages);
            // SAFETY: the page lies in the region, which stays mapped until the process ends.
            unsafe { std::ptr::write_volatile((self.base + page * PAGE) as *mut u8, 1) };
        }
    }
}

/// Announces that the program awaits orders.
fn ready(region: Region) {
    say(&format!("READY {} {} {}", std::process::id(), region.base, region.pages));
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).expect("the parent listens");
}

/// Reads the next order; empty at the end.
fn order() -> String {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).expect("readable");
    line.trim().to_owned()
}

fn pin() {
    // SAFETY: a zeroed set is a valid empty one, and the pointer is valid for its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(0, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// Touches the ordered number of pages, on one processor.
fn touch(pages: usize) {
    pin();
    let region = Region::new(pages);
    let mut next = 0;
    ready(region);
    while let Ok(count) = order().parse::<usize>() {
        region.touch(next..next + count);
        next += count;
        say("DONE");
    }
}

/// Starts `count` threads before the first order and after it; each touches a page at each order.
fn threads(count: usize) {
    const ROUNDS: usize = 64;
    let region = Region::new(2 * count * ROUNDS);
    let barrier = Arc::new(Barrier::new(count + 1));
    let later = Arc::new(Barrier::new(count + 1));
    let spawn = |thread: usize, barrier: &Arc<Barrier>| {
        let barrier = Arc::clone(barrier);
        std::thread::spawn(move || {
            for round in 0..ROUNDS {
                barrier.wait();
                let page = thread * ROUNDS + round;
                region.touch(page..page + 1);
                barrier.wait();
            }
        });
    };
    (0..count).for_each(|thread| spawn(thread, &barrier));
    ready(region);
    if order().is_empty() {
        return;
    }
    (count..2 * count).for_each(|thread| spawn(thread, &later));
    loop {
        for barrier in [&barrier, &later] {
            barrier.wait();
            barrier.wait();
        }
        say("DONE");
        if order().is_empty() {
            return;
        }
    }
}

/// Forks a child at each order, which forks another; each of the three touches 10 pages of its own.
fn fork() {
    const ROUNDS: usize = 2000;
    let region = Region::new(30 * ROUNDS);
    ready(region);
    for round in 0..ROUNDS {
        if order().is_empty() {
            return;
        }
        let base = 30 * round;
        region.touch(base..base + 10);
        // SAFETY: the children only touch memory, fork, wait and leave by `_exit`.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                region.touch(base + 10..base + 20);
                let grandchild = libc::fork();
                if grandchild == 0 {
                    region.touch(base + 20..base + 30);
                    libc::_exit(0);
                }
                libc::waitpid(grandchild, std::ptr::null_mut(), 0);
                libc::_exit(0);
            }
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        say("DONE");
    }
}

/// Forks a child that stays, and prints its number; then parent and child touch a page at each order.
fn pair() {
    const PAGES: usize = 100;
    let region = Region::new(2 * PAGES);
    let (mut go, mut done) = ([0i32; 2], [0i32; 2]);
    ready(region);
    order();
    // SAFETY: the arrays take two descriptors each; the child only uses pipes, region and `_exit`.
    unsafe {
        assert_eq!((libc::pipe(go.as_mut_ptr()), libc::pipe(done.as_mut_ptr())), (0, 0));
        let child = libc::fork();
        let mut byte = [0u8];
        if child == 0 {
            libc::close(go[1]);
            let mut page = PAGES;
            while libc::read(go[0], byte.as_mut_ptr().cast(), 1) == 1 {
                region.touch(page..page + 1);
                page += 1;
                libc::write(done[1], byte.as_ptr().cast(), 1);
            }
            libc::_exit(0);
        }
        say(&format!("CHILD {child}"));
        for page in 0..PAGES {
            if order().is_empty() {
                break;
            }
            region.touch(page..page + 1);
            libc::write(go[1], byte.as_ptr().cast(), 1);
            libc::read(done[0], byte.as_mut_ptr().cast(), 1);
            say("DONE");
        }
    }
}

/// Executes this binary again, in the role of touching pages, from a thread other than the first.
fn exec() {
    ready(Region { base: 0, pages: 0 });
    order();
    let error = super::support::command("touch 1000").exec();
    panic!("{error}");
}

/// Uses processor time until its input ends.
fn spin() {
    ready(Region { base: 0, pages: 0 });
    std::thread::spawn(|| {
        let mut value = 1u64;
        loop {
            value = std::hint::black_box(value.wrapping_mul(3));
        }
    });
    order();
}

/// Gives up root's rights and prints the results of following the given process and itself.
fn unprivileged(process: u32) {
    // SAFETY: has no preconditions; concerns all threads of this process.
    let done = unsafe { (libc::setgid(65_534), libc::setuid(65_534)) };
    assert_eq!(done, (0, 0));
    super::refusals::unprivileged(process, say);
}

/// Runs the role that this process was given; passes at once in a normal test run.
#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (name, number) = role.split_once(' ').unwrap_or((&role, "0"));
    let number: usize = number.parse().expect("a number");
    match name {
        "touch" => touch(number),
        "threads" => threads(number),
        "fork" => fork(),
        "pair" => pair(),
        "exec" => exec(),
        "spin" => spin(),
        "unprivileged" => unprivileged(number as u32),
        _ => panic!("no role {name}"),
    }
    // Skips the harness's own end, and threads that still wait.
    std::process::exit(0);
}

/// Keeps `Command` in use for the roles.
pub(crate) fn binary() -> Command {
    Command::new(std::env::current_exe().expect("this binary"))
}
