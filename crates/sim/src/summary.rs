//! Summarises a stream for people: heatmap, distribution over pages, and misses by allocation site.

use isotherm_core::Bytes;

use crate::result::{Heatmap, Region};
use crate::stream::Stream;

const COLUMNS: usize = 120;
const ROWS: usize = 80;

/// A named range of addresses of process 0, as an allocation leaves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRange {
    /// Name of the allocation site.
    pub name: String,
    /// First address.
    pub address: u64,
    /// Length.
    pub bytes: Bytes,
}

pub(crate) fn heatmap(stream: &Stream) -> Heatmap {
    let columns = COLUMNS.min(stream.accesses.len());
    let rows = ROWS.min(stream.pages.len());
    let mut counts = vec![0u32; columns * rows];
    let accesses_per_column = stream.accesses.len().div_ceil(columns);
    let row_of = |page: u32| page as usize * rows / stream.pages.len();
    for (column, chunk) in stream.accesses.chunks(accesses_per_column).enumerate() {
        for access in chunk {
            counts[row_of(access.page) * columns + column] += 1;
        }
    }
    let first_page = |row: usize| (row * stream.pages.len()).div_ceil(rows);
    Heatmap {
        columns,
        rows,
        accesses_per_column: accesses_per_column as u64,
        pages_per_row: stream.pages.len() as f64 / rows as f64,
        addresses: (0..rows).map(|row| stream.pages[first_page(row)].1).collect(),
        counts,
    }
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
    let mut regions: Vec<Region> = regions.into_values().collect();
    regions.sort_by_key(|region| (std::cmp::Reverse(region.accesses), region.name.clone()));
    regions
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
        let map = heatmap(&stream(&pages, 333));
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
        let range =
            |name: &str, address, bytes| NamedRange { name: name.into(), address, bytes: Bytes(bytes) };
        let found = regions(&stream, &page_counts(&stream), &[range("a", 0, 4096), range("b", 4096, 8192)]);
        let shares: Vec<(&str, u64)> =
            found.iter().map(|region| (region.name.as_str(), region.accesses)).collect();
        assert_eq!(shares, [("b", 3), ("a", 1)]);
    }
}
