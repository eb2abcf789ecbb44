//! The registers' answers, against a reference that keeps exact tables.

use std::collections::HashMap;

use isotherm_neoprof::registers as at;
use isotherm_neoprof::{
    Device, H3, Histogram, Model, Parameters, Registers, Request, histogram_of_counts, read_histogram,
    read_hot_pages,
};
use proptest::prelude::*;

fn small() -> Parameters {
    Parameters {
        lanes: 2,
        width: 64,
        counter_bits: 5,
        address_bits: 16,
        hot_entries: 4,
        histogram_bins: 24,
        channels: 2,
        seed: 3,
    }
}

fn model(parameters: Parameters) -> Model {
    Model::new(parameters).expect("sizes that can be built")
}

fn hot(device: &mut Model) -> Vec<u64> {
    let mut pages = Vec::new();
    read_hot_pages(device, &mut pages);
    pages
}

#[test]
fn a_page_is_reported_once_when_it_exceeds_the_threshold() {
    let mut device = model(Parameters::default());
    device.write(at::SET_THRESHOLD, 3);
    (0..3).for_each(|_| device.access(42, false));
    assert_eq!(device.read(at::GET_NR_HOT_PAGE), 0);
    (0..10).for_each(|_| device.access(42, false));
    assert_eq!(hot(&mut device), [42]);
    assert_eq!(device.read(at::GET_HOT_PAGE), at::EMPTY);
    device.access(42, false);
    assert_eq!(device.read(at::GET_NR_HOT_PAGE), 0);
}

#[test]
fn a_reset_forgets_all_but_threshold_and_mode() {
    let mut device = model(small());
    device.write(at::SET_THRESHOLD, 0);
    device.write(at::MODE, at::MODE_WRITES);
    (0..20).for_each(|page| device.access(page, page % 2 == 0));
    device.write(at::SET_HIST_EN, 1);
    assert!(device.read(at::HOT_REFUSED) > 0);
    device.write(at::RESET, 2);
    assert!(device.read(at::GET_NR_HOT_PAGE) > 0, "only a written 1 resets");
    device.write(at::RESET, 1);
    let zero = [
        at::GET_NR_HOT_PAGE,
        at::GET_NR_SAMPLE,
        at::GET_RD_CNT,
        at::GET_WR_CNT,
        at::GET_NR_HIST_BIN,
        at::HOT_REFUSED,
    ];
    assert_eq!(zero.map(|register| device.read(register)), [0; 6]);
    assert_eq!((device.read(at::SET_THRESHOLD), device.read(at::MODE)), (0, 1));
    device.access(7, false);
    assert_eq!(hot(&mut device), [7]);
}

#[test]
fn a_full_buffer_refuses_and_the_page_comes_again() {
    let mut device = model(Parameters { width: 1 << 12, ..small() });
    device.write(at::SET_THRESHOLD, 0);
    (0..6).for_each(|page| device.access(page, false));
    assert_eq!((device.read(at::GET_NR_HOT_PAGE), device.read(at::HOT_REFUSED)), (4, 2));
    assert_eq!(hot(&mut device), [0, 1, 2, 3]);
    (0..6).for_each(|page| device.access(page, false));
    assert_eq!(hot(&mut device), [4, 5]);
}

#[test]
fn writes_count_in_their_mode_only() {
    let mut device = model(Parameters::default());
    device.write(at::SET_THRESHOLD, 1);
    (0..5).for_each(|_| device.access(1, true));
    assert_eq!(device.read(at::GET_NR_HOT_PAGE), 0);
    device.write(at::MODE, at::MODE_WRITES);
    (0..2).for_each(|_| device.access(1, true));
    assert_eq!(hot(&mut device), [1]);
    assert_eq!((device.read(at::GET_RD_CNT), device.read(at::GET_WR_CNT)), (0, 7));
}

#[test]
fn cycles_are_counted_by_channels_and_idle_time() {
    let mut device = model(Parameters::default());
    let read = |page| Request { page, write: false };
    device.cycle(&[read(1), read(2)]);
    device.cycle(&[read(1), read(2), read(3)]);
    device.cycle(&[]);
    device.accesses(&[read(4), read(5)]);
    device.idle(100);
    assert_eq!((device.read(at::GET_NR_SAMPLE), device.read(at::GET_RD_CNT)), (1 + 2 + 1 + 2 + 100, 7));
}

#[test]
fn no_threshold_stands_after_power_on() {
    let mut device = model(small());
    (0..1_000).for_each(|_| device.access(1, false));
    assert_eq!((device.read(at::SET_THRESHOLD), device.read(at::GET_NR_HOT_PAGE)), (31, 0));
    device.write(at::SET_THRESHOLD, u64::MAX);
    assert_eq!(device.read(at::SET_THRESHOLD), 31);
}

