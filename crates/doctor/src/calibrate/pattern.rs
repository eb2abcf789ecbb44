//! Access patterns of a calibration.

use std::hint::black_box;

use super::memory::{Arena, LINE};

/// Numbers without an order that a prefetcher could follow, the same each time.
pub(super) struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Random {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 32) * bound as u64) >> 32) as usize
    }
}

/// Access pattern whose misses overlap in a known way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Chains followed at once; each load's address comes from the load before it in its chain.
    Chase(usize),
    /// Independent loads of lines in order.
    Stream,
}

impl Pattern {
    pub const ALL: [Self; 5] = [Self::Chase(1), Self::Chase(2), Self::Chase(4), Self::Chase(8), Self::Stream];

    /// Writes the links: one cycle through all lines that no prefetcher can follow (Sattolo's shuffle).
    pub fn prepare(self, arena: &mut Arena) {
        let lines = arena.lines();
        let words = arena.words();
        (0..lines).for_each(|line| words[line * LINE] = line as u64);
        let mut random = Random::default();
        for line in (1..lines).rev() {
            words.swap(line * LINE, random.below(line) * LINE);
        }
    }

    /// Loads about `links` lines and returns how many depend on each other: those of one chain.
    pub fn run(self, arena: &mut Arena, links: usize) -> usize {
        let lines = arena.lines();
        let words = arena.words();
        match self {
            Self::Chase(chains) => {
                // Chains start at evenly spaced addresses of the one cycle.
                let mut at: Vec<usize> = (0..chains).map(|chain| chain * (lines / chains)).collect();
                let steps = (links / chains).max(1);
                for _ in 0..steps {
                    at.iter_mut().for_each(|line| *line = words[*line * LINE] as usize);
                }
                black_box(&at);
                steps
            }
            Self::Stream => {
                let order = (0..lines).cycle().take(links);
                black_box(order.fold(0_u64, |sum, line| sum.wrapping_add(words[line * LINE])));
                links
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::Bytes;

    use super::*;

    #[test]
    fn the_chain_is_one_cycle_through_all_lines() {
        let mut arena = Arena::new(Bytes(1 << 20), None).expect("memory");
        Pattern::Chase(1).prepare(&mut arena);
        let lines = arena.lines();
        let words = arena.words();
        let (mut line, mut seen) = (0, vec![false; lines]);
        for _ in 0..lines {
            assert!(!std::mem::replace(&mut seen[line], true), "line {line} twice");
            line = words[line * LINE] as usize;
        }
        assert_eq!(line, 0, "and back");
        let near = (0..lines).filter(|&line| words[line * LINE].abs_diff(line as u64) < 64).count();
        assert!(near < lines / 50, "{near} of {lines} links go to a neighbour");
    }

    #[test]
    fn every_pattern_loads_as_many_lines_as_it_is_asked_for() {
        let mut arena = Arena::new(Bytes(1 << 20), None).expect("memory");
        for pattern in Pattern::ALL {
            pattern.prepare(&mut arena);
            let chains = if let Pattern::Chase(chains) = pattern { chains } else { 1 };
            assert_eq!(pattern.run(&mut arena, 10_000) * chains, 10_000);
        }
    }
}
