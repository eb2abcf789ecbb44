//! The unit by its registers, whose offsets and bits are here once more as numbers: those of CXL 3.2, 8.2.8.

use isotherm_chmu::{Block, Model, Sizes};
use isotherm_neoprof::{Registers, Request};
use proptest::prelude::*;

const MEMORY: u64 = 1 << 30;
const CONFIGURATION: u64 = 0x50;
const UNIT: u64 = 0x58;
const STATUS: u64 = 0x70;
const HEAD: u64 = 0x78;
const TAIL: u64 = 0x7a;
/// The bitmap has a word for up to 16 GiB.
const BITMAP: u64 = 0x80;
const LIST: u64 = 0x88;
const ENABLE: u64 = 1 << 16;
const RESET: u64 = 1 << 17;
const BOTH: u64 = 3;
const ALWAYS_ON: u64 = 1 << 40;
const OVERFLOW: u64 = 1 << 40;

/// A unit of eight entries, for pages of 4 KiB in all memory, enabled.
fn enabled(threshold: u64, mode: u64) -> Model {
    let mut unit = Model::new(Sizes { entries: 8, ..Sizes::of_memory(MEMORY) }).expect("sizes that can be");
    unit.write(BITMAP, u64::MAX);
    unit.write(UNIT, 12 | mode);
    unit.write(CONFIGURATION, BOTH | ENABLE | threshold << 32);
    unit
}

fn pass(unit: &mut Model, page: u64, times: usize) {
    unit.accesses(&vec![Request { page, write: false }; times]);
}

/// The list's entries from head to tail as units and counts, all taken.
fn take(unit: &mut Model) -> Vec<(u64, u64)> {
    let (mut head, tail) = (unit.read_half(HEAD), unit.read_half(TAIL));
    let mut found = Vec::new();
    while head != tail {
        let entry = unit.read(LIST + u64::from(head) * 8);
        found.push((entry >> 16, entry & 0xffff));
        head = (head + 1) % 8;
    }
    unit.write_half(HEAD, head);
    found
}

#[test]
fn its_capabilities_are_where_the_specification_has_them() {
    let mut unit = Model::new(Sizes::of_memory(MEMORY)).expect("QEMU's sizes");
    assert_eq!(unit.read(0x00), 1 | 1 << 8, "version 1, one instance");
    assert_eq!(unit.read(0x08), 0x78 + 1024 * 8, "an instance's length");
    assert_eq!(unit.read(0x10) >> 8 & 0x3f, 0b111, "memory that is not confidential: reads, writes, both");
    assert_eq!(unit.read(0x10) >> 16 & 0xffff, 5 | 100 << 4, "100 seconds");
    assert_eq!(unit.read(0x10) >> 32, 4 | 1 << 4 | 1024 << 16, "100 ms; entries");
    assert_eq!(unit.read(0x18) & 0xffff_ffff, 0x3ff0, "4 KiB to 2 MiB");
    assert_eq!(unit.read(0x18) >> 48, 0b11, "both modes; none random, overlapping or postponed");
    assert_eq!([unit.read(0x20), unit.read(0x28)], [0x70, 0x78], "bitmap and list, from the instance");
    assert_eq!(unit.read(STATUS), 16 << 32, "disabled; counts of 16 bits");
}

#[test]
fn always_on_a_unit_is_told_as_soon_as_it_exceeds_the_threshold_and_counted_anew() {
    let mut unit = enabled(3, ALWAYS_ON);
    pass(&mut unit, 5, 3);
    assert_eq!(take(&mut unit), []);
    pass(&mut unit, 5, 1);
    assert_eq!(take(&mut unit), [(5, 4)]);
    pass(&mut unit, 5, 3);
    pass(&mut unit, MEMORY >> 12, 9);
    assert_eq!(take(&mut unit), [], "its counter was free again, and nothing lies behind the memory");
}

#[test]
fn at_an_epochs_end_hot_units_are_told_in_order_with_their_counts_and_all_begin_anew() {
    let mut unit = enabled(3, 4 << 48 | 2 << 52);
    pass(&mut unit, 9, 70);
    pass(&mut unit, 2, 4);
    pass(&mut unit, 4, 3);
    unit.elapse(199_999_999);
    assert_eq!(take(&mut unit), []);
    unit.elapse(1);
    assert_eq!(take(&mut unit), [(2, 4), (9, 70)]);
    pass(&mut unit, 9, 3);
    unit.elapse(350_000_000);
    assert_eq!(take(&mut unit), []);
    pass(&mut unit, 9, 4);
    unit.elapse(49_999_999);
    assert_eq!(take(&mut unit), [], "the epochs go on while the host waits");
    unit.elapse(1);
    assert_eq!(take(&mut unit), [(9, 4)]);
}

#[test]
fn what_is_counted_is_configured() {
    let counts = |what: u64| {
        let mut unit = enabled(0, 0);
        unit.write(CONFIGURATION, 0);
        unit.write(CONFIGURATION, what | ENABLE);
        unit.accesses(&[false, true, true].map(|write| Request { page: 1, write }));
        unit.elapse(100_000_000);
        take(&mut unit)
    };
    assert_eq!([1, 2, 3].map(counts), [[(1, 1)], [(1, 2)], [(1, 3)]].map(Vec::from));
    assert_eq!(counts(0), []);
}

