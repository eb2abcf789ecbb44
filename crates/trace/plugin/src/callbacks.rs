//! Defines the functions that QEMU calls.
//!
//! Without dependences the data registered with an access is a number, [`packed`]; with dependences it is a pointer to
//! a [`Summary`].
//!
//! A call costs as much as what it does. So where the first access of a block is one that always happens once, its call
//! also says that the block begins, and the block has no call of its own; and accesses that always happen once are
//! counted when the block begins.

use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use crate::api::{
    Block, BlockCallback, Instruction, MemoryCallback, NO_REGISTERS, PluginId, READS_AND_WRITES,
};
use crate::exec::{self, GUEST_BASE};
use crate::recorder::{self, Recorder};
use crate::summary::{self, Found, Summarizer, Summary, Touch};
use crate::vcpu;

/// How an access is counted: on its own,
const ALONE: u8 = 0;
/// with its block,
const WITHIN: u8 = 1;
/// or with its block, and it is the one that tells of the block's beginning.
const FIRST: u8 = 2;

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
    if recorder.dependence {
        instrument_tracked(recorder, block, &instructions, &found);
    } else {
        instrument(recorder, block, &instructions, &found);
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
            return (instruction, Found::unknown());
        }
        GUEST_BASE.store((bytes as u64).wrapping_sub(address), Ordering::Relaxed);
        let bytes = std::slice::from_raw_parts(bytes, (api.size)(instruction));
        (instruction, summarizer.summarize(bytes, address))
    }
}

fn instrument(recorder: &Recorder, block: *mut Block, instructions: &[*mut Instruction], found: &[Found]) {
    let callbacks = [
        [loaded::<ALONE>, stored::<ALONE>, touched],
        [loaded::<WITHIN>, stored::<WITHIN>, touched],
        [loaded::<FIRST>, stored::<FIRST>, touched],
    ];
    let data: Vec<_> = found.iter().map(|found| packed(&found.summary) as *mut c_void).collect();
    attach(recorder, block, instructions, found, &data, (entered, data[0]), callbacks);
}

fn instrument_tracked(
    recorder: &Recorder,
    block: *mut Block,
    instructions: &[*mut Instruction],
    found: &[Found],
) {
    let summaries: Box<[_]> = found.iter().map(|found| found.summary).collect();
    let data: Vec<_> =
        summaries.iter().map(|summary| std::ptr::from_ref(summary).cast_mut().cast()).collect();
    let callbacks = [
        [loaded_tracked::<ALONE>, stored_tracked::<ALONE>, touched_tracked],
        [loaded_tracked::<WITHIN>, stored_tracked::<WITHIN>, touched_tracked],
        [loaded_tracked::<FIRST>, stored_tracked::<FIRST>, touched_tracked],
    ];
    attach(recorder, block, instructions, found, &data, (entered_tracked, data[0]), callbacks);
    match SUMMARIES.lock() {
        Ok(mut kept) => kept.push(summaries),
        // Never freed then, since callbacks hold pointers to it.
        Err(_) => drop(Box::leak(summaries)),
    }
}

/// Registers `entry` with the block, unless an access tells of its beginning, and with each instruction that touches
/// memory its callback: by how it is counted, then for loads, stores and what may be either.
fn attach(
    recorder: &Recorder,
    block: *mut Block,
    instructions: &[*mut Instruction],
    found: &[Found],
    data: &[*mut c_void],
    entry: (BlockCallback, *mut c_void),
    callbacks: [[MemoryCallback; 3]; 3],
) {
    let first = found.iter().position(|found| found.touches != Touch::Nothing);
    let opens = first.filter(|&first| found[first].once);
    if opens.is_none() {
        // SAFETY: the block is valid during translation; the data fits the callback.
        unsafe { (recorder.api.on_block)(block, entry.0, NO_REGISTERS, entry.1) };
    }
    for (index, found) in found.iter().enumerate() {
        let counted = if opens == Some(index) { FIRST } else { u8::from(found.once) };
        let [loads, stores, both] = callbacks[usize::from(counted)];
        let callback = match found.touches {
            Touch::Nothing => continue,
            Touch::Loads => loads,
            Touch::Stores => stores,
            Touch::Both => both,
        };
        // SAFETY: the instruction is valid during translation; the data fits the callback.
        unsafe {
            (recorder.api.on_memory)(
                instructions[index],
                callback,
                NO_REGISTERS,
                READS_AND_WRITES,
                data[index],
            );
        }
    }
}

/// What an access must know of its instruction, 16 bits each: the block's accesses and length, the instructions behind
/// and the reach.
fn packed(summary: &Summary) -> u64 {
    let (accesses, length) = (u64::from(summary.once), summary.block_length());
    accesses << 48 | length << 32 | u64::from(summary.behind) << 16 | u64::from(summary.reach)
}

