//! The growing of one tree: histograms, splits, partitions of rows.

use std::ops::Range;

use super::data::{Data, FEATURES, NONE};
use crate::{Array, LastLine, Memory, Token};

/// Rows of a thread's turn at building a histogram, and of a block of a partition (XGBoost's own).
const BUILD_BLOCK: usize = 256;
const PARTITION_BLOCK: usize = 2048;
/// XGBoost's defaults: regularisation of weights, learning rate, least sum of second derivatives in a child.
const LAMBDA: f64 = 1.0;
const RATE: f64 = 0.3;
const MIN_CHILD: f64 = 1.0;
/// Instructions for each entry of a row in a histogram.
const ENTRY_INSTRUCTIONS: u32 = 4;

/// First and second derivative of the loss, summed over rows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C)]
pub(super) struct Sums {
    pub(super) gradient: f64,
    pub(super) hessian: f64,
}

impl Sums {
    fn add(&mut self, other: Self) {
        self.gradient += other.gradient;
        self.hessian += other.hessian;
    }

    fn less(self, other: Self) -> Self {
        Self { gradient: self.gradient - other.gradient, hessian: self.hessian - other.hessian }
    }

    /// Returns how much a leaf of these sums lowers the objective, twice.
    fn gain(self) -> f64 {
        self.gradient * self.gradient / (self.hessian + LAMBDA)
    }

    fn weight(self) -> f64 {
        -RATE * self.gradient / (self.hessian + LAMBDA)
    }
}

/// Rows with a bin up to `bin` go left; those without a value as `missing_left` says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Split {
    pub(super) feature: usize,
    pub(super) bin: u8,
    pub(super) missing_left: bool,
    pub(super) gain: f64,
    left: Sums,
}

/// A node of the tree that is not split yet: its rows' places, sums and histogram.
struct Node {
    rows: Range<usize>,
    sums: Sums,
    /// None where the tree ends anyway.
    histogram: Option<Array<Sums>>,
}

pub(super) struct State {
    threads: usize,
    pub(super) margins: Array<f32>,
    pub(super) pairs: Array<[f32; 2]>,
    /// Row numbers, ascending within each node.
    rows: Array<u64>,
    buffer: Array<u64>,
    /// Histograms of nodes that are done, for the next ones.
    spare: Vec<Array<Sums>>,
}

impl State {
    pub(super) fn new(rows: usize, threads: usize, memory: &mut dyn Memory) -> Self {
        let margins = Array::new(memory, rows, 0.0, "xgboost margins");
        margins.store_run(memory, 0..rows, Token::NONE);
        let pairs = Array::new(memory, rows, [0.0; 2], "xgboost gradient pairs");
        let numbers = Array::new(memory, rows, 0, "xgboost row sets");
        let buffer = Array::new(memory, rows, 0, "xgboost row sets");
        Self { threads, margins, pairs, rows: numbers, buffer, spare: Vec::new() }
    }

    /// Derivatives of the logistic loss of every row.
    pub(super) fn differentiate(&mut self, data: &Data, memory: &mut dyn Memory) {
        for (row, (margin, label)) in self.margins.iter().zip(data.labels.iter()).enumerate() {
            let probability = 1.0 / (1.0 + (-margin).exp());
            let hessian = (probability * (1.0 - probability)).max(1e-16);
            self.pairs[row] = [probability - label, hessian];
        }
        blocks(0..data.rows(), BUILD_BLOCK, self.threads, memory, |block, memory| {
            self.margins.load_run(memory, block.clone(), Token::NONE);
            data.labels.load_run(memory, block.clone(), Token::NONE);
            memory.compute(20 * block.len() as u32);
            self.pairs.store_run(memory, block, Token::NONE);
        });
    }

