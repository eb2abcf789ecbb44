//! The click log and its quantised forms: pages of entries, global bins by row, bins by column.

use crate::{Array, Memory, Random, Token, mix};

/// Features of Criteo's click logs: counts and hashed categories.
pub(super) const FEATURES: usize = 39;
const COUNTS: usize = 13;
/// Shares of missing counts and missing categories.
const MISSING: [f64; 2] = [0.25, 0.1];
/// Bin of a missing value in a column.
pub(super) const NONE: u8 = u8::MAX;
const SKETCH: usize = 20_000;

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Entry {
    feature: u32,
    value: f32,
}

/// Returns bytes a row of everything, the trees and histograms aside.
pub(super) fn row_bytes() -> f64 {
    let present = COUNTS as f64 * (1.0 - MISSING[0]) + (FEATURES - COUNTS) as f64 * (1.0 - MISSING[1]);
    // Entries, global bins, columns; offsets twice; label, margin, gradient pair; row numbers and buffer.
    present * (8.0 + 4.0) + FEATURES as f64 + 16.0 + 4.0 + 4.0 + 8.0 + 16.0
}

pub(super) struct Data {
    /// Each feature's first global bin, and the number of all.
    pub(super) starts: Vec<u32>,
    pub(super) offsets: Array<u64>,
    /// Global bins, row by row.
    pub(super) bins: Array<u32>,
    /// Each feature's own bins, column by column; [`NONE`] where missing.
    pub(super) columns: Array<u8>,
    pub(super) labels: Array<f32>,
}

impl Data {
    /// Generates a log of `rows` clicks and quantises it into at most `most` bins a feature.
    pub(super) fn new(rows: usize, most: usize, seed: u64, memory: &mut dyn Memory) -> Self {
        let (offsets, entries, labels) = log(rows, seed, memory);
        let cuts = sketch(rows, most, &offsets, &entries, memory);
        let mut starts = vec![0u32];
        cuts.iter().for_each(|cuts| starts.push(starts[starts.len() - 1] + cuts.len() as u32 + 1));
        let mut bins = Vec::with_capacity(entries.len());
        let mut columns = vec![NONE; rows * FEATURES];
        for row in 0..rows {
            for entry in &entries[offsets[row] as usize..offsets[row + 1] as usize] {
                let feature = entry.feature as usize;
                let bin = cuts[feature].partition_point(|&cut| cut <= entry.value);
                columns[feature * rows + row] = bin as u8;
                bins.push(starts[feature] + bin as u32);
            }
        }
        let row_offsets = Array::of(memory, offsets.to_vec(), "xgboost bins by row");
        let bins = Array::of(memory, bins, "xgboost bins by row");
        let columns = Array::of(memory, columns, "xgboost bins by column");
        let data = Self { starts, offsets: row_offsets, bins, columns, labels };
        data.report_quantising(&entries, memory);
        data
    }

    pub(super) fn rows(&self) -> usize {
        self.labels.len()
    }

    pub(super) fn row(&self, row: usize) -> std::ops::Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    fn report_quantising(&self, entries: &Array<Entry>, memory: &mut dyn Memory) {
        for from in (0..self.rows()).step_by(64) {
            let to = (from + 64).min(self.rows());
            let places = self.row(from).start..self.row(to - 1).end;
            entries.load_run(memory, places.clone(), Token::NONE);
            memory.compute(40 * places.len() as u32);
            self.bins.store_run(memory, places, Token::NONE);
            self.offsets.store_run(memory, from..to, Token::NONE);
        }
        for from in (0..self.rows()).step_by(64) {
            let to = (from + 64).min(self.rows());
            self.bins.load_run(memory, self.row(from).start..self.row(to - 1).end, Token::NONE);
            for feature in 0..FEATURES {
                let column = feature * self.rows();
                self.columns.store_run(memory, column + from..column + to, Token::NONE);
            }
        }
    }
}

