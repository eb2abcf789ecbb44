//! Measures each tier's latency, and `k`, the cost of a miss that nothing overlaps (PACT section 4.2.1).
//!
//! Pointer chases of 1 to 8 chains, with as many overlapping misses, and a stream run on memory bound to each
//! tier's nodes. The time per link of the single chain is the latency. The counters of each run give misses,
//! MLP = T1 / T2 and stalls; `k` is the slope of stalls over misses / MLP through the origin.

mod contention;
mod fit;
mod memory;
mod pattern;

use std::path::Path;
use std::time::Duration;

use isotherm_core::{Counters, Nanos};
use isotherm_linux::LinuxError;
use isotherm_linux::clock;
use isotherm_linux::perf::counters::PmuCounters;

use contention::Contention;
pub use fit::{Fit, Run, fit};
pub use memory::{Arena, usual_size};
pub use pattern::Pattern;

/// Measurements of every pattern for `k`.
const REPETITIONS: usize = 3;
const LINKS: usize = 1 << 20;

/// Measurements of the latency, and the time between two of them: load on the machine comes and goes within
/// seconds, and repetitions back to back all see the same.
const CHASES: usize = 8;
const PAUSE: Duration = Duration::from_millis(500);
/// Excess of the largest measurement over the least up to which they agree, and relative error of `k`.
pub const STEADY: f64 = 0.1;
/// Processors that others may keep busy meanwhile: this many, or this share of all.
const OTHERS: f64 = 0.25;
const OTHERS_SHARE: f64 = 0.02;

/// Latency by repetitions over seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Time of a load that depends on the load before it, in nanoseconds: the median of the repetitions.
    pub nanoseconds: f64,
    pub least: f64,
    pub largest: f64,
    /// Processors that others kept busy meanwhile.
    pub others: f64,
}

impl Latency {
    fn of(mut times: [f64; CHASES], others: f64) -> Self {
        times.sort_by(f64::total_cmp);
        let nanoseconds = (times[CHASES / 2 - 1] + times[CHASES / 2]) / 2.0;
        Self { nanoseconds, least: times[0], largest: times[CHASES - 1], others }
    }

    /// Returns the excess of the repetitions' maximum over their minimum, relative to the minimum.
    pub fn spread(&self) -> f64 {
        self.largest / self.least - 1.0
    }

    /// Returns why the measurement is not the memory's own on a machine of so many processors; `None` if it
    /// is steady.
    pub fn doubt(&self, processors: usize) -> Option<String> {
        let Self { least, largest, others, .. } = self;
        if self.spread() > STEADY {
            let limit = 100.0 * STEADY;
            return Some(format!("{least:.0} to {largest:.0} ns, expected within {limit:.0} %"));
        }
        let most = OTHERS.max(OTHERS_SHARE * processors as f64);
        (*others > most).then(|| {
            format!("other programs kept {others:.1} processors busy meanwhile, expected at most {most:.2}")
        })
    }
}

/// Measures the latency of the arena's memory for some seconds.
///
/// # Errors
/// If the machine does not tell how busy it is.
pub fn latency(arena: &mut Arena) -> Result<Latency, LinuxError> {
    let root = Path::new("/");
    let chase = Pattern::Chase(1);
    chase.prepare(arena);
    let mut times = [0.0; CHASES];
    let contention = Contention::begin(root)?;
    for (number, time) in times.iter_mut().enumerate() {
        if number > 0 {
            std::thread::sleep(PAUSE);
        }
        // Warms up the TLB and the processor's clock.
        chase.run(arena, LINKS / 4);
        let start = clock::monotonic();
        let links = chase.run(arena, LINKS);
        *time = (clock::monotonic() - start).0 as f64 / links as f64;
    }
    Ok(Latency::of(times, contention.end(root)?))
}

/// Runs every pattern on the arena's memory, which lies on `tier`; `counters` follow the calling thread.
pub fn runs(arena: &mut Arena, tier: usize, counters: &mut PmuCounters) -> Result<Vec<Run>, LinuxError> {
    let mut runs = Vec::new();
    for pattern in Pattern::ALL {
        pattern.prepare(arena);
        pattern.run(arena, LINKS / 4);
        for _ in 0..REPETITIONS {
            let before = read(counters, tier)?;
            pattern.run(arena, LINKS);
            runs.push(read(counters, tier)? - before);
        }
    }
    Ok(runs)
}

/// Reads a tier's counts so far. All stalls of the thread are the tier's, as it uses no other memory.
fn read(counters: &mut PmuCounters, tier: usize) -> Result<Run, LinuxError> {
    let mut counted = Counters::default();
    counters.count(&mut counted)?;
    let stall = counted.tiers.iter().map(|tier| tier.stall).sum::<Nanos>();
    let tier = counted.tiers.get(tier).copied().unwrap_or_default();
    Ok(Run {
        misses: tier.load_misses,
        occupancy: tier.load_occupancy,
        busy: tier.load_busy,
        stall: stall.0,
        multiplexed: counted.multiplexed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It said 991 ns under load and 175 ns idle, both with a spread below 5 %.
    #[test]
    fn what_is_not_steady_or_not_alone_is_doubted() {
        let of = |times, others| Latency::of(times, others);
        let idle = of([175.0, 176.0, 177.0, 175.5, 178.0, 175.0, 176.0, 174.0], 0.1);
        assert_eq!((idle.nanoseconds, idle.doubt(2)), (175.75, None));
        let load_that_came = of([175.0, 991.0, 980.0, 990.0, 985.0, 175.0, 176.0, 175.0], 0.1);
        assert!(load_that_came.doubt(2).is_some_and(|why| why.contains("175 to 991 ns")));
        let load_that_stayed = of([980.0, 991.0, 985.0, 990.0, 985.0, 982.0, 984.0, 990.0], 1.7);
        assert!(load_that_stayed.spread() < 0.05);
        assert!(load_that_stayed.doubt(2).is_some_and(|why| why.contains("1.7 processors")));
        assert_eq!(load_that_stayed.doubt(104), None, "a large machine has others for that");
    }
}
