//! A host's memory, passed to a library's policy for the time of a call.

use std::ffi::c_void;
use std::ops::Range;

use isotherm_core::{PageId, TierId, View};
use isotherm_policy::abi::{END, Found, Memory, NOWHERE, Slice, Tier};

/// Buffers for what passes, kept from call to call.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    tiers: Vec<Tier>,
    asked: Vec<Option<TierId>>,
    walked: Vec<(PageId, TierId)>,
    scanned: Vec<(PageId, TierId, bool)>,
    found: Vec<Found>,
}

/// The context of the functions of a [`Memory`].
struct Context<'a> {
    view: &'a mut dyn View,
    buffers: &'a mut Buffers,
}

/// Calls with the memory that the view shows.
pub(crate) fn with<T>(view: &mut dyn View, buffers: &mut Buffers, call: impl FnOnce(&Memory) -> T) -> T {
    let mut tiers = std::mem::take(&mut buffers.tiers);
    tiers.clear();
    tiers.extend((0..view.tiers()).map(|tier| {
        let tier = TierId(tier as u8);
        Tier {
            latency: view.latency(tier),
            capacity: view.capacity(tier),
            free: view.free(tier),
            bandwidth: view.bandwidth(tier),
        }
    }));
    let (pages, page_size) = (view.pages() as u64, view.page_size());
    let mut context = Context { view, buffers };
    let memory = Memory {
        context: (&raw mut context).cast(),
        tiers: Slice::of(&tiers),
        pages,
        page_size,
        tiers_of,
        walk,
        huge_range,
        unit,
    };
    let result = call(&memory);
    context.buffers.tiers = tiers;
    result
}

/// Returns the context of a call.
///
/// # Safety
/// The library passes the context that it got, during the call for which it got it and from one thread.
unsafe fn context<'a>(context: *mut c_void) -> &'a mut Context<'a> {
    // SAFETY: by this function's contract.
    unsafe { &mut *context.cast::<Context<'a>>() }
}

unsafe extern "C" fn tiers_of(own: *mut c_void, pages: Slice<PageId>, tiers: *mut u8) {
    // SAFETY: the library passes its context and valid pages.
    let (own, pages) = unsafe { (context(own), pages.get()) };
    // SAFETY: the library passes a place for as many tiers.
    let tiers = unsafe { std::slice::from_raw_parts_mut(tiers, pages.len()) };
    let number = |tier: Option<TierId>| tier.map_or(NOWHERE, |tier| tier.0);
    let end = own.view.pages();
    if pages.iter().all(|page| page.index() < end) {
        let asked = &mut own.buffers.asked;
        asked.clear();
        asked.resize(pages.len(), None);
        own.view.tiers_of(pages, asked);
        tiers.iter_mut().zip(asked).for_each(|(to, tier)| *to = number(*tier));
        return;
    }
    for (to, &page) in tiers.iter_mut().zip(pages) {
        *to = number((page.index() < end).then(|| own.view.tier_of(page)).flatten());
    }
}

unsafe extern "C" fn walk(
    own: *mut c_void,
    cursor: PageId,
    limit: u64,
    scan: bool,
    found: *mut Slice<Found>,
) -> u64 {
    // SAFETY: the library passes its context.
    let Context { view, buffers } = unsafe { context(own) };
    let end = view.pages();
    let limit = usize::try_from(limit).map_or(end, |limit| limit.min(end));
    buffers.found.clear();
    let mut next = None;
    if cursor.index() < end && scan {
        buffers.scanned.clear();
        next = view.scan_accessed(cursor, limit, &mut buffers.scanned);
        let pages = buffers.scanned.iter();
        buffers.found.extend(pages.map(|&(page, tier, accessed)| Found { page, tier, accessed }));
    } else if cursor.index() < end {
        buffers.walked.clear();
        next = view.walk(cursor, limit, &mut buffers.walked);
        let pages = buffers.walked.iter();
        buffers.found.extend(pages.map(|&(page, tier)| Found { page, tier, accessed: false }));
    }
    // SAFETY: the library passes a place to write to.
    unsafe { found.write(Slice::of(&buffers.found)) };
    next.map_or(END, |page| page.0.into())
}

unsafe extern "C" fn huge_range(own: *mut c_void, page: PageId, end: *mut u32) -> u32 {
    // SAFETY: the library passes its context, and a place to write to.
    unsafe { range(own, page, end, |view, page| view.huge_range(page)) }
}

unsafe extern "C" fn unit(own: *mut c_void, page: PageId, end: *mut u32) -> u32 {
    // SAFETY: the library passes its context, and a place to write to.
    unsafe { range(own, page, end, |view, page| view.unit(page)) }
}

/// Answers with a page's range; one that is not of the run has itself.
///
/// # Safety
/// As for [`context`]; a word can be written to `end`.
unsafe fn range(
    own: *mut c_void,
    page: PageId,
    end: *mut u32,
    of: impl Fn(&dyn View, PageId) -> Range<u32>,
) -> u32 {
    // SAFETY: by this function's contract.
    let own = unsafe { context(own) };
    let range = match page.index() < own.view.pages() {
        true => of(own.view, page),
        false => page.0..page.0.saturating_add(1),
    };
    // SAFETY: by this function's contract.
    unsafe { end.write(range.end) };
    range.start
}
