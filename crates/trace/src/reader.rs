//! Reader of a trace: a directory of parts, or a single Parquet file.

use std::fs;
use std::path::{Path, PathBuf};

use crate::format::{part_number, part_path};
use crate::group_reader::GroupReader;
use crate::part_reader::Part;
use crate::unpack::Unpacker;
use crate::{Provenance, Rows, TraceError};

/// Rows read at once: few enough that the columns stay in the cache between the decoder and the user.
const CHUNK_ROWS: usize = 1 << 16;

/// Reader of a trace from start to end.
#[derive(Debug)]
pub struct TraceReader {
    paths: Vec<PathBuf>,
    provenance: Provenance,
    rows: u64,
    bytes: u64,
    next_path: usize,
    open: Option<OpenPart>,
    unpacker: Unpacker,
}

struct OpenPart {
    part: Part,
    next_group: usize,
    group: Option<GroupReader>,
}

impl std::fmt::Debug for OpenPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenPart").field("part", &self.part).finish_non_exhaustive()
    }
}

impl TraceReader {
    /// Opens a directory of parts or a single Parquet file.
    ///
    /// # Errors
    /// If it cannot be read, or the footer of a part is not a trace's.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        let path = path.as_ref();
        let io = |source| TraceError::Io { path: path.into(), action: "open", source };
        let is_directory = fs::metadata(path).map_err(io)?.is_dir();
        let paths = if is_directory { parts(path)? } else { vec![path.to_owned()] };
        let unpacker = Unpacker::default();
        let (mut rows, mut bytes, mut provenance) = (0u64, 0u64, Provenance::default());
        for path in &paths {
            let part = Part::open(path, &unpacker)?;
            rows = rows.saturating_add(part.rows());
            bytes += part.bytes;
            provenance = part.provenance;
        }
        Ok(Self { paths, provenance, rows, bytes, next_path: 0, open: None, unpacker })
    }

    /// Returns the origin of the trace, as stored in its last part.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// Returns the number of rows in all parts, as stored in their footers.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the bytes of all parts.
    pub fn bytes_on_disk(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of parts.
    pub fn parts(&self) -> usize {
        self.paths.len()
    }

    /// Replaces `rows` by the next rows, at most 65,536, reusing its memory. Returns false, and no rows, at
    /// the end.
    ///
    /// # Errors
    /// If a part cannot be read or decoded. The rows are then unspecified, and reading should stop.
    pub fn next(&mut self, rows: &mut Rows) -> Result<bool, TraceError> {
        loop {
            if let Some(open) = &mut self.open
                && open.read(rows)?
            {
                return Ok(true);
            }
            let Some(path) = self.paths.get(self.next_path) else {
                rows.clear();
                self.open = None;
                return Ok(false);
            };
            self.open =
                Some(OpenPart { part: Part::open(path, &self.unpacker)?, next_group: 0, group: None });
            self.next_path += 1;
        }
    }
}

impl OpenPart {
    /// Reads the next rows of the part. Returns false at its end.
    fn read(&mut self, rows: &mut Rows) -> Result<bool, TraceError> {
        loop {
            if let Some(group) = &mut self.group {
                group.read(&self.part, CHUNK_ROWS, rows)?;
                if !rows.is_empty() {
                    return Ok(true);
                }
            }
            if self.next_group == self.part.groups() {
                return Ok(false);
            }
            self.group = Some(GroupReader::open(&self.part, self.next_group)?);
            self.next_group += 1;
        }
    }
}

/// Returns the parts of the directory in order. Ignores files of other names, among them unfinished parts.
fn parts(directory: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let io = |source| TraceError::Io { path: directory.into(), action: "list", source };
    let mut numbers = Vec::new();
    let mut unfinished = false;
    for entry in fs::read_dir(directory).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        let name = name.to_string_lossy();
        numbers.extend(part_number(&name));
        unfinished |= name.starts_with(".part-");
    }
    if numbers.is_empty() {
        let hint = if unfinished { " beside the unfinished one, which is unreadable" } else { "" };
        return Err(TraceError::NoParts { path: directory.into(), hint });
    }
    numbers.sort_unstable();
    match numbers.iter().enumerate().find(|&(expected, &number)| number != expected) {
        Some((expected, _)) => Err(TraceError::MissingPart { path: part_path(directory, expected) }),
        None => Ok(numbers.into_iter().map(|number| part_path(directory, number)).collect()),
    }
}
