//! Words between the program's own threads and the agent: who changes the memory's shape, and what may never
//! be armed.
//!
//! **Quiet times.** A child made while pages are armed would miss them, and some changes of mappings fail on
//! registered memory. The thread that makes one raises `hold` and, while `busy` says that something is armed,
//! reads the *doorbell*, a missing page that the agent serves: the read returns when all pages are back. The
//! agent raises `busy` before it looks at `hold`, the thread raises `hold` before it looks at `busy`: one of
//! the two sees the other. The words are zero in every child of a fork, which has no agent.
//!
//! **Excluded memory.** When a thread ends, the kernel clears a word in its control block and walks its list
//! of robust mutexes and, unlike everywhere else, does not wait for a missing page: who waits for the word or
//! the mutex would wait for ever. So no stack with its control block, no page with a robust mutex and no page
//! with such a word is ever armed. Threads register where they live before they run ([`note_thread`]), and
//! wait until an arming that may not know of it is over.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

use crate::clock;
use crate::sys::agent as sys;
use crate::sys::mmap::WipedOnFork;
use crate::sys::pages::PAGE;
use crate::sys::plain::plain;
use crate::sys::range::Range64;

/// Most excluded ranges: as many threads may live at a time. With more, nothing is armed.
const SLOTS: usize = 1 << 14;
/// Owner of a slot: free, being filled, or excluded for good; otherwise a thread's number.
const FREE: u64 = 0;
const CLAIMED: u64 = u64::MAX;
const FOR_GOOD: u64 = u64::MAX - 1;

/// Longest wait of a thread for the agent's end, in nanoseconds.
const PATIENCE: u64 = 1_000_000_000;

/// All zero: no agent, nothing armed.
struct Gate {
    /// Whether the agent serves the doorbell.
    active: AtomicU64,
    /// Whether something may be armed or registered.
    busy: AtomicU64,
    /// How many threads want nothing to be armed.
    hold: AtomicU64,
    doorbell: AtomicU64,
    /// Odd while an arming is under way.
    arming: AtomicU64,
    /// Whether the agent is to end.
    ending: AtomicU64,
    /// The agent's process, whose calls are not the program's.
    agent: AtomicU64,
    /// The program's process, whose first thread has the same number.
    program: AtomicU64,
}

plain!(Atomics for Gate { active, busy, hold, doorbell, arming, ending, agent, program });

struct Slot {
    range: [AtomicU64; 2],
    owner: AtomicU64,
}

static GATE: OnceLock<WipedOnFork<Gate>> = OnceLock::new();
static SLOT: [Slot; SLOTS] =
    [const { Slot { range: [const { AtomicU64::new(0) }; 2], owner: AtomicU64::new(FREE) } }; SLOTS];
/// One past the last slot that was ever used.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Whether a range found no slot: it might be anywhere.
static CROWDED: AtomicBool = AtomicBool::new(false);
/// Whether the program has laid a system call filter over itself.
static FILTERED: AtomicBool = AtomicBool::new(false);

/// Makes the words. Returns false without memory: then no agent may start.
pub(super) fn configure() -> bool {
    let Ok(gate) = WipedOnFork::new() else { return false };
    GATE.set(gate).is_ok()
}

/// Returns memory that the agent itself must reach: its words and this library's variables.
pub(super) fn own() -> [Range64; 2] {
    let words = GATE.get().map(WipedOnFork::range).unwrap_or_default();
    [words, Range64::new((&raw const SLOT) as usize as u64, size_of_val(&SLOT) as u64)]
}

/// Notes the process that gets an agent.
pub(super) fn set_program(program: u32) {
    if let Some(gate) = GATE.get() {
        gate.program.store(u64::from(program), SeqCst);
    }
}

/// Tells that the calling process is the agent.
pub(super) fn enter() {
    if let Some(gate) = GATE.get() {
        gate.agent.store(u64::from(sys::process_number()), SeqCst);
    }
}

/// Tells threads that the agent serves the doorbell from now on.
pub(super) fn activate(doorbell: u64) {
    if let Some(gate) = GATE.get() {
        gate.doorbell.store(doorbell, SeqCst);
        gate.active.store(1, SeqCst);
    }
}

/// Tells threads that the agent serves no fault any more.
pub(super) fn deactivate() {
    if let Some(gate) = GATE.get() {
        gate.busy.store(0, SeqCst);
        gate.active.store(0, SeqCst);
    }
}