#[test]
fn downsampling_counts_one_of_so_many_requests_and_larger_units_are_counted_as_one() {
    let mut unit = enabled(3, 0);
    unit.write(CONFIGURATION, 0);
    unit.write(UNIT, 21 | 2 << 32 | ALWAYS_ON);
    unit.write(CONFIGURATION, BOTH | ENABLE | 3 << 32);
    (512..520).for_each(|page| pass(&mut unit, page, 2));
    assert_eq!(take(&mut unit), [(1, 4)], "the second 2 MiB, by 16 requests");
}

#[test]
fn only_the_ranges_of_the_bitmap_are_counted() {
    let mut unit = enabled(0, ALWAYS_ON);
    unit.write(CONFIGURATION, 0);
    unit.write(BITMAP, 0b10);
    unit.write(CONFIGURATION, BOTH | ENABLE);
    [0, 65_535, 65_536, 131_071, 131_072].into_iter().for_each(|page| pass(&mut unit, page, 1));
    assert_eq!(take(&mut unit), [(65_536, 1), (131_071, 1)], "the second 256 MiB");
}

#[test]
fn an_enabled_unit_keeps_its_configuration_and_an_unsupported_one_is_ignored() {
    let mut unit = enabled(3, ALWAYS_ON);
    unit.write(CONFIGURATION, 1 | ENABLE | 9 << 32);
    unit.write(UNIT, 21);
    unit.write(BITMAP, 0);
    assert_eq!(unit.read(CONFIGURATION), BOTH | ENABLE | 3 << 32);
    assert_eq!(unit.read(UNIT), 12 | ALWAYS_ON | 4 << 48 | 1 << 52);
    assert_eq!(unit.read(BITMAP), u64::MAX);
    let mut unit = Model::new(Sizes { always_on: false, ..Sizes::of_memory(MEMORY) }).expect("sizes");
    unit.write(UNIT, 8 | 16 << 32 | ALWAYS_ON | 3 << 48 | 1 << 52);
    assert_eq!(unit.read(UNIT), 12 | 4 << 48 | 1 << 52, "256 bytes, 2^16, always on, 10 ms");
}

#[test]
fn a_full_list_says_so_until_it_is_acknowledged_and_takes_the_unit_at_its_next_access() {
    let mut unit = enabled(1, ALWAYS_ON);
    (0..9).for_each(|page| pass(&mut unit, page, 2));
    assert_eq!((unit.read(STATUS) & OVERFLOW, unit.refused()), (OVERFLOW, 2));
    assert_eq!(take(&mut unit).len(), 7, "one entry stays free");
    assert_eq!(unit.read(STATUS) & OVERFLOW, OVERFLOW, "reading does not clear it");
    unit.write(STATUS, OVERFLOW);
    assert_eq!(unit.read(STATUS) & OVERFLOW, 0);
    pass(&mut unit, 8, 1);
    assert_eq!(take(&mut unit), [(8, 3)]);
}

#[test]
fn a_reset_forgets_counts_only_and_a_disabled_unit_counts_nothing() {
    let mut unit = enabled(1, ALWAYS_ON);
    pass(&mut unit, 1, 2);
    pass(&mut unit, 2, 1);
    unit.write(CONFIGURATION, BOTH | ENABLE | RESET | 1 << 32);
    pass(&mut unit, 2, 1);
    assert_eq!(take(&mut unit), [(1, 2)]);
    unit.write(CONFIGURATION, BOTH | 1 << 32);
    pass(&mut unit, 3, 9);
    assert_eq!((take(&mut unit), unit.read(STATUS) & 1), (vec![], 0));
}

#[test]
fn a_count_saturates_below_a_threshold_that_it_cannot_reach() {
    let mut unit = enabled(0xffff, ALWAYS_ON);
    pass(&mut unit, 1, 70_000);
    assert_eq!(take(&mut unit), []);
}

#[test]
fn impossible_sizes_are_refused_in_one_line() {
    let refused = |sizes: Sizes| Model::new(sizes).err().map(|error| error.to_string());
    let sizes = Sizes::of_memory(MEMORY);
    assert_eq!(
        refused(Sizes { entries: 1, ..sizes }).as_deref(),
        Some("hot list of a hotness monitoring unit: expected 2 to 7,000 entries, not 1")
    );
    assert!(refused(Sizes { memory: 0, ..sizes }).is_some());
    assert!(refused(Sizes { count_bits: 25, ..sizes }).is_some());
}

proptest! {
    #[test]
    fn no_use_of_registers_panics(
        uses in proptest::collection::vec((0u8..5, 0u64..0x200, any::<u64>()), 0..200),
    ) {
        let mut unit = enabled(1, ALWAYS_ON);
        for (kind, offset, value) in uses {
            match kind {
                0 => _ = unit.read(offset),
                1 => unit.write(offset & !7, value),
                2 => _ = unit.read_half(offset),
                3 => unit.write_half(offset & !1, value as u16),
                _ => unit.elapse(value >> 20),
            }
            unit.accesses(&[Request { page: value % 300_000, write: value & 1 == 1 }]);
        }
    }
}
