//! One access per cycle, counted losses, and resets that cut the stream of accesses at one point.

use isotherm_neoprof::registers as at;
use isotherm_neoprof::{Device, Model, Registers, Request, read_hot_pages};
use isotherm_neoprof_rtl::{Rtl, Variant};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Core cycles from a request to its page in the hot-page buffer, including the crossing between the clocks
/// and the delay until the device reports idle.
const DEPTH: u64 = 32;
/// Core cycles in which all valid bits are cleared.
const CLEAR: u64 = 1024;

fn read(page: u64) -> Request {
    Request { page, write: false }
}

fn devices() -> (Rtl, Model) {
    let mut rtl = Rtl::new(Variant::Paper);
    rtl.set_core_rate(Some(256));
    (rtl, Model::new(Variant::Paper.parameters()).expect("the paper's sizes"))
}

/// Returns the contents of all registers except cycles.
fn state(device: &mut impl Registers) -> (Vec<u64>, Vec<u64>) {
    let registers = [at::HOT_REFUSED, at::GET_RD_CNT, at::GET_WR_CNT].map(|register| device.read(register));
    device.write(at::SET_HIST_EN, 1);
    let bins = device.read(at::GET_NR_HIST_BIN);
    let histogram = (0..bins).map(|_| device.read(at::GET_HIST));
    let values = registers.into_iter().chain(histogram).collect();
    let mut pages = Vec::new();
    read_hot_pages(device, &mut pages);
    (values, pages)
}

/// Sends the requests, one per cycle of both clocks, and compares the hardware with the model.
fn back_to_back(requests: &[Request]) {
    let (mut rtl, mut model) = devices();
    for device in [&mut rtl as &mut dyn Device, &mut model] {
        device.write(at::SET_THRESHOLD, 8);
    }
    rtl.drain();
    let start = rtl.core_cycles();
    rtl.accesses(requests);
    rtl.drain();
    let cycles = rtl.core_cycles() - start;
    model.accesses(requests);
    println!("{} accesses took {cycles} cycles", requests.len());
    assert!(cycles <= requests.len() as u64 + DEPTH, "{cycles} cycles");
    assert_eq!(rtl.read(at::ACCESSES_DROPPED), 0);
    assert_eq!(state(&mut rtl), state(&mut model));
}

#[test]
fn a_million_accesses_to_one_page_take_a_million_cycles() {
    back_to_back(&vec![read(0x1234_5678); 1_000_000]);
}

#[test]
fn a_million_random_accesses_take_a_million_cycles() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let requests: Vec<Request> = (0..1_000_000).map(|_| read(random.random_range(0..1 << 18))).collect();
    back_to_back(&requests);
}

#[test]
fn requests_on_both_channels_at_once_are_all_counted() {
    let (mut rtl, mut model) = devices();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
    for round in 0..1_000u64 {
        // The FIFO absorbs the burst although the core has half the rate; then it rests.
        for _ in 0..40 {
            let pair = [read(round), read(random.random_range(0..4))];
            rtl.cycle_regardless(&pair);
            model.cycle(&pair);
        }
        rtl.idle(60);
    }
    assert_eq!(rtl.read(at::ACCESSES_DROPPED), 0);
    assert_eq!(state(&mut rtl), state(&mut model));
}

#[test]
fn what_the_core_cannot_take_is_dropped_and_counted() {
    let (mut rtl, _) = devices();
    rtl.set_core_rate(Some(128));
    (0..10_000).for_each(|_| rtl.cycle_regardless(&[read(7)]));
    let dropped = rtl.read(at::ACCESSES_DROPPED);
    assert_eq!(rtl.read(at::GET_RD_CNT), 10_000);
    assert!((4_800..5_000).contains(&dropped), "{dropped} dropped");
    assert_exactly(&mut rtl, 7, 10_000 - dropped);
}

/// Asserts that the page, the only one since the last reset, was counted `count` times.
fn assert_exactly(rtl: &mut Rtl, page: u64, count: u64) {
    rtl.write(at::SET_THRESHOLD, count + 1);
    rtl.access(page, false);
    assert_eq!(rtl.read(at::GET_NR_HOT_PAGE), 0, "more than {count} were counted");
    rtl.access(page, false);
    assert_eq!(rtl.read(at::GET_NR_HOT_PAGE), 1, "fewer than {count} were counted");
}

