//! The accesses that a run replays: dense pages in address order, held in memory once for every policy.

use std::collections::HashMap;
use std::hash::Hasher;

use isotherm_core::cache::LINE_SHIFT;
use isotherm_core::manifest::Fingerprint;
use isotherm_core::{Bytes, PageSize};
use isotherm_machine::{Position, Request, Streamer, Triggers, Wasted};
use isotherm_trace::Rows;
use twox_hash::XxHash64;

/// One access that missed the last-level cache: 14 bytes, because they bound a replay's speed and memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C, packed(2))]
pub struct Access {
    /// Dense page.
    pub page: u32,
    /// Instructions of the thread since its previous access.
    pub instructions: u32,
    /// Dense thread.
    pub thread: u16,
    /// Distance in the thread's accesses to the one that this address depends on; 0 for none.
    pub dependence: u8,
    /// Distance in the thread's accesses to the one that prefetched this line; 0 for none, at most 255.
    pub trigger: u8,
    /// Distance in the thread's accesses to the miss of the line's pair; as `trigger`.
    pub pair: u8,
    /// Whether it is a store, and what was prefetched for it in vain.
    pub kind: Kind,
}

const _: () = assert!(size_of::<Access>() == 14);

/// A bit for a store, one for a line whose pair was completed in vain, and above them the number of lines
/// that the streamer prefetched for the access and the thread did not request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Kind(u8);

impl Kind {
    /// A load for which nothing was prefetched in vain.
    pub const LOAD: Self = Self(0);
    /// A store likewise.
    pub const STORE: Self = Self(1);
    const LONE: u8 = 1 << 1;
    const USELESS: u32 = 2;

    /// Counts a line that was prefetched in vain; the model has at most 63 of them.
    fn add_wasted(&mut self, wasted: Wasted) {
        match wasted {
            Wasted::Stream(_) => self.0 = self.0.checked_add(1 << Self::USELESS).unwrap_or(self.0),
            Wasted::Pair(_) => self.0 |= Self::LONE,
        }
    }
}

impl Access {
    /// Returns 1 for a store, 0 for a load.
    pub fn store(&self) -> u8 {
        self.kind.0 & Kind::STORE.0
    }

    fn lone(&self) -> bool {
        self.kind.0 & Kind::LONE != 0
    }

    fn useless(&self) -> u8 {
        self.kind.0 >> Kind::USELESS
    }

    /// Returns the request of the model, with the distance to the last miss that has left the window.
    pub(crate) fn request(&self, left: u8) -> Request {
        Request {
            instructions: self.instructions,
            left,
            dependence: self.dependence,
            triggers: self.triggers(),
            lone: self.lone(),
            useless: self.useless(),
            store: self.store() != 0,
        }
    }

    pub(crate) fn triggers(&self) -> Triggers {
        Triggers { stream: self.trigger, pair: self.pair }
    }
}

/// Maximum accesses of a stream: their numbers fit 32 bits.
pub const MAX_ACCESSES: u64 = u32::MAX as u64 - 1;

/// Share of its size that each page takes compressed by each algorithm, in 256ths; empty where that is not
/// known.
#[derive(Debug, Clone, Default)]
pub struct CompressedShares {
    /// With zstd at its level 1.
    pub zstd: Vec<u8>,
    /// With lz4.
    pub lz4: Vec<u8>,
}

/// The accesses of a program or workload.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    /// Accesses in global order.
    pub accesses: Vec<Access>,
    /// Address space and first address of each page, ascending: `(process, address)`.
    pub pages: Vec<(u32, u64)>,
    /// Number of threads.
    pub threads: usize,
    /// Page size of `pages`.
    pub page_size: PageSize,
    /// Share of its size that each page takes compressed.
    pub compressed_shares: CompressedShares,
    /// Of the rows that it was built from, which the page size does not change.
    pub fingerprint: Option<Fingerprint>,
}

/// An input that the simulator cannot hold.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum StreamError {
    /// No rows.
    #[error("{0}: the trace holds no accesses")]
    Empty(String),
    /// More accesses than the simulator can number.
    #[error("{0}: more than {MAX_ACCESSES} accesses")]
    Accesses(String),
    /// More threads than a dense thread number can name.
    #[error("{0}: more than 65,536 threads")]
    Threads(String),
    /// More pages than a dense page number can name.
    #[error("{0}: more than 2^32 pages")]
    Pages(String),
    /// A process number beyond a page's key.
    #[error("{0}: a process of number 2^20 or above; expected processes numbered from 0")]
    Process(String),
    /// An address beyond a page's key.
    #[error("{0}: an address of 2^56 or above; expected addresses of programs")]
    Address(String),
}

impl Stream {
    /// Returns the bytes of the pages touched.
    pub fn footprint(&self) -> Bytes {
        Bytes((self.pages.len() as u64) << self.page_size.shift())
    }

