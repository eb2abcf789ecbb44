//! Starts the allocator at the first call of any function, which the loader may make before `main`.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicU8};

use crate::options::{Options, SMALLEST_REGION};
use crate::thread::Access;
use crate::{fork, misuse, options, profile, regions, sites, sys, text, thread};

const FRESH: u8 = 0;
const STARTING: u8 = 1;
const READY: u8 = 2;
const ABSENT: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(FRESH);
static STARTER: AtomicI32 = AtomicI32::new(0);

/// Starts the allocator unless it has started.
///
/// # Errors
/// The part that serves this thread's calls instead of the regions: [`Access::Nested`] for calls that
/// starting itself makes, [`Access::Library`] if there are not enough addresses.
pub(crate) fn ensure() -> Result<(), Access> {
    loop {
        match STATE.load(Acquire) {
            READY => break Ok(()),
            ABSENT => break Err(Access::Library),
            FRESH if STATE.compare_exchange(FRESH, STARTING, AcqRel, Acquire).is_ok() => {
                STARTER.store(this_thread(), Relaxed);
                let state = if start() { READY } else { ABSENT };
                STATE.store(state, Release);
            }
            STARTING if STARTER.load(Relaxed) == this_thread() => break Err(Access::Nested),
            // SAFETY: the call has no preconditions.
            _ => unsafe {
                libc::sched_yield();
            },
        }
    }
}

fn this_thread() -> i32 {
    // SAFETY: the call has no preconditions.
    unsafe { libc::gettid() }
}

fn start() -> bool {
    let options = Options::from_environment();
    options::put_in_force(&options);
    // With sites, arenas are made as contexts get their regions.
    let made = || if options.sites { regions::create_arena(sites::SHARED) } else { regions::create_arenas() };
    let done = reserve(&options) && made() && thread::prepare();
    if done {
        misuse::start();
        profile::start(&options);
        if options.sites {
            sites::start();
        }
        fork::prepare();
    } else {
        text::print(format_args!(
            "expected addresses for {} regions of {} GiB, which a limit may forbid (RLIMIT_AS); the C library's \
             allocator is used",
            options.regions,
            options.region_bytes as f64 / (1_u64 << 30) as f64
        ));
    }
    done
}

/// Reserves regions of the requested size or, where there are fewer addresses, smaller ones. What a limit
/// allows is left to the program.
fn reserve(options: &Options) -> bool {
    if options.sites {
        return regions::take_unmapped(options.regions, options.region_bytes);
    }
    let halves = std::iter::successors(Some(options.region_bytes), |bytes| Some(bytes / 2));
    let sizes = halves.take_while(|&bytes| bytes >= SMALLEST_REGION);
    let tried = if sys::limit(libc::RLIMIT_AS) == libc::RLIM_INFINITY { usize::MAX } else { 1 };
    sizes.take(tried).any(|bytes| regions::reserve(options.regions, bytes))
}
