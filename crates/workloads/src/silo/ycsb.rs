//! Defines YCSB's core workloads A to F: the mix of operations and the keys that they ask for.

use super::transaction::Operation;
use crate::random::Random;
use crate::zipf::Zipf;

/// The longest scan (YCSB, workload E).
const LONGEST_SCAN: u64 = 100;

/// Shares of operations, in per cent.
#[derive(Debug, Clone, Copy)]
struct Mix {
    name: &'static str,
    read: u64,
    update: u64,
    insert: u64,
    scan: u64,
    /// Whether reads prefer what was inserted last.
    latest: bool,
}

/// The core workloads; what is left of 100 % are read-modify-writes.
const MIXES: [Mix; 6] = [
    Mix { name: "a", read: 50, update: 50, insert: 0, scan: 0, latest: false },
    Mix { name: "b", read: 95, update: 5, insert: 0, scan: 0, latest: false },
    Mix { name: "c", read: 100, update: 0, insert: 0, scan: 0, latest: false },
    Mix { name: "d", read: 95, update: 0, insert: 5, scan: 0, latest: true },
    Mix { name: "e", read: 0, update: 0, insert: 5, scan: 95, latest: false },
    Mix { name: "f", read: 50, update: 0, insert: 0, scan: 0, latest: false },
];

/// How keys are drawn.
#[derive(Debug, Clone, Copy)]
enum Popularity {
    Uniform,
    Scrambled(Zipf),
    Latest(Zipf),
}

/// A stream of operations.
#[derive(Debug, Clone)]
pub(super) struct Ycsb {
    mix: Mix,
    popularity: Popularity,
    /// Keys in the store, those of insertions under way included.
    keys: u64,
}

/// Of 100 operations, how many insert a key.
pub(super) fn insertions(name: &str) -> u64 {
    mix(name).insert
}

fn mix(name: &str) -> Mix {
    MIXES.into_iter().find(|mix| mix.name == name).unwrap_or(MIXES[2])
}

impl Ycsb {
    /// The workload of that name over the keys `0..keys`.
    pub(super) fn new(name: &str, zipfian: bool, keys: u64) -> Self {
        let mix = mix(name);
        let popularity = match (mix.latest, zipfian) {
            (true, _) => Popularity::Latest(Zipf::new(keys)),
            (false, true) => Popularity::Scrambled(Zipf::scrambled()),
            (false, false) => Popularity::Uniform,
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
            Operation::Scan(key, 1 + random.below(LONGEST_SCAN))
        } else {
            Operation::ReadModifyWrite(key)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(name: &str) -> [u64; 5] {
        let (mut ycsb, mut random) = (Ycsb::new(name, true, 1000), Random::new(1));
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
        near(shares("a"), [50, 50, 0, 0, 0]);
        near(shares("b"), [95, 5, 0, 0, 0]);
        near(shares("c"), [100, 0, 0, 0, 0]);
        near(shares("d"), [95, 0, 5, 0, 0]);
        near(shares("e"), [0, 0, 5, 95, 0]);
        near(shares("f"), [50, 0, 0, 0, 50]);
    }

    #[test]
    fn workload_d_reads_what_was_inserted_last() {
        let (mut ycsb, mut random) = (Ycsb::new("d", false, 10_000), Random::new(1));
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
