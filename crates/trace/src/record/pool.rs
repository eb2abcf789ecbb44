//! The recorder's side of the pool: makes it, empties it and stops the plugins.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use isotherm_core::cache::Geometry;

use super::merge::Merge;
use isotherm_recorder_protocol::layout::{self, Header, Slot, kind, state};

/// Pool, whose file is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Pool {
    path: PathBuf,
    file: File,
    header: Vec<u8>,
    heartbeat: u64,
    /// Progress in each slot's chunk.
    taken: Vec<Taken>,
    /// Accesses of chunks that were freed.
    accesses: u64,
    buffer: Vec<u8>,
    /// Slots in use, as of this round.
    found: Vec<Found>,
    /// Number in the system of each process seen.
    pids: HashMap<u32, u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    /// Whether the chunk was open in the previous round: only then its slot is surely filled in.
    open: bool,
    records: usize,
    accesses: u64,
}

#[derive(Debug, Clone, Copy)]
struct Found {
    index: usize,
    bytes: [u8; layout::SLOT_BYTES],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    Process(u32, String),
    Untraced(String),
}

/// Selection of the chunks that a round takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// Full ones, and the new records of open ones.
    Running,
    /// Likewise, and all of those whose process has ended.
    Sweep,
    /// All: there are no writers.
    Last,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

impl Found {
    fn state(&self) -> u32 {
        u32_at(&self.bytes, offset_of!(Slot, state))
    }

    fn process(&self) -> u32 {
        u32_at(&self.bytes, offset_of!(Slot, process))
    }

    fn thread(&self) -> u32 {
        u32_at(&self.bytes, offset_of!(Slot, thread))
    }

    fn base(&self) -> u64 {
        u64_at(&self.bytes, offset_of!(Slot, base))
    }

    fn is_records(&self) -> bool {
        u32_at(&self.bytes, offset_of!(Slot, kind)) == kind::RECORDS
    }

    fn pid(&self) -> u32 {
        u32_at(&self.bytes, offset_of!(Slot, pid))
    }

    fn is_orphan(&self) -> bool {
        !Path::new("/proc").join(self.pid().to_string()).exists()
    }
}

