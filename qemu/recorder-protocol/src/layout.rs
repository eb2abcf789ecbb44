//! Layout of the *pool*, the file through which plugins hand records to the recorder.
//!
//! A header, a table of slots, and a chunk of records for each slot. Every traced process maps it once,
//! shared: a forked child has it already, no descriptor stays open that the guest could close, and what a
//! process has written stays there however it dies. A vCPU claims a free chunk, writes each record and then
//! the count in the slot, and marks the slot full. The recorder, which uses the file at the offsets of
//! [`Header`] and [`Slot`], reads full and unfinished chunks and marks full ones free. While no chunk is
//! free, the guest waits: the pool bounds both the disk and the memory that recording takes.

use std::sync::atomic::{AtomicU32, AtomicU64};

use isotherm_core::cache::{Geometry, LINE_SHIFT};

pub const MAGIC: u64 = u64::from_le_bytes(*b"isopool3");
/// End of the pool's path, in the trace's directory.
pub const POOL_NAME: &str = "/.pool";
pub const HEADER_BYTES: usize = 4096;
pub const SLOT_BYTES: usize = size_of::<Slot>();
/// Number of slots, and of chunks.
pub const CHUNKS: usize = 4096;
pub const RECORD_BYTES: usize = 16;
pub const CHUNK_RECORDS: usize = 4096;
pub const CHUNK_BYTES: usize = CHUNK_RECORDS * RECORD_BYTES;
pub const DATA_OFFSET: usize = HEADER_BYTES + CHUNKS * SLOT_BYTES;
/// Bytes of a pool whose chunks are all in use.
pub const POOL_BYTES: usize = DATA_OFFSET + CHUNKS * CHUNK_BYTES;

/// Lines of the largest filter, which is 128 KiB.
pub const LARGEST_FILTER: u32 = 2048;

/// Returns the geometry of each thread's filter, a direct-mapped cache in front of the `shared` one: at most
/// a quarter of it, or `None` in front of a cache of fewer than 8 lines.
pub fn filter(shared: Geometry) -> Option<Geometry> {
    let lines = shared.size().0 >> LINE_SHIFT;
    let sets = 1 << (lines / 4).checked_ilog2()?.min(LARGEST_FILTER.ilog2());
    (sets > 1).then_some(Geometry { sets, ways: 1 })
}

/// Start of the pool. What the recorder writes often and what plugins write (from `allocated` on) lie on
/// cache lines of their own.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    pub magic: AtomicU64,
    pub sets: AtomicU32,
    pub ways: AtomicU32,
    /// 1 to follow dependences.
    pub dependence: AtomicU32,
    _constants: [u32; 11],
    /// 1 to record nothing more.
    pub stop: AtomicU32,
    _stop: u32,
    /// Grows while the recorder lives.
    pub heartbeat: AtomicU64,
    _heartbeat: [u64; 6],
    /// Chunks that have disk space.
    pub allocated: AtomicU32,
    pub processes: AtomicU32,
    pub threads: AtomicU32,
    /// Programs that ran untraced.
    pub untraced: AtomicU32,
    /// Misses that found no chunk.
    pub lost: AtomicU64,
    /// Accesses of threads that held no chunk when they ended.
    pub accesses: AtomicU64,
    /// Number of the error for which a plugin ended the recording: the pool could not grow. 0 for none.
    pub failed: AtomicU32,
}

/// State and contents of a chunk. Each slot has its own cache line, since another thread writes it.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Slot {
    /// One of [`state`].
    pub state: AtomicU32,
    /// Records (or bytes of text) written.
    pub count: AtomicU32,
    pub process: AtomicU32,
    pub thread: AtomicU32,
    /// Stamp from which the records' stamps count.
    pub base: AtomicU64,
    /// Accesses (misses and hits) made while the chunk was held, up to its last record or its release.
    pub accesses: AtomicU64,
    /// The operating system's id of the process that writes.
    pub pid: AtomicU32,
    /// One of [`kind`].
    pub kind: AtomicU32,
}

/// States of a slot. Only a plugin leaves `FREE`, only the recorder leaves `FULL`.
pub mod state {
    pub const FREE: u32 = 0;
    /// A plugin is filling in the slot.
    pub const CLAIMED: u32 = 1;
    pub const OPEN: u32 = 2;
    pub const FULL: u32 = 3;
}

/// Contents of a chunk.
pub mod kind {
    pub const RECORDS: u32 = 0;
    /// Text: the command of a process that begins.
    pub const PROCESS: u32 = 1;
    /// Text: the path of a program that runs untraced.
    pub const UNTRACED: u32 = 2;
    /// Text: a [`Note`](crate::Note) in each line.
    pub const NOTES: u32 = 3;
}

/// Miss in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Address >> 6, at most 51 bits.
    pub line: u64,
    pub store: bool,
    /// Distance in misses to the one that the address depends on, 0 without one.
    pub dependence: u8,
    /// Instructions since the thread's previous record.
    pub instructions: u32,
    /// Time since the chunk's base, in stamps.
    pub stamp: u32,
}

const LINE_BITS: u32 = 51;

impl Record {
    #[inline]
    pub fn pack(self) -> [u64; 2] {
        let line = self.line & ((1 << LINE_BITS) - 1);
        let place = line | u64::from(self.store) << LINE_BITS | u64::from(self.dependence) << (LINE_BITS + 1);
        [place, u64::from(self.instructions) | u64::from(self.stamp) << 32]
    }

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
    use std::mem::offset_of;

    #[test]
    fn what_different_sides_write_lies_on_different_cache_lines() {
        let lines = [offset_of!(Header, magic), offset_of!(Header, stop), offset_of!(Header, allocated)];
        assert_eq!(lines, [0, 64, 128]);
        assert_eq!((offset_of!(Header, accesses), size_of::<Slot>(), offset_of!(Slot, kind)), (152, 64, 36));
    }

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
