//! The profile of contexts: a file that other processes can read while this one runs.
//!
//! With a profile every call takes the slow path and is served by jemalloc's caches. Words of the file change
//! by single atomic operations, so a reader, a signal or a death in between finds at most one context or
//! sample half written.

use std::ffi::{CStr, c_void};
use std::fmt::Write;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64};

use isotherm_alloc_profile::layout as at;

use crate::context::walk::Chain;
use crate::options::Options;
use crate::text::Text;
use crate::{jemalloc, regions, sys, text};

/// Words of the file; null if there is no profile.
static WORDS: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());
static FOLDER: AtomicPtr<libc::c_char> = AtomicPtr::new(ptr::null_mut());

#[derive(Clone, Copy)]
pub(crate) struct Profile(&'static [AtomicU64]);

pub(crate) fn get() -> Option<Profile> {
    let words = WORDS.load(Acquire);
    // SAFETY: `open` mapped this many words, which stay mapped for the process's life.
    (!words.is_null()).then(|| Profile(unsafe { std::slice::from_raw_parts(words, at::WORDS) }))
}

/// Begins a profile if the options ask for one. Reports what prevents it, and the program then runs without.
pub(crate) fn start(options: &Options) {
    let Some(folder) = options.profile else { return };
    FOLDER.store(folder.as_ptr().cast_mut(), Relaxed);
    let Some(profile) = open(folder) else { return };
    for (index, value) in [
        (at::VERSION_AT, at::VERSION),
        (at::REGIONS_AT, regions::count() as u64),
        (at::DEPTH_AT, options.depth as u64),
        (at::SAMPLE_AT, options.sample_bytes as u64),
        (at::MAGIC_AT, at::MAGIC),
    ] {
        profile.0[index].store(value, Relaxed);
    }
    profile.refresh();
    WORDS.store(profile.0.as_ptr().cast_mut(), Release);
    // SAFETY: the function takes no arguments and stays loaded as long as the process.
    unsafe { libc::atexit(finish) };
}

extern "C" fn finish() {
    if let Some(profile) = get() {
        profile.refresh();
    }
}

/// Gives the child of a fork a file of its own, which begins as a copy.
pub(crate) fn fork() {
    let Some(old) = get() else { return };
    let folder = FOLDER.load(Relaxed);
    // SAFETY: `start` stored the folder, a string of the environment that the process was given, which stays.
    let new = open(unsafe { CStr::from_ptr(folder) });
    if let Some(new) = new {
        let process = new.0[at::PROCESS_AT].load(Relaxed);
        for (from, to) in old.0.iter().zip(new.0) {
            to.store(from.load(Relaxed), Relaxed);
        }
        new.0[at::PROCESS_AT].store(process, Relaxed);
    }
    WORDS.store(new.map_or(ptr::null_mut(), |new| new.0.as_ptr().cast_mut()), Release);
}

fn open(folder: &CStr) -> Option<Profile> {
    let mut path = Text::<4096>::new();
    // SAFETY: the call has no preconditions.
    let process = unsafe { libc::getpid() };
    let folder = folder.to_str().unwrap_or_default();
    let _ = write!(path, "{folder}/{process}.alloc\0");
    let bytes = at::WORDS * size_of::<u64>();
    let words = match sys::create_shared(path.bytes(), bytes) {
        Ok(words) => words,
        Err(error) => {
            text::print(format_args!(
                "ISOTHERM_ALLOC_PROFILE={folder}: expected a folder with room for {process}.alloc, {bytes} \
                 bytes (error {error}); no profile is written"
            ));
            return None;
        }
    };
    // SAFETY: a new mapping of this many words, aligned to a page and full of zeros, which is never unmapped.
    let words = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<AtomicU64>(), at::WORDS) };
    words[at::PROCESS_AT].store(process as u64, Relaxed);
    Some(Profile(words))
}

fn slot(value: u64, slots: usize) -> usize {
    (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - slots.ilog2())) as usize
}

impl Profile {
    /// Returns the number of a context, entering it if it is new, or `None` if there is no room.
    pub(crate) fn context(self, chain: &Chain, region: usize, lock: &mut Entering) -> Option<u32> {
        let used = (self.0[at::CONTEXTS_AT].load(Acquire) as usize).min(at::CONTEXTS);
        let hash = chain.hash.max(1);
        let hash_of =
            |number| self.word(at::CONTEXTS_FROM, at::CONTEXT, number, at::CONTEXT_HASH).load(Relaxed);
        let first = slot(hash, lock.index.len());
        for step in 0..lock.index.len() {
            let place = (first + step) % lock.index.len();
            let Some(known) = usize::from(lock.index[place]).checked_sub(1) else {
                self.0[at::CONTEXTS_AT].fetch_add(1, Relaxed);
                if used == at::CONTEXTS {
                    return None;
                }
                self.enter(used, hash, chain, region);
                lock.index[place] = used as u16 + 1;
                return Some(used as u32);
            };
            if hash_of(known) == hash {
                return Some(known as u32);
            }
        }
        None
    }