impl Pool {
    /// Makes the pool at the absolute `path`.
    pub(super) fn create(path: PathBuf, cache: Geometry, dependence: bool) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        let mut start = vec![0; layout::DATA_OFFSET];
        start[offset_of!(Header, magic)..][..8].copy_from_slice(&layout::MAGIC.to_le_bytes());
        start[offset_of!(Header, sets)..][..4].copy_from_slice(&cache.sets.to_le_bytes());
        start[offset_of!(Header, ways)..][..4].copy_from_slice(&cache.ways.to_le_bytes());
        start[offset_of!(Header, dependence)..][..4].copy_from_slice(&u32::from(dependence).to_le_bytes());
        let taken = vec![Taken::default(); layout::CHUNKS];
        let header = start[..layout::HEADER_BYTES].to_vec();
        let pool = Self {
            path,
            file,
            header,
            heartbeat: 0,
            taken,
            accesses: 0,
            buffer: Vec::new(),
            found: Vec::new(),
            pids: HashMap::new(),
        };
        pool.file.write_all_at(&start, 0)?;
        Ok(pool)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }

    pub(super) fn stop(&self) -> io::Result<()> {
        self.file.write_all_at(&[1], offset_of!(Header, stop) as u64)
    }

    /// Takes what the plugins wrote since. Returns the messages, and whether a chunk was full.
    pub(super) fn drain(&mut self, round: Round, merge: &mut Merge) -> io::Result<(Vec<Message>, bool)> {
        self.heartbeat += 1;
        self.file.write_all_at(&self.heartbeat.to_le_bytes(), offset_of!(Header, heartbeat) as u64)?;
        self.file.read_exact_at(&mut self.header, 0)?;
        self.find_used_slots()?;
        let mut slots = std::mem::take(&mut self.found);
        // A thread may have filled several chunks since, whose records must stay in order.
        slots.sort_by_key(Found::base);
        let (mut messages, mut busy) = (Vec::new(), false);
        for found in slots.drain(..) {
            self.pids.entry(found.process()).or_insert(found.pid());
            let ends = found.state() == state::FULL
                || round == Round::Last
                || (round == Round::Sweep && self.taken[found.index].open && found.is_orphan());
            busy |= ends;
            if ends {
                messages.extend(self.take_all(found.index, merge)?);
            } else {
                if self.taken[found.index].open && found.is_records() {
                    self.take(&found, merge)?;
                }
                self.taken[found.index].open = true;
            }
        }
        self.found = slots;
        Ok((messages, busy))
    }

    fn find_used_slots(&mut self) -> io::Result<()> {
        let allocated = (u32_at(&self.header, offset_of!(Header, allocated)) as usize).min(layout::CHUNKS);
        self.buffer.resize(allocated * layout::SLOT_BYTES, 0);
        self.file.read_exact_at(&mut self.buffer, layout::HEADER_BYTES as u64)?;
        let (slots, _) = self.buffer.as_chunks::<{ layout::SLOT_BYTES }>();
        let all = slots.iter().enumerate().map(|(index, &bytes)| Found { index, bytes });
        self.found.clear();
        self.found.extend(all.filter(|slot| matches!(slot.state(), state::OPEN | state::FULL)));
        Ok(())
    }

    fn take_all(&mut self, index: usize, merge: &mut Merge) -> io::Result<Option<Message>> {
        let place = (layout::HEADER_BYTES + index * layout::SLOT_BYTES) as u64;
        let mut found = Found { index, bytes: [0; layout::SLOT_BYTES] };
        // Read once more, since the first reading may stem from the moment before completion.
        self.file.read_exact_at(&mut found.bytes, place)?;
        let message = if found.is_records() {
            self.take(&found, merge)?;
            None
        } else {
            self.message(&found, merge)?
        };
        self.accesses += u64_at(&found.bytes, offset_of!(Slot, accesses));
        self.taken[index] = Taken::default();
        self.file.write_all_at(&[state::FREE as u8], place)?;
        Ok(message)
    }

    fn take(&mut self, found: &Found, merge: &mut Merge) -> io::Result<()> {
        let count = (u32_at(&found.bytes, offset_of!(Slot, count)) as usize).min(layout::CHUNK_RECORDS);
        let taken = &mut self.taken[found.index];
        let first = taken.records.min(count);
        (taken.records, taken.accesses) = (count, u64_at(&found.bytes, offset_of!(Slot, accesses)));
        self.read_chunk(found.index, first * layout::RECORD_BYTES, count * layout::RECORD_BYTES)?;
        merge.add(found.process(), found.thread(), found.base(), &self.buffer);
        Ok(())
    }

    /// Returns a chunk's message, unless it has notes, whose place is among the records.
    fn message(&mut self, found: &Found, merge: &mut Merge) -> io::Result<Option<Message>> {
        let length = (u32_at(&found.bytes, offset_of!(Slot, count)) as usize).min(layout::CHUNK_BYTES);
        self.read_chunk(found.index, 0, length)?;
        let text = String::from_utf8_lossy(&self.buffer).into_owned();
        Ok(match u32_at(&found.bytes, offset_of!(Slot, kind)) {
            kind::PROCESS => Some(Message::Process(found.process(), text)),
            kind::NOTES => {
                merge.add_notes(found.process(), found.thread(), found.base(), &text);
                None
            }
            _ => Some(Message::Untraced(text)),
        })
    }

    fn read_chunk(&mut self, index: usize, from: usize, to: usize) -> io::Result<()> {
        self.buffer.resize(to - from, 0);
        let offset = layout::DATA_OFFSET + index * layout::CHUNK_BYTES + from;
        self.file.read_exact_at(&mut self.buffer, offset as u64)
    }

    /// Returns the error for which a plugin has ended the recording, as of the last round.
    pub(super) fn check(&self) -> io::Result<()> {
        match u32_at(&self.header, offset_of!(Header, failed)) {
            0 => Ok(()),
            number => Err(io::Error::from_raw_os_error(number.cast_signed())),
        }
    }

    /// Returns the accesses seen until the last round, as do the next three for theirs.
    pub(super) fn accesses(&self) -> u64 {
        let open: u64 = self.taken.iter().map(|taken| taken.accesses).sum();
        self.accesses + open + u64_at(&self.header, offset_of!(Header, accesses))
    }

    pub(super) fn lost(&self) -> u64 {
        u64_at(&self.header, offset_of!(Header, lost))
    }

    pub(super) fn untraced(&self) -> u64 {
        u64::from(u32_at(&self.header, offset_of!(Header, untraced)))
    }

    /// Returns the number in the system of a process whose records were seen.
    pub(super) fn pid(&self, process: u32) -> Option<u32> {
        self.pids.get(&process).copied()
    }

    /// Returns whether a plugin has ever begun a process.
    pub(super) fn is_used(&self) -> bool {
        u32_at(&self.header, offset_of!(Header, processes)) > 0
    }

    pub(super) fn threads(&self) -> u32 {
        u32_at(&self.header, offset_of!(Header, threads))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // It may be gone. If it stays, the trace can be read all the same.
        let _ = self.remove();
    }
}