/// Writes the register while requests continue. Returns how many passed until the write was done.
fn write_meanwhile(rtl: &mut Rtl, offset: u64, requests: &mut impl Iterator<Item = Request>) -> u64 {
    rtl.begin(true, offset, 1);
    for passed in 1.. {
        rtl.cycle_regardless(&[requests.next().expect("enough requests")]);
        if rtl.finished() {
            return passed;
        }
    }
    unreachable!()
}

#[test]
fn a_reset_amid_accesses_loses_none_and_cuts_at_one_point() {
    let (mut rtl, mut model) = devices();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let pages: Vec<Request> = (0..400_000).map(|_| read(random.random_range(0..300))).collect();
    for device in [&mut rtl as &mut dyn Device, &mut model] {
        device.write(at::SET_THRESHOLD, 20);
    }
    let mut rest = pages.iter().copied();
    for round in 0..20 {
        let start = rest.len();
        (0..3_000 + round).for_each(|_| rtl.cycle_regardless(&[rest.next().expect("enough requests")]));
        let cycles = write_meanwhile(&mut rtl, at::RESET, &mut rest);
        assert!(cycles < 60, "a reset took {cycles} cycles");
        (0..5_000).for_each(|_| rtl.cycle_regardless(&[rest.next().expect("enough requests")]));
        assert_eq!(rtl.read(at::ACCESSES_DROPPED), 0);
        // The reads counted since the reset show where it cut.
        let (end, since) = (pages.len() - rest.len(), rtl.read(at::GET_RD_CNT) as usize);
        let cut = end - since;
        model.accesses(&pages[pages.len() - start..cut]);
        model.write(at::RESET, 1);
        model.accesses(&pages[cut..end]);
        assert_eq!(state(&mut rtl), state(&mut model), "round {round}");
    }
}

#[test]
fn a_reset_right_after_another_waits_for_at_most_1024_cycles_and_counts_what_it_drops() {
    let (mut rtl, _) = devices();
    let mut stream = std::iter::repeat(read(99));
    (0..50).for_each(|_| rtl.cycle_regardless(&[read(99)]));
    let first = write_meanwhile(&mut rtl, at::RESET, &mut stream);
    let second = write_meanwhile(&mut rtl, at::RESET, &mut stream);
    (0..100).for_each(|_| rtl.cycle_regardless(&[read(99)]));
    println!("the first reset took {first} cycles, the second {second}");
    assert!(first < 60 && (CLEAR - 100..CLEAR + 60).contains(&second), "{first}, {second} cycles");
    let (reads, dropped) = (rtl.read(at::GET_RD_CNT), rtl.read(at::ACCESSES_DROPPED));
    assert!((CLEAR - 200..CLEAR).contains(&dropped), "{dropped} dropped");
    assert_exactly(&mut rtl, 99, reads - dropped);
}

#[test]
fn clearing_ends_within_1024_cycles() {
    let (mut rtl, _) = devices();
    rtl.write(at::RESET, 1);
    let start = rtl.core_cycles();
    while rtl.read(at::STATUS) & at::STATUS_CLEARING != 0 {}
    let cycles = rtl.core_cycles() - start;
    assert!((CLEAR - 64..CLEAR + 64).contains(&cycles), "{cycles} cycles");
}

#[test]
fn hardware_states_the_sizes_that_it_was_built_with() {
    for variant in Variant::ALL {
        let mut rtl = Rtl::new(variant);
        assert_eq!(rtl.read(at::IDENTITY), at::IDENTITY_VALUE);
        assert_eq!(rtl.read(at::PARAMETERS), variant.parameters().to_word());
        assert_eq!(rtl.read(at::SEED), variant.parameters().seed);
    }
}

#[test]
fn cycles_are_those_of_the_memorys_clock() {
    let (mut rtl, _) = devices();
    rtl.write(at::RESET, 1);
    let start = rtl.mem_cycles();
    rtl.idle(5_000);
    let before = rtl.mem_cycles();
    let cycles = rtl.read(at::GET_NR_SAMPLE);
    // The count crosses between the clocks before the read ends; the reset took effect up to a crossing
    // before its write ended.
    assert!((before - start..rtl.mem_cycles() - start + 24).contains(&cycles), "{cycles}");
}
