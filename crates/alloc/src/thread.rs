//! Defines what each thread has: its free lists, its memory of contexts, its explicit caches of jemalloc.

use std::ffi::c_void;
use std::mem::size_of;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::context::memo::Memo;
use crate::context::rules::Rules;
use crate::jemalloc::Place;
use crate::lock::Lock;
use crate::profile::{Entering, Sampler};
use crate::refill::FreeList;
use crate::start::Service;
use crate::{classes, jemalloc, profile, refill, regions, start, sys, tls};

/// The state of a thread. A new one is all zeros; when its thread ends it is kept for another.
#[repr(C, align(64))]
pub(crate) struct ThreadState {
    /// The largest size that the fast path serves.
    pub(crate) fast_limit: usize,
    /// Whether this thread is in the slow path, which a signal handler could have interrupted.
    busy: bool,
    /// How many rounds of destructors it has seen.
    rounds: u8,
    /// The count of unloaded libraries when its memories were last empty.
    epoch: u32,
    /// How often it gave something back to an arena.
    returned: u32,
    /// Which blocks the profile samples.
    pub(crate) sampler: Sampler,
    /// Where its stack ends.
    pub(crate) top: usize,
    /// The explicit cache for each region, plus 1; 0 where there is none yet.
    caches: [u32; regions::MAX],
    /// The next state without a thread.
    next: *mut Self,
    pub(crate) rules: Rules,
    pub(crate) memo: Memo,
}

/// A free list of a state: there are [`classes::COUNT`] for each region, behind the state.
///
/// # Safety
/// There is a list of this number.
#[inline(always)]
pub(crate) unsafe fn list(state: *mut ThreadState, number: usize) -> *mut FreeList {
    // SAFETY: `make` has put them there.
    unsafe { state.add(1).cast::<FreeList>().add(number) }
}

/// States whose threads have ended.
struct Idle(*mut ThreadState);

// SAFETY: a state in the list belongs to who holds the lock.
unsafe impl Send for Idle {}

static IDLE: Lock<Idle> = Lock::new(Idle(ptr::null_mut()));
/// Held by the thread that enters a context in the profile.
pub(crate) static ENTERING: Lock<Entering> = Lock::new(Entering::new());
/// The key whose destructor sees threads end.
static KEY: AtomicU32 = AtomicU32::new(0);
/// How many times libraries were unloaded.
static UNLOADED: AtomicU32 = AtomicU32::new(0);

/// Makes what threads need; false if the system refuses.
pub(crate) fn prepare() -> bool {
    let mut key = 0;
    // SAFETY: the key is written.
    let done = unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) } == 0;
    KEY.store(key, Relaxed);
    done
}

/// Keeps threads from beginning and ending, for a fork.
pub(crate) fn hold() {
    IDLE.take();
    ENTERING.take();
}

/// Lets them again.
pub(crate) fn release_hold() {
    ENTERING.release();
    IDLE.release();
}

/// Notes that code may have gone: what is known about its addresses is forgotten.
pub(crate) fn note_unloaded() {
    UNLOADED.fetch_add(1, Relaxed);
}

/// What serves this thread's call.
pub(crate) enum Access {
    /// Its state.
    Ready(Guard),
    /// The arenas without a cache: the thread is about to end.
    Ending,
    /// Memory that is never given back: the call interrupts another of this thread.
    Nested,
    /// The C library.
    Library,
}

/// This thread's state, until dropped.
pub(crate) struct Guard(*mut ThreadState);

