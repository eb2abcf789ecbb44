//! How well the pages of a recorded program compress.
//!
//! The shares stand beside a trace's parts in a file of lines, one JSON object each: a run of neighbouring
//! pages of a process. Its name begins with an underscore, so that tools that read a folder of Parquet files
//! leave it out.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use isotherm_core::PageSize;
use serde::{Deserialize, Serialize};

use crate::TraceError;
use crate::regular::open_beside;

/// File of the shares in a trace's directory.
pub const CONTENTS_FILE: &str = "_contents.jsonl";
/// Share from which on zswap gains nothing by storing a page: zsmalloc's next size is a whole one.
pub const INCOMPRESSIBLE: u8 = 224;
/// Pages of a line at most.
const RUN: usize = 4096;
/// Longest line that is read: each of a page's two shares has up to three digits and a comma.
const LINE: u64 = 2 * 4 * RUN as u64 + 256;

/// Compressed size of each base page by process and number (address / 4096), as a share in 256ths of the
/// page: 255 for what does not compress. A page may be missing.
pub type Shares = BTreeMap<(u32, u64), u8>;

/// The shares of a program's pages by each algorithm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// With zstd at its level 1.
    pub zstd: Shares,
    /// With lz4 at its default acceleration. Recordings of before it was noted have none.
    pub lz4: Shares,
}

/// Neighbouring pages of a process.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Run {
    process: u32,
    /// Number of the first.
    page: u64,
    /// Share of each, as [`Contents::zstd`].
    zstd: Vec<u8>,
    /// The same as [`Contents::lz4`].
    #[serde(default)]
    lz4: Vec<u8>,
}

/// Reads the shares of a trace; `None` where it has none.
///
/// # Errors
/// If the file cannot be read, or a line is not one of shares.
pub fn read_contents(trace: &Path) -> Result<Option<Contents>, TraceError> {
    let path = trace.join(CONTENTS_FILE);
    let io = |source| TraceError::Io { path: path.clone(), action: "read", source };
    let Some(file) = open_beside(&path).map_err(io)? else { return Ok(None) };
    let (mut input, mut contents, mut line) = (BufReader::new(file), Contents::default(), Vec::new());
    for number in 1.. {
        line.clear();
        io::Read::take(&mut input, LINE).read_until(b'\n', &mut line).map_err(io)?;
        if line.is_empty() {
            break;
        }
        let bad = |reason| TraceError::Contents { path: path.clone(), line: number, reason };
        let run: Run = serde_json::from_slice(&line).map_err(|error| bad(error.to_string()))?;
        if run.page > u64::MAX >> PageSize::Base.shift() {
            return Err(bad(format!("{} is no page of an address of 64 bits", run.page)));
        }
        for (all, shares) in [(&mut contents.zstd, run.zstd), (&mut contents.lz4, run.lz4)] {
            all.extend((run.page..).zip(shares).map(|(page, share)| ((run.process, page), share)));
        }
    }
    Ok(Some(contents))
}

/// Writes the shares of a trace.
///
/// # Errors
/// If the file cannot be written.
pub fn write_contents(trace: &Path, contents: &Contents) -> Result<(), TraceError> {
    let path = trace.join(CONTENTS_FILE);
    let write = || -> io::Result<()> {
        let mut file = BufWriter::new(File::create(&path)?);
        let mut put = |run: &Run| -> io::Result<()> {
            serde_json::to_writer(&mut file, run)?;
            file.write_all(b"\n")
        };
        let mut run = Run::default();
        for (&(process, page), &share) in &contents.zstd {
            let lz4 = contents.lz4.get(&(process, page));
            let next = process == run.process && page == run.page + run.zstd.len() as u64;
            let alike = run.zstd.is_empty() || run.lz4.is_empty() == lz4.is_none();
            if !next || !alike || run.zstd.len() == RUN {
                if !run.zstd.is_empty() {
                    put(&run)?;
                }
                run = Run { process, page, ..Run::default() };
            }
            run.zstd.push(share);
            run.lz4.extend(lz4);
        }
        if !run.zstd.is_empty() {
            put(&run)?;
        }
        file.flush()
    };
    write().map_err(|source| TraceError::Io { path: path.clone(), action: "write", source })
}

