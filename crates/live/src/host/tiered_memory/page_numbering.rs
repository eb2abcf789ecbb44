//! Dense page numbers for the addresses of several processes.
//!
//! The unit of numbering is a *chunk*: 2 MiB, aligned, of one process. A chunk gets the next free number when
//! one of its pages is first seen, and its pages follow from that: 512 of [`PageSize::Base`], one of
//! [`PageSize::Huge`]. A lookup is three array accesses. Numbers of unmapped chunks are reused, the longest
//! unused first, so that counts which a policy still holds for them have aged.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use isotherm_core::{PageId, PageSize};

use isotherm_linux::process::Pid;
use isotherm_linux::source::Access;

/// Bytes of a chunk as a power of two: the huge page of x86-64 and of Arm with 4 KiB base pages.
pub(crate) const CHUNK_SHIFT: u32 = 21;
/// Entries of each of a directory's three levels, as a power of two: together 48 bits of address.
const LEVEL_SHIFT: u32 = 9;
const ENTRIES: usize = 1 << LEVEL_SHIFT;
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) process: Option<Pid>,
    pub(crate) start: u64,
}

type Leaf = [u32; ENTRIES];
type Middle = [Option<Box<Leaf>>; ENTRIES];

/// One process's directory of chunk numbers: three levels, each a flat array.
#[derive(Debug)]
struct Directory {
    root: Box<[Option<Box<Middle>>; ENTRIES]>,
    chunks: Vec<u32>,
}

/// Returns the entry of each level for an address, or `None` beyond 48 bits.
fn indices(address: u64) -> Option<[usize; 3]> {
    let chunk = address >> CHUNK_SHIFT;
    let index = |level: u32| (chunk >> (level * LEVEL_SHIFT)) as usize % ENTRIES;
    (chunk >> (3 * LEVEL_SHIFT) == 0).then(|| [index(2), index(1), index(0)])
}

impl Directory {
    fn new() -> Self {
        Self { root: Box::new([const { None }; ENTRIES]), chunks: Vec::new() }
    }

    fn get(&self, address: u64) -> Option<u32> {
        let [root, middle, leaf] = indices(address)?;
        let number = self.root[root].as_ref()?[middle].as_ref()?[leaf];
        (number != NONE).then_some(number)
    }

    fn set(&mut self, [root, middle, leaf]: [usize; 3], number: u32) {
        let middles = self.root[root].get_or_insert_with(|| Box::new([const { None }; ENTRIES]));
        middles[middle].get_or_insert_with(|| Box::new([NONE; ENTRIES]))[leaf] = number;
    }

    fn bytes(&self) -> usize {
        let leaves = |middle: &Middle| middle.iter().flatten().count() * size_of::<Leaf>();
        let middles = self.root.iter().flatten().map(|middle| size_of::<Middle>() + leaves(middle));
        middles.sum::<usize>() + ENTRIES * size_of::<usize>() + self.chunks.len() * size_of::<u32>()
    }
}

#[derive(Debug)]
pub(crate) struct PageNumbering {
    page_size: PageSize,
    directories: BTreeMap<Pid, Directory>,
    chunks: Vec<Chunk>,
    unused: VecDeque<u32>,
    /// The chunk that was numbered last: scans go in address order.
    last: Option<(Chunk, u32)>,
}

impl PageNumbering {
    pub(crate) fn new(page_size: PageSize) -> Self {
        Self {
            page_size,
            directories: BTreeMap::new(),
            chunks: Vec::new(),
            unused: VecDeque::new(),
            last: None,
        }
    }

    /// Returns one more than the largest page number in use so far.
    pub(crate) fn pages(&self) -> usize {
        self.chunks.len() * self.pages_in_chunk() as usize
    }

    pub(crate) fn pages_in_chunk(&self) -> u32 {
        1 << (CHUNK_SHIFT - self.page_size.shift())
    }

    /// Appends each access's page, if its chunk is numbered; independent steps let lookups overlap.
    pub(crate) fn find_all(&self, accesses: &[Access], pages: &mut Vec<Option<PageId>>) {
        for run in accesses.chunk_by(|one, next| one.process == next.process) {
            let directory = self.directories.get(&run[0].process);
            let find = |address| Some(self.page(directory?.get(address)?, address));
            pages.extend(run.iter().map(|access| find(access.address)));
        }
    }

