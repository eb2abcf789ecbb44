use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn table() -> PacTable {
    PacTable::new(1 << 20, usize::MAX, Cooling::OFF)
}

/// Adds to one page's value; returns the new one.
fn add(table: &mut PacTable, page: u32, amount: f32) -> f32 {
    let mut values = Vec::new();
    table.add_batch(&[(page, amount)], &mut values);
    values[0]
}

#[test]
fn equation_one_divides_by_the_requests_in_flight() {
    let window = Window { misses: 1000, occupancy: 40_000, busy: 10_000 };
    assert_eq!(window.parallelism(16.0), Some(4.0));
    assert_eq!(window.stall(200.0, 16.0), Some(50_000.0));
    assert_eq!(window.stall(200.0, 2.0), Some(100_000.0), "no more parallelism than the processor has");
    let alone = Window { misses: 10, occupancy: 500, busy: 1000 };
    assert_eq!(alone.stall(200.0, 16.0), Some(2000.0), "a busy queue holds at least one");
}

#[test]
fn without_occupancy_there_is_no_estimate_but_without_misses_no_stall() {
    assert_eq!(Window { misses: 5, occupancy: 0, busy: 10 }.stall(1.0, 16.0), None);
    assert_eq!(Window { misses: 5, occupancy: 10, busy: 0 }.stall(1.0, 16.0), None);
    assert_eq!(Window { misses: 0, occupancy: 0, busy: 0 }.stall(1.0, 16.0), Some(0.0));
}

#[test]
fn values_accumulate_also_where_a_shard_grows_within_a_batch() {
    let (mut single, mut batched, mut values) = (table(), table(), Vec::new());
    let updates: Vec<(u32, f32)> = (0..1000).map(|n| (n / 2 * 7919 % 331, (n % 5) as f32)).collect();
    batched.add_batch(&updates, &mut values);
    let one_by_one: Vec<f32> = updates.iter().map(|&(page, amount)| add(&mut single, page, amount)).collect();
    assert_eq!(values, one_by_one);
    assert_eq!((single.len(), batched.len()), (331, 331));
}

#[test]
fn cooling_is_by_distance_in_samples() {
    let cooled = |keep, others: u32| {
        let mut table = PacTable::new(1000, usize::MAX, Cooling { keep, distance: 10 });
        add(&mut table, 1, 8.0);
        (0..others).for_each(|other| {
            add(&mut table, 100 + other, 1.0);
        });
        add(&mut table, 1, 1.0)
    };
    assert_eq!(cooled(0.5, 9), 9.0, "ten samples later");
    assert_eq!(cooled(0.5, 10), 5.0, "eleven");
    assert_eq!(cooled(0.0, 10), 1.0);
    assert_eq!(cooled(1.0, 1000), 9.0);
}

#[test]
fn a_full_table_displaces_what_matters_least_and_says_so() {
    let mut table = PacTable::new(1 << 20, 1000, Cooling::OFF);
    (0..500).for_each(|page| {
        add(&mut table, page, 100.0);
    });
    (1000..11_000).for_each(|page| {
        add(&mut table, page, 1.0);
    });
    assert_eq!((table.len(), table.displaced()), (1000, 9500));
    let kept = (0..500).filter(|&page| table.get(page) == 100.0).count();
    assert!(kept > 480, "{kept} of 500 pages of high value are left");
    assert_eq!(table.get(10_999), 1.0, "the newest is in");
}

#[test]
fn memory_stays_below_25_bytes_a_page_at_any_size() {
    let mut table = PacTable::new(1 << 22, usize::MAX, Cooling::OFF);
    for page in 0..2_000_000_u32 {
        add(&mut table, page.wrapping_mul(2_654_435_761), 1.0);
        if page > 100_000 && page % 1009 == 0 {
            let each = table.bytes() as f64 / table.len() as f64;
            assert!(each <= 25.0, "{each} bytes at {page} pages");
        }
    }
    let each = table.bytes() as f64 / table.len() as f64;
    assert!(each > 12.0, "{each}");
}

proptest! {
    /// After any sequence of additions and removals the table equals a map.
    #[test]
    fn it_is_a_map(steps in prop::collection::vec((0..300_u32, 0..8_u8), 0..2000)) {
        let (mut table, mut map) = (table(), HashMap::new());
        for (page, step) in steps {
            if step == 0 {
                table.remove(page);
                map.remove(&page);
            } else {
                let value = map.entry(page).or_insert(0.0);
                *value += f32::from(step);
                prop_assert_eq!(add(&mut table, page, f32::from(step)), *value);
            }
            prop_assert_eq!(table.len(), map.len());
        }
        for page in 0..300 {
            prop_assert_eq!(table.get(page), map.get(&page).copied().unwrap_or(0.0));
        }
        prop_assert_eq!(table.iter().count(), map.len());
    }
}