/// Returns whether the agent may arm something. [`quiet`] must follow in either case.
pub(super) fn begin() -> bool {
    GATE.get().is_some_and(|gate| {
        gate.busy.store(1, SeqCst);
        gate.hold.load(SeqCst) == 0
    })
}

/// Tells threads that nothing is armed or registered.
pub(super) fn quiet() {
    if let Some(gate) = GATE.get() {
        gate.busy.store(0, SeqCst);
    }
}

/// Returns whether a thread wants nothing to be armed.
pub(super) fn is_held() -> bool {
    GATE.get().is_some_and(|gate| gate.hold.load(SeqCst) != 0)
}

pub(super) fn is_ending() -> bool {
    GATE.get().is_some_and(|gate| gate.ending.load(SeqCst) != 0)
}

pub(super) fn is_crowded() -> bool {
    CROWDED.load(SeqCst)
}

/// Ends the agent for good; returns when nothing is armed and the engine is told so.
pub fn give_up() {
    if let Some(gate) = GATE.get() {
        gate.ending.store(1, SeqCst);
        undisturbed(|| {
            let begin = clock::monotonic().0;
            // A killed agent does not answer.
            while gate.active.load(SeqCst) != 0 && clock::monotonic().0 - begin < PATIENCE {
                sys::give_way();
            }
        });
    }
}

/// Waits until nothing is armed. Runs in the thread that is about to fork.
pub(super) extern "C" fn before_fork() {
    let Some(gate) = GATE.get() else { return };
    gate.hold.fetch_add(1, SeqCst);
    while gate.active.load(SeqCst) != 0 && gate.busy.load(SeqCst) != 0 {
        sys::touch(gate.doorbell.load(SeqCst));
        if gate.busy.load(SeqCst) != 0 {
            sys::give_way();
        }
    }
}

/// Lets the agent arm again. Runs in the parent after a fork.
pub(super) extern "C" fn after_fork() {
    if let Some(gate) = GATE.get() {
        gate.hold.fetch_sub(1, SeqCst);
    }
}

/// Runs `work`, of which the kernel does not tell the agent, while nothing is armed.
pub fn undisturbed<R>(work: impl FnOnce() -> R) -> R {
    before_fork();
    let result = work();
    after_fork();
    result
}

/// Excludes the range from arming, for good; returns when nothing in it is armed.
pub fn exclude(range: std::ops::Range<u64>) {
    let range = Range64 { start: range.start & !(PAGE - 1), end: range.end.next_multiple_of(PAGE) };
    let known = || slots().any(|(excluded, owner)| owner == FOR_GOOD && excluded.covers(range));
    if GATE.get().is_some() && range.start < range.end && !known() {
        add(range, FOR_GOOD);
        undisturbed(|| ());
    }
}

/// Returns whether the calling process is the agent.
pub fn is_agent() -> bool {
    let agent = GATE.get().map_or(0, |gate| gate.agent.load(SeqCst));
    agent != 0 && agent == u64::from(sys::process_number())
}

/// Returns whether the calling thread is the first of a program with an agent; one of a child that shares the
/// program's memory (vfork) is not.
pub fn is_first_thread() -> bool {
    GATE.get().is_some_and(|gate| gate.program.load(SeqCst) == u64::from(sys::thread_number()))
}

/// Notes that the program filters its system calls: its children could not run an agent.
pub fn note_filter() {
    FILTERED.store(true, SeqCst);
}

pub(super) fn is_filtered() -> bool {
    FILTERED.load(SeqCst)
}

