//! Reads a curve of slowdown against size: where it crosses the budget, and where it bends.

use std::ops::RangeInclusive;

/// Sizes per doubling, and doublings, of the grid.
const STEPS_PER_DOUBLING: i32 = 2;
const DOUBLINGS: i32 = 6;

/// Returns the sizes of every curve: from 1/64 of the pages to all of them, in steps of about the root of
/// two.
pub(super) fn grid(pages: u64) -> Vec<u64> {
    let steps = STEPS_PER_DOUBLING * DOUBLINGS;
    let size = |step: i32| {
        let share = 2f64.powf(f64::from(step - steps) / f64::from(STEPS_PER_DOUBLING));
        ((pages as f64 * share).round() as u64).clamp(1, pages)
    };
    let mut sizes: Vec<u64> = (0..=steps).map(size).collect();
    sizes.dedup();
    sizes
}

/// Returns the index of the first size from which on no value exceeds the limit.
pub(super) fn first_within(values: &[f64], limit: f64) -> Option<usize> {
    let above = values.iter().rposition(|&value| value > limit);
    let first = above.map_or(0, |index| index + 1);
    (first < values.len()).then_some(first)
}

/// Returns the smallest size from which on the curve stays within the limit, on a logarithmic scale.
pub(super) fn crossing(sizes: &[u64], values: &[f64], limit: f64) -> Option<f64> {
    let within = first_within(values, limit)?;
    let right = sizes[within] as f64;
    let Some(before) = within.checked_sub(1) else { return Some(right) };
    let share = (values[before] - limit) / (values[before] - values[within]);
    let left = sizes[before] as f64;
    Some(left * (right / left).powf(share))
}

/// Returns the two neighbours of a size, and its place between them on a logarithmic scale: 0 to 1.
fn between(sizes: &[u64], size: f64) -> (RangeInclusive<usize>, f64) {
    let right = sizes.partition_point(|&other| (other as f64) < size).min(sizes.len() - 1);
    let left = right.saturating_sub(1);
    let (from, to) = (sizes[left] as f64, sizes[right] as f64);
    let share = if left == right { 0.0 } else { (size / from).ln() / (to / from).ln() };
    (left..=right, share.clamp(0.0, 1.0))
}

/// Returns the value at a size, interpolated over its logarithm; beyond the ends, that of the end.
pub(super) fn value_at(sizes: &[u64], values: &[f64], size: f64) -> f64 {
    let (pair, share) = between(sizes, size);
    values[*pair.start()] * (1.0 - share) + values[*pair.end()] * share
}

/// Returns the smaller and the larger value of a size's two neighbours; at a measured size, its value twice.
pub(super) fn range_at(sizes: &[u64], values: &[f64], size: f64) -> (f64, f64) {
    let (pair, share) = between(sizes, size);
    let (left, right) = (values[*pair.start()], values[*pair.end()]);
    match share {
        0.0 => (left, left),
        1.0 => (right, right),
        _ => (left.min(right), left.max(right)),
    }
}

/// Returns the index of the knee: the point farthest below the straight line from the curve's first point to
/// its last (Satopää et al., Finding a "Kneedle" in a Haystack, ICDCSW 2011, section III). Sizes are not
/// logarithmic, because they are paid for by the byte. `None` if that distance is not above `least` or the
/// curve does not fall.
pub(super) fn knee(sizes: &[u64], values: &[f64], least: f64) -> Option<usize> {
    let (first, last) = (*sizes.first()? as f64, *sizes.last()? as f64);
    let (top, bottom) = (*values.first()?, *values.last()?);
    if top <= bottom || last <= first {
        return None;
    }
    let below = |index: usize| {
        let line = top + (bottom - top) * (sizes[index] as f64 - first) / (last - first);
        line - values[index]
    };
    let index = (0..sizes.len()).max_by(|&one, &other| below(one).total_cmp(&below(other)))?;
    (below(index) > least).then_some(index)
}

/// Returns the 97.5 % quantile of Student's t for `freedom` degrees: half of a 95 % interval.
pub(super) fn student(freedom: usize) -> f64 {
    const QUANTILES: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    // Beyond ten, the first terms of its expansion around the normal distribution's 1.96 are exact to 0.003.
    let freedom = freedom.max(1);
    QUANTILES.get(freedom - 1).copied().unwrap_or_else(|| {
        let n = freedom as f64;
        1.96 + 2.372 / n + 2.823 / (n * n)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_grid_runs_from_a_sixty_fourth_to_all() {
        let sizes = grid(6400);
        assert_eq!((sizes.len(), sizes[0], sizes[2], sizes[12]), (13, 100, 200, 6400));
        assert_eq!(grid(3), [1, 2, 3]);
        assert_eq!(grid(1), [1]);
    }

    #[test]
    fn crossings_are_interpolated_over_the_logarithm() {
        let between = crossing(&[1, 4, 16], &[1.5, 1.3, 1.1], 1.2).expect("a crossing");
        assert!((between - 8.0).abs() < 1e-9, "{between}");
        assert_eq!(crossing(&[1, 4, 16], &[1.5, 1.3, 1.1], 1.0), None);
        assert_eq!(crossing(&[1, 4, 16], &[1.5, 1.3, 1.1], 2.0), Some(1.0));
    }

    #[test]
    fn a_dip_before_a_rise_does_not_count() {
        let last = crossing(&[1, 2, 4, 8], &[1.5, 1.0, 1.2, 1.0], 1.1).expect("a crossing");
        assert!((last - 4.0 * 2f64.sqrt()).abs() < 1e-9, "{last}");
    }

    #[test]
    fn the_knee_is_where_the_curve_bends() {
        let sizes = [10, 20, 30, 40, 50];
        assert_eq!(knee(&sizes, &[2.0, 1.2, 1.15, 1.1, 1.0], 0.01), Some(1));
        assert_eq!(knee(&sizes, &[2.0, 1.75, 1.5, 1.25, 1.0], 0.01), None, "a straight line");
        assert_eq!(knee(&sizes, &[1.0, 1.0, 1.0, 1.0, 1.1], 0.01), None, "a curve that rises");
    }

    #[test]
    fn quantiles_go_on_beyond_their_table() {
        assert!((student(30) - 2.042).abs() < 0.003 && (student(11) - 2.201).abs() < 0.003);
        assert!((0..40).map(student).is_sorted_by(|one, other| one >= other));
    }

    proptest! {
        #[test]
        fn a_larger_budget_never_needs_more_memory(
            values in prop::collection::vec(1.0f64..3.0, 13),
            limits in prop::array::uniform2(1.0f64..3.0),
        ) {
            let sizes = grid(100_000);
            let [tight, loose] = [limits[0].min(limits[1]), limits[0].max(limits[1])];
            if let Some(needed) = crossing(&sizes, &values, tight) {
                let less = crossing(&sizes, &values, loose).expect("within the tighter one, so within this");
                prop_assert!(less <= needed, "{} {}", less, needed);
            }
        }

        #[test]
        fn the_curve_is_at_the_limit_where_it_crosses(values in prop::collection::vec(1.0f64..3.0, 13)) {
            let sizes = grid(100_000);
            if let Some(size) = crossing(&sizes, &values, 2.0) {
                prop_assert!(value_at(&sizes, &values, size) <= 2.0 + 1e-9);
            }
        }
    }
}