/// Enters the slow path.
pub(crate) fn enter() -> Access {
    let mut state = tls::get();
    if state.is_null() {
        match start::ensure() {
            Service::Regions => {}
            Service::Early => return Access::Nested,
            Service::Library => return Access::Library,
        }
        state = begin();
    }
    if state.is_null() || state == tls::ENDED {
        return Access::Ending;
    }
    // SAFETY: this thread's state. Volatile, since a signal handler of this thread looks at it.
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

/// Gives this thread a state; null if there is no memory.
fn begin() -> *mut ThreadState {
    let state = match reuse() {
        Some(state) => state,
        None => make(),
    };
    if state.is_null() {
        return state;
    }
    // SAFETY: nobody else's by now.
    unsafe {
        (*state).busy = true;
        (*state).rounds = 0;
        (*state).top = stack_top();
    }
    tls::set(state);
    // SAFETY: the key of `prepare`. Should glibc allocate here, the state is busy already.
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
    // SAFETY: a state in the list.
    idle.0 = unsafe { (*state).next };
    Some(state)
}

fn make() -> *mut ThreadState {
    let lists = regions::count() * classes::COUNT;
    let bytes = size_of::<ThreadState>() + lists * size_of::<FreeList>();
    let Some(memory) = sys::memory(bytes) else { return ptr::null_mut() };
    let state = memory.as_ptr().cast::<ThreadState>();
    // SAFETY: zeros are a valid state.
    unsafe { (*state).fast_limit = if profile::get().is_some() { 0 } else { classes::LARGEST } };
    state
}

/// Where the stack of this thread ends. glibc puts a thread's control block there, and names the end of the first.
fn stack_top() -> usize {
    // SAFETY: no arguments.
    if unsafe { libc::gettid() == libc::getpid() } {
        let end = crate::sys::main_stack_end();
        if end != 0 {
            return end;
        }
    }
    tls::thread_pointer()
}

/// The destructor of [`KEY`]. Destructors of other keys may run later and free, so it waits for the third round of four.
extern "C" fn ended(state: *mut c_void) {
    let state = state.cast::<ThreadState>();
    // SAFETY: the thread's state.
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
    // SAFETY: no thread's any more.
    unsafe { (*state).next = idle.0 };
    idle.0 = state;
}

impl Guard {
    /// The state, for the length of the call.
    #[inline(always)]
    pub(crate) fn state(&mut self) -> &mut ThreadState {
        // SAFETY: this thread's own, and the guard is the only way to it while the state is busy.
        unsafe { &mut *self.0 }
    }

    /// The free list of this number.
    pub(crate) fn list(&mut self, number: usize) -> &mut FreeList {
        debug_assert!(number < regions::count() * classes::COUNT);
        // SAFETY: numbers come from regions and classes, for all of which there are lists.
        unsafe { &mut *list(self.0, number) }
    }

    /// The arena of a region, through this thread's cache for it.
    pub(crate) fn place(&mut self, region: usize) -> Place {
        let arena = regions::get(region).arena();
        let cache = &mut self.state().caches[region];
        if *cache == 0 {
            // There can be 4094; threads beyond go without.
            *cache = jemalloc::create_cache().map_or(u32::MAX, |cache| cache + 1);
        }
        match *cache {
            u32::MAX => Place::arena(arena),
            cache => Place::cached(arena, cache - 1),
        }
    }

    /// Counts that something was given back to a region's arena, and lets that give to the system from time to time.
    pub(crate) fn note_returned(&mut self, region: usize) {
        const EVERY: u32 = 64;
        self.state().returned = self.state().returned.wrapping_add(1);
        if self.state().returned.is_multiple_of(EVERY) {
            jemalloc::decay(regions::get(region).arena());
        }
    }

    /// Forgets code that may have been unloaded.
    fn forget_unloaded(&mut self) {
        let (now, state) = (UNLOADED.load(Relaxed), self.state());
        if state.epoch != now {
            state.epoch = now;
            state.memo.clear();
            state.rules.clear();
        }
    }

    /// Gives back all that this thread has cached.
    fn empty(&mut self) {
        for region in 0..regions::count() {
            for class in 0..classes::COUNT {
                refill::give_back(self, region, class, 0);
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
        // SAFETY: this thread's state.
        unsafe { (&raw mut (*self.0).busy).write_volatile(false) };
    }
}
