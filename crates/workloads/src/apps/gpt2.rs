//! `gpt2`: text generation by a decoder-only transformer, one token at a time.
//!
//! Batch 1: a token reads every matrix row by row; threads share rows and heads and take turns row by row.
//! **Left out.** The tokeniser, biases other than those of normalisation, and reports of activations (a few
//! KB in a core's cache). The next token is drawn from the softmax.

use isotherm_core::{Bytes, parameters};

use crate::{Array, Built, Memory, ObjectSize, Program, Random, Token, Workload, mix, paper, test};

/// Values of a head in every GPT-2.
const HEAD: usize = 64;

parameters! {
    struct Settings {
        /// Memory of weights and cache; the width follows from it, in whole heads.
        footprint: Bytes = size(2 << 20, 1 << 42, "140M").source("ours: 6 heads; PACT 5.1: 6.6 to 40 GB"),
        /// Tokens that are generated.
        operations: u64 = count(1, 1 << 40, "40").unit("tokens").source("ours: about 80 million misses"),
        /// Layers.
        layers: usize = count(1, 96, "12").source("GPT-2, 124 million parameters (1.5 billion: 48)"),
        /// Tokens of the vocabulary.
        vocabulary: f64 = number(1.0, 100.0, "65.4").unit("of the width")
            .source("GPT-2, 124 million parameters: 50,257 / 768 (1.5 billion: 31.4)"),
        /// Tokens that the cache holds.
        context: f64 = number(0.1, 10.0, "1.33").unit("of the width")
            .source("GPT-2, 124 million parameters: 1,024 / 768 (1.5 billion: 0.64)"),
        /// Threads that share each matrix.
        threads: usize = count(1, 256, "8").source("PACT 5.1"),
    }
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "gpt2",
    title: "text generation by a transformer, token by token",
    source: "GPT-2 (Radford et al., 2019), as run by PACT 5.1, 5.3",
    object_size: ObjectSize::Large,
    objects: "weight matrices of megabytes, caches of keys and values",
    hot_set_changes: false,
    hot_set: "none: every weight once a token; the cache grows",
    accesses: 79_681_176,
    specs: Settings::SPECS,
    presets: &[
        test(&[("footprint", "3M"), ("operations", "40")]),
        paper(
            "PACT 5.1 (6.6 GB at least): GPT-2 with 1.5 billion parameters, the one of that size",
            "25 heads, 48 layers.",
            &[("footprint", "6.5G"), ("layers", "48"), ("vocabulary", "31.4"), ("context", "0.64")],
        ),
    ],
    reference_footprint: None,
    reference_cache: None,
    peak: 1.1,
    builder: |parameters, seed| build(Settings::read(parameters), seed),
};

#[derive(Debug, Clone, Copy)]
struct Shape {
    width: usize,
    layers: usize,
    vocabulary: usize,
    context: usize,
    threads: usize,
}

impl Shape {
    fn bytes(&self) -> u64 {
        let layer = 12 * self.width * self.width + 4 * self.width + 2 * self.context * self.width;
        let values = self.layers * layer + (self.vocabulary + self.context + 2) * self.width;
        (values * size_of::<f32>()) as u64
    }
}

struct Gpt2 {
    shape: Shape,
    tokens: u64,
    seed: u64,
}

fn build(settings: Settings, seed: u64) -> Built {
    let shape = |heads: usize| {
        let ratio = |share: f64| (share * (heads * HEAD) as f64) as usize;
        Shape {
            width: heads * HEAD,
            layers: settings.layers,
            vocabulary: ratio(settings.vocabulary).max(2),
            context: ratio(settings.context).max(2),
            threads: settings.threads,
        }
    };
    let most = settings.footprint.0;
    let heads = (1..).take_while(|&heads| shape(heads).bytes() <= most).last().unwrap_or(1);
    Ok(Box::new(Gpt2 { shape: shape(heads), tokens: settings.operations, seed }))
}

/// A matrix whose row `r` gives the value `r` of its product.
struct Matrix {
    values: Array<f32>,
    columns: usize,
}

