//! Summarises a stream for people: heatmap, distribution over pages, and misses by allocation site.

use isotherm_core::Bytes;

use crate::result::{Heatmap, Held, Region};
use crate::stream::Stream;

const COLUMNS: usize = 120;
const ROWS: usize = 80;

/// A named range of addresses: of an allocation, or of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRange {
    /// The process.
    pub process: u32,
    /// Name of the allocation site or the mapping.
    pub name: String,
    /// First address.
    pub address: u64,
    /// Length.
    pub bytes: Bytes,
}

/// The cells of a stream's heatmap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    pub(crate) accesses_per_column: usize,
    pages: usize,
}

impl Grid {
    pub(crate) fn of(stream: &Stream) -> Self {
        let (accesses, pages) = (stream.accesses.len(), stream.pages.len());
        let columns = COLUMNS.min(accesses);
        let accesses_per_column = accesses.div_ceil(columns.max(1)).max(1);
        Self { columns, rows: ROWS.min(pages), accesses_per_column, pages }
    }

    fn row_of(self, page: usize) -> usize {
        page * self.rows / self.pages
    }

    fn first_page(self, row: usize) -> usize {
        (row * self.pages).div_ceil(self.rows)
    }
}

/// Number of fast pages in each row of a heatmap.
#[derive(Debug, Clone)]
pub(crate) struct FastRows {
    grid: Grid,
    fast: Vec<usize>,
}

impl FastRows {
    /// Starts without fast pages.
    pub(crate) fn new(pages: usize) -> Self {
        let rows = ROWS.min(pages);
        Self { grid: Grid { columns: 0, rows, accesses_per_column: 1, pages }, fast: vec![0; rows] }
    }

    pub(crate) fn enter(&mut self, page: usize) {
        self.fast[self.grid.row_of(page)] += 1;
    }

    pub(crate) fn leave(&mut self, page: usize) {
        self.fast[self.grid.row_of(page)] -= 1;
    }

    /// Returns the share of each row's pages that are fast, in 255ths.
    pub(crate) fn shares(&self) -> impl Iterator<Item = u8> {
        let pages = |row: usize| self.grid.first_page(row + 1) - self.grid.first_page(row);
        self.fast.iter().enumerate().map(move |(row, fast)| (fast * 255 / pages(row).max(1)) as u8)
    }
}

pub(crate) fn heatmap(stream: &Stream, objects: Vec<Held>) -> Heatmap {
    let grid = Grid::of(stream);
    let Grid { columns, rows, accesses_per_column, .. } = grid;
    let mut counts = vec![0u32; columns * rows];
    for (column, chunk) in stream.accesses.chunks(accesses_per_column).enumerate() {
        for access in chunk {
            counts[grid.row_of(access.page as usize) * columns + column] += 1;
        }
    }
    Heatmap {
        columns,
        rows,
        accesses_per_column: accesses_per_column as u64,
        pages_per_row: stream.pages.len() as f64 / rows as f64,
        addresses: (0..rows).map(|row| stream.pages[grid.first_page(row)].1).collect(),
        counts,
        objects,
    }
}

/// Returns what a stream's pages hold by these ranges, which must not overlap: neighbouring pages of one name
/// as one. A page that several ranges share counts for the first.
pub(crate) fn objects(stream: &Stream, counts: &[u32], ranges: &[NamedRange]) -> Vec<Held> {
    if ranges.is_empty() {
        return Vec::new();
    }
    let mut sorted: Vec<&NamedRange> = ranges.iter().collect();
    sorted.sort_by_key(|range| (range.process, range.address));
    let page_bytes = stream.page_size.bytes().0;
    let mut objects: Vec<Held> = Vec::new();
    for (&(process, address), &count) in stream.pages.iter().zip(counts) {
        let ends_before =
            |range: &&NamedRange| (range.process, range.address + range.bytes.0) <= (process, address);
        let owner = sorted.get(sorted.partition_point(ends_before));
        let owner = owner.filter(|range| range.process == process && range.address < address + page_bytes);
        let name = owner.map_or("", |range| range.name.as_str());
        match objects.last_mut() {
            Some(held) if held.name == name => {
                held.pages += 1;
                held.accesses += u64::from(count);
            }
            _ => objects.push(Held { name: name.into(), pages: 1, accesses: count.into() }),
        }
    }
    objects
}

/// Returns the memory touched and the misses of each name, largest first.
pub(crate) fn held(stream: &Stream, objects: &[Held]) -> Vec<Region> {
    let mut regions: std::collections::BTreeMap<&str, Region> = std::collections::BTreeMap::new();
    for held in objects.iter().filter(|held| !held.name.is_empty()) {
        let empty = || Region { name: held.name.clone(), bytes: Bytes(0), accesses: 0 };
        let region = regions.entry(&held.name).or_insert_with(empty);
        region.bytes += Bytes(held.pages << stream.page_size.shift());
        region.accesses += held.accesses;
    }
    largest_first(regions.into_values().collect())
}

fn largest_first(mut regions: Vec<Region>) -> Vec<Region> {
    regions.sort_by_key(|region| (std::cmp::Reverse(region.accesses), region.name.clone()));
    regions
}

pub(crate) fn page_counts(stream: &Stream) -> Vec<u32> {
    let mut counts = vec![0; stream.pages.len()];
    stream.accesses.iter().for_each(|access| counts[access.page as usize] += 1);
    counts
}

