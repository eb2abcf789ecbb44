//! Defines the functions that QEMU calls.
//!
//! The data registered with a call is a pointer to a [`Summary`].
//!
//! A call costs as much as what it does. So accesses that always happen once and are close to each other are told of
//! together, see [`crate::group`]; where those are the block's first, their call also says that the block begins, and
//! the block has no call of its own; and they are counted when the block begins.

use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use crate::access::{self, Kind};
use crate::api::{
    Block, BlockCallback, Instruction, MemoryCallback, NO_REGISTERS, PluginId, READS_AND_WRITES,
};
use crate::exec::{self, GUEST_BASE};
use crate::recorder::{self, Recorder};
use crate::summary::{self, Found, Summarizer, Summary, Touch};
use crate::{group, vcpu};

/// Summaries of the blocks translated since the last flush.
static SUMMARIES: Mutex<Vec<Box<[Summary]>>> = Mutex::new(Vec::new());

/// Registers everything that is not registered block by block.
pub(crate) fn register(recorder: &Recorder, id: PluginId) {
    let api = &recorder.api;
    // SAFETY: `id` is ours, and the callbacks have the types that QEMU expects.
    unsafe {
        (api.on_start)(id, started);
        (api.on_end)(id, ended);
        (api.on_translate)(id, translated);
        (api.on_flush)(id, flushed);
        (api.on_syscall)(id, called);
        (api.on_exit)(id, exiting, null_mut());
        libc::pthread_atfork(None, None, Some(forked));
    }
}

unsafe extern "C" fn forked() {
    recorder::forked();
}

extern "C" fn started(_: PluginId, index: c_uint) {
    if let Some(recorder) = recorder::get() {
        if index > 0 {
            recorder.cache.set_threaded();
        }
        vcpu::start(index, recorder);
    }
}

extern "C" fn ended(_: PluginId, index: c_uint) {
    if let Some(recorder) = recorder::get() {
        vcpu::get(index).end(recorder);
    }
}

extern "C" fn exiting(_: PluginId, _: *mut c_void) {
    if let Some(recorder) = recorder::get() {
        vcpu::all().for_each(|vcpu| vcpu.end(recorder));
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
        exec::intercept(recorder, index, number, [a, b, c, d, e]);
    }
}

/// QEMU drops all translations; no vCPU runs meanwhile.
extern "C" fn flushed(_: PluginId) {
    vcpu::all().for_each(vcpu::Vcpu::forget_blocks);
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
    // SAFETY: `index` is an instruction of `block`, which is valid during translation, and so are its bytes.
    unsafe {
        let instruction = (api.instruction)(block, index);
        let (address, bytes) = ((api.address)(instruction), (api.bytes)(instruction));
        if bytes.is_null() {
            return (instruction, summarizer.unknown());
        }
        GUEST_BASE.store((bytes as u64).wrapping_sub(address), Ordering::Relaxed);
        let bytes = std::slice::from_raw_parts(bytes, (api.size)(instruction));
        (instruction, summarizer.summarize(bytes, address))
    }
}

/// Registers a call with the block, unless an access tells of its beginning, and with each instruction that tells of
/// accesses.
fn attach<const TRACKED: bool>(
    recorder: &Recorder,
    block: *mut Block,
    instructions: &[*mut Instruction],
    found: &[Found],
) {
    let summaries: Box<[_]> = found.iter().map(|found| found.summary).collect();
    let data = |index: usize| std::ptr::from_ref(&summaries[index]).cast_mut().cast::<c_void>();
    let first = found.iter().find(|found| found.summary.touches != Touch::Nothing);
    let mut opens = first.is_some_and(|first| first.once);
    if !opens {
        let entered: BlockCallback = entered::<TRACKED>;
        // SAFETY: the block is valid during translation; the data fits the callback.
        unsafe { (recorder.api.on_block)(block, entered, NO_REGISTERS, data(0)) };
    }
    for (index, found) in found.iter().enumerate().filter(|(_, found)| found.tells) {
        let callback: MemoryCallback = match (found.once, std::mem::take(&mut opens)) {
            (false, _) => alone::<TRACKED>,
            (true, false) => told::<TRACKED, false>,
            (true, true) => told::<TRACKED, true>,
        };
        // SAFETY: the instruction is valid during translation; the data fits the callback.
        unsafe {
            (recorder.api.on_memory)(
                instructions[index],
                callback,
                NO_REGISTERS,
                READS_AND_WRITES,
                data(index),
            );
        }
    }
    match SUMMARIES.lock() {
        Ok(mut kept) => kept.push(summaries),
        // Never freed then, since callbacks hold pointers to it.
        Err(_) => drop(Box::leak(summaries)),
    }
}

/// A block begins, of which `summary` is one.
extern "C" fn entered<const TRACKED: bool>(index: c_uint, summary: *mut c_void) {
    // SAFETY: registered with this callback, and alive as long as the translation.
    vcpu::get(index).enter::<TRACKED>(unsafe { &*summary.cast::<Summary>() });
}

/// The accesses of a group, counted with their block; with `OPENS` the block begins too.
extern "C" fn told<const TRACKED: bool, const OPENS: bool>(
    index: c_uint,
    _: u32,
    address: u64,
    summary: *mut c_void,
) {
    let vcpu = vcpu::get(index);
    // SAFETY: registered with this callback, and alive as long as the translation.
    let summary = unsafe { &*summary.cast::<Summary>() };
    if OPENS {
        vcpu.enter::<TRACKED>(summary);
    }
    if !vcpu.hits(address, u64::from(summary.span)) {
        replay::<TRACKED, false>(index, address, summary);
    } else if TRACKED && vcpu.is_tracking() {
        replay::<TRACKED, true>(index, address, summary);
    }
}

/// An access of an instruction that may make any number of them.
extern "C" fn alone<const TRACKED: bool>(index: c_uint, access: u32, address: u64, summary: *mut c_void) {
    let vcpu = vcpu::get(index);
    vcpu.count();
    // SAFETY: registered with this callback, and alive as long as the translation.
    let summary = unsafe { &*summary.cast::<Summary>() };
    if !access::known(access).is_some_and(|kind| vcpu.hits(address, kind.reach)) {
        touch::<TRACKED, false>(index, access, address, summary);
    } else if TRACKED && vcpu.is_tracking() {
        touch::<TRACKED, true>(index, access, address, summary);
    }
}

/// The accesses of the group that `teller` tells of, in their order; the lowest is at `address`. With `HITS` they
/// all hit in the filter.
#[inline(never)]
extern "C" fn replay<const TRACKED: bool, const HITS: bool>(index: c_uint, address: u64, teller: &Summary) {
    let Some(recorder) = recorder::get() else { return };
    let vcpu = vcpu::get(index);
    for member in teller.group() {
        let kind = Kind { reach: member.reach.into(), store: member.touches == Touch::Stores };
        vcpu.touch::<TRACKED, HITS>(recorder, kind, address + u64::from(member.offset), member);
    }
}

/// One access. With `HITS` it hits in the filter.
#[inline(never)]
extern "C" fn touch<const TRACKED: bool, const HITS: bool>(
    index: c_uint,
    access: u32,
    address: u64,
    summary: &Summary,
) {
    let Some(recorder) = recorder::get() else { return };
    let kind = access::kind(recorder, access);
    vcpu::get(index).touch::<TRACKED, HITS>(recorder, kind, address, summary);
}