    /// Returns the page of an address, if its chunk is numbered.
    pub(crate) fn at(&self, process: Pid, address: u64) -> Option<PageId> {
        Some(self.page(self.directories.get(&process)?.get(address)?, address))
    }

    fn find(&self, chunk: Chunk) -> Option<u32> {
        match self.last {
            Some((last, number)) if last == chunk => Some(number),
            _ => self.directories.get(&chunk.process?)?.get(chunk.start),
        }
    }

    /// Returns the page of an address and numbers its chunk if necessary; `None` beyond 48 bits.
    pub(crate) fn number(&mut self, process: Pid, address: u64) -> Option<PageId> {
        let chunk = Chunk { process: Some(process), start: address >> CHUNK_SHIFT << CHUNK_SHIFT };
        let number = match self.find(chunk) {
            Some(number) => number,
            None => self.give(process, chunk)?,
        };
        self.last = Some((chunk, number));
        Some(self.page(number, address))
    }

    fn give(&mut self, process: Pid, chunk: Chunk) -> Option<u32> {
        let place = indices(chunk.start)?;
        let number = self.unused.pop_front().unwrap_or(self.chunks.len() as u32);
        match self.chunks.get_mut(number as usize) {
            Some(entry) => *entry = chunk,
            None => self.chunks.push(chunk),
        }
        let directory = self.directories.entry(process).or_insert_with(Directory::new);
        directory.set(place, number);
        directory.chunks.push(number);
        Some(number)
    }

    fn page(&self, chunk: u32, address: u64) -> PageId {
        let within = (address & ((1 << CHUNK_SHIFT) - 1)) >> self.page_size.shift();
        PageId(chunk * self.pages_in_chunk() + within as u32)
    }

    /// Returns the process and first address of a page, or `None` if its number is unused.
    pub(crate) fn address(&self, page: PageId) -> Option<(Pid, u64)> {
        let chunk = self.chunks.get((page.0 / self.pages_in_chunk()) as usize)?;
        let within = u64::from(page.0 % self.pages_in_chunk()) << self.page_size.shift();
        Some((chunk.process?, chunk.start + within))
    }

    pub(crate) fn chunk_of(&self, page: PageId) -> Range<u32> {
        self.pages_of(page.0 / self.pages_in_chunk())
    }

    pub(crate) fn processes(&self) -> impl Iterator<Item = Pid> {
        self.directories.keys().copied()
    }

    /// Returns the pages of a range of addresses that are numbered, a run for each chunk.
    pub(crate) fn within(&self, process: Pid, range: &Range<u64>) -> impl Iterator<Item = Range<u32>> {
        let chunks = (range.start >> CHUNK_SHIFT)..range.end.div_ceil(1 << CHUNK_SHIFT);
        let range = range.clone();
        chunks.filter_map(move |chunk| {
            let first = self.at(process, range.start.max(chunk << CHUNK_SHIFT))?;
            let last = self.at(process, range.end.min((chunk + 1) << CHUNK_SHIFT) - 1)?;
            Some(first.0..last.0 + 1)
        })
    }

    pub(crate) fn chunks_of(&self, process: Pid) -> &[u32] {
        self.directories.get(&process).map_or(&[], |directory| &directory.chunks)
    }

    /// Returns the first address of a chunk.
    pub(crate) fn start_of(&self, chunk: u32) -> u64 {
        self.chunks[chunk as usize].start
    }

    pub(crate) fn pages_of(&self, chunk: u32) -> Range<u32> {
        chunk * self.pages_in_chunk()..(chunk + 1) * self.pages_in_chunk()
    }

