//! Loop that self-tests watch: it uses one of its two buffers all the time and the other never.
//!
//! It prints `HOT COLD LENGTH` (two addresses and a size in bytes, hexadecimal) to standard output and runs
//! until standard input ends, at the latest when the doctor exits.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use isotherm_linux::files::hexadecimal;
use isotherm_linux::sys::mmap::GuardedPages;
use isotherm_linux::sys::probe as sys;

/// Bytes of each buffer: a few pages per expected sample.
pub const BUFFER_BYTES: usize = 8 << 20;

const PAGE_BYTES: usize = 4096;
const PAGE_WORDS: usize = PAGE_BYTES / 8;
const LINE_WORDS: usize = 8;
/// Pages from one access to the next: prime, so that every page is reached and no prefetcher predicts it.
const STRIDE: usize = 1237;
/// Accesses between two checks of whether to stop.
const BURST: usize = 4096;
/// Time after which the loop ends by itself.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the loop in this process until standard input ends. Every access misses all caches, as its last use
/// flushed its line. Every fourth access is a store.
pub fn known_loop() -> io::Result<()> {
    let (hot, cold) = (GuardedPages::new(BUFFER_BYTES)?, GuardedPages::new(BUFFER_BYTES)?);
    for words in [hot.words(), cold.words()] {
        words.iter().step_by(PAGE_WORDS).for_each(|word| word.store(1, Ordering::Relaxed));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut output = io::stdout().lock();
    writeln!(output, "{:x} {:x} {BUFFER_BYTES:x}", hot.address(), cold.address())?;
    output.flush()?;
    let heard = Arc::clone(&stop);
    std::thread::spawn(move || {
        // After an error, as after the end, nobody can stop the loop.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        heard.store(true, Ordering::Relaxed);
    });
    touch(hot.words(), &stop);
    Ok(())
}

fn touch(words: &[AtomicU64], stop: &AtomicBool) {
    let (started, mut access) = (Instant::now(), 0usize);
    while !stop.load(Ordering::Relaxed) && started.elapsed() < LIMIT {
        (access..access + BURST).for_each(|access| touch_once(words, access));
        access += BURST;
    }
}

fn touch_once(words: &[AtomicU64], access: usize) {
    let pages = words.len() / PAGE_WORDS;
    // Each round over all pages uses another line of each and stores to other pages.
    let (round, line) = (access / pages, access / pages % (PAGE_WORDS / LINE_WORDS));
    let word = &words[access * STRIDE % pages * PAGE_WORDS + line * LINE_WORDS];
    let value = word.load(Ordering::Relaxed);
    if (access + round).is_multiple_of(4) {
        word.store(value.wrapping_add(1), Ordering::Relaxed);
    }
    sys::flush_line(word);
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Buffers {
    pub(super) hot: Range<u64>,
    pub(super) cold: Range<u64>,
}

impl Buffers {
    pub(super) fn parse(line: &str) -> Option<Self> {
        let numbers: Option<Vec<u64>> = line.split_whitespace().map(hexadecimal).collect();
        let [hot, cold, length] = numbers?[..] else { return None };
        let range = |start: u64| Some(start..start.checked_add(length)?);
        (length > 0).then_some(Self { hot: range(hot)?, cold: range(cold)? })
    }

    pub(super) fn read(output: impl Read) -> Option<Self> {
        let mut line = String::new();
        BufReader::new(output.take(128)).read_line(&mut line).ok()?;
        Self::parse(line.strip_suffix('\n')?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_loop_is_two_ranges() {
        let buffers = Buffers::read(&b"7f00 9000 1000\nmore"[..]).unwrap();
        assert_eq!(buffers, Buffers { hot: 0x7f00..0x8f00, cold: 0x9000..0xa000 });
        for wrong in ["", "1 2", "1 2 0", "1 2 3 4", "x 2 3", "ffffffffffffffff 1 1000"] {
            assert_eq!(Buffers::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Buffers::read(&b"1 2 3"[..]), None);
        assert_eq!(Buffers::read(&[b'1'; 1000][..]), None);
    }

    #[test]
    fn four_rounds_store_to_every_page_on_four_lines() {
        let memory = GuardedPages::new(BUFFER_BYTES).unwrap();
        let pages = BUFFER_BYTES / PAGE_BYTES;
        (0..4 * pages).for_each(|access| touch_once(memory.words(), access));
        for page in memory.words().chunks(PAGE_WORDS) {
            let stores: u64 = page.iter().map(|word| word.load(Ordering::Relaxed)).sum();
            assert_eq!(stores, 1);
        }
    }
}
