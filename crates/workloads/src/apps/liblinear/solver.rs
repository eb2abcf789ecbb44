//! newGLMNET, liblinear's solver of L1-regularised logistic regression (Yuan, Ho and Lin, JMLR 13, 2012).
//! Each iteration builds gradient and diagonal of the Hessian from all columns, minimises the quadratic model
//! by coordinate descent over the columns in random order, and halves the step until the objective falls.

use super::data::Sparse;
use crate::{Array, LastLine, Memory, Random, Token};

/// The curvature added to each feature's own.
const NU: f64 = 1e-12;
/// The share of the predicted decrease that a step must reach.
const SIGMA: f64 = 0.01;
/// Instructions for each non-zero.
const ENTRY_INSTRUCTIONS: u32 = 5;
/// Cycles of coordinate descent and halvings of a step, at most.
const MAX_CYCLES: usize = 1000;
const MAX_HALVINGS: usize = 20;
/// Non-zeros that a thread gets at least: shorter columns are not divided.
const SHARE: usize = 64;

/// The solver's arrays; the paper's letters in brackets.
pub(super) struct Solver<'a> {
    columns: &'a Sparse,
    threads: usize,
    /// The order of the features; those in play come first.
    order: Array<u32>,
    positive: Array<i8>,
    curvature: Array<f64>,
    gradient: Array<f64>,
    /// The weights after the step that is being sought (w + d).
    next: Array<f64>,
    /// Sum of each feature over the negative samples.
    negative: Array<f64>,
    /// The change of each sample's score (X d).
    change: Array<f64>,
    /// exp(w.x) now, and after the step.
    exponential: Array<f64>,
    exponential_next: Array<f64>,
    /// 1 / (1 + exp(w.x)) (tau) and its derivative (D).
    tau: Array<f64>,
    slope: Array<f64>,
    pub(super) weights: Array<f64>,
}

/// Returns a coordinate's best step and its distance from the optimum; `None` if it can be left out.
fn coordinate(gradient: f64, curvature: f64, weight: f64, threshold: f64) -> Option<(f64, f64)> {
    let (up, down) = (gradient + 1.0, gradient - 1.0);
    let violation = if weight > 0.0 {
        up.abs()
    } else if weight < 0.0 {
        down.abs()
    } else if up < 0.0 {
        -up
    } else if down > 0.0 {
        down
    } else if up > threshold && down < -threshold {
        return None;
    } else {
        0.0
    };
    let step = if up < curvature * weight {
        -up / curvature
    } else if down > curvature * weight {
        -down / curvature
    } else {
        -weight
    };
    Some((step.clamp(-10.0, 10.0), violation))
}

impl<'a> Solver<'a> {
    pub(super) fn new(
        columns: &'a Sparse,
        labels: &Array<f64>,
        threads: usize,
        memory: &mut dyn Memory,
    ) -> Self {
        let (features, samples) = (columns.starts.len(), labels.len());
        let weights = Array::new(memory, features, 0.0, "liblinear weights");
        let mut double = |length, context| {
            let array = Array::new(memory, length, 0.0, context);
            array.store_run(memory, 0..length, Token::NONE);
            array
        };
        let mut by_feature = || double(features, "liblinear features");
        let (curvature, gradient, next, negative) = (by_feature(), by_feature(), by_feature(), by_feature());
        let mut by_sample = || double(samples, "liblinear samples");
        let (change, exponential, exponential_next) = (by_sample(), by_sample(), by_sample());
        let (tau, slope) = (by_sample(), by_sample());
        let order = Array::of(memory, (0..features as u32).collect(), "liblinear features");
        let positive = labels.iter().map(|&label| i8::from(label > 0.0)).collect();
        let positive = Array::of(memory, positive, "liblinear samples");
        order.store_run(memory, 0..features, Token::NONE);
        weights.store_run(memory, 0..features, Token::NONE);
        labels.load_run(memory, 0..samples, Token::NONE);
        positive.store_run(memory, 0..samples, Token::NONE);
        let mut solver = Self {
            columns,
            threads,
            order,
            positive,
            curvature,
            gradient,
            next,
            negative,
            change,
            exponential,
            exponential_next,
            tau,
            slope,
            weights,
        };
        solver.sum_negatives(memory);
        solver.exponential.fill(1.0);
        solver.update_tau(memory);
        solver
    }