    /// Frees the numbers of those chunks of the process that are `gone`.
    pub(crate) fn release(&mut self, process: Pid, mut gone: impl FnMut(u32) -> bool) {
        self.last = None;
        let Some(directory) = self.directories.get_mut(&process) else { return };
        let mut chunks = std::mem::take(&mut directory.chunks);
        chunks.retain(|&chunk| {
            if !gone(chunk) {
                return true;
            }
            let entry = &mut self.chunks[chunk as usize];
            if let Some(place) = indices(entry.start) {
                directory.set(place, NONE);
            }
            entry.process = None;
            self.unused.push_back(chunk);
            false
        });
        directory.chunks = chunks;
    }

    pub(crate) fn forget(&mut self, process: Pid) {
        self.release(process, |_| true);
        self.directories.remove(&process);
    }

    pub(crate) fn bytes(&self) -> usize {
        let directories = self.directories.values().map(Directory::bytes).sum::<usize>();
        directories + self.chunks.len() * size_of::<Chunk>() + self.unused.len() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use isotherm_core::{Nanos, Operation};

    use super::*;
    use isotherm_linux::source::Cause;

    fn access(process: u32, address: u64) -> Access {
        Access {
            time: Nanos(0),
            process: Pid(process),
            address,
            weight: 1,
            latency: 0,
            tier: None,
            operation: Operation::Load,
            cause: Cause::Sampled,
        }
    }

    fn find(numbers: &PageNumbering, process: u32, address: u64) -> Option<PageId> {
        let mut pages = Vec::new();
        numbers.find_all(&[access(process, address)], &mut pages);
        pages[0]
    }

    proptest! {
        #[test]
        fn every_address_leads_to_its_page_and_back(
            addresses in prop::collection::vec((0..3u32, 0..1u64 << 48), 1..200),
            huge in any::<bool>(),
        ) {
            let page_size = if huge { PageSize::Huge } else { PageSize::Base };
            let mut numbers = PageNumbering::new(page_size);
            for &(process, address) in &addresses {
                let page = numbers.number(Pid(process), address).expect("48 bits");
                let start = address >> page_size.shift() << page_size.shift();
                prop_assert_eq!(numbers.address(page), Some((Pid(process), start)));
                prop_assert_eq!(find(&numbers, process, address), Some(page));
                prop_assert!(page.index() < numbers.pages());
                prop_assert!(numbers.chunk_of(page).contains(&page.0));
            }
            let accesses: Vec<Access> =
                addresses.iter().map(|&(process, address)| access(process, address)).collect();
            let mut pages = Vec::new();
            numbers.find_all(&accesses, &mut pages);
            for (access, page) in accesses.iter().zip(pages) {
                prop_assert_eq!(numbers.number(access.process, access.address), page);
            }
        }
    }

    #[test]
    fn numbers_of_an_ended_process_lead_nowhere_until_they_are_reused() {
        let mut numbers = PageNumbering::new(PageSize::Base);
        let old = numbers.number(Pid(1), 0x7fff_0000_1000).expect("in range");
        let kept = numbers.number(Pid(2), 0x7fff_0000_1000).expect("in range");
        numbers.forget(Pid(1));
        assert_eq!((numbers.address(old), find(&numbers, 1, 0x7fff_0000_1000)), (None, None));
        let new = numbers.number(Pid(3), 0x1000).expect("in range");
        assert_eq!(numbers.chunk_of(new), numbers.chunk_of(old));
        assert_eq!(numbers.address(kept), Some((Pid(2), 0x7fff_0000_1000)));
        assert_eq!(numbers.pages(), 1024);
    }

    #[test]
    fn a_released_chunk_can_return_under_another_number() {
        let mut numbers = PageNumbering::new(PageSize::Huge);
        let first = numbers.number(Pid(1), 0).expect("in range");
        numbers.number(Pid(1), 1 << CHUNK_SHIFT).expect("in range");
        numbers.release(Pid(1), |chunk| chunk == first.0);
        assert_eq!(find(&numbers, 1, 0), None);
        assert_eq!(numbers.chunks_of(Pid(1)), [1]);
        numbers.number(Pid(2), 0).expect("in range");
        assert_eq!(numbers.number(Pid(1), 0), Some(PageId(2)));
    }

    #[test]
    fn addresses_beyond_48_bits_have_no_number() {
        assert_eq!(PageNumbering::new(PageSize::Base).number(Pid(1), 1 << 48), None);
    }
}