/// Returns the share of each of `pages` (process and address), or nothing if none is known. A page without a
/// known share gets that of another; one of 2 MiB the mean of what is known of it.
pub fn shares(contents: &Shares, pages: &[(u32, u64)], page_size: PageSize) -> Vec<u8> {
    let each = page_size.bytes().0 >> PageSize::Base.shift();
    let all: Vec<u8> = contents.values().copied().collect();
    if all.is_empty() {
        return Vec::new();
    }
    let share = |(number, &(process, address)): (usize, &(u32, u64))| {
        let first = address >> PageSize::Base.shift();
        let known = contents.range((process, first)..(process, first + each));
        let (sum, count) =
            known.fold((0, 0), |(sum, count), (_, &share)| (sum + u64::from(share), count + 1));
        match count {
            // Neighbours are alike, so those of everywhere are taken in turn.
            0 => all[number.wrapping_mul(0x9e37_79b9) % all.len()],
            _ => (sum / count) as u8,
        }
    };
    pages.iter().enumerate().map(share).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            pages in prop::collection::btree_map((0u32..3, 0u64..20_000), any::<(u8, Option<u8>)>(), 0..500),
            long in 0u64..10_000,
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let mut contents = Contents::default();
            let long = (0..long).map(|page| ((7, page), (page as u8, Some(9))));
            for (page, (zstd, lz4)) in pages.into_iter().chain(long) {
                contents.zstd.insert(page, zstd);
                contents.lz4.extend(lz4.map(|share| (page, share)));
            }
            write_contents(folder.path(), &contents).expect("written");
            prop_assert_eq!(read_contents(folder.path()).expect("readable"), Some(contents));
        }
    }

    #[test]
    fn a_trace_without_shares_has_none_and_a_bad_line_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(read_contents(folder.path()).expect("readable"), None);
        let older = "{\"process\":0,\"page\":1,\"zstd\":[25]}\n";
        std::fs::write(folder.path().join(CONTENTS_FILE), older).expect("written");
        let expected = Contents { zstd: Shares::from([((0, 1), 25)]), lz4: Shares::new() };
        assert_eq!(read_contents(folder.path()).expect("readable"), Some(expected));
        std::fs::write(folder.path().join(CONTENTS_FILE), "{\"process\":0,\"page\":1,\"zstd\":[256]}\n")
            .expect("written");
        let error = read_contents(folder.path()).expect_err("256 is no share").to_string();
        assert!(error.contains("_contents.jsonl") && error.contains("line 1"), "{error}");
        let last = format!("{{\"process\":0,\"page\":{},\"zstd\":[1,2]}}\n", u64::MAX);
        std::fs::write(folder.path().join(CONTENTS_FILE), last).expect("written");
        let error = read_contents(folder.path()).expect_err("no such page").to_string();
        assert!(error.contains("line 1") && error.contains("is no page"), "{error}");
    }

    #[test]
    fn pages_get_their_own_share_or_one_of_others() {
        let contents = Shares::from([((0, 16), 40), ((0, 17), 80), ((1, 16), 255)]);
        let base = shares(&contents, &[(0, 16 << 12), (1, 16 << 12), (0, 99 << 12)], PageSize::Base);
        assert_eq!(base[..2], [40, 255]);
        assert!(contents.values().any(|&share| share == base[2]));
        assert_eq!(shares(&contents, &[(0, 0), (1, 0)], PageSize::Huge), [60, 255]);
        assert!(shares(&Shares::new(), &[(0, 0)], PageSize::Base).is_empty());
    }
}
