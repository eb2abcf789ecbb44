//! Compresses the pages of a program while it is recorded, to note how well each does.
//!
//! QEMU's user mode maps an x86-64 program's memory at its own addresses, so a page is read from
//! `/proc/PID/mem` of the process that runs it. A page is read after its misses, up to a tenth of a second
//! late, again and again as long as it has misses: its last contents count.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;

use isotherm_core::PageSize;
use isotherm_core::cache::LINE_SHIFT;
use lz4_flex::block::{compress_into, get_maximum_output_size};
use zstd::bulk::Compressor;

use crate::Rows;
use crate::contents::Contents;

/// Pages compressed in one go: some ten milliseconds, in which the pool fills no more than usual.
const AT_ONCE: usize = 1000;
const PAGE: usize = 1 << PageSize::Base.shift();
/// Pages that are known to wait without a look at the others.
const RECENT: usize = 1 << 12;
/// zstd's level; each page is compressed alone, as the kernel does.
const LEVEL: i32 = 1;

pub(super) struct Sampler {
    contents: Contents,
    /// Pages with misses since they were last read.
    waiting: BTreeSet<(u32, u64)>,
    /// Some of them, each at its place: a program misses again and again in the same pages.
    recent: Vec<Option<(u32, u64)>>,
    /// Where the last turn ended.
    next: (u32, u64),
    /// Each process's memory.
    memory: HashMap<u32, File>,
    zstd: Compressor<'static>,
    /// Room for lz4's output.
    lz4: Vec<u8>,
}

impl Sampler {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            contents: Contents::default(),
            waiting: BTreeSet::new(),
            recent: vec![None; RECENT],
            next: (0, 0),
            memory: HashMap::new(),
            zstd: Compressor::new(LEVEL)?,
            lz4: vec![0; get_maximum_output_size(PAGE)],
        })
    }

    /// Notes the pages of these misses.
    pub(super) fn note(&mut self, rows: &Rows) {
        for (&process, &line) in rows.process.iter().zip(&rows.line) {
            let page = (process, line >> (PageSize::Base.shift() - LINE_SHIFT));
            let recent = &mut self.recent[place_of(page)];
            if *recent != Some(page) {
                *recent = Some(page);
                self.waiting.insert(page);
            }
        }
    }

    /// Reads pages that wait, in turn; `pid` returns a process's number in the system.
    pub(super) fn read(&mut self, pid: impl Fn(u32) -> Option<u32>) {
        let behind = self.waiting.range(self.next..).chain(self.waiting.range(..self.next));
        let turn: Vec<_> = behind.take(AT_ONCE).copied().collect();
        let mut page = vec![0; PAGE];
        for place @ (process, number) in turn {
            self.waiting.remove(&place);
            self.recent[place_of(place)] = None;
            self.next = (process, number + 1);
            let open = || File::open(format!("/proc/{}/mem", pid(process)?)).ok();
            if !self.memory.contains_key(&process) {
                self.memory.extend(open().map(|memory| (process, memory)));
            }
            let Some(memory) = self.memory.get(&process) else { continue };
            // The page or its process may be gone.
            if memory.read_exact_at(&mut page, number << PageSize::Base.shift()).is_ok()
                && let Ok(zstd) = self.zstd.compress(&page)
                && let Ok(lz4) = compress_into(&page, &mut self.lz4)
            {
                self.contents.zstd.insert(place, share(zstd.len()));
                self.contents.lz4.insert(place, share(lz4));
            }
        }
    }

    pub(super) fn contents(&self) -> &Contents {
        &self.contents
    }
}

/// Returns a page's place in [`Sampler::recent`].
fn place_of((process, page): (u32, u64)) -> usize {
    (page as usize ^ process as usize) % RECENT
}

/// Returns a compressed page's size as [`crate::Shares`] have it.
fn share(bytes: usize) -> u8 {
    u8::try_from((bytes * 256).div_ceil(PAGE)).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_misses_again_is_read_again() {
        let mut memory = vec![0_u8; 2 * PAGE];
        let number = (memory.as_ptr() as u64).div_ceil(PAGE as u64);
        let first = (number as usize * PAGE) - memory.as_ptr() as usize;
        let line = number << (PageSize::Base.shift() - LINE_SHIFT);
        let rows = Rows { process: vec![0; 2], line: vec![line; 2], ..Rows::default() };
        let mut sampler = Sampler::new().expect("a compressor");
        let mut share = || {
            sampler.note(&rows);
            sampler.read(|_| Some(std::process::id()));
            sampler.contents().lz4.values().copied().collect::<Vec<u8>>()
        };
        let zeros = share();
        let mut state = 1_u32;
        for byte in &mut memory[first..first + PAGE] {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        }
        assert!(zeros.len() == 1 && zeros[0] < 16, "{zeros:?}");
        assert_eq!(share(), [u8::MAX]);
    }
}
