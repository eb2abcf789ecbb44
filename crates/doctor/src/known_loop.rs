//! Defines the program that self-tests watch: it uses one buffer all the time and another one never.
//!
//! It prints `HOT COLD LENGTH` (two addresses and a number of bytes, hexadecimal) on its standard output and runs until
//! its standard input ends, which it does when the doctor goes too.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use isotherm_linux::sys::mmap::GuardedPages;
use isotherm_linux::sys::probe as sys;
use isotherm_linux::topology::files::hexadecimal;

/// Bytes of each of the two buffers: a few pages for every sample that is expected.
pub const BUFFER_BYTES: usize = 8 << 20;

const PAGE_BYTES: usize = 4096;
const PAGE_WORDS: usize = PAGE_BYTES / 8;
/// Words of a cache line.
const LINE_WORDS: usize = 8;
/// Pages from one access to the next: prime, so that all pages get their turn, and no prefetcher guesses it.
const STRIDE: usize = 1237;
/// Accesses between two looks at whether to stop.
const BURST: usize = 4096;
/// The loop ends by itself after this long, whatever happens to the doctor.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the loop in this process, until standard input ends.
///
/// Every access misses all caches: its line was flushed when it was last used. Every fourth is a store.
///
/// # Errors
/// Standard output is closed, or there is no memory.
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
        // An error means that nobody can say when to stop, as does the end.
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
    // Another line of the page in each round over all pages, and other pages that are stored to.
    let (round, line) = (access / pages, access / pages % (PAGE_WORDS / LINE_WORDS));
    let word = &words[access * STRIDE % pages * PAGE_WORDS + line * LINE_WORDS];
    let value = word.load(Ordering::Relaxed);
    if (access + round).is_multiple_of(4) {
        word.store(value.wrapping_add(1), Ordering::Relaxed);
    }
    sys::flush_line(word);
}

/// The two buffers of a loop that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Buffers {
    /// Used all the time.
    pub(super) hot: Range<u64>,
    /// Never used.
    pub(super) cold: Range<u64>,
}

impl Buffers {
    /// Parses the line that the loop prints.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let numbers: Option<Vec<u64>> = line.split_whitespace().map(hexadecimal).collect();
        let [hot, cold, length] = numbers?[..] else { return None };
        let range = |start: u64| Some(start..start.checked_add(length)?);
        (length > 0).then_some(Self { hot: range(hot)?, cold: range(cold)? })
    }

    /// Reads that line, and nothing beyond a bound.
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
