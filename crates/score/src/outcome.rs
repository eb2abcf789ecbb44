//! A run's outcome: the numbers that metrics are made of.

use std::collections::BTreeMap;

use isotherm_core::{Bytes, Nanos};
use isotherm_machine::LINE_BYTES;
use isotherm_sim::{Interval, LongRun, Round, RunResult};

/// A part of a run: an interval, a round, or the rounds that are extrapolated.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Part {
    pub(crate) accesses: f64,
    pub(crate) time: f64,
    /// Its time with all memory fast.
    pub(crate) all_fast: f64,
    pub(crate) loads: f64,
    pub(crate) load_hits: f64,
}

/// Sums over a whole run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    pub(crate) promotions: f64,
    pub(crate) demotions: f64,
    /// Bytes read and written on the slow tier, page copies included.
    pub(crate) slow_bytes: f64,
    /// Bytes that the program read and wrote.
    pub(crate) program_bytes: f64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// Accesses simulated.
    pub(crate) accesses: u64,
    pub(crate) footprint: Bytes,
    pub(crate) fast: Bytes,
    pub(crate) pages: u64,
    pub(crate) scale: f64,
    pub(crate) time_scale: f64,
    /// Windows of the policy's slowest control loop in the run; `None` without one.
    pub(crate) windows: Option<f64>,
    pub(crate) parts: Vec<Part>,
    pub(crate) sums: Sums,
    pub(crate) gauges: BTreeMap<&'static str, f64>,
    pub(crate) max_gauges: BTreeMap<&'static str, f64>,
}

impl Outcome {
    /// Gathers a run's numbers: `all_fast` are its ends of intervals with all memory fast, or its rounds.
    pub(crate) fn new(result: &RunResult, all_fast: &AllFast<'_>) -> Self {
        let (mut gauges, mut max_gauges) = (BTreeMap::new(), BTreeMap::new());
        for (&name, &value) in result.timeline.iter().flat_map(|interval| &interval.gauges) {
            gauges.insert(name, value);
            let max: &mut f64 = max_gauges.entry(name).or_insert(value);
            *max = max.max(value);
        }
        let (parts, sums) = match (&result.long_run, all_fast.long) {
            (Some(run), Some(all_fast)) => (rounds(run, all_fast), sums_of_rounds(run)),
            _ => (intervals(&result.timeline, all_fast.ends), sums(result)),
        };
        Self {
            accesses: result.accesses,
            footprint: result.footprint_bytes,
            fast: result.fast_bytes,
            pages: result.footprint_bytes.0 >> result.page_size.shift(),
            scale: result.scale,
            time_scale: result.time_scale,
            windows: windows(result),
            parts,
            sums,
            gauges,
            max_gauges,
        }
    }

    /// Returns a sum over the run without its first share `after` of accesses.
    fn counted(&self, after: f64, of: fn(&Part) -> f64) -> f64 {
        let mut left_out = after * self.parts.iter().map(|part| part.accesses).sum::<f64>();
        let part = |part: &Part| {
            let out = (left_out / part.accesses.max(1.0)).clamp(0.0, 1.0);
            left_out -= part.accesses;
            (1.0 - out) * of(part)
        };
        self.parts.iter().map(part).sum()
    }

    pub(crate) fn slowdown(&self, after: f64) -> f64 {
        self.counted(after, |part| part.time) / self.counted(after, |part| part.all_fast).max(1.0)
    }

    pub(crate) fn load_hit_ratio(&self, after: f64) -> f64 {
        self.counted(after, |part| part.load_hits) / self.counted(after, |part| part.loads).max(1.0)
    }
}

/// Times with all memory fast.
#[derive(Debug)]
pub(crate) struct AllFast<'a> {
    /// Ends of a single replay's intervals.
    pub(crate) ends: &'a [Nanos],
    pub(crate) long: Option<&'a LongRun>,
}

fn intervals(timeline: &[Interval], all_fast: &[Nanos]) -> Vec<Part> {
    let mut before = (0, 0);
    let part = |(interval, &all_fast): (&Interval, &Nanos)| {
        let (ours, fast) = (interval.end_ns.0 - before.0, all_fast.0 - before.1);
        before = (interval.end_ns.0, all_fast.0);
        Part {
            accesses: interval.accesses as f64,
            time: ours as f64,
            all_fast: fast as f64,
            loads: interval.loads as f64,
            load_hits: interval.load_hits as f64,
        }
    };
    timeline.iter().zip(all_fast).map(part).collect()
}