    /// Grows a tree level by level and adds its leaves' weights to the margins; returns the splits.
    pub(super) fn grow(&mut self, data: &Data, depth: u64, memory: &mut dyn Memory) -> Vec<Split> {
        let rows = self.rows.len();
        self.rows.iter_mut().enumerate().for_each(|(at, row)| *row = at as u64);
        self.rows.store_run(memory, 0..rows, Token::NONE);
        let histogram = self.histogram(data, 0..rows, memory);
        let mut sums = Sums::default();
        self.pairs.iter().for_each(|pair| sums.add(sums_of(*pair)));
        let mut level = vec![Node { rows: 0..rows, sums, histogram: Some(histogram) }];
        let mut splits = Vec::new();
        for children in (0..depth).rev() {
            let mut next = Vec::new();
            for node in level {
                if memory.finished() {
                    return splits;
                }
                let found =
                    node.histogram.as_ref().and_then(|sums| best_split(data, node.sums, sums, memory));
                match found {
                    Some(split) => {
                        next.extend(self.split(data, node, split, children > 0, memory));
                        splits.push(split);
                    }
                    None => {
                        self.finish(&node, memory);
                        self.spare.extend(node.histogram);
                    }
                }
            }
            level = next;
        }
        level.iter().for_each(|node| self.finish(node, memory));
        splits
    }

    /// Makes a node a leaf.
    fn finish(&mut self, node: &Node, memory: &mut dyn Memory) {
        let weight = node.sums.weight() as f32;
        let mut line = LastLine::default();
        blocks(node.rows.clone(), PARTITION_BLOCK, self.threads, memory, |block, memory| {
            let (rows, token) = self.rows.load_run(memory, block, Token::NONE);
            for &row in rows {
                self.margins[row as usize] += weight;
                if line.moves_to(self.margins.address(row as usize)) {
                    let token = memory.load(self.margins.address(row as usize), token);
                    memory.store(self.margins.address(row as usize), token);
                }
            }
        });
    }

    /// Divides a node's rows and, where the children may be divided again, makes their histograms.
    fn split(
        &mut self,
        data: &Data,
        node: Node,
        split: Split,
        again: bool,
        memory: &mut dyn Memory,
    ) -> [Node; 2] {
        let middle = self.partition(data, node.rows.clone(), split, memory);
        let (left, right) = (node.rows.start..middle, middle..node.rows.end);
        let mut histograms = [None, None];
        if let Some(parent) = node.histogram {
            if again {
                let left_is_smaller = left.len() <= right.len();
                let small = if left_is_smaller { left.clone() } else { right.clone() };
                let built = self.histogram(data, small, memory);
                let rest = self.difference(&parent, &built, memory);
                histograms = if left_is_smaller { [built, rest] } else { [rest, built] }.map(Some);
            }
            self.spare.push(parent);
        }
        let [left_histogram, right_histogram] = histograms;
        [
            Node { rows: left, sums: split.left, histogram: left_histogram },
            Node { rows: right, sums: node.sums.less(split.left), histogram: right_histogram },
        ]
    }

    /// Returns the other child's histogram.
    fn difference(
        &mut self,
        parent: &Array<Sums>,
        built: &Array<Sums>,
        memory: &mut dyn Memory,
    ) -> Array<Sums> {
        let bins = parent.len();
        let mut rest = self.fresh(bins, memory);
        let pairs = parent.iter().zip(built.iter());
        rest.iter_mut().zip(pairs).for_each(|(rest, (all, one))| *rest = all.less(*one));
        parent.load_run(memory, 0..bins, Token::NONE);
        built.load_run(memory, 0..bins, Token::NONE);
        rest.store_run(memory, 0..bins, Token::NONE);
        rest
    }

    fn fresh(&mut self, bins: usize, memory: &mut dyn Memory) -> Array<Sums> {
        let spare = self.spare.pop();
        let mut histogram =
            spare.unwrap_or_else(|| Array::new(memory, bins, Sums::default(), "xgboost histograms"));
        histogram.fill(Sums::default());
        histogram
    }