    /// Visits a column's entries, a long column's by several threads: `touch` reports and computes.
    fn column(
        &self,
        feature: usize,
        memory: &mut dyn Memory,
        mut touch: impl FnMut(&mut dyn Memory, usize, f64, Token),
    ) {
        let (_, start) = self.columns.starts.load(memory, feature, Token::NONE);
        let entries = self.columns.entries(feature);
        let nodes = &self.columns.nodes;
        let parts = if entries.len() >= self.threads * SHARE { self.threads } else { 1 };
        let share = entries.len().div_ceil(parts).max(1);
        // Threads advance together, a line of entries each.
        for line in (0..share).step_by(4) {
            for part in 0..parts {
                let from = entries.start + part * share + line;
                let end = (from + 4).min(entries.start + (part + 1) * share).min(entries.end);
                if from >= end {
                    continue;
                }
                memory.thread(part as u16);
                let (nodes, token) = nodes.load_run(memory, from..end, start);
                memory.compute(ENTRY_INSTRUCTIONS * nodes.len() as u32);
                for node in nodes {
                    touch(memory, node.index as usize, node.value, token);
                }
            }
        }
        memory.thread(0);
    }

    fn sum_negatives(&mut self, memory: &mut dyn Memory) {
        for feature in 0..self.order.len() {
            let mut sum = 0.0;
            let (mut samples, mut weights) = (LastLine::default(), LastLine::default());
            self.column(feature, memory, |memory, sample, value, token| {
                weights.load(&self.exponential, sample, memory, token);
                samples.load(&self.positive, sample, memory, token);
                sum += if self.positive[sample] == 0 { value } else { 0.0 };
            });
            self.negative.store(memory, feature, sum, Token::NONE);
        }
    }

    /// Runs up to `iterations` Newton iterations, until the gradient has shrunk to `tolerance` of the first.
    pub(super) fn solve(
        &mut self,
        iterations: u64,
        tolerance: f64,
        random: &mut Random,
        memory: &mut dyn Memory,
    ) {
        let (mut first, mut inner, mut largest) = (None, 1.0, f64::INFINITY);
        for _ in 0..iterations {
            let (active, violation, most) = self.differentiate(largest, memory);
            let first = *first.get_or_insert(violation);
            if violation <= tolerance * first || memory.finished() {
                return;
            }
            let cycles = self.descend(active, inner * first, random, memory);
            self.search(memory);
            inner *= if cycles == 1 { 0.25 } else { 1.0 };
            largest = most;
        }
    }

    /// Sets gradients and curvatures; returns the features in play, violations' sum and maximum.
    fn differentiate(&mut self, largest: f64, memory: &mut dyn Memory) -> (usize, f64, f64) {
        let threshold = largest / self.tau.len() as f64;
        let (mut active, mut at, mut sum, mut most) = (self.order.len(), 0, 0.0, 0.0f64);
        while at < active {
            if at % 1024 == 0 && memory.finished() {
                break;
            }
            let (feature, token) = self.order.load(memory, at, Token::NONE);
            let feature = feature as usize;
            let (mut curvature, mut gradient) = (NU, 0.0);
            let (mut slopes, mut taus) = (LastLine::default(), LastLine::default());
            self.column(feature, memory, |memory, sample, value, token| {
                curvature += value * value * slopes.load(&self.slope, sample, memory, token);
                gradient -= value * taus.load(&self.tau, sample, memory, token);
            });
            gradient += self.negative.load(memory, feature, token).0;
            self.curvature.store(memory, feature, curvature, token);
            self.gradient.store(memory, feature, gradient, token);
            let (weight, _) = self.weights.load(memory, feature, token);
            match coordinate(gradient, curvature, weight, threshold) {
                Some((_, violation)) => (sum, most, at) = (sum + violation, most.max(violation), at + 1),
                None => {
                    active -= 1;
                    self.swap(at, active, memory);
                }
            }
        }
        (active, sum, most)
    }

