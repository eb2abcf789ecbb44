//! A thread's state: its free lists, its memory of contexts, its explicit caches of jemalloc.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

use crate::context::memo::Memo;
use crate::context::rules::Rules;
use crate::jemalloc::Place;
use crate::lock::Lock;
use crate::profile::{Entering, Sampler};
use crate::refill::FreeList;
use crate::{classes, jemalloc, profile, refill, regions, sites, start, sys, tls};

/// State of a thread. A new one is all zeros; when its thread ends it is kept for another.
#[repr(C, align(64))]
pub(crate) struct ThreadState {
    /// Largest size that the fast path serves, in bytes.
    pub(crate) fast_limit: usize,
    /// Whether this thread is in the slow path, which a signal handler may have interrupted.
    busy: AtomicBool,
    /// Rounds of destructors seen.
    rounds: u8,
    /// Value of [`UNLOADED`] when the memories of addresses were last cleared.
    epoch: u32,
    returned: u32,
    /// First place behind the arrays of the free lists.
    places: *mut *mut c_void,
    pub(crate) sampler: Sampler,
    pub(crate) top: usize,
    /// Explicit cache for each region, plus 1; 0 before there is one.
    caches: [u32; regions::MAX],
    /// Next state without a thread.
    next: *mut Self,
    /// The state made before this one.
    older: *mut Self,
    pub(crate) rules: Rules,
    pub(crate) memo: Memo,
}

/// Returns a free list of a state, which is followed by [`crate::page_map::NO_LIST`], the lists of each
/// region, and the arrays of these lists.
///
/// # Safety
/// `state` came from [`make`], and `number` is below the number of its lists.
#[inline(always)]
pub(crate) unsafe fn list(state: *mut ThreadState, number: usize) -> *mut FreeList {
    // SAFETY: `make` allocated the lists right behind the state, in one mapping.
    unsafe { state.add(1).cast::<FreeList>().add(number) }
}

struct Idle(*mut ThreadState);

// SAFETY: a state in the list belongs to the holder of the lock.
unsafe impl Send for Idle {}

static IDLE: Lock<Idle> = Lock::new(Idle(ptr::null_mut()));
/// Held by the thread that enters a context in the profile.
pub(crate) static ENTERING: Lock<Entering> = Lock::new(Entering::new());
/// Key whose destructor runs when a thread ends.
static KEY: AtomicU32 = AtomicU32::new(0);
static UNLOADED: AtomicU32 = AtomicU32::new(0);

/// Creates the key whose destructor sees threads end. Returns false if the system refuses.
pub(crate) fn prepare() -> bool {
    let mut key = 0;
    // SAFETY: the key can be written, and the destructor stays loaded as long as the process.
    let done = unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) } == 0;
    KEY.store(key, Relaxed);
    done
}

/// All states, the latest first.
static STATES: AtomicPtr<ThreadState> = AtomicPtr::new(ptr::null_mut());
static FORKS: Lock<()> = Lock::new(());
/// The value of [`tls::get`] in the thread that forks, null if none does.
static FORKING: AtomicPtr<ThreadState> = AtomicPtr::new(ptr::null_mut());
/// Number of threads without a state that are in jemalloc.
static OUTSIDE: AtomicU32 = AtomicU32::new(0);

/// Keeps threads out of jemalloc, and from beginning and ending, during a fork. jemalloc's own handlers do
/// not take every lock (its page map's, `rtree->init_lock`, which a thread may hold whose first attempt to
/// get memory failed), and a child could wait for such a lock forever.
pub(crate) extern "C" fn hold() {
    FORKS.take();
    let own = tls::get();
    FORKING.store(if own.is_null() { tls::ENDED } else { own }, SeqCst);
    // Brief, unless a thread waits for what this one holds, which must not stop the fork: a second at most.
    for _ in 0..20_000 {
        if OUTSIDE.load(SeqCst) == 0 && !states().any(|state| is_busy(state) && state != own) {
            break;
        }
        // SAFETY: the call has no preconditions.
        unsafe { libc::usleep(50) };
    }
    IDLE.take();
    sites::TABLE.take();
    ENTERING.take();
}

