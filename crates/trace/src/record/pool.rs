//! Defines the launcher's side of the pool: making it, emptying it, stopping the plugins.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use isotherm_core::cache::Geometry;

use super::merge::Merge;
use isotherm_recorder_protocol::layout::{self, header, kind, slot, state};

/// A pool. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct Pool {
    path: PathBuf,
    file: File,
    header: Vec<u8>,
    heartbeat: u64,
    /// What was taken of each slot's chunk so far.
    taken: Vec<Taken>,
    /// Accesses of chunks that were freed.
    accesses: u64,
    buffer: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    /// Whether the chunk was open in the round before: only then its slot is surely filled in.
    open: bool,
    records: usize,
    accesses: u64,
}

/// A slot as read.
#[derive(Debug, Clone, Copy)]
struct Slot {
    index: usize,
    bytes: [u8; layout::SLOT_BYTES],
}

/// A message of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    /// A process of this number runs this command.
    Process(u32, String),
    /// This program runs untraced.
    Untraced(String),
}

/// Which chunks a round takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// Those of living writers.
    Running,
    /// And frees those of processes that are no more.
    Sweep,
    /// Everything: there are no writers.
    Last,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

impl Slot {
    fn state(&self) -> u32 {
        u32_at(&self.bytes, slot::STATE)
    }

    fn base(&self) -> u64 {
        u64_at(&self.bytes, slot::BASE)
    }

    fn is_records(&self) -> bool {
        u32_at(&self.bytes, slot::KIND) == kind::RECORDS
    }

    /// Whether the process that claimed it is no more.
    fn is_orphan(&self) -> bool {
        !Path::new("/proc").join(u32_at(&self.bytes, slot::PID).to_string()).exists()
    }
}

