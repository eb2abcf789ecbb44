//! Defines the file that the plugin and the launcher share: the *pool*.
//!
//! The pool is a header, a table of slots and as many chunks of records as slots. Every traced process maps it once,
//! shared, so that a forked child has it already, no descriptor stays open that the guest could close, and whatever
//! a process had written stands there however the process died. A vCPU claims a free chunk, writes a record and then
//! the count in its slot, and marks the slot full; the launcher reads full and unfinished chunks alike and marks full
//! ones free. The pool bounds both the disk and the memory that recording takes: when no chunk is free, the guest waits.
//!
//! The launcher uses plain reads and writes (the page cache is coherent with mappings), so it needs offsets; the plugin
//! has structures with the same layout, asserted at compile time.

use isotherm_core::cache::{Geometry, LINE_SHIFT};

/// The first eight bytes of a pool.
pub const MAGIC: u64 = u64::from_le_bytes(*b"isopool1");
/// Bytes before the slot table.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of a slot: a cache line, since each is written by another thread.
pub const SLOT_BYTES: usize = 64;
/// Slots, and chunks.
pub const CHUNKS: usize = 4096;
/// Bytes of a record.
pub const RECORD_BYTES: usize = 16;
/// Records of a chunk.
pub const CHUNK_RECORDS: usize = 4096;
/// Bytes of a chunk.
pub const CHUNK_BYTES: usize = CHUNK_RECORDS * RECORD_BYTES;
/// Where the chunks begin.
pub const DATA_OFFSET: usize = HEADER_BYTES + CHUNKS * SLOT_BYTES;
/// The whole file, when every chunk has been used.
pub const POOL_BYTES: usize = DATA_OFFSET + CHUNKS * CHUNK_BYTES;

/// Lines of the largest filter, which is 128 KiB.
pub const LARGEST_FILTER: u32 = 2048;

/// The filter of each thread, a direct-mapped cache in front of the one that all share (see the plugin's `filter`): at
/// most a quarter of that, or none in front of a cache of fewer than 8 lines.
pub fn filter(shared: Geometry) -> Option<Geometry> {
    let lines = shared.size().0 >> LINE_SHIFT;
    let sets = 1 << (lines / 4).checked_ilog2()?.min(LARGEST_FILTER.ilog2());
    (sets > 1).then_some(Geometry { sets, ways: 1 })
}

/// Offsets in the header. The launcher writes the first five, the plugins the others.
pub mod header {
    /// u64, [`MAGIC`](super::MAGIC).
    pub const MAGIC: usize = 0;
    /// u32, sets of the cache model.
    pub const SETS: usize = 8;
    /// u32, ways of the cache model.
    pub const WAYS: usize = 12;
    /// u32, 1 to follow dependences.
    pub const DEPENDENCE: usize = 16;
    /// u32, 1 to record nothing more.
    pub const STOP: usize = 64;
    /// u64, grows while the launcher lives.
    pub const HEARTBEAT: usize = 72;
    /// u32, chunks with disk space behind them.
    pub const ALLOCATED: usize = 128;
    /// u32, processes seen.
    pub const PROCESSES: usize = 132;
    /// u32, threads seen.
    pub const THREADS: usize = 136;
    /// u32, programs that ran untraced.
    pub const UNTRACED: usize = 140;
    /// u64, misses that found no chunk.
    pub const LOST: usize = 144;
    /// u64, accesses of threads that held no chunk when they ended.
    pub const ACCESSES: usize = 152;
}

/// Offsets in a slot.
pub mod slot {
    /// u32, see [`state`](super::state).
    pub const STATE: usize = 0;
    /// u32, records (or bytes of text) written.
    pub const COUNT: usize = 4;
    /// u32, the process.
    pub const PROCESS: usize = 8;
    /// u32, the thread.
    pub const THREAD: usize = 12;
    /// u64, the stamp that the records' stamps count from.
    pub const BASE: usize = 16;
    /// u64, accesses (misses and hits) made while the chunk was held, up to its last record or its release.
    pub const ACCESSES: usize = 24;
    /// u32, the operating system's process id.
    pub const PID: usize = 32;
    /// u32, see [`kind`](super::kind).
    pub const KIND: usize = 36;
}

/// States of a slot. Only a plugin leaves `FREE`, only the launcher leaves `FULL`.
pub mod state {
    /// Nobody's.
    pub const FREE: u32 = 0;
    /// A plugin is filling in the slot.
    pub const CLAIMED: u32 = 1;
    /// Records are being written.
    pub const OPEN: u32 = 2;
    /// Complete.
    pub const FULL: u32 = 3;
}

/// What a chunk holds.
pub mod kind {
    /// Records.
    pub const RECORDS: u32 = 0;
    /// The command of a process that begins, as text.
    pub const PROCESS: u32 = 1;
    /// The path of a program that runs untraced, as text.
    pub const UNTRACED: u32 = 2;
}

/// A miss as a chunk holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Address >> 6, at most 51 bits.
    pub line: u64,
    /// Whether it is a store.
    pub store: bool,
    /// Distance in misses, 0 for none.
    pub dependence: u8,
    /// Instructions since the thread's record before.
    pub instructions: u32,
    /// Time since the chunk's base, in stamps.
    pub stamp: u32,
}

const LINE_BITS: u32 = 51;

impl Record {
    /// The record as two words.
    #[inline]
    pub fn pack(self) -> [u64; 2] {
        let line = self.line & ((1 << LINE_BITS) - 1);
        let place = line | u64::from(self.store) << LINE_BITS | u64::from(self.dependence) << (LINE_BITS + 1);
        [place, u64::from(self.instructions) | u64::from(self.stamp) << 32]
    }

    /// The reverse of [`Record::pack`].
    #[inline]
    pub fn unpack([place, time]: [u64; 2]) -> Self {
        Self {
            line: place & ((1 << LINE_BITS) - 1),
            store: place >> LINE_BITS & 1 != 0,
            dependence: (place >> (LINE_BITS + 1) & 0xff) as u8,
            instructions: time as u32,
            stamp: (time >> 32) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_at_most_a_quarter_of_the_cache_and_at_most_128_kib() {
        let sets = |sets, ways| filter(Geometry { sets, ways }).map(|filter| filter.sets * filter.ways);
        assert_eq!([sets(2048, 16), sets(1 << 20, 16), sets(512, 16)], [Some(2048); 3]);
        assert_eq!([sets(16, 16), sets(8, 11), sets(1, 8)], [Some(64), Some(16), Some(2)]);
        assert_eq!([sets(1, 7), sets(4, 1), sets(1, 1)], [None; 3]);
    }

    #[test]
    fn records_survive_packing() {
        let extremes = [
            Record { line: 0, store: false, dependence: 0, instructions: 0, stamp: 0 },
            Record { line: (1 << 51) - 1, store: false, dependence: 255, instructions: u32::MAX, stamp: 0 },
            Record { line: 1, store: true, dependence: 1, instructions: 7, stamp: u32::MAX },
        ];
        for record in extremes {
            assert_eq!(Record::unpack(record.pack()), record);
        }
    }
}