pub(crate) extern "C" fn release_hold() {
    ENTERING.release();
    sites::TABLE.release();
    IDLE.release();
    FORKING.store(ptr::null_mut(), Release);
    FORKS.release();
}

/// Forgets the threads that the child of a fork lacks.
pub(crate) fn forget_others() {
    OUTSIDE.store(0, Relaxed);
    states().filter(|&state| state != tls::get()).for_each(|state| set_busy(state, false));
}

fn states() -> impl Iterator<Item = *mut ThreadState> {
    let state = |state: *mut ThreadState| (!state.is_null()).then_some(state);
    // SAFETY: states stay mapped, and the link was written before the state was put into the list.
    std::iter::successors(state(STATES.load(Acquire)), move |&newer| state(unsafe { (*newer).older }))
}

fn is_busy(state: *mut ThreadState) -> bool {
    // SAFETY: states stay mapped, and other threads reach only the flag.
    unsafe { (*state).busy.load(SeqCst) }
}

fn set_busy(state: *mut ThreadState, busy: bool) {
    // SAFETY: as in `is_busy`. The order is that of [`may_go_on`].
    unsafe { (*state).busy.swap(busy, SeqCst) };
}

/// Returns whether no other thread forks. A thread is counted as in jemalloc before it asks, and a fork is
/// announced before it looks, so one of the two sees the other.
fn may_go_on() -> bool {
    let forking = FORKING.load(SeqCst);
    forking.is_null() || forking == tls::get()
}

fn wait() {
    // SAFETY: the call has no preconditions.
    unsafe { libc::sched_yield() };
}

/// A thread without a state in jemalloc, until dropped.
pub(crate) struct Outside(());

impl Outside {
    fn enter() -> Self {
        loop {
            OUTSIDE.fetch_add(1, SeqCst);
            if may_go_on() {
                break Self(());
            }
            OUTSIDE.fetch_sub(1, SeqCst);
            wait();
        }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        OUTSIDE.fetch_sub(1, Release);
    }
}

/// Notes that code may be gone: threads then forget what they know about its addresses.
pub(crate) fn note_unloaded() {
    UNLOADED.fetch_add(1, Relaxed);
}

/// The part that serves this thread's call.
pub(crate) enum Access {
    Ready(Guard),
    /// The arenas without a cache: the thread is about to end, or there is no memory for a state.
    Ending(Outside),
    /// Early or deferred blocks: the call interrupts another of this thread.
    Nested,
    Library,
}

/// Exclusive access to this thread's state until dropped.
pub(crate) struct Guard(*mut ThreadState);

pub(crate) fn enter() -> Access {
    let mut state = tls::get();
    if state.is_null() {
        if let Err(access) = start::ensure() {
            return access;
        }
        state = begin();
    }
    if state.is_null() || state == tls::ENDED {
        return Access::Ending(Outside::enter());
    }
    if is_busy(state) {
        return Access::Nested;
    }
    loop {
        set_busy(state, true);
        if may_go_on() {
            break;
        }
        set_busy(state, false);
        wait();
    }
    let mut guard = Guard(state);
    guard.forget_unloaded();
    Access::Ready(guard)
}

fn begin() -> *mut ThreadState {
    let state = reuse().unwrap_or_else(make);
    if state.is_null() {
        return state;
    }
    // SAFETY: the state is new or was taken from the idle list, so only this thread has it.
    unsafe {
        (*state).rounds = 0;
        (*state).top = stack_top();
    }
    set_busy(state, true);
    tls::set(state);
    // SAFETY: `prepare` made the key. If glibc allocates here, the state is already busy.
    unsafe { libc::pthread_setspecific(KEY.load(Relaxed), state.cast()) };
    set_busy(state, false);
    state
}

fn reuse() -> Option<*mut ThreadState> {
    let mut idle = IDLE.lock();
    let state = idle.0;
    if state.is_null() {
        return None;
    }
    // SAFETY: a state in the list is mapped, and the lock is held.
    idle.0 = unsafe { (*state).next };
    Some(state)
}

