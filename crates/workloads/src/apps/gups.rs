//! GUPS with a hot region: random read-modify-write updates of a table of 8-byte words.
//!
//! The table is divided into slots of the region's size; the region takes a seeded random sequence of
//! different slots. With `pattern=alternating` (PACT 2.2), sequential phases, in which each thread updates
//! its own part, alternate with random ones.

use isotherm_core::parameters::Preset;
use isotherm_core::{Bytes, choices, parameters};

use crate::{
    Memory, ObjectSize, Permutation, Probability, Program, Random, Token, WORD, Workload, mix, paper, test,
};

/// Instructions of an update beside its load and store: the generator's steps, the mask, the exclusive or.
const UPDATE_INSTRUCTIONS: u32 = 8;

choices! {
    enum Pattern {
        Random = "random",
        Alternating = "alternating",
    }
}

parameters! {
    struct Settings {
        /// Size of the table.
        footprint: Bytes = size(1 << 20, 1 << 42, "64M")
            .source("ours: small enough that 16 threads at full speed leave samples for every page"),
        /// Updates, over all threads.
        operations: u64 = count(1, 1 << 40, "150M").unit("updates")
            .source("ours: about 9,000 updates a page, so that a PMU at 100 kHz a thread takes about ten samples of each"),
        /// Whether phases of sequential updates alternate with those of random ones.
        pattern: Pattern = choice("random")
            .source("NeoMem VI-D; PACT 2.2: alternating"),
        /// Length of a sequential and of a random phase of the alternating pattern.
        burst: u64 = count(1, 1 << 40, "8388608").unit("updates")
            .source("ours, PACT does not say: the words of the default table, so that a sequential phase passes over it once"),
        /// Share of updates that go to the hot region; the others are uniform over the whole table.
        hot_share: f64 = number(0.0, 1.0, "0.9").source("NeoMem VI-D"),
        /// Size of the hot region.
        hot_region: f64 = number(0.0001, 1.0, "0.1").unit("of the table")
            .source("ours: NeoMem VI-B says only that it fits the fast tier at 1:8 (a ninth)"),
        /// How often the hot region moves, at equal distances in the run.
        moves: u64 = count(0, 1000, "1").source("NeoMem VI-D: once"),
        /// Threads; they take turns update by update.
        threads: u64 = count(1, 1024, "16").source("HeMem's GUPS: 16 threads"),
    }
}

struct Gups {
    settings: Settings,
    words: u64,
    hot_words: u64,
    hot_share: Probability,
    seed: u64,
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "gups",
    title: "random updates, most of them in a hot region that moves",
    source: "HPCC RandomAccess with the hot region of HeMem and NeoMem VI-D (Fig. 16)",
    object_size: ObjectSize::Large,
    objects: "8 bytes",
    hot_set_changes: true,
    hot_set: "contiguous, moves at mid-run",
    accesses: 301_048_576,
    specs: Settings::SPECS,
    presets: &[
        test(&[("footprint", "4M"), ("operations", "200k")]),
        paper("NeoMem VI-A: a slow tier of 16 GB", "The footprint of the paper.", &[("footprint", "16G")]),
        Preset {
            name: "pact",
            source: "PACT 2.2: sequential and random phases, half each; no hot region",
            help: "Sequential and random phases in turn.",
            values: &[("pattern", "alternating"), ("hot_share", "0"), ("moves", "0")],
        },
    ],
    reference_footprint: None,
    reference_cache: None,
    peak: 0.0,
    builder: |parameters, seed| Ok(Box::new(Gups::new(Settings::read(parameters), seed)?)),
};

impl Gups {
    fn new(settings: Settings, seed: u64) -> Result<Self, String> {
        let words = settings.footprint.0 / WORD;
        let hot_words = ((words as f64 * settings.hot_region) as u64).clamp(1, words);
        let slots = words / hot_words;
        if settings.moves > 0 && slots < 2 {
            return Err(format!(
                "hot_region leaves {slots} place for the region to move to; expected at most 0.5, or moves=0"
            ));
        }
        let hot_share = Probability::new(settings.hot_share);
        Ok(Self { settings, words, hot_words, hot_share, seed })
    }

    fn hot_start(&self, phase: u64) -> u64 {
        let slots = self.words / self.hot_words;
        Permutation::new(slots, mix(self.seed)).at(phase % slots) * self.hot_words
    }

    fn phase(&self, phase: u64) -> std::ops::Range<u64> {
        let start = |phase: u64| {
            (u128::from(self.settings.operations) * u128::from(phase) / u128::from(self.settings.moves + 1))
                as u64
        };
        start(phase)..start(phase + 1)
    }

