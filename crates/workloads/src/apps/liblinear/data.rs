//! liblinear's problem: generated samples in its sparse layout, by rows and transposed.

use crate::{Array, Memory, Random, Token, mix};

/// Non-zeros of a sample: one category of each field.
pub(super) const FIELDS: usize = 11;
/// Categories of KDD Cup 2012's fields: ad, advertiser, URL, position, query, keyword, title, description,
/// user, gender, age.
const CATEGORIES: [u64; FIELDS] =
    [641_707, 14_847, 26_273, 6, 24_122_076, 1_188_089, 3_735_796, 2_934_101, 22_023_547, 3, 7];
pub(super) const KDD12_SAMPLES: u64 = 149_639_105;
const KDD12_FEATURES: u64 = 54_686_452;

/// An entry of a sparse vector; a negative index ends it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub(super) struct Node {
    pub(super) index: i32,
    pub(super) value: f64,
}

const END: Node = Node { index: -1, value: 0.0 };

/// Sparse vectors one behind the other, each with an end, and where each starts.
pub(super) struct Sparse {
    pub(super) nodes: Array<Node>,
    pub(super) starts: Array<u64>,
}

impl Sparse {
    /// Returns the places of a vector's entries, without its end.
    pub(super) fn entries(&self, vector: usize) -> std::ops::Range<usize> {
        let start = self.starts[vector] as usize;
        let next = self.starts.get(vector + 1).map_or(self.nodes.len(), |&next| next as usize);
        start..next - 1
    }
}

pub(super) fn features(samples: u64) -> u64 {
    (0..FIELDS).map(|field| categories(field, samples)).sum()
}

/// Categories of a field: few stay as they are, many shrink with the samples.
fn categories(field: usize, samples: u64) -> u64 {
    let scaled = (u128::from(CATEGORIES[field]) * u128::from(samples) / u128::from(KDD12_SAMPLES)) as u64;
    scaled.max(CATEGORIES[field].min(8))
}

/// Returns bytes for each sample of everything that a training run allocates.
pub(super) fn bytes_per_sample() -> f64 {
    let (node, double) = (size_of::<Node>() as f64, size_of::<f64>() as f64);
    let rows = (FIELDS as f64 + 1.0) * node + 2.0 * double;
    let columns = FIELDS as f64 * node + double;
    let solver = 5.0 * double + 1.0;
    let feature = node + 6.0 * double + 4.0;
    rows + columns + solver + feature * KDD12_FEATURES as f64 / KDD12_SAMPLES as f64
}

/// Draws samples as a file would give them: one category of each field, popular ones more often (Zipf's law
/// with exponent 1), equal values, and a label of -1 or 1 that follows hidden weights of the categories.
pub(super) fn samples(count: usize, seed: u64, memory: &mut dyn Memory) -> (Sparse, Array<f64>) {
    let mut random = Random::new(seed);
    let sizes: Vec<u64> = (0..FIELDS).map(|field| categories(field, count as u64)).collect();
    let value = 1.0 / (FIELDS as f64).sqrt();
    let labels = Array::new(memory, count, 0.0, "liblinear labels");
    let starts: Vec<u64> = (0..count).map(|sample| (sample * (FIELDS + 1)) as u64).collect();
    let starts = Array::of(memory, starts, "liblinear row pointers");
    let nodes = Array::new(memory, count * (FIELDS + 1), END, "liblinear rows");
    let (mut rows, mut labels) = (Sparse { nodes, starts }, labels);
    for sample in 0..count {
        if sample % 1024 == 0 && memory.finished() {
            break;
        }
        let (start, mut score, mut first) = (sample * (FIELDS + 1), -3.5, 0);
        for (field, &size) in sizes.iter().enumerate() {
            let rank = ((size as f64 + 1.0).powf(random.unit()) as u64 - 1).min(size - 1);
            rows.nodes[start + field] = Node { index: (first + rank) as i32, value };
            score += hidden_weight(seed, first + rank);
            first += size;
        }
        labels[sample] = if random.unit() < 1.0 / (1.0 + (-score).exp()) { 1.0 } else { -1.0 };
        memory.compute(FIELDS as u32 * 60);
        rows.starts.store(memory, sample, start as u64, Token::NONE);
        memory.store(labels.address(sample), Token::NONE);
        rows.nodes.store_run(memory, start..start + FIELDS + 1, Token::NONE);
    }
    (rows, labels)
}

fn hidden_weight(seed: u64, feature: u64) -> f64 {
    let bits = mix(seed ^ mix(feature));
    if bits.is_multiple_of(4) { (bits >> 40) as f64 / (1u64 << 23) as f64 - 1.0 } else { 0.0 }
}

pub(super) fn transpose(rows: &Sparse, features: usize, memory: &mut dyn Memory) -> Sparse {
    let samples = rows.starts.len();
    let mut starts = vec![0u64; features + 1];
    for sample in 0..samples {
        rows.nodes.load_run(memory, rows.entries(sample), Token::NONE);
        for entry in rows.entries(sample) {
            starts[rows.nodes[entry].index as usize + 1] += 1;
        }
    }
    (0..features).for_each(|feature| starts[feature + 1] += starts[feature] + 1);
    starts.pop();
    let mut nodes = Array::new(memory, samples * FIELDS + features, END, "liblinear columns");
    let starts = Array::of(memory, starts, "liblinear column pointers");
    starts.store_run(memory, 0..features, Token::NONE);
    let mut next: Vec<u64> = starts.to_vec();
    for sample in 0..samples {
        let (entries, token) = rows.nodes.load_run(memory, rows.entries(sample), Token::NONE);
        for entry in entries {
            let place = &mut next[entry.index as usize];
            let node = Node { index: sample as i32, value: entry.value };
            nodes.store(memory, *place as usize, node, token);
            *place += 1;
        }
    }
    next.iter().for_each(|&end| memory.store(nodes.address(end as usize), Token::NONE));
    Sparse { nodes, starts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;

    #[test]
    fn the_transpose_holds_the_same_entries() {
        let mut memory = CountingMemory::default();
        let (rows, _) = samples(500, 3, &mut memory);
        let features = features(500) as usize;
        let columns = transpose(&rows, features, &mut memory);
        let mut by_row: Vec<_> = (0..500)
            .flat_map(|sample| rows.entries(sample).map(move |entry| (sample, entry)))
            .map(|(sample, entry)| (rows.nodes[entry].index as usize, sample))
            .collect();
        by_row.sort_unstable();
        let by_column: Vec<_> = (0..features)
            .flat_map(|feature| columns.entries(feature).map(move |entry| (feature, entry)))
            .map(|(feature, entry)| (feature, columns.nodes[entry].index as usize))
            .collect();
        assert_eq!(by_row, by_column);
    }

    #[test]
    fn at_full_size_the_features_are_those_of_kdd12() {
        assert_eq!(features(KDD12_SAMPLES), KDD12_FEATURES);
    }
}
