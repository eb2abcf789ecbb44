//! Words between the program's own threads and the agent: who forks, and where threads live.
//!
//! **Forks.** A child made while pages are armed would miss them. The forking thread raises [`HOLD`] and,
//! unless [`QUIET`] says that nothing is armed, reads the *doorbell*, a missing page that the agent serves:
//! the read returns when all pages are back. The agent lowers `QUIET` before it looks at `HOLD`, the forking
//! thread raises `HOLD` before it looks at `QUIET`: one of the two sees the other.
//!
//! **Threads.** When a thread ends, the kernel clears its thread number in its control block and, unlike
//! everywhere else, does not wait for a missing page there: a thread that joins it would wait for ever. So no
//! stack is ever armed. Threads register where they live before they run ([`note_thread`]), and wait until an
//! arming that may not know of it is over.

use crate::sys::agent as sys;
use crate::sys::pages::PAGE;
use crate::sys::range::Range64;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

/// Most stacks that can be registered; with more, nothing is armed.
const STACKS: usize = 1 << 12;

static CONFIGURED: AtomicBool = AtomicBool::new(false);
static ACTIVE: AtomicBool = AtomicBool::new(false);
static QUIET: AtomicBool = AtomicBool::new(true);
static HOLD: AtomicU64 = AtomicU64::new(0);
static ENDING: AtomicBool = AtomicBool::new(false);
static DOORBELL: AtomicU64 = AtomicU64::new(0);
static ARMING: AtomicU64 = AtomicU64::new(0);
static NOTED: AtomicUsize = AtomicUsize::new(0);
static NOTED_STACKS: [[AtomicU64; 2]; STACKS] = [const { [const { AtomicU64::new(0) }; 2] }; STACKS];

pub(super) fn configure() {
    CONFIGURED.store(true, SeqCst);
}

/// Returns an address in the variables of this library.
pub(super) fn own_variable() -> u64 {
    (&raw const NOTED) as usize as u64
}

/// Tells threads that the agent serves the doorbell from now on.
pub(super) fn activate(doorbell: u64) {
    DOORBELL.store(doorbell, SeqCst);
    ACTIVE.store(true, SeqCst);
}

/// Tells threads that the agent serves no fault any more.
pub(super) fn deactivate() {
    QUIET.store(true, SeqCst);
    ACTIVE.store(false, SeqCst);
}

/// Returns whether the agent may arm something. [`quiet`] must follow in either case.
pub(super) fn begin() -> bool {
    QUIET.store(false, SeqCst);
    HOLD.load(SeqCst) == 0
}

/// Tells threads that nothing is armed or registered.
pub(super) fn quiet() {
    QUIET.store(true, SeqCst);
}

/// Returns whether a thread is forking.
pub(super) fn is_held() -> bool {
    HOLD.load(SeqCst) != 0
}

pub(super) fn end() {
    ENDING.store(true, SeqCst);
    if ACTIVE.load(SeqCst) {
        sys::touch(DOORBELL.load(SeqCst));
    }
}

pub(super) fn is_ending() -> bool {
    ENDING.load(SeqCst)
}

/// Sleeps in short pieces, and stops when the agent is to end.
pub(super) fn sleep_unless_ending(time: std::time::Duration) {
    for _ in 0..10 {
        if !is_ending() {
            std::thread::sleep(time / 10);
        }
    }
}

/// Waits until nothing is armed. Runs in the thread that is about to fork.
pub(super) extern "C" fn before_fork() {
    HOLD.fetch_add(1, SeqCst);
    while ACTIVE.load(SeqCst) && !QUIET.load(SeqCst) {
        sys::touch(DOORBELL.load(SeqCst));
        if !QUIET.load(SeqCst) {
            sys::give_way();
        }
    }
}

/// Lets the agent arm again. Runs in the parent after a fork.
pub(super) extern "C" fn after_fork() {
    HOLD.fetch_sub(1, SeqCst);
}

/// Runs `work`, of which the kernel does not tell the agent, while nothing is armed.
pub fn undisturbed<R>(work: impl FnOnce() -> R) -> R {
    before_fork();
    let result = work();
    after_fork();
    result
}