impl Matrix {
    fn new(
        rows: usize,
        columns: usize,
        random: &mut Random,
        memory: &mut dyn Memory,
        site: &'static str,
    ) -> Self {
        // Uniform with GPT-2's standard deviation of 0.02.
        let scale = 0.02 * 12f32.sqrt() / (1u32 << 24) as f32;
        let weight = |bits: u32| ((bits >> 8) as f32 - (1u32 << 23) as f32) * scale;
        let mut values = Vec::with_capacity(rows * columns);
        while values.len() < rows * columns {
            let bits = random.bits();
            values.extend([weight(bits as u32), weight((bits >> 32) as u32)]);
        }
        values.truncate(rows * columns);
        let values = Array::of(memory, values, site);
        values.store_run(memory, 0..values.len(), Token::NONE);
        Self { values, columns }
    }

    fn row(&self, row: usize) -> std::ops::Range<usize> {
        row * self.columns..(row + 1) * self.columns
    }

    fn times(&self, vector: &[f32], threads: usize, memory: &mut dyn Memory) -> Vec<f32> {
        let rows = self.values.len() / self.columns;
        let mut product = vec![0.0; rows];
        turns(rows, threads, memory, |row, memory| {
            let (weights, _) = self.values.load_run(memory, self.row(row), Token::NONE);
            memory.compute(weights.len() as u32 / 4);
            product[row] = dot(weights, vector);
        });
        product
    }
}

/// Calls `work` for each item; threads own contiguous shares and take turns item by item.
fn turns(
    items: usize,
    threads: usize,
    memory: &mut dyn Memory,
    mut work: impl FnMut(usize, &mut dyn Memory),
) {
    let share = items.div_ceil(threads);
    for offset in 0..share {
        for thread in 0..threads {
            let item = thread * share + offset;
            if item < items {
                memory.thread(thread as u16);
                work(item, memory);
            }
        }
    }
    memory.thread(0);
}

/// Returns a product summed in eight parts, as vector units do.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; 8];
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum()
}

/// Scale and shift of a normalisation.
struct Norm(Array<f32>);

impl Norm {
    fn new(width: usize, memory: &mut dyn Memory) -> Self {
        let mut values = vec![1.0; 2 * width];
        values[width..].fill(0.0);
        let values = Array::of(memory, values, "gpt2 layer");
        values.store_run(memory, 0..values.len(), Token::NONE);
        Self(values)
    }

    fn apply(&self, input: &[f32], memory: &mut dyn Memory) -> Vec<f32> {
        let width = input.len() as f32;
        let mean = input.iter().sum::<f32>() / width;
        let variance = input.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / width;
        let (values, _) = self.0.load_run(memory, 0..self.0.len(), Token::NONE);
        let (scale, shift) = values.split_at(input.len());
        let factor = 1.0 / (variance + 1e-5).sqrt();
        let scaled = |((value, scale), shift): ((&f32, &f32), &f32)| (value - mean) * factor * scale + shift;
        input.iter().zip(scale).zip(shift).map(scaled).collect()
    }
}

struct Layer {
    attention_norm: Norm,
    /// Queries, keys and values in one.
    attention: Matrix,
    projection: Matrix,
    network_norm: Norm,
    expand: Matrix,
    contract: Matrix,
    keys: Array<f32>,
    values: Array<f32>,
}

struct Model {
    shape: Shape,
    embedding: Matrix,
    positions: Matrix,
    layers: Vec<Layer>,
    norm: Norm,
}

