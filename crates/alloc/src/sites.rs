//! Allocation sites for a recording: contexts with regions, and so pages, of their own.
//!
//! A program has thousands of contexts, of which few hold memory that matters. A context gets a region once
//! it has allocated as much as [`OWN`]. Until then, and when all regions are taken, its blocks lie in the
//! region [`SHARED`]. The recorder is told of each region once, so what it keeps is bounded however much a
//! program allocates.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use isotherm_alloc_profile::SITE_CALL;

use crate::context::walk::Chain;
use crate::lock::Lock;
use crate::regions;
use crate::text::Text;

/// Region of contexts without one of their own.
pub(crate) const SHARED: usize = 0;
/// Bytes that a context allocates before it gets a region.
const OWN: u64 = 64 << 10;
/// Contexts remembered, a power of two; further ones stay in the shared region.
const SLOTS: usize = 1 << 14;
const PROBES: usize = 16;
/// Bytes of addresses of a region.
pub(crate) const REGION_BYTES: usize = 16 << 30;

static ON: AtomicBool = AtomicBool::new(false);
/// Held by the thread that looks a context up.
pub(crate) static TABLE: Lock<Table> = Lock::new(Table::new());

#[inline(always)]
pub(crate) fn are_on() -> bool {
    ON.load(Relaxed)
}

/// Begins to give regions to contexts, and tells the recorder of the shared one.
pub(crate) fn start() {
    ON.store(true, Relaxed);
    tell(SHARED, &[]);
}

/// Returns the region of a context that allocates `size` bytes now, and whether the context keeps it.
pub(crate) fn region(chain: &Chain, size: usize) -> (usize, bool) {
    let mut table = TABLE.lock();
    let found = table.region(chain.hash, size as u64, regions::count());
    if let (region, Kept::New) = found {
        if !regions::create_arena(region) {
            table.give_back(chain.hash);
            return (SHARED, true);
        }
        tell(region, chain.parts().1);
    }
    (found.0, found.1 != Kept::No)
}

/// Whether a context keeps the region that it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    No,
    Yes,
    /// It is the first to have it.
    New,
}

pub(crate) struct Table {
    contexts: [Context; SLOTS],
    /// Regions given so far; the first is the shared one.
    given: usize,
}

#[derive(Clone, Copy)]
struct Context {
    /// 0 in a free slot.
    hash: u64,
    bytes: u64,
    /// 0 before it has its own.
    region: usize,
}

impl Table {
    const fn new() -> Self {
        Self { contexts: [Context { hash: 0, bytes: 0, region: SHARED }; SLOTS], given: 1 }
    }

    fn region(&mut self, hash: u64, size: u64, count: usize) -> (usize, Kept) {
        let given = self.given;
        let Some(context) = self.context(hash) else { return (SHARED, Kept::Yes) };
        if context.region != SHARED {
            return (context.region, Kept::Yes);
        }
        context.bytes = context.bytes.saturating_add(size);
        if given >= count {
            return (SHARED, Kept::Yes);
        }
        if context.bytes < OWN {
            return (SHARED, Kept::No);
        }
        context.region = given;
        self.given += 1;
        (given, Kept::New)
    }

    /// Takes back the last region given, which has no arena.
    fn give_back(&mut self, hash: u64) {
        if let Some(context) = self.context(hash) {
            context.region = SHARED;
            self.given -= 1;
        }
    }

    /// Returns the slot of a context; `None` if there is no room for it.
    fn context(&mut self, hash: u64) -> Option<&mut Context> {
        let hash = hash.max(1);
        let first = (hash >> 40) as usize;
        let place = (0..PROBES)
            .map(|probe| (first + probe) % SLOTS)
            .find(|&place| [0, hash].contains(&self.contexts[place].hash))?;
        let context = &mut self.contexts[place];
        context.hash = hash;
        Some(context)
    }
}

/// Tells the recorder which return addresses a region's blocks were allocated at, innermost first: by a
/// system call that the kernel refuses and the recorder sees, whose argument is a line of text.
fn tell(region: usize, addresses: &[usize]) {
    let (start, end, _) = regions::get(region).range();
    let mut line = Text::<512>::new();
    let _ = write!(line, "site {start:x} {end:x}");
    for address in addresses {
        let _ = write!(line, " {address:x}");
    }
    let _ = line.write_str("\0");
    // SAFETY: the kernel knows no such option and does nothing. `errno` is this thread's, and the caller of
    // `malloc` finds it as it was.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::syscall(libc::SYS_prctl, SITE_CALL, line.bytes().as_ptr(), 0, 0, 0);
        *errno = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Box<Table> {
        // SAFETY: zeros are a valid table but for the number of regions given.
        let mut table = unsafe { Box::<Table>::new_zeroed().assume_init() };
        table.given = 1;
        table
    }

    #[test]
    fn a_context_gets_a_region_once_it_has_allocated_much() {
        let mut table = table();
        assert_eq!(table.region(5, OWN - 1, 256), (SHARED, Kept::No));
        assert_eq!(table.region(6, 100, 256), (SHARED, Kept::No), "another");
        assert_eq!(table.region(5, 1, 256), (1, Kept::New));
        assert_eq!(table.region(5, 1, 256), (1, Kept::Yes));
        assert_eq!(table.region(7, OWN, 256), (2, Kept::New), "one large block");
        table.give_back(7);
        assert_eq!(table.region(8, OWN, 256), (2, Kept::New));
    }

    #[test]
    fn what_comes_late_shares_a_region() {
        let mut table = table();
        for context in 1..=3 {
            table.region(context << 40, OWN, 4);
        }
        assert_eq!(table.region(9 << 40, OWN, 4), (SHARED, Kept::Yes));
        assert_eq!(table.region(2 << 40, OWN, 4), (2, Kept::Yes));
        // Contexts of one first slot, more than are looked for.
        for context in 0..=PROBES as u64 {
            table.region(77 << 40 | context, 1, 256);
        }
        assert_eq!(table.region(77 << 40 | PROBES as u64, OWN, 256), (SHARED, Kept::Yes));
    }
}
