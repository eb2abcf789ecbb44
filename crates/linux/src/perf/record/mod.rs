//! Records of a perf ring: their framing and contents.
//!
//! The layouts are those of `enum perf_event_type` in `include/uapi/linux/perf_event.h`.

/// Size of `struct perf_event_header`: type (4 bytes), misc (2), size (2).
pub const HEADER: usize = 8;

const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const THROTTLE: u32 = 5;
const FORK: u32 = 7;
const AUX: u32 = 11;
/// `PERF_RECORD_SAMPLE`.
pub const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
/// `PERF_AUX_FLAG_TRUNCATED`.
const AUX_TRUNCATED: u64 = 1 << 0;
/// `PERF_RECORD_MISC_COMM_EXEC`.
const MISC_COMM_EXEC: u16 = 1 << 13;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// One of `enum perf_event_type`.
    pub kind: u32,
    pub misc: u16,
    /// Bytes after the header.
    pub body: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    pub pid: u32,
    pub tid: u32,
    pub parent_pid: u32,
    pub parent_tid: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Fork(Task),
    Exit(Task),
    /// It executed another program; process and thread.
    Exec(u32, u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// Sample, which a [`super::sample::Layout`] decodes.
    Sample(&'a [u8]),
    /// Number of records lost before this one.
    Lost(u64),
    Throttled,
    Change(Change),
    /// PMU has written to the AUX area.
    Aux {
        /// Position of the new bytes, since the start.
        offset: u64,
        size: u64,
        /// Whether the area was too small for all data.
        truncated: bool,
    },
    Other,
    /// Record shorter than its kind requires.
    Malformed,
}

/// Reads the number at `offset`, in the processor's byte order.
#[inline]
pub(crate) fn word(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?))
}

/// Reads a 32-bit number, as [`word`] does.
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
            // The event's number precedes the count.
            LOST => Content::Lost(word(self.body, 8)?),
            LOST_SAMPLES => Content::Lost(word(self.body, 0)?),
            THROTTLE => Content::Throttled,
            AUX => Content::Aux {
                offset: word(self.body, 0)?,
                size: word(self.body, 8)?,
                truncated: word(self.body, 16)? & AUX_TRUNCATED != 0,
            },
            FORK => Content::Change(Change::Fork(task(self.body)?)),
            EXIT => Content::Change(Change::Exit(task(self.body)?)),
            COMM if self.misc & MISC_COMM_EXEC != 0 => {
                Content::Change(Change::Exec(half(self.body, 0)?, half(self.body, 4)?))
            }
            _ => Content::Other,
        })
    }

    /// Returns the event's number, the last word with `sample_id_all` and `PERF_SAMPLE_IDENTIFIER`.
    pub fn identifier(&self) -> Option<u64> {
        word(self.body, self.body.len().checked_sub(8)?)
    }
}

/// Calls `visit` for each record in `first` followed by `second`, the two parts of a ring's content. Joins
/// one that lies in both in `scratch`. Returns the bytes lost to malformed headers: 0 unless memory is
/// damaged.
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

/// Returns the record at the start of `bytes` and its length, if it is complete.
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

/// Returns the size of a record that starts in `rest` and ends in `second`.
fn split_size(rest: &[u8], second: &[u8]) -> Option<usize> {
    // Records are multiples of 8 bytes, so a header is never split, except in damaged memory.
    let size = usize::from(u16::from_ne_bytes([*rest.get(6)?, *rest.get(7)?]));
    (size > rest.len() && size - rest.len() <= second.len()).then_some(size)
}

#[cfg(test)]
mod tests;