impl Model {
    fn new(shape: Shape, random: &mut Random, memory: &mut dyn Memory) -> Self {
        let width = shape.width;
        let embedding = Matrix::new(shape.vocabulary, width, random, memory, "gpt2 embedding");
        let positions = Matrix::new(shape.context, width, random, memory, "gpt2 embedding");
        let mut layer = || {
            let attention_norm = Norm::new(width, memory);
            let mut matrix = |rows, columns| Matrix::new(rows, columns, random, memory, "gpt2 layer");
            let (attention, projection) = (matrix(3 * width, width), matrix(width, width));
            let network_norm = Norm::new(width, memory);
            let mut matrix = |rows, columns| Matrix::new(rows, columns, random, memory, "gpt2 layer");
            let (expand, contract) = (matrix(4 * width, width), matrix(width, 4 * width));
            let mut cache = || Array::new(memory, shape.context * width, 0.0, "gpt2 cache");
            let (keys, values) = (cache(), cache());
            Layer { attention_norm, attention, projection, network_norm, expand, contract, keys, values }
        };
        let layers = (0..shape.layers).map(|_| layer()).collect();
        Self { shape, embedding, positions, layers, norm: Norm::new(width, memory) }
    }

    fn forward(&mut self, token: usize, position: usize, memory: &mut dyn Memory) -> Vec<f32> {
        let (word, _) = self.embedding.values.load_run(memory, self.embedding.row(token), Token::NONE);
        let (place, _) = self.positions.values.load_run(memory, self.positions.row(position), Token::NONE);
        let mut state: Vec<f32> = word.iter().zip(place).map(|(word, place)| word + place).collect();
        for layer in &mut self.layers {
            layer.forward(&mut state, position, self.shape, memory);
        }
        let state = self.norm.apply(&state, memory);
        self.embedding.times(&state, self.shape.threads, memory)
    }
}

impl Layer {
    fn forward(&mut self, state: &mut [f32], position: usize, shape: Shape, memory: &mut dyn Memory) {
        let input = self.attention_norm.apply(state, memory);
        let mixed = self.attention.times(&input, shape.threads, memory);
        let attended = self.attend(&mixed, position, shape, memory);
        let projected = self.projection.times(&attended, shape.threads, memory);
        state.iter_mut().zip(projected).for_each(|(state, change)| *state += change);
        let input = self.network_norm.apply(state, memory);
        let mut hidden = self.expand.times(&input, shape.threads, memory);
        hidden.iter_mut().for_each(|value| *value = gelu(*value));
        let change = self.contract.times(&hidden, shape.threads, memory);
        state.iter_mut().zip(change).for_each(|(state, change)| *state += change);
    }

    /// Keeps the position's key and value; weighs all values, by head, by how well their keys fit the query.
    fn attend(&mut self, mixed: &[f32], position: usize, shape: Shape, memory: &mut dyn Memory) -> Vec<f32> {
        let width = shape.width;
        let (query, rest) = mixed.split_at(width);
        let own = position * width..(position + 1) * width;
        for (cache, new) in [(&mut self.keys, &rest[..width]), (&mut self.values, &rest[width..])] {
            cache[own.clone()].copy_from_slice(new);
            cache.store_run(memory, own.clone(), Token::NONE);
        }
        let mut attended = vec![0.0; width];
        turns(width / HEAD, shape.threads, memory, |head, memory| {
            let part = |place: usize| place * width + head * HEAD..place * width + (head + 1) * HEAD;
            let query = &query[head * HEAD..(head + 1) * HEAD];
            let mut scores = Vec::with_capacity(position + 1);
            for place in 0..=position {
                let (key, _) = self.keys.load_run(memory, part(place), Token::NONE);
                memory.compute(HEAD as u32 / 4);
                scores.push(dot(key, query) / (HEAD as f32).sqrt());
            }
            softmax(&mut scores);
            for (place, score) in scores.into_iter().enumerate() {
                let (value, _) = self.values.load_run(memory, part(place), Token::NONE);
                memory.compute(HEAD as u32 / 4);
                let sums = &mut attended[head * HEAD..(head + 1) * HEAD];
                sums.iter_mut().zip(value).for_each(|(sum, value)| *sum += score * value);
            }
        });
        attended
    }
}

fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - most).exp());
    let sum: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= sum);
}

fn gelu(value: f32) -> f32 {
    let inner = (2.0 / std::f32::consts::PI).sqrt() * (value + 0.044_715 * value * value * value);
    0.5 * value * (1.0 + inner.tanh())
}

