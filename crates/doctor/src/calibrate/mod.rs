//! Defines calibration: the latency of each tier, and `k`, what a miss to it costs that nothing overlaps (PACT section 4.2.1).
//!
//! On memory bound to each tier's nodes run pointer chases of 1 to 8 chains, whose misses overlap so often, and a stream, whose
//! misses overlap as far as the processor can. The time of a link of the single chain is the latency, for which a clock is
//! enough. The counters of each run give misses, MLP = T1 / T2 and stalls; `k` is the slope of stalls over misses / MLP through
//! the origin, and its error the root mean square of what that misses by.

mod fit;
mod memory;
mod pattern;

use isotherm_core::{Counters, Nanos};

pub use fit::{Fit, Run, fit};
pub use memory::{Arena, usual_size};
pub use pattern::Pattern;

use isotherm_linux::LinuxError;
use isotherm_linux::clock;
use isotherm_linux::perf::counters::PmuCounters;

/// Every pattern is measured so often.
const REPETITIONS: usize = 3;
/// Links of a chain in one measurement.
const LINKS: usize = 1 << 20;

/// The latency of a tier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Of a load whose address the one before it gave, in nanoseconds: the least of the repetitions.
    pub nanoseconds: f64,
    /// By what share the largest of them is above the least.
    pub spread: f64,
}

/// Measures the latency of the arena's memory with a clock.
pub fn latency(arena: &mut Arena) -> Latency {
    let chase = Pattern::Chase(1);
    chase.prepare(arena);
    let mut times = [0.0; REPETITIONS];
    // The first one warms up the TLB and the processor's clock.
    chase.run(arena, LINKS / 4);
    for time in &mut times {
        let start = clock::monotonic();
        let links = chase.run(arena, LINKS);
        *time = (clock::monotonic() - start).0 as f64 / links as f64;
    }
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = times.iter().copied().fold(0.0, f64::max);
    Latency { nanoseconds: least, spread: largest / least - 1.0 }
}

/// Runs every pattern on the arena's memory, which is the tier `tier`, under counters that follow the calling thread.
///
/// # Errors
/// If the counters cannot be read.
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

/// What the counters say of a tier since they were opened. Stalls are those of the thread: nothing else is in memory.
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
