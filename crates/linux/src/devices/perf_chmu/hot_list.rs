//! Hot lists that the perf driver of a hotness monitoring unit writes to the AUX area, each behind a header.
//!
//! In words of 64 bits of the processor's byte order (`cxl_hmu_update_aux` and
//! `Documentation/trace/cxl-hmu.rst` of the RFC "CXL Hotness Monitoring Unit perf driver", 2024-11-21):
//!
//! | word | bits | |
//! |---|---|---|
//! | 0 | 0-15 | entries that follow the header |
//! | | 16-23 | the width of a count |
//! | 1 | | 0xdeadbeef |
//! | 2 on | from 0, of that width | the unit's count |
//! | | the rest | the unit's number: times the unit's size, its address in the device |

/// The second word of a header.
const MARK: u64 = 0xdead_beef;
const WORD: usize = 8;

/// Contents of a part of the AUX area.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub entries: u64,
    /// Entries that headers announce and the area lacks.
    pub missing: u64,
    /// Bytes that are no header where one must be, and all behind them.
    pub damaged: u64,
}

/// Calls `visit` with number and count of each hot unit in `first` followed by `second`, the two parts of one
/// write of the driver. `scratch` is used to join them.
pub fn decode(first: &[u8], second: &[u8], scratch: &mut Vec<u8>, mut visit: impl FnMut(u64, u64)) -> Tally {
    let mut bytes = first;
    if !second.is_empty() {
        scratch.clear();
        scratch.extend_from_slice(first);
        scratch.extend_from_slice(second);
        bytes = scratch;
    }
    let mut tally = Tally::default();
    let (mut rest, odd) = bytes.as_chunks::<WORD>();
    tally.damaged += odd.len() as u64;
    while let [header, mark, entries @ ..] = rest {
        let Some((announced, width)) = parse_header(*header, *mark) else { break };
        let there = announced.min(entries.len());
        for &entry in &entries[..there] {
            let entry = u64::from_ne_bytes(entry);
            visit(entry >> width, entry & ((1 << width) - 1));
        }
        tally.entries += there as u64;
        tally.missing += (announced - there) as u64;
        rest = &entries[there..];
    }
    tally.damaged += (rest.len() * WORD) as u64;
    tally
}

/// Parses a header: the number of entries and the width of their counts; `None` if these words are no header.
fn parse_header(header: [u8; WORD], mark: [u8; WORD]) -> Option<(usize, u32)> {
    let header = u64::from_ne_bytes(header);
    let (entries, width) = ((header & 0xffff) as usize, (header >> 16 & 0xff) as u32);
    let plausible = header >> 24 == 0 && (1..64).contains(&width);
    (plausible && u64::from_ne_bytes(mark) == MARK).then_some((entries, width))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a hot list as the driver writes it.
    fn list(width: u32, units: &[(u64, u64)]) -> Vec<u8> {
        let header = units.len() as u64 | u64::from(width) << 16;
        let entries = units.iter().map(|(unit, count)| unit << width | count);
        [header, MARK].into_iter().chain(entries).flat_map(u64::to_ne_bytes).collect()
    }

    fn decoded(first: &[u8], second: &[u8]) -> (Vec<(u64, u64)>, Tally) {
        let mut units = Vec::new();
        let tally = decode(first, second, &mut Vec::new(), |unit, count| units.push((unit, count)));
        (units, tally)
    }

    #[test]
    fn the_documented_example_is_read() {
        // `Documentation/trace/cxl-hmu.rst`: "units: 29c counter_width 10", of which eight are printed.
        let words: [u64; 10] = [
            0x10_029c,
            0xdead_beef,
            0x283,
            0x1_0364,
            0x2_0366,
            0x3_033c,
            0x4_0343,
            0x5_02ff,
            0x6_030d,
            0x7_031a,
        ];
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
        let (units, tally) = decoded(&bytes, &[]);
        assert_eq!(units[..3], [(0, 0x283), (1, 0x364), (2, 0x366)]);
        assert_eq!(tally, Tally { entries: 8, missing: 0x29c - 8, damaged: 0 });
    }

    #[test]
    fn what_is_no_list_is_damage_and_nothing_behind_it_is_believed() {
        let good = list(16, &[(7, 300)]);
        for (word, value) in [(0, 16 << 16 | 1 << 24), (0, 1), (0, 64 << 16 | 1), (1, 0xdead_beee_u64)] {
            let mut bytes = [good.clone(), good.clone()].concat();
            bytes[word * 8..][..8].copy_from_slice(&value.to_ne_bytes());
            assert_eq!(decoded(&bytes, &[]), (vec![], Tally { damaged: 48, ..Tally::default() }), "{word}");
        }
        assert_eq!(decoded(&good[..8], &[]).1.damaged, 8, "half a header");
        assert_eq!(
            decoded(&good[..20], &[]).1,
            Tally { entries: 0, missing: 1, damaged: 4 },
            "half an entry"
        );
    }

    proptest! {
        /// Whatever is written is read, wherever the area ends, and wherever what was written does.
        #[test]
        fn lists_come_back_around_the_end_and_cut(
            width in 1u32..63,
            lists in prop::collection::vec(prop::collection::vec((any::<u64>(), any::<u64>()), 0..20), 0..5),
            turn in any::<prop::sample::Index>(),
            kept in any::<prop::sample::Index>(),
        ) {
            let fit = |&(unit, count): &(u64, u64)| (unit >> width, count & ((1 << width) - 1));
            let lists: Vec<Vec<_>> = lists.iter().map(|units| units.iter().map(fit).collect()).collect();
            let bytes: Vec<u8> = lists.iter().flat_map(|units| list(width, units)).collect();
            let (first, second) = bytes.split_at(turn.index(bytes.len() + 1));
            let all: Vec<_> = lists.concat();
            let whole = Tally { entries: all.len() as u64, ..Tally::default() };
            prop_assert_eq!(decoded(first, second), (all.clone(), whole));
            let (units, tally) = decoded(&bytes[..kept.index(bytes.len() + 1)], &[]);
            prop_assert!(all.starts_with(&units), "nothing is made up");
            prop_assert!(tally.entries + tally.missing <= all.len() as u64 && tally.damaged < 16);
        }

        /// Any bytes at all: no panic, and no entry that they have no room for.
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..400), turn in any::<prop::sample::Index>()) {
            let (first, second) = bytes.split_at(turn.index(bytes.len() + 1));
            let (units, tally) = decoded(first, second);
            prop_assert_eq!(units.len() as u64, tally.entries);
            prop_assert!(tally.entries * 8 + tally.damaged <= bytes.len() as u64);
        }
    }
}