fn draw(mut scores: Vec<f32>, random: &mut Random) -> usize {
    softmax(&mut scores);
    let mut left = (random.bits() >> 40) as f32 / (1u32 << 24) as f32;
    let found = scores.iter().position(|score| {
        left -= score;
        left < 0.0
    });
    found.unwrap_or(scores.len() - 1)
}

impl Program for Gpt2 {
    fn footprint(&self) -> Bytes {
        Bytes(self.shape.bytes())
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let mut random = Random::new(mix(self.seed));
        let mut model = Model::new(self.shape, &mut random, memory);
        let mut token = 0;
        for index in 0..self.tokens {
            if memory.finished() {
                return;
            }
            // A full cache starts over with the last token.
            let position = (index % self.shape.context as u64) as usize;
            token = draw(model.forward(token, position, memory), &mut random);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;

    const SHAPE: Shape = Shape { width: 2 * HEAD, layers: 2, vocabulary: 50, context: 8, threads: 3 };

    /// Computes all positions of a text at once, without a cache: attention with a triangular mask.
    fn whole(model: &Model, text: &[usize]) -> Vec<f32> {
        let memory = &mut CountingMemory::default();
        let width = SHAPE.width;
        let times = |matrix: &Matrix, vector: &[f32]| -> Vec<f32> {
            let rows = matrix.values.chunks(matrix.columns);
            rows.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum()).collect()
        };
        let row = |matrix: &Matrix, row| matrix.values[matrix.row(row)].to_vec();
        let add = |a: &mut Vec<f32>, b: Vec<f32>| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        let mut states: Vec<Vec<f32>> = text.iter().map(|&token| row(&model.embedding, token)).collect();
        states.iter_mut().enumerate().for_each(|(place, state)| add(state, row(&model.positions, place)));
        for layer in &model.layers {
            let mixed: Vec<_> = states
                .iter()
                .map(|state| times(&layer.attention, &layer.attention_norm.apply(state, memory)))
                .collect();
            for (place, state) in states.iter_mut().enumerate() {
                let mut attended = vec![0.0; width];
                for head in (0..width).step_by(HEAD) {
                    let fit = |other: usize| -> f32 {
                        (head..head + HEAD).map(|at| mixed[place][at] * mixed[other][width + at]).sum::<f32>()
                            / 8.0
                    };
                    let weights: Vec<f32> = (0..=place).map(|other| fit(other).exp()).collect();
                    for at in head..head + HEAD {
                        let sum: f32 =
                            (0..=place).map(|other| weights[other] * mixed[other][2 * width + at]).sum();
                        attended[at] = sum / weights.iter().sum::<f32>();
                    }
                }
                add(state, times(&layer.projection, &attended));
                let hidden = times(&layer.expand, &layer.network_norm.apply(state, memory));
                add(state, times(&layer.contract, &hidden.into_iter().map(gelu).collect::<Vec<_>>()));
            }
        }
        times(&model.embedding, &model.norm.apply(&states[text.len() - 1], memory))
    }

    #[test]
    fn generation_with_the_cache_scores_as_the_whole_text_without_it() {
        let memory = &mut CountingMemory::default();
        let mut model = Model::new(SHAPE, &mut Random::new(3), memory);
        let text = [4, 49, 0, 17, 17, 3];
        let mut scores = Vec::new();
        for (position, &token) in text.iter().enumerate() {
            scores = model.forward(token, position, memory);
        }
        for (found, expected) in scores.iter().zip(whole(&model, &text)) {
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
        assert_eq!(scores.len(), 50);
    }

    #[test]
    fn a_token_reads_every_weight_once() {
        let memory = &mut CountingMemory::default();
        let mut model = Model::new(SHAPE, &mut Random::new(3), memory);
        let before = memory.loads;
        model.forward(1, 0, memory);
        let weights = (SHAPE.layers * 12 * SHAPE.width * SHAPE.width + 50 * SHAPE.width) as u64 * 4 / 64;
        assert!((weights..weights + 300).contains(&(memory.loads - before)));
    }
}