    fn swap(&mut self, a: usize, b: usize, memory: &mut dyn Memory) {
        self.order.swap(a, b);
        memory.store(self.order.address(a), Token::NONE);
        memory.store(self.order.address(b), Token::NONE);
    }

    /// Minimises the quadratic model; returns the cycles that it took.
    fn descend(&mut self, active: usize, goal: f64, random: &mut Random, memory: &mut dyn Memory) -> usize {
        self.change.fill(0.0);
        self.change.store_run(memory, 0..self.change.len(), Token::NONE);
        let (mut in_play, mut threshold) = (active, f64::INFINITY);
        for cycle in 1..=MAX_CYCLES {
            for at in 0..in_play {
                let other = at + random.below((in_play - at) as u64) as usize;
                self.swap(at, other, memory);
            }
            let (mut at, mut sum, mut most) = (0, 0.0, 0.0f64);
            while at < in_play {
                if at % 1024 == 0 && memory.finished() {
                    return cycle;
                }
                match self.step(at, threshold, memory) {
                    Some(violation) => (sum, most, at) = (sum + violation, most.max(violation), at + 1),
                    None => {
                        in_play -= 1;
                        self.swap(at, in_play, memory);
                    }
                }
            }
            if sum > goal {
                threshold = most / self.tau.len() as f64;
            } else if in_play == active {
                return cycle;
            } else {
                (in_play, threshold) = (active, f64::INFINITY);
            }
        }
        MAX_CYCLES
    }

    /// Improves one coordinate of the model; returns its violation, `None` where it leaves the play.
    fn step(&mut self, at: usize, threshold: f64, memory: &mut dyn Memory) -> Option<f64> {
        let (feature, token) = self.order.load(memory, at, Token::NONE);
        let feature = feature as usize;
        let (curvature, _) = self.curvature.load(memory, feature, token);
        let (gradient, _) = self.gradient.load(memory, feature, token);
        let (next, _) = self.next.load(memory, feature, token);
        let (weight, _) = self.weights.load(memory, feature, token);
        let mut gradient = gradient + (next - weight) * NU;
        let (mut slopes, mut changes) = (LastLine::default(), LastLine::default());
        self.column(feature, memory, |memory, sample, value, token| {
            let slope = slopes.load(&self.slope, sample, memory, token);
            gradient += value * slope * changes.load(&self.change, sample, memory, token);
        });
        let (step, violation) = coordinate(gradient, curvature, next, threshold)?;
        if step.abs() >= 1e-12 {
            self.next.store(memory, feature, next + step, token);
            self.shift(feature, step, memory);
        }
        Some(violation)
    }

    fn shift(&mut self, feature: usize, step: f64, memory: &mut dyn Memory) {
        let mut line = LastLine::default();
        self.column(feature, memory, |memory, sample, _, token| {
            if line.moves_to(self.change.address(sample)) {
                let token = memory.load(self.change.address(sample), token);
                memory.store(self.change.address(sample), token);
            }
        });
        let change = &mut self.change;
        for node in &self.columns.nodes[self.columns.entries(feature)] {
            change[node.index as usize] += step * node.value;
        }
    }

