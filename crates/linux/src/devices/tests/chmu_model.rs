//! The driver reads the model of a unit: it finds what the unit must tell, no more and no less.

use std::collections::BTreeMap;

use isotherm_chmu::{Block, Model, Sizes};
use isotherm_neoprof::Request;
use proptest::prelude::*;

use super::merged::{Plain, interleaved};
use super::*;
use crate::devices::chmu::Chmu;
use crate::source::AccessSource;

/// 200 pages.
const MEMORY: u64 = 200 << 12;
/// The epoch that the driver configures where a unit cannot report at once.
const EPOCH: u64 = 100_000_000;

#[derive(Clone)]
struct Unit(Arc<Mutex<Model>>);

impl Unit {
    fn pass(&self, pages: &[u64]) {
        let requests: Vec<Request> = pages.iter().map(|&page| Request { page, write: false }).collect();
        self.0.lock().expect("one thread").accesses(&requests);
    }
}

impl Registers for Unit {
    fn read(&mut self, offset: u64) -> u64 {
        self.0.lock().expect("one thread").read(offset)
    }

    fn write(&mut self, offset: u64, value: u64) {
        self.0.lock().expect("one thread").write(offset, value);
    }
}

impl Block for Unit {
    fn read_half(&mut self, offset: u64) -> u16 {
        self.0.lock().expect("one thread").read_half(offset)
    }

    fn write_half(&mut self, offset: u64, value: u16) {
        self.0.lock().expect("one thread").write_half(offset, value);
    }
}

/// A unit with its driver at work.
fn driven(entries: u16, always_on: bool, threshold: u32) -> (Unit, Chmu<Unit>) {
    let model = Model::new(Sizes { entries, always_on, ..Sizes::of_memory(MEMORY) }).expect("sizes");
    let unit = Unit(Arc::new(Mutex::new(model)));
    let mut driver = Chmu::open("mem0", unit.clone()).expect("a unit");
    driver
        .command(DeviceRequest { threshold: Some(threshold), ..DeviceRequest::default() })
        .expect("answers");
    (unit, driver)
}

fn found(driver: &mut Chmu<Unit>) -> Vec<u64> {
    let mut pages = Vec::new();
    assert_eq!(driver.read(true, &mut pages), Ok(None), "it keeps no histogram");
    pages
}

#[test]
fn a_cleared_unit_has_forgotten_what_it_counted_and_told() {
    let (unit, mut driver) = driven(8, true, 1);
    unit.pass(&[1, 1, 2]);
    driver.command(DeviceRequest { clear: true, ..DeviceRequest::default() }).expect("it answers");
    unit.pass(&[2, 3, 3]);
    assert_eq!(found(&mut driver), [3]);
}

#[test]
fn beside_other_sources_a_unit_is_read_from_the_start_and_tells_a_page_again() {
    let (unit, driver) = driven(8, true, 1);
    let attached = Attached { profiler: Box::new(driver), regions: interleaved(0) };
    let mut source = DeviceSource::new(vec![attached], Box::new(Plain)).beside_others();
    let mut told = || {
        let mut answers = Vec::new();
        source.read_devices(&mut answers).expect("it answers");
        assert!(answers[0].again);
        answers[0].hot.len()
    };
    assert_eq!(told(), 0);
    unit.pass(&[3, 3]);
    assert_eq!(told(), 2, "a page of the unit holds lines of two frames");
    unit.pass(&[3, 3]);
    assert_eq!(told(), 2);
}

/// Between two readings: the pages that are accessed.
fn readings() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let page = prop_oneof![3 => 0u64..6, 1 => 0u64..200];
    proptest::collection::vec(proptest::collection::vec(page, 0..120), 1..12)
}

proptest! {
    #[test]
    fn always_on_the_pages_over_the_threshold_are_found_or_an_overflow_is_told(
        readings in readings(), entries in 2u16..12, threshold in 0u32..6,
    ) {
        let (unit, mut driver) = driven(entries, true, threshold);
        let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
        for pages in readings {
            let (mut expected, mut refused) = (Vec::new(), 0);
            for &page in &pages {
                let count = counts.entry(page).or_default();
                *count += 1;
                if *count <= threshold {
                } else if expected.len() + 1 < usize::from(entries) {
                    *count = 0;
                    expected.push(page);
                } else {
                    refused += 1;
                }
            }
            unit.pass(&pages);
            let lost = driver.lost();
            prop_assert_eq!(found(&mut driver), expected);
            prop_assert_eq!(driver.lost() - lost, u64::from(refused > 0));
        }
    }

    #[test]
    fn at_the_end_of_an_epoch_the_pages_over_the_threshold_are_found_or_an_overflow_is_told(
        epochs in readings(), entries in 2u16..12, threshold in 0u32..6,
    ) {
        let (unit, mut driver) = driven(entries, false, threshold);
        for pages in epochs {
            let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
            pages.iter().for_each(|&page| *counts.entry(page).or_default() += 1);
            let hot: Vec<u64> =
                counts.iter().filter(|(_, count)| **count > threshold).map(|(page, _)| *page).collect();
            unit.pass(&pages);
            prop_assert_eq!(found(&mut driver), Vec::<u64>::new());
            unit.0.lock().expect("one thread").elapse(EPOCH);
            let (lost, room) = (driver.lost(), usize::from(entries) - 1);
            prop_assert_eq!(&found(&mut driver)[..], &hot[..hot.len().min(room)]);
            prop_assert_eq!(driver.lost() - lost, u64::from(hot.len() > room));
        }
    }
}