    /// Returns the access from which on the program's data is there: before it, 99 % of the pages are touched
    /// for the first time. 0 if that takes more than three quarters of the accesses, as there is no loading
    /// apart from the rest then.
    pub fn loaded(&self) -> usize {
        let mut touched = vec![false; self.pages.len()];
        let mut left = self.pages.len() - self.pages.len() / 100;
        let last = self.accesses.iter().position(|access| {
            left -= usize::from(!std::mem::replace(&mut touched[access.page as usize], true));
            left == 0
        });
        last.map(|last| last + 1).filter(|loaded| loaded * 4 <= self.accesses.len() * 3).unwrap_or(0)
    }

    /// Returns the threads that a policy's windows can count on: those with at least a hundredth of the
    /// busiest one's accesses. A shell that starts a program gives next to no samples.
    pub fn busy_threads(&self) -> usize {
        let mut accesses = vec![0u64; self.threads];
        self.accesses.iter().for_each(|access| accesses[usize::from(access.thread)] += 1);
        let most = accesses.iter().copied().max().unwrap_or(0);
        accesses.into_iter().filter(|&of_thread| of_thread * 100 >= most).count()
    }

    /// Returns the instructions of all threads.
    pub fn instructions(&self) -> u64 {
        self.accesses.iter().map(|access| u64::from(access.instructions)).sum()
    }
}

/// Builds a [`Stream`] from rows.
#[derive(Debug, Default)]
pub struct StreamBuilder {
    accesses: Vec<Access>,
    /// Number of each page key, in order of first appearance.
    numbers: HashMap<u64, u32>,
    keys: Vec<u64>,
    /// Dense thread of each thread number in the rows.
    threads: HashMap<u32, u16>,
    cores: Vec<Core>,
    page_size: PageSize,
    rows: RowsHash,
    /// Why the rows do not fit, once they do not.
    refused: Option<fn(String) -> StreamError>,
}

#[derive(Debug, Default)]
struct Core {
    streamer: Streamer,
    accesses: u32,
}

/// Process in the upper 20 bits, page number in the lower 44: enough for 56-bit addresses.
const PROCESS_SHIFT: u32 = 44;
const PROCESSES: u32 = 1 << (u64::BITS - PROCESS_SHIFT);
/// Lines of 56-bit addresses.
const LINES: u64 = 1 << (56 - LINE_SHIFT);

impl StreamBuilder {
    /// Starts an empty stream of pages of one size.
    pub fn new(page_size: PageSize) -> Self {
        Self { page_size, ..Self::default() }
    }

    /// Returns the number of accesses so far.
    pub fn len(&self) -> usize {
        self.accesses.len()
    }

    /// Returns whether there are no accesses yet.
    pub fn is_empty(&self) -> bool {
        self.accesses.is_empty()
    }

    /// Appends rows.
    pub fn append(&mut self, rows: &Rows) {
        let mut hash = std::mem::take(&mut self.rows);
        rayon::join(|| self.number_rows(rows), || (0..rows.len()).for_each(|index| hash.add(rows, index)));
        self.rows = hash;
    }

    /// Appends rows, which are numbered with those before.
    fn number_rows(&mut self, rows: &Rows) {
        self.accesses.reserve(rows.len());
        let line_to_page = self.page_size.shift() - LINE_SHIFT;
        if rows.process.iter().any(|&process| process >= PROCESSES) {
            self.refused = Some(StreamError::Process);
        }
        if rows.line.iter().any(|&line| line >= LINES) {
            self.refused = Some(StreamError::Address);
        }
        if self.refused.is_some() {
            return;
        }
        // Misses come in bursts on one page, so the last look-up often serves the next row.
        let (mut last_key, mut last_number) = (None, 0);
        let (mut last_thread, mut thread) = (None, 0);
        for index in 0..rows.len() {
            let page = rows.line[index] >> line_to_page;
            let key = u64::from(rows.process[index]) << PROCESS_SHIFT | page;
            if last_key != Some(key) {
                (last_key, last_number) = (Some(key), self.number(key));
            }
            if last_thread != Some(rows.thread[index]) {
                last_thread = Some(rows.thread[index]);
                thread = self.thread(rows.thread[index]);
            }
            let triggers = self.prefetch(thread, rows.process[index], rows.line[index]);
            self.accesses.push(Access {
                page: last_number,
                instructions: rows.instructions[index],
                thread,
                dependence: rows.dependence[index],
                trigger: triggers.stream,
                pair: triggers.pair,
                kind: if rows.store[index] != 0 { Kind::STORE } else { Kind::LOAD },
            });
        }
    }