    /// Returns the word of an update in a sequential phase, in which each thread cycles through its part of
    /// the table; `None` in a random phase.
    #[inline]
    fn in_order(&self, update: u64) -> Option<u64> {
        if self.settings.pattern != Pattern::Alternating {
            return None;
        }
        let Settings { burst, threads, .. } = self.settings;
        let (phase, place) = (update / burst, update % burst);
        if phase % 2 == 1 {
            return None;
        }
        let before = phase / 2 * burst + place;
        let part = (self.words / threads).max(1);
        Some((update % threads * part + before / threads % part) % self.words)
    }

    #[inline]
    fn draw(&self, hot_start: u64, random: &mut Random) -> u64 {
        if random.chance(self.hot_share) {
            hot_start + random.below(self.hot_words)
        } else {
            random.below(self.words)
        }
    }
}

impl Program for Gups {
    fn footprint(&self) -> Bytes {
        Bytes(self.words * WORD)
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let table = memory.allocate(self.words * WORD, "gups table");
        memory.store_range(table, self.words * WORD, Token::NONE);
        let mut random = Random::new(self.seed);
        let mut thread = 0;
        for phase in 0..=self.settings.moves {
            let hot_start = self.hot_start(phase);
            for update in self.phase(phase) {
                let word = self.in_order(update).unwrap_or_else(|| self.draw(hot_start, &mut random));
                let address = table + word * WORD;
                memory.thread(thread);
                thread = if u64::from(thread) + 1 == self.settings.threads { 0 } else { thread + 1 };
                memory.compute(UPDATE_INSTRUCTIONS);
                memory.modify(address, Token::NONE);
                if update % 1024 == 0 && memory.finished() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gups(settings: &[(&str, &str)]) -> Gups {
        let mut parameters = WORKLOAD.parameters();
        settings.iter().for_each(|(key, value)| parameters.set(key, value).expect("a valid setting"));
        Gups::new(Settings::read(&parameters), 5).expect("consistent parameters")
    }

    #[test]
    fn the_hot_region_takes_its_share_and_its_part_of_the_uniform_rest() {
        let gups = gups(&[("footprint", "1M")]);
        let mut random = Random::new(1);
        let start = gups.hot_start(0);
        let region = start..start + gups.hot_words;
        let hits = (0..1_000_000).filter(|_| region.contains(&gups.draw(start, &mut random))).count();
        let expected = 0.9 + 0.1 * 0.1;
        assert!((hits as f64 / 1e6 - expected).abs() < 0.001, "{hits}");
    }

    #[test]
    fn the_region_moves_to_places_that_do_not_overlap_and_phases_cover_the_run() {
        let gups = gups(&[("moves", "4"), ("operations", "103")]);
        let starts: Vec<u64> = (0..=4).map(|phase| gups.hot_start(phase)).collect();
        for (index, start) in starts.iter().enumerate() {
            assert!(start + gups.hot_words <= gups.words);
            assert!(
                starts[..index].iter().all(|other| other.abs_diff(*start) >= gups.hot_words),
                "{starts:?}"
            );
        }
        let covered: Vec<u64> = (0..=4).flat_map(|phase| gups.phase(phase)).collect();
        assert_eq!(covered, (0..103).collect::<Vec<_>>());
    }

    #[test]
    fn sequential_phases_pass_over_the_whole_table_and_are_half_of_the_updates() {
        let words = (1 << 20) / WORD;
        let burst = words.to_string();
        let settings =
            [("footprint", "1M"), ("pattern", "alternating"), ("burst", &*burst), ("threads", "4")];
        let gups = gups(&settings);
        for round in 0..2 {
            let phase = 2 * round * words..(2 * round + 1) * words;
            let mut touched: Vec<u64> = phase.filter_map(|update| gups.in_order(update)).collect();
            assert_eq!(touched[4], touched[0] + 1, "a thread's updates are neighbours");
            touched.sort_unstable();
            assert_eq!(touched, (0..words).collect::<Vec<_>>());
        }
        assert!((words..2 * words).all(|update| gups.in_order(update).is_none()));
    }

    #[test]
    fn a_region_with_nowhere_to_go_is_refused() {
        let mut parameters = WORKLOAD.parameters();
        parameters.set("hot_region", "0.6").expect("in range");
        let error = WORKLOAD.build(&parameters, 1).err().expect("refused").to_string();
        assert!(error.starts_with("gups: hot_region leaves 1 place"), "{error}");
        parameters.set("moves", "0").expect("in range");
        assert!(WORKLOAD.build(&parameters, 1).is_ok());
    }
}