/// Draws rows: mostly small counts, categories hashed to numbers; clicks follow hidden effects of features.
fn log(rows: usize, seed: u64, memory: &mut dyn Memory) -> (Array<u64>, Array<Entry>, Array<f32>) {
    let mut random = Random::new(seed);
    let mut offsets = vec![0u64];
    let (mut entries, mut labels) = (Vec::new(), Vec::with_capacity(rows));
    for _ in 0..rows {
        let mut score = -1.2;
        for feature in 0..FEATURES {
            let (missing, draw) = (random.unit(), random.unit());
            if missing < MISSING[usize::from(feature >= COUNTS)] {
                continue;
            }
            let value = if feature < COUNTS { -(1.0 - draw).ln() * 50.0 } else { category(feature, draw) };
            let effect = if feature < COUNTS { value / 50.0 - 1.0 } else { 4.0 * value - 2.0 };
            score += if feature % 7 == 3 { 0.5 * effect } else { 0.0 };
            entries.push(Entry { feature: feature as u32, value: value as f32 });
        }
        offsets.push(entries.len() as u64);
        labels.push(f32::from(random.unit() < 1.0 / (1.0 + (-score).exp())));
    }
    let offsets = Array::of(memory, offsets, "xgboost input");
    let entries = Array::of(memory, entries, "xgboost input");
    let labels = Array::of(memory, labels, "xgboost labels");
    for row in 0..rows {
        memory.compute(40 * FEATURES as u32);
        let places = offsets[row] as usize..offsets[row + 1] as usize;
        entries.store_run(memory, places, Token::NONE);
        if offsets.starts_line(row) {
            memory.store(offsets.address(row), Token::NONE);
        }
    }
    labels.store_run(memory, 0..rows, Token::NONE);
    (offsets, entries, labels)
}

/// Returns the number that a category of skewed popularity hashes to, 0 to 1.
fn category(feature: usize, draw: f64) -> f64 {
    let sizes = [10.0f64, 100.0, 1000.0, 10_000.0, 100_000.0, 1_000_000.0];
    let rank = sizes[feature % sizes.len()].powf(draw) as u64;
    (mix(rank << 8 | feature as u64) >> 40) as f64 / (1u64 << 24) as f64
}

/// Returns each feature's cuts, distinct quantiles; a bin is the number of cuts not above a value.
fn sketch(
    rows: usize,
    most: usize,
    offsets: &Array<u64>,
    entries: &Array<Entry>,
    memory: &mut dyn Memory,
) -> Vec<Vec<f32>> {
    let sampled = &entries[..offsets[rows.min(SKETCH)] as usize];
    entries.load_run(memory, 0..entries.len(), Token::NONE);
    let cut = |feature: usize| {
        let mut values: Vec<f32> = sampled
            .iter()
            .filter(|entry| entry.feature as usize == feature)
            .map(|entry| entry.value)
            .collect();
        values.sort_unstable_by(f32::total_cmp);
        let quantile = |at: usize| values.get(at * values.len() / most).copied();
        let mut cuts: Vec<f32> = (1..most).filter_map(quantile).collect();
        cuts.dedup();
        cuts
    };
    (0..FEATURES).map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;

    #[test]
    fn both_forms_hold_the_same_bins_and_rows_take_their_bytes() {
        let mut memory = CountingMemory::default();
        let data = Data::new(3000, 32, 5, &mut memory);
        for row in 0..3000 {
            let global = &data.bins[data.row(row)];
            let by_column = (0..FEATURES).filter_map(|feature| {
                let bin = data.columns[feature * 3000 + row];
                (bin != NONE).then(|| data.starts[feature] + u32::from(bin))
            });
            assert_eq!(global, by_column.collect::<Vec<_>>());
        }
        // Margin, gradient pair and row numbers come with the training.
        let bytes: u64 = memory.allocations().iter().map(|allocation| allocation.bytes).sum();
        let expected = 3000.0 * (row_bytes() - 28.0);
        assert!((bytes as f64 / expected - 1.0).abs() < 0.02, "{bytes} {expected}");
    }
}