#[test]
fn histograms_are_captured_not_live() {
    let mut device = model(small());
    (0..9).for_each(|_| device.access(5, false));
    device.write(at::SET_HIST_EN, 1);
    (0..9).for_each(|_| device.access(6, false));
    let bins: Vec<u64> = (0..device.read(at::GET_NR_HIST_BIN)).map(|_| device.read(at::GET_HIST)).collect();
    assert_eq!((bins.len(), bins[0], bins[8], bins.iter().sum::<u64>()), (24, 63, 1, 64));
    assert_eq!((device.read(at::GET_NR_HIST_BIN), device.read(at::GET_HIST)), (0, at::EMPTY));
    assert_eq!(read_histogram(&mut device), Ok(device.histogram()));
}

/// A device with exact tables: counts in one map, hot bits in another, no blocks of requests.
#[derive(Default)]
struct Reference {
    counts: HashMap<(usize, u32), u32>,
    marked: HashMap<(usize, u32), bool>,
    hot: Vec<u64>,
    refused: u64,
}

impl Reference {
    fn access(&mut self, hash: &H3, parameters: &Parameters, threshold: u32, page: u64) {
        let indices = hash.indices::<2>(page);
        let entries = [(0, indices[0]), (1, indices[1])];
        for entry in entries {
            let count = self.counts.entry(entry).or_default();
            *count = (*count + 1).min(parameters.counter_max());
        }
        let estimate = entries.map(|entry| self.counts[&entry]).into_iter().min().expect("two lanes");
        let reported = entries.iter().all(|entry| self.marked.get(entry) == Some(&true));
        if estimate <= threshold || reported {
            return;
        }
        if self.hot.len() == parameters.hot_entries as usize {
            self.refused += 1;
            return;
        }
        self.hot.push(page);
        self.marked.extend(entries.map(|entry| (entry, true)));
    }

    fn histogram(&self, parameters: &Parameters) -> Histogram {
        let row = (0..parameters.width).map(|entry| self.counts.get(&(0, entry)).copied().unwrap_or(0));
        histogram_of_counts(row, parameters.histogram_bins, parameters.counter_max())
    }
}

#[derive(Debug, Clone)]
enum Step {
    Accesses(Vec<u64>),
    Reset,
    Threshold(u32),
    ReadHot,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => proptest::collection::vec(0u64..200, 1..150).prop_map(Step::Accesses),
        1 => Just(Step::Reset),
        1 => (0u32..31).prop_map(Step::Threshold),
        2 => Just(Step::ReadHot),
    ];
    proptest::collection::vec(step, 1..30)
}

proptest! {
    #[test]
    fn the_model_is_the_sketch_that_the_paper_describes(steps in steps()) {
        let parameters = small();
        let (mut device, hash) = (model(parameters), H3::new(&parameters));
        let (mut reference, mut threshold) = (Reference::default(), parameters.counter_max());
        for step in steps {
            match step {
                Step::Accesses(pages) => {
                    let requests: Vec<Request> = pages.iter().map(|&page| Request { page, write: false }).collect();
                    device.accesses(&requests);
                    pages.iter().for_each(|&page| reference.access(&hash, &parameters, threshold, page));
                }
                Step::Reset => {
                    device.write(at::RESET, 1);
                    reference = Reference::default();
                }
                Step::Threshold(value) => {
                    device.write(at::SET_THRESHOLD, value.into());
                    threshold = value;
                }
                Step::ReadHot => prop_assert_eq!(hot(&mut device), std::mem::take(&mut reference.hot)),
            }
            prop_assert_eq!(device.read(at::HOT_REFUSED), reference.refused);
            prop_assert_eq!(device.histogram(), reference.histogram(&parameters));
        }
    }

    #[test]
    fn no_register_use_panics(uses in proptest::collection::vec((any::<bool>(), 0u64..0x1200, any::<u64>()), 0..200)) {
        let mut device = model(small());
        for (write, offset, value) in uses {
            device.access(value, write);
            if write { device.write(offset & !7, value) } else { device.read(offset & !7); }
        }
    }

    #[test]
    fn any_word_states_sizes_that_can_be_built_or_an_error(word: u64, seed: u64) {
        if let Ok(parameters) = Parameters::from_word(word, seed) {
            prop_assert_eq!(parameters.to_word(), word);
            prop_assert_eq!(parameters.checked(), Ok(parameters));
        }
    }
}
