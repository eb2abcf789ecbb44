//! The guest's requests arrive, and only memory that a plugin has laid out is accepted.

use std::sync::atomic::{AtomicU64, Ordering};

use isotherm_virtual_pmu::layout::{FILTER_ENTRIES, MAX_TIERS, MIN_BYTES, USUAL_BYTES, word};
use isotherm_virtual_pmu::{Control, Device, Driver, Identity, LayoutError, Mailbox, Prices};
use proptest::prelude::*;

fn memory(bytes: usize) -> Vec<AtomicU64> {
    (0..bytes / 8).map(|_| AtomicU64::new(u64::MAX)).collect()
}

const PRICES: Prices = Prices { sample: 1500, buffered_sample: 300, move_call: 27_000, move_page: 1200 };
const IDENTITY: Identity = Identity { tiers: 2, vcpus: 3, prices: PRICES };

proptest! {
    #[test]
    fn what_the_guest_asks_arrives(
        epoch: u64, counting: bool, periods: [u64; MAX_TIERS], events: u64, each_tier: bool, exact: bool, children: bool,
        left_out: u32, tgids in prop::collection::vec(any::<u32>(), 0..FILTER_ENTRIES + 9),
        current_task: u64, tgid in 1u64.., parent: u64, thread: u64,
    ) {
        let memory = memory(MIN_BYTES);
        let device = Device::new(&memory[..], IDENTITY).expect("a layout");
        let driver = Driver::open(&memory[..]).expect("the layout");
        prop_assert_eq!(device.mailbox(), None);
        let control = Control { epoch, counting, periods, events, each_tier, exact, children, left_out };
        let mailbox = Mailbox { current_task, tgid, parent, thread };
        driver.set_control(control);
        driver.set_mailbox(mailbox);
        let without_room = driver.set_filter(&tgids);
        prop_assert_eq!(without_room, tgids.len().saturating_sub(FILTER_ENTRIES));
        prop_assert_eq!(device.control(), control);
        prop_assert_eq!(device.mailbox(), Some(mailbox));
        driver.leave_out(5);
        prop_assert_eq!(device.control(), Control { left_out: 5, ..control });
        prop_assert!(device.filter().eq(tgids.into_iter().take(FILTER_ENTRIES)));
    }
}

#[test]
fn a_doorbell_is_answered() {
    let memory = memory(MIN_BYTES);
    let device = Device::new(&memory[..], IDENTITY).expect("a layout");
    let driver = Driver::open(&memory[..]).expect("the layout");
    let doorbell = driver.ring();
    assert!(!driver.is_answered(doorbell));
    device.answer(device.doorbell());
    assert!(driver.is_answered(doorbell));
    assert!(!driver.is_answered(driver.ring()));
}

#[test]
fn the_usual_ring_holds_a_quarter_of_a_million_samples() {
    let memory = memory(USUAL_BYTES);
    Device::new(&memory[..], IDENTITY).expect("a layout");
    let driver = Driver::open(&memory[..]).expect("the layout");
    assert_eq!((driver.capacity(), driver.tiers(), driver.vcpus()), (1 << 18, 2, 3));
}

#[test]
fn memory_of_others_is_refused_with_its_reason() {
    let whole = memory(MIN_BYTES);
    let open = |memory: &[AtomicU64]| Driver::open(memory).map(|_| ()).expect_err("not ours").to_string();
    assert!(open(&whole).contains("ISOTHPMU"));
    assert!(open(&[]).contains("ISOTHPMU"));
    Device::new(&whole[..], IDENTITY).expect("a layout");
    assert!(open(&whole[..1024]).contains("at least"));
    let set = |index: usize, value| whole[index].swap(value, Ordering::Relaxed);
    for (index, value, expected) in [
        (word::VERSION, 1, "version 1"),
        (word::TIERS, 0, "number of tiers"),
        (word::RING_CAPACITY, 3, "capacity is 3"),
        (word::RING_OFFSET, 4096, "offset is 4096"),
        (word::RING_OFFSET, MIN_BYTES as u64 - 32, "offset"),
    ] {
        let before = set(index, value);
        assert!(open(&whole).contains(expected), "{}", open(&whole));
        set(index, before);
    }
    let refused =
        |tiers| Device::new(&whole[..], Identity { tiers, ..IDENTITY }).map(|_| ()).expect_err("refused");
    assert_eq!(refused(0), LayoutError::Tiers { tiers: 0 });
    assert_eq!(refused(9), LayoutError::Tiers { tiers: 9 });
}