    /// Halves the step until the objective falls enough, and takes it.
    fn search(&mut self, memory: &mut dyn Memory) {
        let features = 0..self.order.len();
        for array in [&self.gradient, &self.next, &self.weights] {
            array.load_run(memory, features.clone(), Token::NONE);
        }
        let norm = |weights: &Array<f64>| weights.iter().map(|weight| weight.abs()).sum::<f64>();
        let (before, mut after) = (norm(&self.weights), norm(&self.next));
        let steps = self.next.iter().zip(self.weights.iter()).map(|(next, weight)| next - weight);
        let mut promise: f64 = self.gradient.iter().zip(steps).map(|(g, step)| g * step).sum();
        promise += after - before;
        for _ in 0..MAX_HALVINGS {
            let decrease = after - before + self.score_step(memory) - SIGMA * promise;
            if decrease <= 0.0 {
                break;
            }
            let weights = &self.weights;
            self.next.iter_mut().zip(weights.iter()).for_each(|(next, w)| *next = (*next + w) * 0.5);
            self.change.iter_mut().for_each(|change| *change *= 0.5);
            self.next.store_run(memory, features.clone(), Token::NONE);
            self.change.store_run(memory, 0..self.change.len(), Token::NONE);
            after = norm(&self.next);
            promise *= 0.5;
        }
        self.weights.copy_from_slice(&self.next);
        self.weights.store_run(memory, features, Token::NONE);
        self.exponential.copy_from_slice(&self.exponential_next);
        self.update_tau(memory);
    }

    /// Computes the exponentials after the step; returns the change of the loss.
    fn score_step(&mut self, memory: &mut dyn Memory) -> f64 {
        let mut loss = 0.0;
        for sample in 0..self.tau.len() {
            let (change, exponential) = (self.change[sample], self.exponential[sample]);
            let after = exponential * change.exp();
            self.exponential_next[sample] = after;
            // log(1 + exp(-s)) + [negative] s, so that the negative part is the step itself.
            loss += ((1.0 + 1.0 / after) / (1.0 + 1.0 / exponential)).ln();
            loss += if self.positive[sample] == 0 { change } else { 0.0 };
        }
        for array in [&self.change, &self.exponential] {
            array.load_run(memory, 0..self.tau.len(), Token::NONE);
        }
        self.positive.load_run(memory, 0..self.tau.len(), Token::NONE);
        self.exponential_next.store_run(memory, 0..self.tau.len(), Token::NONE);
        loss
    }

    fn update_tau(&mut self, memory: &mut dyn Memory) {
        for sample in 0..self.tau.len() {
            let exponential = self.exponential[sample];
            let tau = 1.0 / (1.0 + exponential);
            self.tau[sample] = tau;
            self.slope[sample] = exponential * tau * tau;
        }
        self.exponential.store_run(memory, 0..self.tau.len(), Token::NONE);
        self.tau.store_run(memory, 0..self.tau.len(), Token::NONE);
        self.slope.store_run(memory, 0..self.tau.len(), Token::NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::{features, samples, transpose};
    use super::*;
    use crate::CountingMemory;

    #[test]
    fn the_solution_satisfies_the_conditions_of_optimality_of_the_rows() {
        let mut memory = CountingMemory::default();
        let (rows, labels) = samples(400, 11, &mut memory);
        let columns = transpose(&rows, features(400) as usize, &mut memory);
        let mut solver = Solver::new(&columns, &labels, 3, &mut memory);
        solver.solve(100, 1e-7, &mut Random::new(1), &mut memory);
        let weights = &solver.weights;
        let mut gradient = vec![0.0; weights.len()];
        for sample in 0..400 {
            let entries = &rows.nodes[rows.entries(sample)];
            let score: f64 = entries.iter().map(|node| weights[node.index as usize] * node.value).sum();
            let label = labels[sample];
            let pull = -label / (1.0 + (label * score).exp());
            entries.iter().for_each(|node| gradient[node.index as usize] += pull * node.value);
        }
        assert!(weights.iter().any(|&weight| weight != 0.0) && weights.contains(&0.0));
        for (weight, gradient) in weights.iter().zip(gradient) {
            let slack =
                if *weight == 0.0 { gradient.abs() - 1.0 } else { (gradient + weight.signum()).abs() };
            assert!(slack < 1e-4, "weight {weight}, gradient {gradient}");
        }
    }
}
