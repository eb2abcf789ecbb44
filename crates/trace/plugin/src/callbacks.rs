//! Defines the functions that QEMU calls.
//!
//! Without dependences the data registered with an access is the number of instructions behind it in the block, and
//! with a block its length; with dependences both are a pointer to a [`Summary`].

use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use crate::api::{Block, Instruction, NO_REGISTERS, PluginId, READS_AND_WRITES};
use crate::exec::{self, GUEST_BASE};
use crate::recorder::{self, Recorder};
use crate::summary::{Summarizer, Summary, Touch};
use crate::vcpu;

/// An access near the end of a line may reach into the next; QEMU's are at most 16 bytes long.
const NEAR_END: u64 = 64 - 16;

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
    if let (Some(recorder), Some(vcpu)) = (recorder::get(), vcpu::get(index)) {
        vcpu.end(recorder);
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
    let found: Vec<_> =
        (0..length).map(|index| summarize(recorder, &mut summarizer, block, index, length)).collect();
    if found.is_empty() {
        return;
    }
    if recorder.dependence {
        instrument_tracked(recorder, block, &found);
    } else {
        instrument(recorder, block, &found);
    }
}

type Found = (*mut Instruction, Summary, Touch);

fn summarize(
    recorder: &Recorder,
    summarizer: &mut Summarizer,
    block: *mut Block,
    index: usize,
    length: usize,
) -> Found {
    let api = &recorder.api;
    // SAFETY: `index` is an instruction of `block`, which is valid during translation, and so are its bytes.
    unsafe {
        let instruction = (api.instruction)(block, index);
        let (address, bytes) = ((api.address)(instruction), (api.bytes)(instruction));
        let (mut summary, touches) = if bytes.is_null() {
            (Summary::default(), Touch::Both)
        } else {
            GUEST_BASE.store((bytes as u64).wrapping_sub(address), Ordering::Relaxed);
            summarizer.summarize(std::slice::from_raw_parts(bytes, (api.size)(instruction)), address)
        };
        summary.index = index as u16;
        summary.behind = (length - 1 - index) as u16;
        (instruction, summary, touches)
    }
}

fn instrument(recorder: &Recorder, block: *mut Block, found: &[Found]) {
    // SAFETY: the block is valid during translation; the data is a number.
    unsafe { (recorder.api.on_block)(block, entered, NO_REGISTERS, found.len() as *mut c_void) };
    for &(instruction, summary, touch) in found {
        let callback = match touch {
            Touch::Nothing => continue,
            Touch::Loads => loaded,
            Touch::Stores => stored,
            Touch::Both => touched,
        };
        let behind = usize::from(summary.behind) as *mut c_void;
        // SAFETY: the instruction is valid during translation; the data is a number.
        unsafe { (recorder.api.on_memory)(instruction, callback, NO_REGISTERS, READS_AND_WRITES, behind) };
    }
}

fn instrument_tracked(recorder: &Recorder, block: *mut Block, found: &[Found]) {
    let summaries: Box<[_]> = found.iter().map(|found| found.1).collect();
    let data = |index: usize| std::ptr::from_ref(&summaries[index]).cast_mut().cast();
    // SAFETY: the block is valid during translation; the summaries stay until the flush.
    unsafe { (recorder.api.on_block)(block, entered_tracked, NO_REGISTERS, data(0)) };
    for (index, &(instruction, _, touch)) in found.iter().enumerate() {
        let callback = match touch {
            Touch::Nothing => continue,
            Touch::Loads => loaded_tracked,
            Touch::Stores => stored_tracked,
            Touch::Both => touched_tracked,
        };
        // SAFETY: the instruction is valid during translation; the summaries stay until the flush.
        unsafe {
            (recorder.api.on_memory)(instruction, callback, NO_REGISTERS, READS_AND_WRITES, data(index))
        };
    }
    match SUMMARIES.lock() {
        Ok(mut kept) => kept.push(summaries),
        // Never freed then, since callbacks hold pointers to it.
        Err(_) => drop(Box::leak(summaries)),
    }
}

extern "C" fn entered(index: c_uint, length: *mut c_void) {
    if let Some(vcpu) = vcpu::get(index) {
        vcpu.enter(length as u64);
    }
}

extern "C" fn entered_tracked(index: c_uint, first: *mut c_void) {
    if let Some(vcpu) = vcpu::get(index) {
        // SAFETY: registered with this callback, and alive as long as the translation.
        vcpu.enter_tracked(unsafe { &*first.cast::<Summary>() });
    }
}

extern "C" fn loaded(index: c_uint, access: u32, address: u64, behind: *mut c_void) {
    accessed(index, access, address, behind as u64, false);
}

extern "C" fn stored(index: c_uint, access: u32, address: u64, behind: *mut c_void) {
    accessed(index, access, address, behind as u64, true);
}

extern "C" fn touched(index: c_uint, access: u32, address: u64, behind: *mut c_void) {
    accessed(index, access, address, behind as u64, is_store(access));
}

fn is_store(access: u32) -> bool {
    // SAFETY: a pure function of the access.
    recorder::get().is_some_and(|recorder| unsafe { (recorder.api.is_store)(access) })
}

#[inline(always)]
fn accessed(index: c_uint, access: u32, address: u64, behind: u64, store: bool) {
    if let (Some(recorder), Some(vcpu)) = (recorder::get(), vcpu::get(index)) {
        vcpu.access(recorder, store, address, behind);
        if reaches_next(recorder, access, address) {
            vcpu.access_rest(recorder, store, address, behind);
        }
    }
}

extern "C" fn loaded_tracked(index: c_uint, access: u32, address: u64, instruction: *mut c_void) {
    accessed_tracked(index, access, address, instruction, false);
}

extern "C" fn stored_tracked(index: c_uint, access: u32, address: u64, instruction: *mut c_void) {
    accessed_tracked(index, access, address, instruction, true);
}

extern "C" fn touched_tracked(index: c_uint, access: u32, address: u64, instruction: *mut c_void) {
    accessed_tracked(index, access, address, instruction, is_store(access));
}

#[inline(always)]
fn accessed_tracked(index: c_uint, access: u32, address: u64, instruction: *mut c_void, store: bool) {
    // SAFETY: registered with this callback, and alive as long as the translation.
    let instruction = unsafe { &*instruction.cast::<Summary>() };
    if let (Some(recorder), Some(vcpu)) = (recorder::get(), vcpu::get(index)) {
        vcpu.access_tracked(recorder, store, address, instruction);
        if reaches_next(recorder, access, address) {
            vcpu.access_rest_tracked(recorder, store, address, instruction);
        }
    }
}

#[inline(always)]
fn reaches_next(recorder: &Recorder, access: u32, address: u64) -> bool {
    let offset = address & 63;
    // SAFETY: a pure function of the access.
    offset > NEAR_END && offset + (1 << unsafe { (recorder.api.access_shift)(access) }) > 64
}