fn make() -> *mut ThreadState {
    let lists = classes::list(regions::count(), 0);
    let places = regions::count() * classes::PLACES;
    let bytes = size_of::<ThreadState>() + lists * size_of::<FreeList>() + places * size_of::<*mut c_void>();
    let Some(memory) = sys::memory(bytes) else { return ptr::null_mut() };
    let state = memory.as_ptr().cast::<ThreadState>();
    // SAFETY: the mapping is large enough and page-aligned; all zeros are a valid state and lists.
    unsafe {
        (*state).fast_limit = if profile::get().is_some() { 0 } else { classes::LARGEST };
        (*state).places = list(state, lists).cast();
        let link = &raw mut (*state).older;
        let _ = STATES.fetch_update(AcqRel, Acquire, |older| {
            *link = older;
            Some(state)
        });
    }
    state
}

/// Returns the end of this thread's stack, where glibc puts the control block of all but the main thread.
fn stack_top() -> usize {
    // SAFETY: the calls have no preconditions.
    if unsafe { libc::gettid() == libc::getpid() } {
        let end = sys::main_stack_end();
        if end != 0 {
            return end;
        }
    }
    tls::thread_pointer()
}

/// Destructor of [`KEY`]. Those of other keys may still free, so it waits for the third round of four.
extern "C" fn ended(state: *mut c_void) {
    let state = state.cast::<ThreadState>();
    // SAFETY: glibc passes the key's value, this thread's state; `busy` keeps handlers out.
    unsafe {
        (*state).rounds += 1;
        if (*state).rounds < 3 {
            libc::pthread_setspecific(KEY.load(Relaxed), state.cast());
            return;
        }
        set_busy(state, true);
        Guard(state).empty();
    }
    tls::set(tls::ENDED);
    let mut idle = IDLE.lock();
    // SAFETY: the thread's word no longer names the state, and the lock is held.
    unsafe { (*state).next = idle.0 };
    idle.0 = state;
}

impl Guard {
    #[inline(always)]
    pub(crate) fn state(&mut self) -> &mut ThreadState {
        // SAFETY: the state is this thread's, and while it is busy this guard is the only way to it.
        unsafe { &mut *self.0 }
    }

    pub(crate) fn list(&mut self, number: usize) -> &mut FreeList {
        debug_assert!(number < classes::list(regions::count(), 0));
        // SAFETY: `make` made the state with lists for the numbers of all regions and classes.
        unsafe { &mut *list(self.0, number) }
    }

    /// Returns `count` places for a list that has fewer.
    pub(crate) fn places(&mut self, count: u32) -> *mut *mut c_void {
        let places = self.state().places;
        self.state().places = places.wrapping_add(count as usize);
        places
    }

    /// Names the arena of a region through this thread's cache for it.
    pub(crate) fn place(&mut self, region: usize) -> Place {
        let arena = regions::get(region).arena();
        let cache = &mut self.state().caches[region];
        if *cache == 0 {
            // jemalloc has at most 4094 explicit caches; further threads have none.
            *cache = jemalloc::create_cache().map_or(u32::MAX, |cache| cache + 1);
        }
        match *cache {
            u32::MAX => Place::arena(arena),
            cache => Place::cached(arena, cache - 1),
        }
    }

    /// Counts a return to a region's arena, and every 64th time lets the arena return pages to the system.
    pub(crate) fn note_returned(&mut self, region: usize) {
        const EVERY: u32 = 64;
        self.state().returned = self.state().returned.wrapping_add(1);
        if self.state().returned.is_multiple_of(EVERY) {
            jemalloc::decay(regions::get(region).arena());
        }
    }

    fn forget_unloaded(&mut self) {
        let (now, state) = (UNLOADED.load(Relaxed), self.state());
        if state.epoch != now {
            state.epoch = now;
            state.memo.clear();
            state.rules.clear();
        }
    }

    fn empty(&mut self) {
        for region in 0..regions::count() {
            for number in classes::lists(region) {
                refill::give_back(self, number, 0);
            }
            match self.state().caches[region] {
                0 => {}
                u32::MAX => self.state().caches[region] = 0,
                cache => jemalloc::flush_cache(cache - 1),
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: the state is this thread's and stays mapped.
        unsafe { (*self.0).busy.store(false, Release) };
    }
}
