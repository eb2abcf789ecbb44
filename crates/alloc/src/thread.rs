//! A thread's state: its free lists, its memory of contexts, its explicit caches of jemalloc.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::context::memo::Memo;
use crate::context::rules::Rules;
use crate::jemalloc::Place;
use crate::lock::Lock;
use crate::profile::{Entering, Sampler};
use crate::refill::FreeList;
use crate::{classes, jemalloc, profile, refill, regions, start, sys, tls};

/// State of a thread. A new one is all zeros; when its thread ends it is kept for another.
#[repr(C, align(64))]
pub(crate) struct ThreadState {
    /// Largest size that the fast path serves, in bytes.
    pub(crate) fast_limit: usize,
    /// Whether this thread is in the slow path, which a signal handler may have interrupted.
    busy: bool,
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

/// Keeps threads from beginning and ending during a fork.
pub(crate) extern "C" fn hold() {
    IDLE.take();
    ENTERING.take();
}

pub(crate) extern "C" fn release_hold() {
    ENTERING.release();
    IDLE.release();
}

/// Notes that code may be gone: threads then forget what they know about its addresses.
pub(crate) fn note_unloaded() {
    UNLOADED.fetch_add(1, Relaxed);
}

/// The part that serves this thread's call.
pub(crate) enum Access {
    Ready(Guard),
    /// The arenas without a cache: the thread is about to end, or there is no memory for a state.
    Ending,
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
        return Access::Ending;
    }
    // SAFETY: the state is this thread's and stays. Volatile, because a handler of this thread reads it.
    unsafe {
        if (&raw const (*state).busy).read_volatile() {
            return Access::Nested;
        }
        (&raw mut (*state).busy).write_volatile(true);
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
        (*state).busy = true;
        (*state).rounds = 0;
        (*state).top = stack_top();
    }
    tls::set(state);
    // SAFETY: `prepare` made the key. If glibc allocates here, the state is already busy.
    unsafe {
        libc::pthread_setspecific(KEY.load(Relaxed), state.cast());
        (*state).busy = false;
    }
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
        (*state).busy = true;
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
        unsafe { (&raw mut (*self.0).busy).write_volatile(false) };
    }
}