    /// Sums of the rows at these places, by global bin.
    fn histogram(&mut self, data: &Data, places: Range<usize>, memory: &mut dyn Memory) -> Array<Sums> {
        let bins = data.starts[FEATURES] as usize;
        let mut histogram = self.fresh(bins, memory);
        let sums = &mut histogram;
        let (mut pair_line, mut offset_line) = (LastLine::default(), LastLine::default());
        blocks(places.clone(), BUILD_BLOCK, self.threads, memory, |block, memory| {
            let (rows, token) = self.rows.load_run(memory, block, Token::NONE);
            for &row in rows {
                let pair = sums_of(pair_line.load(&self.pairs, row as usize, memory, token));
                offset_line.load(&data.offsets, row as usize, memory, token);
                let (entries, _) = data.bins.load_run(memory, data.row(row as usize), token);
                memory.compute(ENTRY_INSTRUCTIONS * entries.len() as u32);
                entries.iter().for_each(|&bin| sums[bin as usize].add(pair));
            }
        });
        // Threads have summed in their own cache; what they found goes to the node's histogram.
        histogram.store_run(memory, 0..bins, Token::NONE);
        histogram
    }

    /// Moves the rows that go left before the others, both in order; returns where the others start.
    fn partition(
        &mut self,
        data: &Data,
        places: Range<usize>,
        split: Split,
        memory: &mut dyn Memory,
    ) -> usize {
        let column = split.feature * data.rows();
        let goes_left = |row: u64| match data.columns[column + row as usize] {
            NONE => split.missing_left,
            bin => bin <= split.bin,
        };
        let mut line = LastLine::default();
        blocks(places.clone(), PARTITION_BLOCK, self.threads, memory, |block, memory| {
            let (rows, token) = self.rows.load_run(memory, block.clone(), Token::NONE);
            memory.compute(6 * rows.len() as u32);
            rows.iter().for_each(|&row| {
                line.load(&data.columns, column + row as usize, memory, token);
            });
            self.buffer.store_run(memory, block, Token::NONE);
        });
        let rows = &self.rows[places.clone()];
        let (left, right): (Vec<u64>, Vec<u64>) = rows.iter().partition(|&&row| goes_left(row));
        let middle = places.start + left.len();
        self.rows[places.start..middle].copy_from_slice(&left);
        self.rows[middle..places.end].copy_from_slice(&right);
        blocks(places.clone(), PARTITION_BLOCK, self.threads, memory, |block, memory| {
            self.buffer.load_run(memory, block.clone(), Token::NONE);
            self.rows.store_run(memory, block, Token::NONE);
        });
        middle
    }
}

fn sums_of(pair: [f32; 2]) -> Sums {
    Sums { gradient: f64::from(pair[0]), hessian: f64::from(pair[1]) }
}

fn blocks(
    items: Range<usize>,
    block: usize,
    threads: usize,
    memory: &mut dyn Memory,
    mut work: impl FnMut(Range<usize>, &mut dyn Memory),
) {
    for (index, from) in items.clone().step_by(block).enumerate() {
        memory.thread((index % threads) as u16);
        work(from..(from + block).min(items.end), memory);
    }
    memory.thread(0);
}

