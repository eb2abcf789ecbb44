//! The share of a group's accesses that its hottest pages take.

use isotherm_core::Pages;

/// Counts up to this have a bucket each.
const EXACT: u32 = 64;
/// Buckets for each doubling above.
const PER_OCTAVE: u32 = 8;
/// Buckets for every count of 32 bits.
const BUCKETS: usize = (EXACT + (32 - EXACT.ilog2()) * PER_OCTAVE) as usize;

/// Hit ratio as a function of fast pages: it begins at 0, rises ever more slowly and ends at 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Pages and the share of the accesses that they take, from the second point on.
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// Returns the curve of a group whose pages are all used alike, or of which nothing is known.
    pub fn uniform(pages: Pages) -> Self {
        Self { points: vec![(pages.0 as f64, 1.0)] }
    }

    /// Builds the curve from the number of samples of each page, in any order.
    ///
    /// Counts vary by chance: of pages used alike some have more samples than others. So each count stands
    /// for the rate that is to be expected of a page with that count, if rates follow a gamma distribution of
    /// the counts' mean and variance: `(count + k) / (1 + k / mean)` with `k = mean^2 / (variance - mean)`.
    /// Counts that vary no more than chance alone makes them give the uniform curve.
    pub fn of_counts(counts: impl Iterator<Item = u32>) -> Self {
        let mut buckets = [(0u64, 0u64); BUCKETS];
        let (mut pages, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for count in counts {
            let bucket = &mut buckets[bucket(count)];
            (bucket.0, bucket.1) = (bucket.0 + 1, bucket.1 + u64::from(count));
            pages += 1.0;
            sum += f64::from(count);
            squares += f64::from(count) * f64::from(count);
        }
        let whole = Self::uniform(Pages(pages as u64));
        if sum == 0.0 {
            return whole;
        }
        let mean = sum / pages;
        let excess = squares / pages - mean * mean - mean;
        if excess <= 0.0 {
            return whole;
        }
        let k = mean * mean / excess;
        let mut points = Vec::new();
        let (mut before, mut taken) = (0.0, 0.0);
        for &(held, count) in buckets.iter().rev().filter(|bucket| bucket.0 > 0) {
            before += held as f64;
            taken += (count as f64 + k * held as f64) / (1.0 + k / mean);
            points.push((before, (taken / sum).min(1.0)));
        }
        // Rounding errors aside it is 1 by itself.
        if let Some(last) = points.last_mut() {
            last.1 = 1.0;
        }
        Self { points }
    }

    /// Returns the hit ratio with the hottest `pages` fast.
    pub fn at(&self, pages: f64) -> f64 {
        let next = self.points.partition_point(|point| point.0 <= pages);
        let (x, y) = next.checked_sub(1).map_or((0.0, 0.0), |last| self.points[last]);
        match self.points.get(next) {
            Some(&(to, above)) => y + (above - y) * (pages - x) / (to - x),
            None => 1.0,
        }
    }

    /// Returns the points of the curve after `(0, 0)`: pages, and the hit ratio with as many fast.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// Returns the points at which the curve bends, for claims that come from elsewhere: the smallest curve
    /// that rises ever more slowly and lies nowhere below them. Points that are no numbers are left out.
    pub fn of_points(points: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        let mut sorted: Vec<(f64, f64)> = points
            .into_iter()
            .filter(|&(pages, hits)| pages.is_finite() && pages > 0.0 && (0.0..=1.0).contains(&hits))
            .collect();
        sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
        sorted.last_mut()?.1 = 1.0;
        let mut hull: Vec<(f64, f64)> = vec![(0.0, 0.0)];
        for point in sorted {
            let slope = |from: (f64, f64), to: (f64, f64)| (to.1 - from.1) / (to.0 - from.0);
            while let [.., before, last] = hull[..]
                && (point.0 <= last.0 || slope(before, last) <= slope(last, point))
            {
                hull.pop();
            }
            hull.push(point);
        }
        hull.remove(0);
        Some(Self { points: hull })
    }
}

fn bucket(count: u32) -> usize {
    if count < EXACT {
        return count as usize;
    }
    let octave = count.ilog2();
    let within = (count >> (octave - PER_OCTAVE.ilog2())) & (PER_OCTAVE - 1);
    (EXACT + (octave - EXACT.ilog2()) * PER_OCTAVE + within) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns samples of pages at these rates, by a seeded generator: a sum of many rare events.
    fn sampled(rates: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut state = 7u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32 % 100
        };
        rates.map(|rate| (0..rate * 100).filter(|_| random() == 0).count() as u32).collect()
    }

    #[test]
    fn chance_does_not_look_like_heat() {
        let alike = Curve::of_counts(sampled(std::iter::repeat_n(4, 5000)).into_iter());
        let tenth = alike.at(500.0);
        assert!((0.1..0.13).contains(&tenth), "a tenth of pages used alike takes a tenth: {tenth}");
        let hot = (0..5000).map(|page| if page % 10 == 0 { 36 } else { 1 });
        let found = Curve::of_counts(sampled(hot).into_iter()).at(500.0);
        assert!((0.75..0.82).contains(&found), "of 45 samples 36 are of the hot tenth: {found}");
    }

    #[test]
    fn without_samples_all_pages_are_alike() {
        assert_eq!(Curve::of_counts((0..10).map(|_| 0)), Curve::uniform(Pages(10)));
        assert_eq!(Curve::uniform(Pages(10)).at(2.5), 0.25);
        assert_eq!(Curve::of_counts(std::iter::empty()).at(0.0), 1.0, "no memory, no misses");
    }

    #[test]
    fn points_of_others_become_a_curve() {
        let curve = Curve::of_points([(4.0, 0.2), (1.0, 0.5), (2.0, 0.1), (f64::NAN, 0.3), (-1.0, 1.0)]);
        assert_eq!(curve.expect("two points").points(), [(1.0, 0.5), (4.0, 1.0)]);
        assert_eq!(Curve::of_points([(0.0, 1.0)]), None);
    }

    proptest! {
        #[test]
        fn a_curve_rises_ever_more_slowly_to_one(counts in prop::collection::vec(0..5000u32, 1..300)) {
            let pages = counts.len();
            let curve = Curve::of_counts(counts.into_iter());
            let values: Vec<f64> = (0..=pages).map(|page| curve.at(page as f64)).collect();
            prop_assert!(values[0] == 0.0 && values[pages] == 1.0);
            for three in values.windows(3) {
                prop_assert!(three[1] - three[0] >= three[2] - three[1] - 1e-9, "{three:?}");
                prop_assert!(three[2] >= three[1] - 1e-12);
            }
        }

        #[test]
        fn any_points_make_a_curve(points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..20)) {
            if let Some(curve) = Curve::of_points(points) {
                let slopes: Vec<f64> = std::iter::once(&(0.0, 0.0)).chain(curve.points()).collect::<Vec<_>>()
                    .windows(2).map(|two| (two[1].1 - two[0].1) / (two[1].0 - two[0].0)).collect();
                prop_assert!(slopes.windows(2).all(|two| two[0] >= two[1]), "{slopes:?}");
            }
        }
    }
}
