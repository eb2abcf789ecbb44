//! Correlation of two series: by value, and by rank.

/// Returns Pearson's correlation of pairs; `None` if one of the series does not vary.
pub fn pearson(pairs: &[(f64, f64)]) -> Option<f64> {
    let count = pairs.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| pairs.iter().map(pick).sum::<f64>() / count;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum = |term: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|&(a, b)| term(a - x, b - y)).sum::<f64>();
    let spread = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    (spread > 0.0).then(|| sum(&|a, b| a * b) / spread)
}

/// Returns Spearman's rank correlation of pairs: Pearson's of their ranks; equal values share a rank.
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let first = ranks(pairs.iter().map(|pair| pair.0));
    let second = ranks(pairs.iter().map(|pair| pair.1));
    pearson(&first.into_iter().zip(second).collect::<Vec<_>>())
}

fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    for group in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = start as f64 + (group.len() - 1) as f64 / 2.0;
        group.iter().for_each(|&index| ranks[index] = rank);
        start += group.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pearson_is_of_values_and_spearman_of_ranks() {
        let cubes: Vec<(f64, f64)> = (0..10).map(|n| (f64::from(n), f64::from(n).powi(3))).collect();
        let linear: Vec<(f64, f64)> = (0..10).map(|n| (f64::from(n), 3.0 - 2.0 * f64::from(n))).collect();
        assert!((pearson(&linear).expect("it varies") + 1.0).abs() < 1e-12);
        assert!((pearson(&cubes).expect("it varies") - 0.9084).abs() < 1e-3);
        assert!((spearman(&cubes).expect("it varies") - 1.0).abs() < 1e-12);
        assert_eq!(pearson(&[(1.0, 2.0), (1.0, 3.0)]), None);
    }

    #[test]
    fn equal_values_share_their_rank() {
        assert_eq!(ranks([5.0, 1.0, 5.0, 2.0].into_iter()), [2.5, 0.0, 2.5, 1.0]);
    }
}
