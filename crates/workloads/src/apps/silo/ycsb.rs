//! YCSB's core workloads A to F: the mix of operations and their keys.

use isotherm_core::choices;

use super::transaction::Operation;
use crate::{Random, Zipf};

const MAX_SCAN: u64 = 100;

choices! {
    pub(super) enum Core {
        A = "a",
        B = "b",
        C = "c",
        D = "d",
        E = "e",
        F = "f",
    }
}

choices! {
    /// Popularity of keys, of the latest aside.
    pub(super) enum Distribution {
        Uniform = "uniform",
        Zipfian = "zipfian",
    }
}

/// Shares of operations, in per cent; the rest are read-modify-writes.
#[derive(Debug, Clone, Copy, Default)]
struct Mix {
    read: u64,
    update: u64,
    insert: u64,
    scan: u64,
    /// Whether reads prefer the keys inserted last.
    latest: bool,
}

impl Core {
    fn mix(self) -> Mix {
        let mix = Mix::default();
        match self {
            Self::A => Mix { read: 50, update: 50, ..mix },
            Self::B => Mix { read: 95, update: 5, ..mix },
            Self::C => Mix { read: 100, ..mix },
            Self::D => Mix { read: 95, insert: 5, latest: true, ..mix },
            Self::E => Mix { insert: 5, scan: 95, ..mix },
            Self::F => Mix { read: 50, ..mix },
        }
    }

    pub(super) fn insertions(self) -> u64 {
        self.mix().insert
    }
}

#[derive(Debug, Clone, Copy)]
enum Popularity {
    Uniform,
    Scrambled(Zipf),
    Latest(Zipf),
}

#[derive(Debug, Clone)]
pub(super) struct Ycsb {
    mix: Mix,
    popularity: Popularity,
    /// Keys in the store, with those being inserted.
    keys: u64,
}

impl Ycsb {
    pub(super) fn new(core: Core, distribution: Distribution, keys: u64) -> Self {
        let mix = core.mix();
        let popularity = match (mix.latest, distribution) {
            (true, _) => Popularity::Latest(Zipf::new(keys)),
            (false, Distribution::Zipfian) => Popularity::Scrambled(Zipf::scrambled()),
            (false, Distribution::Uniform) => Popularity::Uniform,
        };
        Self { mix, popularity, keys }
    }

    fn key(&self, random: &mut Random) -> u64 {
        match self.popularity {
            Popularity::Uniform => random.below(self.keys),
            Popularity::Scrambled(zipf) => zipf.key(self.keys, random),
            Popularity::Latest(zipf) => self.keys - 1 - zipf.rank(random).min(self.keys - 1),
        }
    }

    pub(super) fn next(&mut self, random: &mut Random) -> Operation {
        let Mix { read, update, insert, scan, .. } = self.mix;
        let draw = if read == 100 { 0 } else { random.below(100) };
        if (read + update..read + update + insert).contains(&draw) {
            self.keys += 1;
            return Operation::Insert(self.keys - 1);
        }
        let key = self.key(random);
        if draw < read {
            Operation::Read(key)
        } else if draw < read + update {
            Operation::Update(key)
        } else if draw < read + update + insert + scan {
            Operation::Scan(key, 1 + random.below(MAX_SCAN))
        } else {
            Operation::ReadModifyWrite(key)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(core: Core) -> [u64; 5] {
        let (mut ycsb, mut random) = (Ycsb::new(core, Distribution::Zipfian, 1000), Random::new(1));
        let mut counts = [0; 5];
        for _ in 0..10_000 {
            counts[match ycsb.next(&mut random) {
                Operation::Read(_) => 0,
                Operation::Update(_) => 1,
                Operation::Insert(_) => 2,
                Operation::Scan(..) => 3,
                Operation::ReadModifyWrite(_) => 4,
            }] += 1;
        }
        counts.map(|count| (count + 50) / 100)
    }

    #[test]
    fn operations_come_in_the_published_shares() {
        let near = |found: [u64; 5], expected: [u64; 5]| {
            assert!(
                found.iter().zip(expected).all(|(&found, expected)| found.abs_diff(expected) <= 1),
                "{found:?}"
            );
        };
        near(shares(Core::A), [50, 50, 0, 0, 0]);
        near(shares(Core::B), [95, 5, 0, 0, 0]);
        near(shares(Core::C), [100, 0, 0, 0, 0]);
        near(shares(Core::D), [95, 0, 5, 0, 0]);
        near(shares(Core::E), [0, 0, 5, 95, 0]);
        near(shares(Core::F), [50, 0, 0, 0, 50]);
    }

    #[test]
    fn workload_d_reads_what_was_inserted_last() {
        let (mut ycsb, mut random) = (Ycsb::new(Core::D, Distribution::Uniform, 10_000), Random::new(1));
        let (mut recent, mut reads) = (0, 0);
        for _ in 0..10_000 {
            let keys = ycsb.keys;
            if let Operation::Read(key) = ycsb.next(&mut random) {
                reads += 1;
                recent += u32::from(key + 100 >= keys);
            }
        }
        assert!(f64::from(recent) > 0.45 * f64::from(reads), "{recent} of {reads}");
    }
}