/// Returns the split of a node that lowers the objective most; missing values go to the better side.
fn best_split(data: &Data, sums: Sums, histogram: &Array<Sums>, memory: &mut dyn Memory) -> Option<Split> {
    histogram.load_run(memory, 0..histogram.len(), Token::NONE);
    memory.compute(20 * histogram.len() as u32);
    let mut best: Option<Split> = None;
    for feature in 0..FEATURES {
        let bins = &histogram[data.starts[feature] as usize..data.starts[feature + 1] as usize];
        let mut present = Sums::default();
        bins.iter().for_each(|bin| present.add(*bin));
        let missing = sums.less(present);
        let mut below = Sums::default();
        for (bin, own) in bins.iter().enumerate() {
            below.add(*own);
            for missing_left in [false, true] {
                let mut left = below;
                left.add(if missing_left { missing } else { Sums::default() });
                let right = sums.less(left);
                let gain = left.gain() + right.gain() - sums.gain();
                let allowed = left.hessian >= MIN_CHILD && right.hessian >= MIN_CHILD && gain > 1e-6;
                if allowed && best.is_none_or(|best| gain > best.gain) {
                    best = Some(Split { feature, bin: bin as u8, missing_left, gain, left });
                }
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;

    fn trained(rows: usize) -> (Data, State, CountingMemory) {
        let mut memory = CountingMemory::default();
        let data = Data::new(rows, 16, 5, &mut memory);
        let mut state = State::new(rows, 3, &mut memory);
        state.differentiate(&data, &mut memory);
        (data, state, memory)
    }

    /// Returns the gain of sending the rows that `left` names to the left, from the rows themselves.
    fn gain(state: &State, left: impl Fn(usize) -> bool) -> f64 {
        let mut sides = [Sums::default(); 2];
        for (row, pair) in state.pairs.iter().enumerate() {
            sides[usize::from(left(row))].add(sums_of(*pair));
        }
        let mut all = sides[0];
        all.add(sides[1]);
        sides[0].gain() + sides[1].gain() - all.gain()
    }

    #[test]
    fn the_first_split_is_the_best_of_all_that_can_be_made() {
        let (data, mut state, mut memory) = trained(2000);
        let split = state.grow(&data, 1, &mut memory)[0];
        let mut best = 0.0f64;
        for feature in 0..FEATURES {
            for bin in 0..16 {
                for missing_left in [false, true] {
                    let value = gain(&state, |row| match data.columns[feature * 2000 + row] {
                        NONE => missing_left,
                        own => own <= bin,
                    });
                    best = best.max(value);
                }
            }
        }
        assert!((split.gain - best).abs() < 1e-6 * best, "{} {best}", split.gain);
    }

    #[test]
    fn subtracted_histograms_equal_built_ones_and_leaves_cover_the_rows() {
        let (data, mut state, mut memory) = trained(3000);
        let places = 0..3000;
        state.rows.iter_mut().enumerate().for_each(|(at, row)| *row = at as u64);
        let histogram = state.histogram(&data, places.clone(), &mut memory);
        let mut sums = Sums::default();
        state.pairs.iter().for_each(|pair| sums.add(sums_of(*pair)));
        let split = best_split(&data, sums, &histogram, &mut memory).expect("a split");
        let node = Node { rows: places, sums, histogram: Some(histogram) };
        let children = state.split(&data, node, split, true, &mut memory);
        for child in &children {
            let built = state.histogram(&data, child.rows.clone(), &mut memory);
            let found = child.histogram.as_ref().expect("it may be split again");
            for (found, expected) in found.iter().zip(built.iter()) {
                assert!((found.gradient - expected.gradient).abs() < 1e-6);
                assert!((found.hessian - expected.hessian).abs() < 1e-6);
            }
        }
        let mut rows = state.rows.to_vec();
        rows.sort_unstable();
        assert!(rows.into_iter().eq(0..3000));
    }

    #[test]
    fn the_loss_falls_from_round_to_round() {
        let (data, mut state, mut memory) = trained(3000);
        let loss = |state: &State| -> f32 {
            let rows = state.margins.iter().zip(data.labels.iter());
            rows.map(|(margin, label)| (1.0 + margin.exp()).ln() - label * margin).sum()
        };
        let mut before = loss(&state);
        for _ in 0..5 {
            state.differentiate(&data, &mut memory);
            state.grow(&data, 4, &mut memory);
            let after = loss(&state);
            assert!(after < 0.995 * before, "{after} {before}");
            before = after;
        }
    }
}
