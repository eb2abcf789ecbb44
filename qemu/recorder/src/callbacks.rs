//! The functions that QEMU calls. The data registered with a call is a [`Ticket`].
//!
//! Calls are the recorder's main cost. So one call reports nearby accesses that always happen exactly once
//! (see [`crate::group`]). Where those are the block's first, their call also announces the block, which then
//! has no call of its own. Such accesses are counted when the block begins.

use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use isotherm_qemu_api::access::Kind;
use isotherm_qemu_api::{
    Block, BlockCallback, Instruction, MemoryCallback, NO_REGISTERS, PluginId, READS_AND_WRITES,
};

use crate::exec::{self, GUEST_BASE};
use crate::recorder::{self, Recorder};
use crate::summary::{self, Found, Summarizer, Summary, Ticket, Touch};
use crate::{group, mappings, vcpu};

/// Bytes after the first of the longest access that QEMU makes: of a vector register's 16 bytes.
const LONGEST: u8 = 15;

/// Summaries of the blocks translated since the last flush.
static SUMMARIES: Mutex<Vec<Box<[Summary]>>> = Mutex::new(Vec::new());

/// Registers every callback that does not belong to a block.
pub(crate) fn register(recorder: &Recorder, id: PluginId) {
    let api = &recorder.api;
    // SAFETY: `id` is this plugin's, and the callbacks have the types that QEMU expects.
    unsafe {
        (api.on_start)(id, started);
        (api.on_end)(id, ended);
        (api.on_translate)(id, translated);
        (api.on_flush)(id, flushed);
        (api.on_syscall)(id, called);
        (api.on_syscall_return)(id, returned);
        (api.on_exit)(id, exiting, null_mut());
        libc::pthread_atfork(None, None, Some(forked));
    }
}

/// Begins a process with one thread in a child just forked.
extern "C" fn forked() {
    if let Some(recorder) = recorder::get() {
        recorder.cache.reset_threads();
        recorder.begin_copy();
        // Only the thread that forked lives on, but QEMU does not say which one it is: each gets a number
        // when it runs.
        let thread = recorder.next_thread();
        // SAFETY: the child has one thread, which runs no callback now.
        unsafe { vcpu::all() }.for_each(|vcpu| vcpu.adopt(thread));
    }
}

extern "C" fn started(_: PluginId, index: c_uint) {
    if let Some(recorder) = recorder::get() {
        if index > 0 {
            recorder.cache.set_threaded();
        }
        // SAFETY: this is a callback of this vCPU, and there is no other reference.
        unsafe { vcpu::start(index, recorder) };
    }
}

extern "C" fn ended(_: PluginId, index: c_uint) {
    if let Some(recorder) = recorder::get() {
        // SAFETY: as for `started`.
        unsafe { vcpu::get(index) }.end(recorder);
    }
}

extern "C" fn exiting(_: PluginId, _: *mut c_void) {
    if let Some(recorder) = recorder::get() {
        // SAFETY: QEMU stops all other callbacks before this one.
        unsafe { vcpu::all() }.for_each(|vcpu| vcpu.end(recorder));
    }
}

#[allow(clippy::too_many_arguments, reason = "QEMU's signature")]
extern "C" fn called(
    _: PluginId,
    index: c_uint,
    number: i64,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    _: u64,
    _: u64,
    _: u64,
) {
    if let Some(recorder) = recorder::get() {
        // SAFETY: as for `started`; the reference ends before the next call.
        mappings::called(recorder, unsafe { vcpu::get(index) }, number, [a, b, c, d, e]);
        exec::intercept(recorder, index, number, [a, b, c, d, e]);
    }
}

extern "C" fn returned(_: PluginId, index: c_uint, number: i64, result: i64) {
    if let Some(recorder) = recorder::get() {
        // SAFETY: as for `started`.
        mappings::returned(recorder, unsafe { vcpu::get(index) }, number, result);
    }
}

/// Forgets all blocks: QEMU drops its translations while no vCPU runs.
extern "C" fn flushed(_: PluginId) {
    // SAFETY: QEMU stops all vCPUs before it calls.
    unsafe { vcpu::all() }.for_each(|vcpu| vcpu.follower.forget());
    if let Ok(mut summaries) = SUMMARIES.lock() {
        summaries.clear();
    }
}

extern "C" fn translated(_: PluginId, block: *mut Block) {
    let Some(recorder) = recorder::get() else { return };
    // SAFETY: `block` is valid during this call.
    let length = unsafe { (recorder.api.block_length)(block) };
    let mut summarizer = Summarizer::default();
    let (instructions, mut found): (Vec<_>, Vec<_>) =
        (0..length).map(|index| inspect(recorder, &mut summarizer, block, index)).unzip();
    if found.is_empty() {
        return;
    }
    summary::place(&mut found);
    group::find(&mut found);
    if recorder.dependence {
        attach::<true>(recorder, block, &instructions, &found);
    } else {
        attach::<false>(recorder, block, &instructions, &found);
    }
}

fn inspect(
    recorder: &Recorder,
    summarizer: &mut Summarizer,
    block: *mut Block,
    index: usize,
) -> (*mut Instruction, Found) {
    let api = &recorder.api;
    // SAFETY: `index` is an instruction of `block`. The block, its instructions and their bytes are valid
    // during translation.
    unsafe {
        let instruction = (api.instruction)(block, index);
        let (address, bytes) = ((api.address)(instruction), (api.bytes)(instruction));
        if bytes.is_null() {
            return (instruction, summarizer.unknown());
        }
        GUEST_BASE.store((bytes as u64).wrapping_sub(address), Ordering::Relaxed);
        let bytes = std::slice::from_raw_parts(bytes, (api.size)(instruction));
        if summary::is_avx512(bytes) {
            recorder.note_avx512(address);
        }
        (instruction, summarizer.summarize(bytes, address))
    }
}

