//! A run's outcome: the numbers that metrics are made of.

use std::collections::BTreeMap;

use isotherm_core::Bytes;
use isotherm_sim::RunResult;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Point {
    pub(crate) end: u64,
    pub(crate) loads: u64,
    pub(crate) load_hits: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    pub(crate) accesses: u64,
    pub(crate) footprint: Bytes,
    pub(crate) fast: Bytes,
    pub(crate) pages: u64,
    pub(crate) scale: f64,
    pub(crate) time_scale: f64,
    pub(crate) promotions: u64,
    pub(crate) demotions: u64,
    pub(crate) slow_bytes: u64,
    pub(crate) program_bytes: u64,
    pub(crate) points: Vec<Point>,
    /// Ends of the same intervals with all memory fast.
    pub(crate) all_fast: Vec<u64>,
    pub(crate) gauges: BTreeMap<&'static str, f64>,
    pub(crate) max_gauges: BTreeMap<&'static str, f64>,
}

impl Outcome {
    pub(crate) fn new(result: &RunResult, all_fast: Vec<u64>, program_bytes: u64) -> Self {
        let (mut gauges, mut max_gauges) = (BTreeMap::new(), BTreeMap::new());
        for (&name, &value) in result.timeline.iter().flat_map(|interval| &interval.gauges) {
            gauges.insert(name, value);
            let max: &mut f64 = max_gauges.entry(name).or_insert(value);
            *max = max.max(value);
        }
        let point = |interval: &isotherm_sim::Interval| Point {
            end: interval.end_ns.0,
            loads: interval.loads,
            load_hits: interval.load_hits,
        };
        Self {
            accesses: result.accesses,
            footprint: result.footprint_bytes,
            fast: result.fast_bytes,
            pages: result.footprint_bytes.0 >> result.page_size.shift(),
            scale: result.scale,
            time_scale: result.time_scale,
            promotions: result.promotions,
            demotions: result.demotions,
            slow_bytes: result.tier_bytes.last().map_or(0, |bytes| bytes.0),
            program_bytes,
            points: result.timeline.iter().map(point).collect(),
            all_fast,
            gauges,
            max_gauges,
        }
    }

    /// Returns the first counted interval if the first share `after` of the run is left out.
    fn first(&self, after: f64) -> usize {
        ((self.points.len() as f64 * after) as usize).min(self.points.len().saturating_sub(1))
    }

    pub(crate) fn slowdown(&self, after: f64) -> f64 {
        let first = self.first(after);
        let time = |end: &dyn Fn(usize) -> u64| {
            let start = if first == 0 { 0 } else { end(first - 1) };
            (end(self.points.len().saturating_sub(1)) - start) as f64
        };
        let ours = time(&|index| self.points.get(index).map_or(0, |point| point.end));
        let all_fast = time(&|index| self.all_fast.get(index).copied().unwrap_or(0));
        ours / all_fast.max(1.0)
    }

    pub(crate) fn load_hit_ratio(&self, after: f64) -> f64 {
        let counted = &self.points[self.first(after)..];
        let sum = |of: fn(&Point) -> u64| counted.iter().map(of).sum::<u64>() as f64;
        sum(|point| point.load_hits) / sum(|point| point.loads).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warm_up_is_left_out_of_both_times() {
        let point = |end, load_hits| Point { end, loads: 10, load_hits };
        let points = vec![point(100, 0), point(200, 0), point(220, 9), point(240, 9)];
        let outcome = Outcome { points, all_fast: vec![10, 20, 40, 60], ..Outcome::default() };
        assert_eq!((outcome.slowdown(0.0), outcome.slowdown(0.5)), (4.0, 1.0));
        assert_eq!((outcome.load_hit_ratio(0.0), outcome.load_hit_ratio(0.5)), (0.45, 0.9));
        assert_eq!(outcome.slowdown(1.0), 1.0, "the last interval always counts");
    }
}