/// Excludes the range from arming, for good.
pub fn exclude(range: std::ops::Range<u64>) {
    if CONFIGURED.load(SeqCst) && !range.is_empty() {
        add(Range64 { start: range.start, end: range.end });
    }
}

/// Resets the state in a forked child, which has no agent and no other thread.
pub(super) fn reset_in_child() {
    HOLD.store(0, SeqCst);
    ACTIVE.store(false, SeqCst);
    ENDING.store(false, SeqCst);
    QUIET.store(true, SeqCst);
    ARMING.store(0, SeqCst);
}

/// Registers the calling thread's stack and control block; threads call it first. Free without an agent.
pub fn note_thread() {
    if !CONFIGURED.load(SeqCst) {
        return;
    }
    if let Some(stack) = sys::own_stack() {
        note(with_control_block(stack, sys::own_control_block()));
    }
}

/// Returns a thread's stack with its control block, which lies at its upper end (glibc) or above it (musl),
/// and no page more: the program's memory may lie right above, and would never be armed again.
fn with_control_block(stack: Range64, block: u64) -> Range64 {
    let block_end = (block + sys::CONTROL_BLOCK).next_multiple_of(PAGE);
    Range64 { start: stack.start, end: stack.end.max(block_end) }
}

/// Registers the main thread's control block; its stack is known by name.
pub(super) fn note_main() {
    let block = sys::own_control_block() & !(PAGE - 1);
    note(Range64::new(block, 2 * PAGE));
}

fn note(range: Range64) {
    add(range);
    // Touching it brings back what had been armed by then.
    let block = sys::own_control_block();
    sys::touch(block);
    sys::touch((block + sys::CONTROL_BLOCK) & !7);
}

/// Excludes a range; returns when every arming under way knows it.
fn add(range: Range64) {
    if !noted().any(|stack| stack == range) {
        let place = NOTED.fetch_add(1, SeqCst);
        if let Some([start, end]) = NOTED_STACKS.get(place) {
            // In this order a half-written range overlaps nothing; its thread waits below.
            start.store(range.start, SeqCst);
            end.store(range.end, SeqCst);
        }
    }
    let current = ARMING.load(SeqCst);
    while current % 2 == 1 && ARMING.load(SeqCst) == current && ACTIVE.load(SeqCst) {
        sys::give_way();
    }
}

fn noted() -> impl Iterator<Item = Range64> {
    let count = NOTED.load(SeqCst).min(STACKS);
    NOTED_STACKS[..count]
        .iter()
        .map(|[start, end]| Range64 { end: end.load(SeqCst), start: start.load(SeqCst) })
}

/// An arming under way: threads that start wait until it is dropped.
pub(super) struct Arming;

impl Arming {
    pub(super) fn begin() -> Self {
        ARMING.fetch_add(1, SeqCst);
        Self
    }

    /// Returns whether threads may live in the range.
    pub(super) fn concerns(range: Range64) -> bool {
        NOTED.load(SeqCst) > STACKS || noted().any(|stack| stack.overlaps(range))
    }
}

impl Drop for Arming {
    fn drop(&mut self) {
        ARMING.fetch_add(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thread that measures the cost of a fault often gets the addresses right below the program's
    /// memory.
    #[test]
    fn memory_right_above_a_threads_stack_can_be_armed() {
        let noted =
            |stack: Range64, block| with_control_block(stack, block).overlaps(Range64::new(stack.end, PAGE));
        std::thread::spawn(move || {
            let (stack, block) = (sys::own_stack().expect("a stack"), sys::own_control_block());
            let whole = with_control_block(stack, block);
            assert!(whole.covers(Range64::new(block, sys::CONTROL_BLOCK)) && whole.covers(stack));
            assert!(!stack.contains(block) || !noted(stack, block), "{stack:x?} {block:x}");
        })
        .join()
        .expect("no panic");
        let stack = Range64::new(0x10_0000, 16 * PAGE);
        assert!(!noted(stack, stack.end - 2304), "glibc: within the stack's last page");
        assert!(noted(stack, stack.end + 64), "musl: above the stack");
    }
}
