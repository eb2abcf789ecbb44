//! Measures each tier's latency, and `k`, the cost of a miss that nothing overlaps (PACT section 4.2.1).
//!
//! Pointer chases of 1 to 8 chains, with as many overlapping misses, and a stream run on memory bound to each
//! tier's nodes. The time per link of the single chain is the latency. The counters of each run give misses,
//! MLP = T1 / T2 and stalls; `k` is the slope of stalls over misses / MLP through the origin.

mod fit;
mod memory;
mod pattern;

use isotherm_core::{Counters, Nanos};
use isotherm_linux::LinuxError;
use isotherm_linux::clock;
use isotherm_linux::perf::counters::PmuCounters;

pub use fit::{Fit, Run, fit};
pub use memory::{Arena, usual_size};
pub use pattern::Pattern;

/// Measurements of every pattern.
const REPETITIONS: usize = 3;
const LINKS: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Time of a load that depends on the load before it, in nanoseconds: the minimum of the repetitions.
    pub nanoseconds: f64,
    /// Excess of the repetitions' maximum over their minimum, relative to the minimum.
    pub spread: f64,
}

pub fn latency(arena: &mut Arena) -> Latency {
    let chase = Pattern::Chase(1);
    chase.prepare(arena);
    let mut times = [0.0; REPETITIONS];
    // Warms up the TLB and the processor's clock.
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