    /// Returns what prefetched the line requested now.
    fn prefetch(&mut self, thread: u16, process: u32, line: u64) -> Triggers {
        let Some(core) = self.cores.get_mut(usize::from(thread)) else { return Triggers::default() };
        let at = Position { index: self.accesses.len() as u32, of_thread: core.accesses };
        core.accesses = core.accesses.wrapping_add(1);
        core.streamer.request(process, line, at, &mut in_vain(&mut self.accesses))
    }

    fn number(&mut self, key: u64) -> u32 {
        let next = self.keys.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
        }
        number
    }

    fn thread(&mut self, name: u32) -> u16 {
        let next = self.threads.len();
        if next > usize::from(u16::MAX) {
            self.refused = Some(StreamError::Threads);
        }
        let thread = *self.threads.entry(name).or_insert(next as u16);
        if usize::from(thread) == self.cores.len() {
            self.cores.push(Core::default());
        }
        thread
    }

    /// Renumbers the pages in address order and returns the stream. `name` is the input's, for errors.
    ///
    /// # Errors
    /// An input without accesses, or one that is too large for the simulator's numbers.
    pub fn finish(mut self, name: &str) -> Result<Stream, StreamError> {
        if let Some(refused) = self.refused {
            return Err(refused(name.into()));
        }
        if self.accesses.is_empty() {
            return Err(StreamError::Empty(name.into()));
        }
        if self.accesses.len() as u64 > MAX_ACCESSES {
            return Err(StreamError::Accesses(name.into()));
        }
        if self.keys.len() >= u32::MAX as usize {
            return Err(StreamError::Pages(name.into()));
        }
        for core in &mut self.cores {
            core.streamer.finish(&mut in_vain(&mut self.accesses));
        }
        let mut order: Vec<u32> = (0..self.keys.len() as u32).collect();
        order.sort_unstable_by_key(|&number| self.keys[number as usize]);
        let mut dense = vec![0; order.len()];
        order.iter().enumerate().for_each(|(index, &number)| dense[number as usize] = index as u32);
        self.accesses.iter_mut().for_each(|access| access.page = dense[access.page as usize]);
        let shift = self.page_size.shift();
        let address = |key: u64| ((key >> PROCESS_SHIFT) as u32, (key & ((1 << PROCESS_SHIFT) - 1)) << shift);
        Ok(Stream {
            pages: order.iter().map(|&number| address(self.keys[number as usize])).collect(),
            accesses: self.accesses,
            threads: self.threads.len(),
            page_size: self.page_size,
            compressed_shares: CompressedShares::default(),
            fingerprint: Some(self.rows.finish()),
        })
    }
}

/// Fingerprint of rows, as a [`Stream`] of them has it.
#[derive(Debug, Clone, Default)]
pub struct RowsHash(XxHash64);

impl RowsHash {
    /// Adds the row at `index`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn add(&mut self, rows: &Rows, index: usize) {
        // A whole stripe of the hash, which is then fast.
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&rows.line[index].to_le_bytes());
        bytes[8..12].copy_from_slice(&rows.process[index].to_le_bytes());
        bytes[12..16].copy_from_slice(&rows.thread[index].to_le_bytes());
        bytes[16..20].copy_from_slice(&rows.instructions[index].to_le_bytes());
        (bytes[20], bytes[21]) = (rows.dependence[index], rows.store[index]);
        self.0.write(&bytes);
    }

    /// Returns the fingerprint of the rows so far.
    pub fn finish(&self) -> Fingerprint {
        Fingerprint::Contents(self.0.finish())
    }
}

