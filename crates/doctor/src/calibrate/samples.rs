//! Measures the cost of a sample of the PMU to the thread that it interrupts.

use isotherm_core::{Nanos, Sampling, SamplingRate, SamplingScope};
use isotherm_linux::process::Pid;
use isotherm_linux::source::AccessSource;
use isotherm_linux::{LinuxError, clock};

use super::memory::Arena;
use super::pattern::Pattern;
use super::{LINKS, Numbers, Unit};

/// Samples a second in frequency mode, each with an interrupt of its own, and misses between two else.
const KINDS: [(&str, &str, SamplingRate); 2] = [
    ("costs.sample", "a chase with samples of a frequency and without", SamplingRate::Frequency(20_000)),
    ("costs.buffered_sample", "a chase with samples of a period and without", SamplingRate::Period(101)),
];
/// Least number of samples from which a cost can be told.
const ENOUGH: u64 = 100;

/// Measures both kinds of samples once.
pub(super) fn round(
    numbers: &mut Numbers,
    arena: &mut Arena,
    source: &mut dyn AccessSource,
) -> Result<(), LinuxError> {
    source.follow(Pid(std::process::id()))?;
    for (path, how, rate) in KINDS {
        match cost(arena, source, rate)? {
            Some(cost) => numbers.add(path, Unit::Nanoseconds, how, vec![cost]),
            None => numbers.lack(path, "the PMU took too few samples of a chase".into()),
        }
    }
    Ok(())
}

/// Returns the nanoseconds of a sample at a rate; `None` with too few samples.
fn cost(
    arena: &mut Arena,
    source: &mut dyn AccessSource,
    rate: SamplingRate,
) -> Result<Option<f64>, LinuxError> {
    let mut chase = || {
        let start = clock::thread_cpu();
        Pattern::Chase(1).run(arena, LINKS);
        (clock::thread_cpu() - start).0 as f64
    };
    let request = |rate| Sampling::loads(rate, SamplingScope::AllTiers, usize::MAX, Nanos::SECOND);
    let mut taken = Vec::new();
    source.request(&request(SamplingRate::Off))?;
    let before = chase();
    source.request(&request(rate))?;
    source.drain(&mut taken)?;
    let (counted, lost) = (source.statistics(), taken.len() as u64);
    let sampled = chase();
    source.request(&request(SamplingRate::Off))?;
    source.drain(&mut taken)?;
    let now = source.statistics();
    let samples = taken.len() as u64 - lost + now.lost - counted.lost;
    // Beside the chase before and the chase after, so that a drift cancels.
    let plain = (before + chase()) / 2.0;
    Ok((samples >= ENOUGH).then(|| (sampled - plain) / samples as f64))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isotherm_core::{Bytes, Operation, Signals};
    use isotherm_linux::source::{Access, Cause, SourceStatistics};

    use super::*;

    /// A source whose samples take no time, and come only while it is asked for them.
    #[derive(Default)]
    struct Free {
        on: bool,
        silent: bool,
        requests: usize,
    }

    impl AccessSource for Free {
        fn name(&self) -> &'static str {
            "free"
        }
        fn offers(&self) -> Signals {
            Signals::NONE
        }
        fn follow(&mut self, process: Pid) -> Result<(), LinuxError> {
            assert_eq!(process, Pid(std::process::id()));
            Ok(())
        }
        fn forget(&mut self, _: Pid) {}
        fn request(&mut self, sampling: &Sampling) -> Result<(), LinuxError> {
            self.on |= sampling.rate != SamplingRate::Off;
            self.requests += 1;
            Ok(())
        }
        fn drain(&mut self, accesses: &mut Vec<Access>) -> Result<(), LinuxError> {
            let access = Access {
                time: Nanos(0),
                process: Pid(1),
                address: 0,
                weight: 1,
                latency: 0,
                tier: None,
                operation: Operation::Load,
                cause: Cause::Sampled,
            };
            accesses.extend(std::iter::repeat_n(access, if self.on && !self.silent { 1000 } else { 0 }));
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        }
        fn statistics(&self) -> SourceStatistics {
            SourceStatistics::default()
        }
    }

    #[test]
    fn samples_that_take_no_time_cost_little() {
        let mut arena = Arena::new(Bytes(1 << 20), None).expect("memory");
        Pattern::Chase(1).prepare(&mut arena);
        let (mut numbers, mut source) = (Numbers::default(), Free::default());
        round(&mut numbers, &mut arena, &mut source).expect("measured");
        assert_eq!(source.requests, 6, "off, on and off again for each kind");
        let paths: Vec<_> = numbers.found.iter().map(|number| number.path.as_str()).collect();
        assert_eq!(paths, ["costs.sample", "costs.buffered_sample"]);
        // The difference of two chases of some milliseconds, by 1000 samples.
        assert!(numbers.found.iter().all(|number| number.series.value().abs() < 50_000.0), "{numbers:?}");
    }

    #[test]
    fn too_few_samples_tell_no_cost() {
        let mut arena = Arena::new(Bytes(1 << 20), None).expect("memory");
        Pattern::Chase(1).prepare(&mut arena);
        let mut numbers = Numbers::default();
        round(&mut numbers, &mut arena, &mut Free { silent: true, ..Free::default() }).expect("measured");
        assert!(numbers.found.is_empty());
        assert_eq!(numbers.lacking.len(), 2);
    }
}