/// Returns the share of accesses to the hottest pages, at logarithmically spaced shares of the pages.
pub(crate) fn page_cdf(counts: &[u32]) -> Vec<(f64, f64)> {
    const POINTS: usize = 100;
    let mut sorted = counts.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let total = sorted.iter().map(|&count| u64::from(count)).sum::<u64>().max(1) as f64;
    let pages = sorted.len() as f64;
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(POINTS);
    let (mut taken, mut sum) = (0, 0u64);
    for point in 0..POINTS {
        let share = 10f64.powf(-5.0 + 5.0 * (point + 1) as f64 / POINTS as f64);
        let count = ((share * pages).round() as usize).clamp(1, sorted.len());
        if count == taken {
            continue;
        }
        sum += sorted[taken..count].iter().map(|&count| u64::from(count)).sum::<u64>();
        taken = count;
        points.push((count as f64 / pages, sum as f64 / total));
    }
    points
}

/// Returns the accesses of each name's ranges, which must not overlap, largest first. A page that several
/// ranges share counts for the first.
pub(crate) fn regions(stream: &Stream, counts: &[u32], ranges: &[NamedRange]) -> Vec<Region> {
    let mut sorted: Vec<&NamedRange> = ranges.iter().collect();
    sorted.sort_by_key(|range| range.address);
    let mut regions: std::collections::BTreeMap<&str, Region> = std::collections::BTreeMap::new();
    for range in &sorted {
        let empty = || Region { name: range.name.clone(), bytes: Bytes(0), accesses: 0 };
        regions.entry(&range.name).or_insert_with(empty).bytes += range.bytes;
    }
    let page_bytes = stream.page_size.bytes().0;
    for (&(process, address), &count) in stream.pages.iter().zip(counts) {
        let first = sorted.partition_point(|range| range.address + range.bytes.0 <= address);
        let owner = sorted.get(first).filter(|range| range.address < address + page_bytes);
        if let (0, Some(range)) = (process, owner)
            && let Some(region) = regions.get_mut(range.name.as_str())
        {
            region.accesses += u64::from(count);
        }
    }
    largest_first(regions.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Access;

    fn stream(pages: &[u32], count: u64) -> Stream {
        let access = |&page| Access { page, instructions: 1, thread: 0, dependence: 0, ..Access::default() };
        Stream {
            accesses: pages.iter().map(access).collect(),
            pages: (0..count).map(|page| (0, page << 12)).collect(),
            threads: 1,
            ..Stream::default()
        }
    }

    #[test]
    fn the_heatmap_holds_every_access_once() {
        let pages: Vec<u32> = (0..10_007).map(|index| index % 333).collect();
        let map = heatmap(&stream(&pages, 333), Vec::new());
        assert_eq!(map.counts.iter().map(|&count| u64::from(count)).sum::<u64>(), 10_007);
        assert_eq!(map.addresses.len(), map.rows);
        assert!(map.addresses.is_sorted());
    }

    #[test]
    fn the_distribution_ends_at_one_and_never_falls() {
        let cdf = page_cdf(&[1, 1, 97, 1]);
        assert_eq!(cdf.first(), Some(&(0.25, 0.97)));
        assert_eq!(cdf.last(), Some(&(1.0, 1.0)));
        assert!(cdf.is_sorted());
    }

    #[test]
    fn regions_take_the_accesses_of_their_pages() {
        let stream = stream(&[0, 1, 1, 2], 3);
        let range = |name: &str, address, bytes| NamedRange {
            process: 0,
            name: name.into(),
            address,
            bytes: Bytes(bytes),
        };
        let found = regions(&stream, &page_counts(&stream), &[range("a", 0, 4096), range("b", 4096, 8192)]);
        let shares: Vec<(&str, u64)> =
            found.iter().map(|region| (region.name.as_str(), region.accesses)).collect();
        assert_eq!(shares, [("b", 3), ("a", 1)]);
    }

    #[test]
    fn objects_are_neighbours_of_one_name_in_each_process() {
        let mut stream = stream(&[0, 1, 1, 2, 3, 4], 5);
        stream.pages[4] = (1, 0);
        let range = |process, name: &str, page: u64, pages: u64| NamedRange {
            process,
            name: name.into(),
            address: page << 12,
            bytes: Bytes(pages << 12),
        };
        let ranges = [range(1, "/lib", 0, 9), range(0, "[heap]", 2, 1), range(0, "/lib", 0, 2)];
        let found = objects(&stream, &page_counts(&stream), &ranges);
        let held = |name: &str, pages, accesses| Held { name: name.into(), pages, accesses };
        assert_eq!(found, [held("/lib", 2, 3), held("[heap]", 1, 1), held("", 1, 1), held("/lib", 1, 1)]);
        let regions = super::held(&stream, &found);
        let shares: Vec<_> =
            regions.iter().map(|region| (region.name.as_str(), region.bytes.0, region.accesses)).collect();
        assert_eq!(shares, [("/lib", 3 << 12, 4), ("[heap]", 1 << 12, 1)]);
        assert_eq!(objects(&stream, &page_counts(&stream), &[]), []);
    }

    #[test]
    fn shares_of_rows_are_of_their_own_pages() {
        let mut rows = FastRows::new(120);
        assert_eq!(rows.shares().count(), 80);
        // Rows hold two pages and one in turn: 0 and 1, 2, 3 and 4.
        [0, 2, 3, 4].into_iter().for_each(|page| rows.enter(page));
        rows.leave(3);
        assert_eq!(rows.shares().take(4).collect::<Vec<_>>(), [127, 255, 127, 0]);
    }
}