/// Registers calls for instructions that report accesses, and for the block unless an access announces it.
fn attach<const TRACKED: bool>(
    recorder: &Recorder,
    block: *mut Block,
    instructions: &[*mut Instruction],
    found: &[Found],
) {
    let api = &recorder.api;
    let summaries: Box<[_]> = found.iter().map(|found| found.summary).collect();
    let on_block = |callback: BlockCallback, data| {
        // SAFETY: the block is valid during translation; the data is of the callback's type.
        unsafe { (api.on_block)(block, callback, NO_REGISTERS, data) };
    };
    let first = found.iter().find(|found| found.summary.touches != Touch::Nothing);
    let mut opens = first.is_some_and(|first| first.once);
    if !opens {
        on_block(entered::<TRACKED>, Ticket::new(&summaries[0], 0, false).data());
    }
    let more = summaries[0].once.saturating_sub(summary::COUNTED);
    if more > 0 {
        on_block(counted, std::ptr::without_provenance_mut(more.into()));
    }
    for (index, found) in found.iter().enumerate().filter(|(_, found)| found.tells) {
        let summary = &summaries[index];
        let (callback, reach): (MemoryCallback, _) = match (found.once, std::mem::take(&mut opens)) {
            (false, _) => (alone::<TRACKED>, LONGEST),
            (true, false) => (told::<TRACKED, false>, summary.span),
            (true, true) => (told::<TRACKED, true>, summary.span),
        };
        let stores = summary.group().any(|member| member.touches != Touch::Loads);
        let data = Ticket::new(summary, reach, stores).data();
        // SAFETY: the instruction is valid during translation; the data is of the callback's type.
        unsafe { (api.on_memory)(instructions[index], callback, NO_REGISTERS, READS_AND_WRITES, data) };
    }
    match SUMMARIES.lock() {
        Ok(mut kept) => kept.push(summaries),
        // Callbacks hold pointers to them, so they are never freed.
        Err(_) => drop(Box::leak(summaries)),
    }
}

/// Announces a block; the ticket is one of its instructions'.
extern "C" fn entered<const TRACKED: bool>(index: c_uint, ticket: *mut c_void) {
    // SAFETY: this is a callback of this vCPU, and there is no other reference.
    unsafe { vcpu::get(index) }.enter::<TRACKED>(Ticket::of(ticket));
}

/// Counts those of a block's accesses that are too many for its ticket.
extern "C" fn counted(index: c_uint, count: *mut c_void) {
    // SAFETY: as for `entered`.
    unsafe { vcpu::get(index) }.accesses += count.addr() as u64;
}

/// Reports the accesses of a group, which their block has counted. With `OPENS` it announces the block, too.
extern "C" fn told<const TRACKED: bool, const OPENS: bool>(
    index: c_uint,
    _: u32,
    address: u64,
    ticket: *mut c_void,
) {
    let ticket = Ticket::of(ticket);
    // SAFETY: as for `entered`.
    let vcpu = unsafe { vcpu::get(index) };
    if OPENS {
        vcpu.enter::<TRACKED>(ticket);
    }
    if !vcpu.hits(address, ticket.reach()) {
        replay::<TRACKED, false>(index, address, ticket);
    } else if TRACKED && vcpu.must_follow(address, ticket) {
        replay::<TRACKED, true>(index, address, ticket);
    }
}

/// Reports one access of an instruction that may make any number of them.
extern "C" fn alone<const TRACKED: bool>(index: c_uint, access: u32, address: u64, ticket: *mut c_void) {
    let ticket = Ticket::of(ticket);
    // SAFETY: as for `entered`.
    let vcpu = unsafe { vcpu::get(index) };
    vcpu.accesses += 1;
    if !vcpu.hits(address, ticket.reach()) {
        touch::<TRACKED, false>(index, access, address, ticket);
    } else if TRACKED && vcpu.must_follow(address, ticket) {
        touch::<TRACKED, true>(index, access, address, ticket);
    }
}

/// Makes a group's accesses in program order, the lowest at `address`. With `HITS` all hit in the filter.
#[inline(never)]
extern "C" fn replay<const TRACKED: bool, const HITS: bool>(index: c_uint, address: u64, teller: Ticket) {
    let Some(recorder) = recorder::get() else { return };
    // SAFETY: the callback does not use its own reference after this call. The summary lives as long as the
    // translation, which runs.
    let (vcpu, teller) = unsafe { (vcpu::get(index), teller.summary()) };
    for member in teller.group() {
        let kind = Kind { reach: member.reach.into(), store: member.touches == Touch::Stores };
        vcpu.touch::<TRACKED, HITS>(recorder, kind, address + u64::from(member.offset), member);
    }
}

/// Makes one access. With `HITS` it hits in the filter.
#[inline(never)]
extern "C" fn touch<const TRACKED: bool, const HITS: bool>(
    index: c_uint,
    access: u32,
    address: u64,
    ticket: Ticket,
) {
    let Some(recorder) = recorder::get() else { return };
    let kind = recorder.api.access(access);
    // SAFETY: as for `replay`.
    let (vcpu, summary) = unsafe { (vcpu::get(index), ticket.summary()) };
    vcpu.touch::<TRACKED, HITS>(recorder, kind, address, summary);
}
