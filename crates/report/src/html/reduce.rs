//! Makes long series and large grids small enough for a page: merges neighbours and leaves nothing out.

use isotherm_sim::{Heatmap, Interval};

/// Returns how many neighbours must become one for `length` items to be at most `limit`.
pub(crate) fn merge_factor(length: usize, limit: usize) -> usize {
    length.div_ceil(limit.max(1)).max(1)
}

/// Merges intervals to at most `limit`: adds counts, keeps times and gauges at the end.
pub(super) fn intervals(timeline: &[Interval], limit: usize) -> Vec<Interval> {
    timeline.chunks(merge_factor(timeline.len(), limit)).map(Interval::merged).collect()
}

/// Heatmap of a page; its counts are sums and therefore wider than the simulator's.
pub(super) struct Grid {
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) accesses_per_column: u64,
    pub(super) pages_per_row: f64,
    pub(super) addresses: Vec<u64>,
    pub(super) counts: Vec<u64>,
}

/// Merges cells to at most `columns` by `rows`.
pub(super) fn grid(map: &Heatmap, columns: usize, rows: usize) -> Grid {
    let (wide, high) = (merge_factor(map.columns, columns), merge_factor(map.rows, rows));
    let (columns, rows) = (map.columns.div_ceil(wide), map.rows.div_ceil(high));
    let mut counts = vec![0; columns * rows];
    for (index, &cell) in map.counts.iter().take(map.columns * map.rows).enumerate() {
        let (row, column) = (index / map.columns / high, index % map.columns / wide);
        counts[row * columns + column] += u64::from(cell);
    }
    Grid {
        columns,
        rows,
        accesses_per_column: map.accesses_per_column * wide as u64,
        pages_per_row: map.pages_per_row * high as f64,
        addresses: map.addresses.iter().step_by(high).copied().collect(),
        counts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn merging_intervals_keeps_sums_and_the_limit(
            hits in prop::collection::vec(0u64..1000, 0..200),
            limit in 1usize..50,
        ) {
            let interval = |&hits| Interval { accesses: 1000, hits, ..Interval::default() };
            let timeline: Vec<_> = hits.iter().map(interval).collect();
            let merged = intervals(&timeline, limit);
            prop_assert!(merged.len() <= limit);
            let sum = |part: fn(&Interval) -> u64| merged.iter().map(part).sum::<u64>();
            prop_assert_eq!(sum(|interval| interval.hits), hits.iter().sum::<u64>());
            prop_assert_eq!(sum(|interval| interval.accesses), 1000 * hits.len() as u64);
        }

        #[test]
        fn merging_cells_keeps_every_access(columns in 1usize..40, rows in 1usize..40, limit in 1usize..20) {
            let map = Heatmap {
                columns,
                rows,
                accesses_per_column: 10,
                pages_per_row: 2.0,
                addresses: (0..rows as u64).map(|row| row << 13).collect(),
                counts: (0..(columns * rows) as u32).collect(),
                objects: Vec::new(),
            };
            let grid = grid(&map, limit, limit);
            prop_assert!(grid.columns <= limit && grid.rows <= limit);
            prop_assert_eq!(grid.addresses.len(), grid.rows);
            let all: u64 = map.counts.iter().map(|&count| u64::from(count)).sum();
            prop_assert_eq!(grid.counts.iter().sum::<u64>(), all);
        }
    }
}
