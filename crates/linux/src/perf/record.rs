//! Defines the records of a perf ring: their framing, and what each says.
//!
//! The layouts are those of `enum perf_event_type` in `include/uapi/linux/perf_event.h`.

/// Size of `struct perf_event_header`: type (4 bytes), misc (2), size (2).
pub const HEADER: usize = 8;

const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const THROTTLE: u32 = 5;
const UNTHROTTLE: u32 = 6;
const FORK: u32 = 7;
const AUX: u32 = 11;
/// `PERF_RECORD_SAMPLE`.
pub const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
/// `PERF_AUX_FLAG_TRUNCATED`.
const AUX_TRUNCATED: u64 = 1 << 0;
/// `PERF_RECORD_MISC_COMM_EXEC`.
const MISC_COMM_EXEC: u16 = 1 << 13;

/// A record as it stands in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// One of `enum perf_event_type`.
    pub kind: u32,
    /// Flags of that kind.
    pub misc: u16,
    /// What follows the header.
    pub body: &'a [u8],
}

/// A task in FORK and EXIT records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Its process.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// The process it comes from.
    pub parent_pid: u32,
    /// The thread it comes from.
    pub parent_tid: u32,
}

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// A sample, to be decoded with a [`super::sample::Layout`].
    Sample(&'a [u8]),
    /// So many records were lost before this one.
    Lost(u64),
    /// The event was throttled.
    Throttled,
    /// It goes on.
    Unthrottled,
    /// A task was made.
    Fork(Task),
    /// A task ended.
    Exit(Task),
    /// A task runs another program.
    Exec {
        /// Its process.
        pid: u32,
        /// Its thread.
        tid: u32,
    },
    /// The PMU has written to the AUX area.
    Aux {
        /// Where what it has written begins, in bytes since the start.
        offset: u64,
        /// The number of bytes.
        size: u64,
        /// Whether the area was too small for all there was.
        truncated: bool,
    },
    /// Not of interest here.
    Other,
    /// Shorter than its kind must be.
    Malformed,
}

/// The little or big endian number at `offset`, as the processor has it.
#[inline]
pub(crate) fn word(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?))
}

/// As [`word`], of 32 bits.
#[inline]
pub(crate) fn half(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

fn task(body: &[u8]) -> Option<Task> {
    let [pid, parent_pid, tid, parent_tid] =
        [half(body, 0)?, half(body, 4)?, half(body, 8)?, half(body, 12)?];
    Some(Task { pid, tid, parent_pid, parent_tid })
}

impl<'a> Record<'a> {
    /// What it says.
    #[inline]
    pub fn content(&self) -> Content<'a> {
        if self.kind == SAMPLE {
            Content::Sample(self.body)
        } else {
            self.other().unwrap_or(Content::Malformed)
        }
    }

    fn other(&self) -> Option<Content<'a>> {
        Some(match self.kind {
            // The number of the event stands before the count.
            LOST => Content::Lost(word(self.body, 8)?),
            LOST_SAMPLES => Content::Lost(word(self.body, 0)?),
            THROTTLE => Content::Throttled,
            UNTHROTTLE => Content::Unthrottled,
            AUX => Content::Aux {
                offset: word(self.body, 0)?,
                size: word(self.body, 8)?,
                truncated: word(self.body, 16)? & AUX_TRUNCATED != 0,
            },
            FORK => Content::Fork(task(self.body)?),
            EXIT => Content::Exit(task(self.body)?),
            COMM if self.misc & MISC_COMM_EXEC != 0 => {
                Content::Exec { pid: half(self.body, 0)?, tid: half(self.body, 4)? }
            }
            _ => Content::Other,
        })
    }

    /// The number of the event that wrote it, of a record with `sample_id_all` and `PERF_SAMPLE_IDENTIFIER`: its last word.
    pub fn identifier(&self) -> Option<u64> {
        word(self.body, self.body.len().checked_sub(8)?)
    }
}

/// Calls `visit` for each record in `first` followed by `second`, the two parts of a ring's content.
///
/// A record that lies in both parts is put together in `scratch`. Returns how many bytes could not be read because a
/// header made no sense: 0 unless the memory is damaged.
#[inline]
pub fn for_each(
    first: &[u8],
    second: &[u8],
    scratch: &mut Vec<u8>,
    mut visit: impl FnMut(Record<'_>),
) -> usize {
    let mut rest = first;
    while let Some((record, length)) = complete(rest) {
        visit(record);
        rest = &rest[length..];
    }
    let mut second = second;
    if !rest.is_empty() && !second.is_empty() {
        let Some(size) = split_size(rest, second) else { return rest.len() + second.len() };
        scratch.clear();
        scratch.extend_from_slice(rest);
        scratch.extend_from_slice(&second[..size - rest.len()]);
        match complete(scratch) {
            Some((record, _)) => visit(record),
            None => return rest.len() + second.len(),
        }
        (rest, second) = (&[], &second[size - rest.len()..]);
    }
    while let Some((record, length)) = complete(second) {
        visit(record);
        second = &second[length..];
    }
    rest.len() + second.len()
}

/// The record at the start of `bytes`, if it is all there, and its length.
#[inline]
fn complete(bytes: &[u8]) -> Option<(Record<'_>, usize)> {
    let header = bytes.get(..HEADER)?;
    let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
    if size < HEADER {
        return None;
    }
    let record = Record {
        kind: u32::from_ne_bytes([header[0], header[1], header[2], header[3]]),
        misc: u16::from_ne_bytes([header[4], header[5]]),
        body: bytes.get(HEADER..size)?,
    };
    Some((record, size))
}

/// The size of a record that starts in `rest` and ends in `second`.
fn split_size(rest: &[u8], second: &[u8]) -> Option<usize> {
    // Records are multiples of 8 bytes, so a header is never cut; damaged memory may look otherwise.
    let size = usize::from(u16::from_ne_bytes([*rest.get(6)?, *rest.get(7)?]));
    (size > rest.len() && size - rest.len() <= second.len()).then_some(size)
}

#[cfg(test)]
mod tests;