/// Returns a function that counts a wasted prefetch to the access that sent it.
fn in_vain(accesses: &mut [Access]) -> impl FnMut(Wasted) {
    |wasted| {
        let (Wasted::Stream(index) | Wasted::Pair(index)) = wasted;
        // The access that is still to be pushed cannot have sent any.
        if let Some(access) = accesses.get_mut(index as usize) {
            access.kind.add_wasted(wasted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm_trace::Row;

    fn rows(lines: &[(u32, u64)]) -> Rows {
        let mut rows = Rows::default();
        for &(process, line) in lines {
            rows.push(Row { process, thread: process, instructions: 1, line, store: false, dependence: 0 });
        }
        rows
    }

    #[test]
    fn equal_rows_have_one_fingerprint_whatever_their_batches_and_page_size() {
        let of = |page_size, batches: &[&[(u32, u64)]]| {
            let mut builder = StreamBuilder::new(page_size);
            batches.iter().for_each(|batch| builder.append(&rows(batch)));
            builder.finish("x").expect("rows").fingerprint.expect("of rows")
        };
        let whole = of(PageSize::Base, &[&[(0, 1), (1, 2), (0, 3)]]);
        assert_eq!(whole, of(PageSize::Huge, &[&[(0, 1)], &[(1, 2), (0, 3)]]));
        assert_ne!(whole, of(PageSize::Base, &[&[(0, 1), (1, 2), (0, 4)]]));
        assert_ne!(whole, of(PageSize::Base, &[&[(0, 1), (1, 2)]]));
    }

    #[test]
    fn a_program_that_goes_on_to_touch_new_pages_has_no_loading_apart() {
        let stream = |pages: &[u32]| Stream {
            accesses: pages.iter().map(|&page| Access { page, ..Access::default() }).collect(),
            pages: vec![(0, 0); 2],
            ..Stream::default()
        };
        assert_eq!(stream(&[0, 1, 0, 1, 1, 0, 0, 0]).loaded(), 2);
        assert_eq!(stream(&[0, 0, 0, 0, 0, 0, 1, 0]).loaded(), 0, "seven of eight accesses");
    }

    #[test]
    fn threads_that_hardly_access_memory_do_not_count_as_busy() {
        let threads = std::iter::repeat_n(0, 500).chain(std::iter::repeat_n(1, 5)).chain([2, 2]);
        let accesses = threads.map(|thread| Access { thread, ..Access::default() }).collect();
        let stream = Stream { accesses, threads: 3, ..Stream::default() };
        assert_eq!(stream.busy_threads(), 2);
    }

    #[test]
    fn pages_are_dense_in_address_order_and_apart_for_each_process() {
        let mut builder = StreamBuilder::new(PageSize::Base);
        builder.append(&rows(&[(0, 0x300), (0, 0x100), (1, 0x100), (0, 0x13f)]));
        let stream = builder.finish("test").expect("four rows");
        assert_eq!(stream.pages, [(0, 0x4000), (0, 0xc000), (1, 0x4000)]);
        let pages: Vec<u32> = stream.accesses.iter().map(|access| access.page).collect();
        assert_eq!(pages, [1, 0, 2, 0]);
        assert_eq!(stream.footprint(), Bytes(3 * 4096));
        assert_eq!(stream.threads, 2);
    }

    #[test]
    fn huge_pages_gather_what_lies_within_two_mebibytes() {
        let mut builder = StreamBuilder::new(PageSize::Huge);
        builder.append(&rows(&[(0, 0), (0, 0x7fff), (0, 0x8000)]));
        assert_eq!(builder.finish("test").expect("three rows").pages, [(0, 0), (0, 2 << 20)]);
    }

    #[test]
    fn streams_are_prefetched_for_each_thread_by_itself() {
        let mut builder = StreamBuilder::new(PageSize::Huge);
        // Two threads read lines in turn, in two batches; the last prefetches are never used.
        for batch in [0..3, 3..6] {
            builder.append(&rows(&batch.flat_map(|line| [(0, line), (1, line)]).collect::<Vec<_>>()));
        }
        let stream = builder.finish("test").expect("twelve rows");
        for thread in 0..2 {
            let of: Vec<_> = stream.accesses.iter().filter(|access| access.thread == thread).collect();
            assert_eq!(of.iter().map(|access| access.trigger).collect::<Vec<_>>(), [0, 0, 1, 2, 2, 3]);
            assert_eq!(of.iter().map(|access| access.useless()).collect::<Vec<_>>(), [0, 0, 0, 2, 2, 2]);
        }
    }

    fn built(row: Row) -> Result<Stream, StreamError> {
        let mut rows = Rows::default();
        rows.push(row);
        let mut builder = StreamBuilder::new(PageSize::Base);
        builder.append(&rows);
        builder.finish("x.trace")
    }

    const ROW: Row = Row { process: 0, thread: 0, instructions: 1, line: 0, store: false, dependence: 0 };

    #[test]
    fn a_thread_of_the_largest_number_is_a_thread() {
        assert_eq!(built(Row { thread: u32::MAX, ..ROW }).expect("one thread").threads, 1);
    }

    #[test]
    fn the_last_page_of_the_last_process_is_a_page() {
        let stream = built(Row { process: PROCESSES - 1, line: LINES - 1, ..ROW }).expect("one page");
        assert_eq!(stream.pages, [(PROCESSES - 1, (1 << 56) - 4096)]);
    }

    #[test]
    fn processes_and_addresses_that_would_merge_with_others_are_refused() {
        let name = || "x.trace".into();
        for process in [PROCESSES, u32::MAX] {
            assert_eq!(built(Row { process, ..ROW }).unwrap_err(), StreamError::Process(name()));
        }
        for line in [LINES, u64::MAX] {
            assert_eq!(built(Row { line, ..ROW }).unwrap_err(), StreamError::Address(name()));
        }
    }

    #[test]
    fn an_empty_trace_is_refused() {
        assert_eq!(
            StreamBuilder::new(PageSize::Base).finish("x.trace").unwrap_err(),
            StreamError::Empty("x.trace".into())
        );
    }
}