/// Registers the calling thread's stack and control block; threads call it first. Free without an agent.
pub fn note_thread() {
    if GATE.get().is_none() {
        return;
    }
    if let Some(stack) = sys::own_stack() {
        note(with_control_block(stack, sys::own_control_block()), u64::from(sys::thread_number()));
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
    note(Range64::new(block, 2 * PAGE), FOR_GOOD);
}

fn note(range: Range64, owner: u64) {
    add(range, owner);
    // Touching it brings back what had been armed by then.
    let block = sys::own_control_block();
    sys::touch(block);
    sys::touch((block + sys::CONTROL_BLOCK) & !7);
}

/// Excludes a range; returns when every arming under way knows it.
fn add(range: Range64, owner: u64) {
    if !renew(range, owner) && !take_slot(range, owner) {
        CROWDED.store(true, SeqCst);
    }
    let Some(gate) = GATE.get() else { return };
    let current = gate.arming.load(SeqCst);
    while current % 2 == 1 && gate.arming.load(SeqCst) == current && gate.active.load(SeqCst) != 0 {
        sys::give_way();
    }
}

/// Gives a slot of the same range, whose thread has ended, to its new thread: stacks are used again.
fn renew(range: Range64, owner: u64) -> bool {
    SLOT[..USED.load(SeqCst)].iter().any(|slot| {
        let before = slot.owner.load(SeqCst);
        let same = !matches!(before, FREE | CLAIMED) && slot.range() == range;
        same && slot.owner.compare_exchange(before, owner, SeqCst, SeqCst).is_ok()
    })
}

fn take_slot(range: Range64, owner: u64) -> bool {
    for (at, slot) in SLOT.iter().enumerate() {
        if slot.owner.load(SeqCst) == FREE
            && slot.owner.compare_exchange(FREE, CLAIMED, SeqCst, SeqCst).is_ok()
        {
            // In this order a half-written range overlaps nothing; its thread waits in `add`.
            slot.range[0].store(range.start, SeqCst);
            slot.range[1].store(range.end, SeqCst);
            slot.owner.store(owner, SeqCst);
            USED.fetch_max(at + 1, SeqCst);
            return true;
        }
    }
    false
}

impl Slot {
    fn range(&self) -> Range64 {
        Range64 { end: self.range[1].load(SeqCst), start: self.range[0].load(SeqCst) }
    }
}

fn slots() -> impl Iterator<Item = (Range64, u64)> {
    SLOT[..USED.load(SeqCst)]
        .iter()
        .map(|slot| (slot.range(), slot.owner.load(SeqCst)))
        .filter(|(_, owner)| *owner != FREE)
}

/// Returns no less than the number of slots in use.
pub(super) fn slots_in_use() -> usize {
    USED.load(SeqCst)
}

/// Forgets ranges of threads that have ended, so that their memory can be armed again and slots last for any
/// number of threads. Returns how many slots are in use. Only the agent calls it.
pub(super) fn forget_ended(exists: impl Fn(u32) -> bool) -> usize {
    let (mut kept, mut last) = (0, 0);
    let used = USED.load(SeqCst);
    for (at, slot) in SLOT[..used].iter().enumerate() {
        let owner = slot.owner.load(SeqCst);
        if owner == FREE {
            continue;
        }
        let ended = !matches!(owner, CLAIMED | FOR_GOOD) && !exists(owner as u32);
        // A new thread on the same stack may have taken the slot over meanwhile.
        if ended && slot.owner.compare_exchange(owner, CLAIMED, SeqCst, SeqCst).is_ok() {
            slot.range[1].store(0, SeqCst);
            slot.owner.store(FREE, SeqCst);
        } else {
            (kept, last) = (kept + 1, at + 1);
        }
    }
    // A thread may have taken a slot beyond `last` meanwhile; nothing is armed before this is put right.
    let shrunk = USED.compare_exchange(used, last, SeqCst, SeqCst).is_ok();
    if shrunk && SLOT[last..used].iter().any(|slot| slot.owner.load(SeqCst) != FREE) {
        USED.fetch_max(used, SeqCst);
    }
    kept
}

/// An arming under way: threads that start wait until it is dropped.
pub(super) struct Arming;

impl Arming {
    pub(super) fn begin() -> Self {
        count_arming();
        Self
    }

    /// Returns the first part of the range that may be armed; an empty one at its end if there is none.
    pub(super) fn allowed(range: Range64) -> Range64 {
        let nothing = Range64 { start: range.end, end: range.end };
        if is_crowded() {
            return nothing;
        }
        let mut start = range.start;
        while let Some((excluded, _)) = slots().find(|(excluded, _)| excluded.contains(start)) {
            start = excluded.end;
        }
        if start >= range.end {
            return nothing;
        }
        let rest = Range64 { start, end: range.end };
        let end = slots().filter(|(excluded, _)| excluded.overlaps(rest)).map(|(excluded, _)| excluded.start);
        Range64 { start, end: end.min().unwrap_or(range.end) }
    }
}

impl Drop for Arming {
    fn drop(&mut self) {
        count_arming();
    }
}

fn count_arming() {
    if let Some(gate) = GATE.get() {
        gate.arming.fetch_add(1, SeqCst);
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
