//! A sampler of a discrete distribution in constant time: Walker's alias method.

use crate::random::Random;

/// Draws the index `i` with a probability in proportion to its weight.
#[derive(Debug, Clone)]
pub(crate) struct AliasTable {
    /// Threshold (of 2^32) and alias of each column, which yields itself below the threshold.
    columns: Vec<(u32, u32)>,
}

impl AliasTable {
    /// Creates the table of these weights: at least one, none negative, and their sum positive and finite.
    pub(crate) fn new(weights: &[f64]) -> Self {
        let scale = weights.len() as f64 / weights.iter().sum::<f64>();
        let mut heights: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..weights.len() as u32).partition(|&index| heights[index as usize] < 1.0);
        let mut columns: Vec<(u32, u32)> = (0..weights.len() as u32).map(|index| (u32::MAX, index)).collect();
        while let (Some(low), Some(&high)) = (small.pop(), large.last()) {
            columns[low as usize] = ((heights[low as usize] * 2f64.powi(32)) as u32, high);
            heights[high as usize] -= 1.0 - heights[low as usize];
            if heights[high as usize] < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        Self { columns }
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        let bits = random.bits();
        let column = ((bits >> 32) * self.columns.len() as u64) >> 32;
        let (threshold, alias) = self.columns[column as usize];
        if (bits as u32) < threshold { column as u32 } else { alias }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_come_in_proportion_to_their_weights() {
        let weights = [5.0, 0.0, 1.0, 3.0, 1.0];
        let table = AliasTable::new(&weights);
        let mut random = Random::new(3);
        let mut counts = [0u32; 5];
        (0..1_000_000).for_each(|_| counts[table.draw(&mut random) as usize] += 1);
        for (count, weight) in counts.iter().zip(weights) {
            assert!((f64::from(*count) / 1e6 - weight / 10.0).abs() < 0.002, "{counts:?}");
        }
    }
}