impl Pool {
    /// Makes the pool at `path` (absolute).
    pub(super) fn create(path: PathBuf, cache: Geometry, dependence: bool) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        let mut start = vec![0; layout::DATA_OFFSET];
        start[header::MAGIC..][..8].copy_from_slice(&layout::MAGIC.to_le_bytes());
        start[header::SETS..][..4].copy_from_slice(&cache.sets.to_le_bytes());
        start[header::WAYS..][..4].copy_from_slice(&cache.ways.to_le_bytes());
        start[header::DEPENDENCE..][..4].copy_from_slice(&u32::from(dependence).to_le_bytes());
        let taken = vec![Taken::default(); layout::CHUNKS];
        let header = start[..layout::HEADER_BYTES].to_vec();
        let pool = Self { path, file, header, heartbeat: 0, taken, accesses: 0, buffer: Vec::new() };
        pool.file.write_all_at(&start, 0)?;
        Ok(pool)
    }

    /// The pool's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Tells the plugins to record nothing more.
    pub(super) fn stop(&self) -> io::Result<()> {
        self.file.write_all_at(&[1], header::STOP as u64)
    }

    /// Takes what the plugins wrote since the round before. Returns the messages, and whether a chunk was full.
    pub(super) fn drain(&mut self, round: Round, merge: &mut Merge) -> io::Result<(Vec<Message>, bool)> {
        self.heartbeat += 1;
        self.file.write_all_at(&self.heartbeat.to_le_bytes(), header::HEARTBEAT as u64)?;
        self.file.read_exact_at(&mut self.header, 0)?;
        let mut slots = self.used_slots()?;
        // A thread may have filled several chunks since: in their order, please.
        slots.sort_by_key(Slot::base);
        let (mut messages, mut busy) = (Vec::new(), false);
        for found in slots {
            let ends = found.state() == state::FULL
                || round == Round::Last
                || (round == Round::Sweep && self.taken[found.index].open && found.is_orphan());
            busy |= ends;
            if ends {
                messages.extend(self.take_all(found.index, merge)?);
            } else {
                self.take_open(&found, merge)?;
            }
        }
        Ok((messages, busy))
    }

    fn used_slots(&self) -> io::Result<Vec<Slot>> {
        let allocated = (u32_at(&self.header, header::ALLOCATED) as usize).min(layout::CHUNKS);
        let mut table = vec![0; allocated * layout::SLOT_BYTES];
        self.file.read_exact_at(&mut table, layout::HEADER_BYTES as u64)?;
        let (slots, _) = table.as_chunks::<{ layout::SLOT_BYTES }>();
        let all = slots.iter().enumerate().map(|(index, &bytes)| Slot { index, bytes });
        Ok(all.filter(|slot| matches!(slot.state(), state::OPEN | state::FULL)).collect())
    }

    /// Takes a chunk that is complete, and frees it.
    fn take_all(&mut self, index: usize, merge: &mut Merge) -> io::Result<Option<Message>> {
        let place = (layout::HEADER_BYTES + index * layout::SLOT_BYTES) as u64;
        let mut found = Slot { index, bytes: [0; layout::SLOT_BYTES] };
        // Once more: what was read before may stem from the moment before completion.
        self.file.read_exact_at(&mut found.bytes, place)?;
        let message = if found.is_records() {
            self.take(&found, merge)?;
            None
        } else {
            Some(self.message(&found)?)
        };
        self.accesses += u64_at(&found.bytes, slot::ACCESSES);
        self.taken[index] = Taken::default();
        self.file.write_all_at(&[state::FREE as u8], place)?;
        Ok(message)
    }

    fn take_open(&mut self, found: &Slot, merge: &mut Merge) -> io::Result<()> {
        if self.taken[found.index].open && found.is_records() {
            self.take(found, merge)?;
        }
        self.taken[found.index].open = true;
        Ok(())
    }

    /// Takes the records of a chunk that were not taken yet.
    fn take(&mut self, found: &Slot, merge: &mut Merge) -> io::Result<()> {
        let count = (u32_at(&found.bytes, slot::COUNT) as usize).min(layout::CHUNK_RECORDS);
        let taken = &mut self.taken[found.index];
        let first = taken.records.min(count);
        (taken.records, taken.accesses) = (count, u64_at(&found.bytes, slot::ACCESSES));
        self.read_chunk(found.index, first * layout::RECORD_BYTES, count * layout::RECORD_BYTES)?;
        let [process, thread] = [slot::PROCESS, slot::THREAD].map(|at| u32_at(&found.bytes, at));
        merge.add(process, thread, found.base(), &self.buffer);
        Ok(())
    }

    fn message(&mut self, found: &Slot) -> io::Result<Message> {
        let length = (u32_at(&found.bytes, slot::COUNT) as usize).min(layout::CHUNK_BYTES);
        self.read_chunk(found.index, 0, length)?;
        let text = String::from_utf8_lossy(&self.buffer).into_owned();
        Ok(match u32_at(&found.bytes, slot::KIND) {
            kind::PROCESS => Message::Process(u32_at(&found.bytes, slot::PROCESS), text),
            _ => Message::Untraced(text),
        })
    }

    fn read_chunk(&mut self, index: usize, from: usize, to: usize) -> io::Result<()> {
        self.buffer.resize(to - from, 0);
        let offset = layout::DATA_OFFSET + index * layout::CHUNK_BYTES + from;
        self.file.read_exact_at(&mut self.buffer, offset as u64)
    }

    /// Accesses seen until the last round.
    pub(super) fn accesses(&self) -> u64 {
        let open: u64 = self.taken.iter().map(|taken| taken.accesses).sum();
        self.accesses + open + u64_at(&self.header, header::ACCESSES)
    }

    /// Misses lost until the last round.
    pub(super) fn lost(&self) -> u64 {
        u64_at(&self.header, header::LOST)
    }

    /// Programs that ran untraced until the last round.
    pub(super) fn untraced(&self) -> u64 {
        u64::from(u32_at(&self.header, header::UNTRACED))
    }

    /// Threads seen until the last round.
    pub(super) fn threads(&self) -> u32 {
        u32_at(&self.header, header::THREADS)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // What cannot be removed does not make the trace unreadable.
        let _ = std::fs::remove_file(&self.path);
    }
}