extern "C" fn entered(index: c_uint, packed: *mut c_void) {
    enter(index, packed as u64);
}

#[inline(always)]
fn enter(index: c_uint, packed: u64) {
    vcpu::get(index).enter(packed >> 32 & 0xffff, packed >> 48);
}

extern "C" fn entered_tracked(index: c_uint, first: *mut c_void) {
    // SAFETY: registered with this callback, and alive as long as the translation.
    vcpu::get(index).enter_tracked(unsafe { &*first.cast::<Summary>() });
}

extern "C" fn loaded<const COUNTED: u8>(index: c_uint, access: u32, address: u64, packed: *mut c_void) {
    accessed::<COUNTED>(index, access, address, packed as u64, false);
}

extern "C" fn stored<const COUNTED: u8>(index: c_uint, access: u32, address: u64, packed: *mut c_void) {
    accessed::<COUNTED>(index, access, address, packed as u64, true);
}

extern "C" fn touched(index: c_uint, access: u32, address: u64, packed: *mut c_void) {
    accessed::<ALONE>(index, access, address, packed as u64, is_store(access));
}

fn is_store(access: u32) -> bool {
    // SAFETY: a pure function of the access.
    recorder::get().is_some_and(|recorder| unsafe { (recorder.api.is_store)(access) })
}

#[inline(always)]
fn accessed<const COUNTED: u8>(index: c_uint, access: u32, address: u64, packed: u64, store: bool) {
    match COUNTED {
        ALONE => vcpu::get(index).count(),
        FIRST => enter(index, packed),
        _ => {}
    }
    if !vcpu::repeats(address, packed & 0xffff) {
        touch(index, access, address, packed >> 16 & 0xffff, store);
    }
}

#[inline(never)]
extern "C" fn touch(index: c_uint, access: u32, address: u64, behind: u64, store: bool) {
    let Some(recorder) = recorder::get() else { return };
    let vcpu = vcpu::get(index);
    vcpu.touch(recorder, store, address >> 6, behind);
    if let Some(next) = next_line(recorder, access, address) {
        vcpu.touch(recorder, store, next >> 6, behind);
    }
}

extern "C" fn loaded_tracked<const COUNTED: u8>(
    index: c_uint,
    access: u32,
    address: u64,
    instruction: *mut c_void,
) {
    accessed_tracked::<COUNTED>(index, access, address, instruction, false);
}

extern "C" fn stored_tracked<const COUNTED: u8>(
    index: c_uint,
    access: u32,
    address: u64,
    instruction: *mut c_void,
) {
    accessed_tracked::<COUNTED>(index, access, address, instruction, true);
}

extern "C" fn touched_tracked(index: c_uint, access: u32, address: u64, instruction: *mut c_void) {
    accessed_tracked::<ALONE>(index, access, address, instruction, is_store(access));
}

#[inline(always)]
fn accessed_tracked<const COUNTED: u8>(
    index: c_uint,
    access: u32,
    address: u64,
    instruction: *mut c_void,
    store: bool,
) {
    let vcpu = vcpu::get(index);
    // SAFETY: registered with this callback, and alive as long as the translation.
    let instruction = unsafe { &*instruction.cast::<Summary>() };
    match COUNTED {
        ALONE => vcpu.count(),
        FIRST => vcpu.enter_tracked(instruction),
        _ => {}
    }
    if !vcpu::repeats(address, u64::from(instruction.reach)) {
        touch_tracked(index, access, address, instruction, store);
    } else if vcpu.is_tracking() {
        follow(index, address, instruction, store);
    }
}

#[inline(never)]
extern "C" fn touch_tracked(index: c_uint, access: u32, address: u64, instruction: &Summary, store: bool) {
    let Some(recorder) = recorder::get() else { return };
    let vcpu = vcpu::get(index);
    vcpu.touch_tracked(recorder, store, address, instruction);
    if let Some(next) = next_line(recorder, access, address) {
        vcpu.touch_tracked(recorder, store, next, instruction);
    }
}

/// An access that hit.
#[inline(never)]
extern "C" fn follow(index: c_uint, address: u64, instruction: &Summary, store: bool) {
    vcpu::get(index).follow(address, instruction, store);
}

/// The first address of the next line where the access reaches into it.
#[inline(always)]
fn next_line(recorder: &Recorder, access: u32, address: u64) -> Option<u64> {
    // QEMU's accesses are at most 16 bytes long.
    if address & 63 <= 64 - 16 {
        return None;
    }
    // SAFETY: a pure function of the access.
    let last = address + (1 << unsafe { (recorder.api.access_shift)(access) }) - 1;
    (last >> 6 != address >> 6).then_some(last & !63)
}