    /// Returns word `word` of entry `index` in the table at `from`, whose entries have `size` words.
    fn word(self, from: usize, size: usize, index: usize, word: usize) -> &'static AtomicU64 {
        &self.0[from + index * size + word]
    }

    fn enter(self, number: usize, hash: u64, chain: &Chain, region: usize) {
        let word = |word| self.word(at::CONTEXTS_FROM, at::CONTEXT, number, word);
        word(at::CONTEXT_REGION).store(region as u64, Relaxed);
        let (_, addresses) = chain.parts();
        for (index, &address) in addresses.iter().enumerate() {
            word(at::CONTEXT_FRAMES + index).store(self.frame(address), Relaxed);
        }
        word(at::CONTEXT_LENGTH).store(addresses.len() as u64, Relaxed);
        word(at::CONTEXT_HASH).store(hash, Release);
    }

    /// Encodes a return address as its module's number and its offset there.
    fn frame(self, address: usize) -> u64 {
        let Some((start, path)) = crate::context::module_of(address) else {
            return (at::MODULES as u64) << at::OFFSET_BITS | (address as u64 & ((1 << at::OFFSET_BITS) - 1));
        };
        let used = (self.0[at::MODULES_AT].load(Relaxed) as usize).min(at::MODULES);
        let start_of = |module| self.word(at::MODULES_FROM, at::MODULE, module, 0).load(Relaxed);
        let known = (0..used).find(|&module| start_of(module) == start as u64);
        let module = known.unwrap_or_else(|| self.enter_module(used, start, path));
        (module as u64) << at::OFFSET_BITS | (address - start) as u64
    }

    fn enter_module(self, number: usize, start: usize, path: &CStr) -> usize {
        if number < at::MODULES {
            let mut own = [0; 8 * (at::MODULE - 2)];
            let path = if path.is_empty() { sys::own_path(&mut own) } else { path.to_bytes() };
            for (index, bytes) in path.chunks(8).take(at::MODULE - 2).enumerate() {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                self.word(at::MODULES_FROM, at::MODULE, number, index + 1)
                    .store(u64::from_ne_bytes(word), Relaxed);
            }
            self.word(at::MODULES_FROM, at::MODULE, number, 0).store(start as u64, Relaxed);
            self.0[at::MODULES_AT].store(number as u64 + 1, Release);
        }
        number
    }

    /// Counts a block of a context. Returns how many blocks the context has allocated.
    pub(crate) fn count(self, number: u32, size: usize) -> u64 {
        let word = |word| self.word(at::CONTEXTS_FROM, at::CONTEXT, number as usize, word);
        word(at::CONTEXT_BYTES).fetch_add(size as u64, Relaxed);
        word(at::CONTEXT_BLOCKS).fetch_add(1, Relaxed) + 1
    }

    pub(crate) fn sample(self, block: *mut c_void, number: u32, size: usize, weight: u64) {
        let first = slot(block as u64, at::BLOCKS);
        for step in 0..PROBES {
            let word = |word| self.word(at::BLOCKS_FROM, at::BLOCK, (first + step) % at::BLOCKS, word);
            let found = word(0).load(Relaxed);
            if found <= 1 && word(0).compare_exchange(found, 1, AcqRel, Relaxed).is_ok() {
                word(1).store(size as u64, Relaxed);
                word(2).store(u64::from(number), Relaxed);
                word(3).store(weight, Relaxed);
                word(0).store(block as u64, Release);
                return;
            }
        }
        self.0[at::LOST_AT].fetch_add(1, Relaxed);
    }

    pub(crate) fn forget(self, block: *mut c_void) {
        let first = slot(block as u64, at::BLOCKS);
        for step in 0..PROBES {
            let word = self.word(at::BLOCKS_FROM, at::BLOCK, (first + step) % at::BLOCKS, 0);
            match word.load(Relaxed) {
                0 => return,
                found if found == block as u64 => return word.store(1, Release),
                _ => {}
            }
        }
    }

    pub(crate) fn refresh(self) {
        jemalloc::refresh_statistics();
        for index in 0..regions::count() {
            let region = regions::get(index);
            let (start, end, frontier) = region.range();
            let [allocated, active, resident] = jemalloc::statistics(region.arena());
            let values = [start as u64, end as u64, frontier as u64, allocated, active, resident];
            for (word, value) in values.into_iter().enumerate() {
                self.word(at::REGIONS_FROM, at::REGION, index, word).store(value, Relaxed);
            }
        }
    }
}

const PROBES: usize = 32;

/// State of the thread that enters contexts: each context's place in the table, plus 1, by its hash.
pub(crate) struct Entering {
    index: [u16; 2 * at::CONTEXTS],
}

impl Entering {
    pub(crate) const fn new() -> Self {
        Self { index: [0; 2 * at::CONTEXTS] }
    }
}

/// Chooses the blocks that a thread samples: a Poisson process over bytes, so larger blocks are likelier.
#[derive(Clone, Copy)]
pub(crate) struct Sampler {
    /// Bytes until the next sample; 0 before the first.
    left: f64,
    random: u64,
}

impl Sampler {
    /// Returns, for a block to be sampled, the bytes that it stands for: its size by its probability.
    pub(crate) fn take(&mut self, size: usize, mean: f64) -> Option<u64> {
        if self.random == 0 {
            self.random = (&raw const *self) as u64 | 1;
            self.left = self.interval(mean);
        }
        self.left -= size as f64;
        if self.left > 0.0 {
            return None;
        }
        self.left = self.interval(mean);
        Some((size as f64 / -(-(size as f64) / mean).exp_m1()) as u64)
    }

    fn interval(&mut self, mean: f64) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let uniform = ((self.random >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        -uniform.ln() * mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_for_what_was_allocated() {
        for size in [16, 1000, 70_000, 1_000_000] {
            let mut sampler = Sampler { left: 0.0, random: 0x1234_5678_9abc_def1 };
            let count = 400_000_000 / size;
            let estimate: u64 = (0..count).filter_map(|_| sampler.take(size, 65536.0)).sum();
            let share = estimate as f64 / (count * size) as f64;
            assert!((0.9..1.1).contains(&share), "{size}: {share}");
        }
    }
}
