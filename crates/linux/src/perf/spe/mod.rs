//! Packets of Arm's Statistical Profiling Extension (SPE), as in its buffer.
//!
//! Formats are those of the "Arm Architecture Reference Manual for A-profile architecture", chapter
//! "Statistical Profiling Extension Sample Record Specification". The implementation-defined data sources are
//! those of the Neoverse cores' and AmpereOne's manuals, as in Linux' `tools/perf/util/arm-spe-decoder`.

use isotherm_core::Operation;

use super::data_source::{Memory, Served};

/// Operation in a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Op {
    /// Load or store; `None` for branches and operations without memory access.
    pub operation: Option<Operation>,
    /// Virtual data address, without its tag.
    pub address: Option<u64>,
    /// Physical data address.
    pub physical: Option<u64>,
    /// Context number: the thread, where the kernel is built with `CONFIG_PID_IN_CONTEXTIDR`.
    pub context: Option<u32>,
    /// Total latency in cycles; 0 where absent.
    pub latency: u32,
    /// Bits of the events packet.
    pub events: u64,
    /// Data source packet, whose meaning depends on the core.
    pub source: Option<u16>,
    /// Generic timer's count at the operation; 0 where absent.
    pub timestamp: u64,
}

/// Cores that define the data sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sources {
    /// Arm's Neoverse N1, N2, V1 and V2.
    Neoverse,
    /// Ampere's AmpereOne.
    AmpereOne,
}

/// Events packet: the last-level cache was missed.
const LAST_LEVEL_MISS: u64 = 1 << 9;
/// Events packet: another socket or chip was accessed.
const REMOTE: u64 = 1 << 10;

impl Op {
    /// Returns what served it.
    pub fn served(&self, sources: Sources) -> Served {
        let dram = if self.events & REMOTE == 0 { Memory::LocalDram } else { Memory::RemoteDram };
        match (sources, self.source) {
            (Sources::Neoverse, Some(0xe)) | (Sources::AmpereOne, Some(7)) => Served::Memory(dram),
            (Sources::Neoverse, Some(0 | 8..=0xc)) | (Sources::AmpereOne, Some(3 | 5 | 8 | 9)) => {
                Served::Cache
            }
            // Cache or memory of another chip.
            (Sources::Neoverse, Some(0xd)) if self.events & LAST_LEVEL_MISS != 0 => {
                Served::Memory(Memory::RemoteDram)
            }
            _ => Served::Unknown,
        }
    }
}

/// Packet of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packet {
    Padding,
    End,
    Timestamp(u64),
    Address { index: u8, value: u64 },
    Counter { index: u8, value: u64 },
    Context(u64),
    Operation { class: u8, value: u64 },
    Events(u64),
    Source(u64),
    Other,
}

/// Reader of the records in an SPE buffer.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    buffer: &'a [u8],
    position: usize,
    /// Bytes skipped because no packet begins with them.
    pub damaged: usize,
}

impl<'a> Records<'a> {
    /// Reads `buffer`, which starts at the beginning of a record.
    pub fn new(buffer: &'a [u8]) -> Self {
        Self { buffer, position: 0, damaged: 0 }
    }

    /// Returns the next packet, or `None` at the end of the buffer, which may cut a packet.
    fn packet(&mut self) -> Option<Packet> {
        let rest = self.buffer.get(self.position..)?;
        let first = *rest.first()?;
        // An extended header (0b001000xx) carries two more bits of the index.
        let (header, high, skip) = match first {
            0x20..=0x23 => (*rest.get(1)?, (first & 3) << 3, 2),
            _ => (first, 0, 1),
        };
        if skip == 2 && header == 0 {
            return self.align(first);
        }
        if skip == 1 && header <= 1 {
            self.position += 1;
            return Some(if header == 0 { Packet::Padding } else { Packet::End });
        }
        let size = 1usize << (header >> 4 & 3);
        let payload = rest.get(skip..skip + size)?;
        let mut bytes = [0u8; 8];
        bytes[..size].copy_from_slice(payload);
        let packet = classify(header, high, u64::from_le_bytes(bytes));
        // No packet begins so; the next byte is tried.
        let unknown = packet == Packet::Other;
        self.position += if unknown { 1 } else { skip + size };
        self.damaged += usize::from(unknown);
        Some(packet)
    }

    /// Skips an alignment command's padding, up to the next multiple of a power of two.
    fn align(&mut self, first: u8) -> Option<Packet> {
        let alignment = 1usize << ((first & 0xf) + 1);
        self.position = (self.position + 2).next_multiple_of(alignment);
        (self.position <= self.buffer.len()).then_some(Packet::Padding)
    }
}

fn classify(header: u8, high: u8, value: u64) -> Packet {
    let index = high | header & 7;
    match header {
        0x71 => Packet::Timestamp(value),
        _ if header & 0xcf == 0x42 => Packet::Events(value),
        _ if header & 0xcf == 0x43 => Packet::Source(value),
        _ if header & 0xfc == 0x64 => Packet::Context(value),
        _ if header & 0xfc == 0x48 => Packet::Operation { class: header & 3, value },
        _ if header & 0xf8 == 0xb0 => Packet::Address { index, value },
        _ if header & 0xf8 == 0x98 => Packet::Counter { index, value },
        _ => Packet::Other,
    }
}

/// Applies a packet to the record; returns true if it is the record's last.
fn apply(op: &mut Op, packet: Packet) -> bool {
    match packet {
        Packet::End => return true,
        Packet::Timestamp(time) => {
            op.timestamp = time;
            return true;
        }
        // Byte 7 of a virtual address is its tag; that of a physical address holds flags.
        Packet::Address { index: 2, value } => op.address = Some(value & ((1 << 56) - 1)),
        Packet::Address { index: 3, value } => op.physical = Some(value & ((1 << 56) - 1)),
        Packet::Counter { index: 0, value } => op.latency = value as u32,
        Packet::Context(value) => op.context = Some(value as u32),
        // Class 1 is loads, stores and atomics; its lowest bit means store.
        Packet::Operation { class: 1, value } => {
            op.operation = Some(if value & 1 == 0 { Operation::Load } else { Operation::Store });
        }
        Packet::Events(value) => op.events = value,
        Packet::Source(value) => op.source = Some(value as u16),
        _ => {}
    }
    false
}

impl Iterator for Records<'_> {
    type Item = Op;

    /// Returns the next complete record.
    fn next(&mut self) -> Option<Op> {
        let mut op = Op::default();
        loop {
            if apply(&mut op, self.packet()?) {
                return Some(op);
            }
        }
    }
}

#[cfg(test)]
mod tests;
