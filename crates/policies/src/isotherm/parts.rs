//! How many threads ran around each sample.

use isotherm_core::Sample;

/// Samples on each side of one whose times tell how many threads ran around it.
const NEIGHBOURS: usize = 8;

/// Returns the share of the program's time that a thread's is around each sample. `part` is its mean, `least`
/// the least that it has been: with the most threads.
///
/// Every thread is sampled after as many accesses. Where one runs alone samples lie further apart, up to as
/// many times as threads run elsewhere. A single thread's samples may lie anywhere: its share stays 1.
pub(crate) fn parts(samples: &[Sample], part: f64, least: f64) -> Vec<f64> {
    let mut parts = vec![part; samples.len()];
    // Touches that a scan found stand for one access each, and tell when it looked.
    let scanned = samples.iter().any(|sample| sample.weight <= 1);
    if scanned || samples.len() < 2 * NEIGHBOURS + 2 {
        return parts;
    }
    // Threads' clocks may differ, and buffers are read one by one.
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_unstable_by_key(|&index| (samples[index].time, index));
    let last = order.len() - 1;
    let apart = |from: usize, to: usize| {
        let [from_time, to_time] = [from, to].map(|rank| samples[order[rank]].time);
        (to_time - from_time).0 as f64 / (to - from) as f64
    };
    let mean = apart(0, last);
    if mean == 0.0 {
        return parts;
    }
    for (rank, &index) in order.iter().enumerate() {
        let near = apart(rank.saturating_sub(NEIGHBOURS), (rank + NEIGHBOURS).min(last));
        parts[index] = (part * near / mean).clamp(least, 1.0);
    }
    // All samples together keep their worth.
    let kept = part * parts.len() as f64 / parts.iter().sum::<f64>();
    parts.iter_mut().for_each(|part| *part *= kept);
    parts
}

#[cfg(test)]
mod tests {
    use isotherm_core::{Nanos, Operation, PageId, TierId};

    use super::*;

    fn at(time: u64) -> Sample {
        Sample {
            time: Nanos(time),
            page: PageId(0),
            weight: 1000,
            latency: 0,
            exposed: 0,
            tier: TierId::FAST,
            operation: Operation::Load,
        }
    }

    /// One thread is sampled each 1,600 ns, then sixteen are together each 100 ns, for as long.
    fn one_then_sixteen() -> Vec<Sample> {
        let alone = (0..100).map(|index| at(index * 1600));
        alone.chain((0..1600).map(|index| at(160_000 + index * 100))).collect()
    }

    #[test]
    fn a_sample_of_a_thread_that_runs_alone_is_worth_that_of_sixteen_beside_each_other() {
        let mut samples = one_then_sixteen();
        // Buffers are read one after the other.
        samples.reverse();
        // Two windows of equal length, with 1 and 16 threads.
        let part = 2.0 / 17.0;
        let parts = parts(&samples, part, 1.0 / 16.0);
        let (alone, beside) = (parts[1650], parts[800]);
        assert!((alone / beside - 16.0).abs() < 0.1, "{alone} and {beside}");
        assert!((alone - 1.0).abs() < 0.1 && (beside * 16.0 - 1.0).abs() < 0.1, "{alone} and {beside}");
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        assert!((mean - part).abs() < 1e-9);
    }

    #[test]
    fn a_program_that_always_has_as_many_threads_shows_none_that_runs_alone() {
        for part in [1.0, 0.25] {
            let shares = parts(&one_then_sixteen(), part, part);
            let (least, most) = (shares.iter().copied().fold(1.0, f64::min), shares[0]);
            assert!(least <= part && (most > part) == (part < 1.0), "{part}: {least} to {most}");
        }
    }

    #[test]
    fn few_samples_and_such_without_times_and_touches_that_scans_found_tell_nothing() {
        let few: Vec<Sample> = (0..17).map(|index| at(index * index)).collect();
        assert_eq!(parts(&few, 0.5, 0.1), [0.5; 17]);
        assert_eq!(parts(&[at(7); 100], 0.5, 0.1), [0.5; 100]);
        let found = one_then_sixteen().into_iter().map(|sample| Sample { weight: 1, ..sample });
        assert_eq!(parts(&found.collect::<Vec<_>>(), 0.5, 0.1), [0.5; 1700]);
    }
}