/// Returns the rounds that were simulated, and one part for all others, which are as the last ones.
fn rounds(run: &LongRun, all_fast: &LongRun) -> Vec<Part> {
    let part = |(index, round): (usize, &Round)| {
        let known = all_fast.each.get(index).filter(|_| index == 0);
        Part {
            accesses: round.accesses as f64,
            time: round.modelled_ns.0 as f64,
            all_fast: known.map_or(all_fast.round_ns, |round| round.modelled_ns).0 as f64,
            loads: round.loads as f64,
            load_hits: round.load_hits as f64,
        }
    };
    let rest = |of: fn(&Round) -> u64| rest(run, of);
    let others = Part {
        accesses: rest(|round| round.accesses),
        time: rest(|round| round.modelled_ns.0),
        all_fast: not_simulated(run) * all_fast.round_ns.0 as f64,
        loads: rest(|round| round.loads),
        load_hits: rest(|round| round.load_hits),
    };
    run.each.iter().enumerate().map(part).chain([others]).collect()
}

fn not_simulated(run: &LongRun) -> f64 {
    run.rounds.saturating_sub(run.simulated) as f64
}

/// Returns a sum over the rounds that were not simulated.
fn rest(run: &LongRun, of: fn(&Round) -> u64) -> f64 {
    let last = &run.each[run.each.len().saturating_sub(run.averaged as usize)..];
    let sum = last.iter().map(of).sum::<u64>() as f64;
    not_simulated(run) * sum / last.len().max(1) as f64
}

fn sums_of_rounds(run: &LongRun) -> Sums {
    let sum = |of: fn(&Round) -> u64| run.each.iter().map(of).sum::<u64>() as f64 + rest(run, of);
    Sums {
        promotions: sum(|round| round.promotions),
        demotions: sum(|round| round.demotions),
        slow_bytes: sum(|round| round.slow_bytes.0),
        program_bytes: sum(|round| program_bytes(round.accesses, round.loads)),
    }
}

fn sums(result: &RunResult) -> Sums {
    let loads = result.timeline.iter().map(|interval| interval.loads).sum();
    Sums {
        promotions: result.promotions as f64,
        demotions: result.demotions as f64,
        slow_bytes: result.tier_bytes.last().map_or(0.0, |bytes| bytes.0 as f64),
        program_bytes: program_bytes(result.accesses, loads) as f64,
    }
}

/// A store's line is read and written back.
fn program_bytes(accesses: u64, loads: u64) -> u64 {
    LINE_BYTES * (2 * accesses - loads)
}

/// Returns how many of its slowest control loop a policy had: to the run's end if its rounds no longer
/// changed, else as far as they were simulated.
fn windows(result: &RunResult) -> Option<f64> {
    let (time, control_loop) = match &result.long_run {
        Some(run) if run.settled => (run.modelled_ns, run.control_loop_ns),
        Some(run) => (result.modelled_ns, run.control_loop_ns),
        None => (result.modelled_ns, result.parameters.longest(true).map_or(Nanos(0), |(_, time)| time)),
    };
    (control_loop > Nanos(0)).then(|| time.0 as f64 / control_loop.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warm_up_is_left_out_of_both_times() {
        let part =
            |time, all_fast, load_hits| Part { accesses: 10.0, time, all_fast, loads: 10.0, load_hits };
        let parts = vec![
            part(100.0, 10.0, 0.0),
            part(100.0, 10.0, 0.0),
            part(20.0, 20.0, 9.0),
            part(20.0, 20.0, 9.0),
        ];
        let outcome = Outcome { parts, ..Outcome::default() };
        assert_eq!((outcome.slowdown(0.0), outcome.slowdown(0.5)), (4.0, 1.0));
        assert_eq!((outcome.load_hit_ratio(0.0), outcome.load_hit_ratio(0.5)), (0.45, 0.9));
        assert_eq!(outcome.slowdown(0.375), 90.0 / 45.0, "half of a part");
    }

    #[test]
    fn rounds_that_were_not_simulated_are_as_the_last_ones() {
        let round = |time, promotions| Round {
            modelled_ns: Nanos(time),
            accesses: 100,
            loads: 100,
            load_hits: 50,
            promotions,
            ..Round::default()
        };
        let run = |each: Vec<Round>, round_ns| LongRun {
            rounds: 12,
            simulated: each.len() as u64,
            averaged: 2,
            round_ns: Nanos(round_ns),
            each,
            ..LongRun::default()
        };
        let all_fast = run(vec![round(30, 0), round(10, 0)], 10);
        let ours = run(vec![round(60, 90), round(40, 10), round(20, 4), round(20, 2)], 20);
        let outcome =
            Outcome { parts: rounds(&ours, &all_fast), sums: sums_of_rounds(&ours), ..Outcome::default() };
        assert_eq!(outcome.slowdown(0.0), (60.0 + 40.0 + 10.0 * 20.0) / (30.0 + 11.0 * 10.0));
        assert_eq!(outcome.slowdown(0.25), 2.0, "the first three rounds are left out");
        assert_eq!(outcome.sums.promotions, 106.0 + 8.0 * 3.0);
        assert_eq!(outcome.sums.program_bytes, 12.0 * 6400.0);
    }
}
