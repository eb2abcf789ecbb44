//! Starts the allocator at the first call of any function, which the loader may make before `main`.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicU8};

use crate::options::{Options, SMALLEST_REGION};
use crate::thread::Access;
use crate::{fork, options, profile, regions, text, thread};

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
    let done = reserve(&options) && regions::create_arenas() && thread::prepare();
    if done {
        profile::start(&options);
        fork::prepare();
    } else {
        text::print(format_args!(
            "expected addresses for {} regions of {SMALLEST_REGION} bytes or more; \
             the C library's allocator is used",
            options.regions
        ));
    }
    done
}

/// Reserves ranges of the requested size or, under a limit on addresses, smaller ones.
fn reserve(options: &Options) -> bool {
    let halves = std::iter::successors(Some(options.region_bytes), |bytes| Some(bytes / 2));
    halves.take_while(|&bytes| bytes >= SMALLEST_REGION).any(|bytes| regions::reserve(options.regions, bytes))
}
