//! A server that reads records, some far more often than others, and counts its own accesses to each page:
//! the truth that estimates are held against.
//!
//! The rank of a record follows Zipf's law by the closed form of Gray et al., "Quickly Generating
//! Billion-Record Synthetic Databases" (SIGMOD 1994, section 3.2), which needs no table that would be hot
//! itself. Ranks are scattered over the memory. The counts lie in a shared file, which hint faults leave out;
//! whoever maps or reads it sees them while the program runs: one 64-bit number for each page, in order.
//!
//! The report is text: `range START END` (hexadecimal addresses) and `ready NANOSECONDS`, as in the planted
//! mode.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::memory::{Kind, Mapping, PAGE, WORDS, monotonic};
use crate::random::{Random, mix};
use crate::{Failure, ensure};

/// Words of a record: 1 KiB.
const RECORD: usize = 128;
/// Reads of a request.
const READS: usize = 64;
/// An odd multiplier that scatters ranks: 2^32 over the golden ratio.
const SCATTER: usize = 0x9e37_79b1;

/// Ranks from 0, the most frequent first.
struct Zipf {
    ranks: f64,
    theta: f64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    fn new(ranks: usize, theta: f64) -> Self {
        let zeta = |count: usize| (1..=count).map(|rank| (rank as f64).powf(-theta)).sum::<f64>();
        let (ranks, all) = (ranks as f64, zeta(ranks));
        let eta = (1.0 - (2.0 / ranks).powf(1.0 - theta)) / (1.0 - zeta(2) / all);
        Self { ranks, theta, zeta: all, eta }
    }

    fn draw(&self, random: &mut Random) -> usize {
        let part = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        let scaled = part * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(self.theta) {
            return 1;
        }
        let rank = self.ranks * (self.eta * part - self.eta + 1.0).powf(1.0 / (1.0 - self.theta));
        (rank as usize).min(self.ranks as usize - 1)
    }
}

pub(crate) fn run(arguments: &mut Arguments) -> Result<(), Failure> {
    let memory = Mapping::new(arguments.size("size", 128 << 20)?)?;
    let idle = arguments.size("idle", 0)?;
    let theta = arguments.share("theta", 0.99)?;
    let (seed, limit) = (arguments.number("seed", 1)?, arguments.limit()?);
    let pause = Duration::from_micros(arguments.number("pause", 0)?);
    let (counts, report) = (arguments.text("counts"), arguments.text("report"));
    arguments.finish()?;
    if theta >= 1.0 {
        return Err(Failure::Usage("--theta: below 100 %".into()));
    }
    let kind = counts.map_or(Kind::Ordinary, |path| Kind::File(path.into()));
    let counts = Mapping::of_kind(&kind, (memory.pages() * 8).next_multiple_of(PAGE))?;
    memory.fill(seed);
    let idle = (idle > 0).then(|| Mapping::new(idle)).transpose()?;
    if let Some(idle) = &idle {
        // The kernel merges neighbours that are alike.
        idle.advise(0, idle.pages(), libc::MADV_DONTDUMP)?;
        idle.fill(seed);
    }
    if let Some(file) = report {
        let (start, end) = (memory.address(), memory.address() + memory.pages() * PAGE);
        std::fs::write(file, format!("range {start:x} {end:x}\nready {}\n", monotonic()))?;
    }
    let records = memory.pages() * WORDS / RECORD;
    let (zipf, mut random) = (Zipf::new(records, theta), Random::new(seed));
    let (start, mut done, mut checksum) = (Instant::now(), 0, 0u64);
    while limit.goes_on(start, done) {
        if !pause.is_zero() && done.is_multiple_of(READS as u64) {
            std::thread::sleep(pause);
        }
        let record = zipf.draw(&mut random).wrapping_mul(SCATTER).wrapping_add(seed as usize) % records;
        let word = record * RECORD + random.below(RECORD);
        let value = memory.words()[word].load(Relaxed);
        ensure(value == crate::memory::pattern(seed, word), || {
            format!("server: word {word} holds {value:#x}")
        })?;
        checksum = mix(checksum ^ value);
        // One thread writes.
        let count = &counts.words()[word / WORDS];
        count.store(count.load(Relaxed) + 1, Relaxed);
        done += 1;
    }
    println!("server: operations {done} checksum {checksum:016x}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_zipfs_law() {
        let (zipf, mut random) = (Zipf::new(1000, 0.99), Random::new(3));
        let mut counts = vec![0u32; 1000];
        (0..200_000).for_each(|_| counts[zipf.draw(&mut random)] += 1);
        for rank in [0, 1, 9, 99] {
            let expected = 200_000.0 / (zipf.zeta * ((rank + 1) as f64).powf(0.99));
            // The closed form is an approximation beyond the first two.
            let found = f64::from(counts[rank]);
            assert!((found / expected - 1.0).abs() < 0.25, "rank {rank}: {found} of {expected}");
        }
    }
}
