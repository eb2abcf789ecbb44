use std::sync::atomic::AtomicU64;

use isotherm_core::Nanos;
use isotherm_neoprof::{Registers, read_histogram, read_hot_pages};

use super::*;

const WHERE: u64 = 0xfd00_0000;

fn profile() -> DeviceProfile {
    let (read, write) = (Nanos(1000), Nanos(200));
    DeviceProfile {
        lanes: 2,
        width: 4096,
        counter_bits: 16,
        hot_entries: 64,
        clock: 400_000_000,
        read,
        write,
    }
}

fn device(fault: Option<Fault>) -> NeoProf {
    let registers: Memory = Box::leak((0..512).map(|_| AtomicU64::new(0)).collect());
    // Around a hole: 16 pages, then more.
    let ranges = vec![0x1000_0000..0x1001_0000, 0x2000_0000..0x2010_0000];
    NeoProf::new(&profile(), None, (registers, ranges), fault).expect("sizes that can be")
}

/// The guest: it loads and stores the shared memory, and QEMU calls afterwards.
struct Guest<'a>(&'a mut NeoProf, u64);

impl Registers for Guest<'_> {
    fn read(&mut self, offset: u64) -> u64 {
        let value = self.0.staged(offset);
        self.0.used(WHERE + offset, false, self.1);
        value
    }

    fn write(&mut self, offset: u64, value: u64) {
        self.0.put(offset, value);
        self.0.used(WHERE + offset, true, self.1);
    }
}

fn pass(device: &mut NeoProf, page: u64, times: usize) {
    let physical = if page < 16 { 0x1000_0000 + (page << 12) } else { 0x2000_0000 + ((page - 16) << 12) };
    (0..times).for_each(|_| device.pass(physical + 64, false, || 0));
}

fn hot_pages(device: &mut NeoProf) -> Vec<u64> {
    device.stage(0);
    let mut pages = Vec::new();
    read_hot_pages(&mut Guest(device, 0), &mut pages);
    pages
}

#[test]
fn registers_are_known_by_their_identity_wherever_the_guest_sees_them() {
    let mut device = device(None);
    assert!(!device.is_register(0xfc00_0008, || Some(7)));
    assert!(!device.is_register(0xfc00_0008, || None));
    assert!(device.is_register(WHERE + 0x300, || Some(at::IDENTITY_VALUE)));
    assert!(
        device.is_register(WHERE + 8, || panic!("known")) && !device.is_register(WHERE + 0x1000, || None)
    );
}

#[test]
fn hot_pages_come_in_order_each_once_and_none_is_lost_between_two_looks() {
    let mut device = device(None);
    Guest(&mut device, 0).write(at::SET_THRESHOLD, 3);
    pass(&mut device, 5, 4);
    pass(&mut device, 20, 9);
    pass(&mut device, 7, 3);
    assert_eq!(hot_pages(&mut device), [5, 20], "numbers go on behind the hole");
    pass(&mut device, 7, 1);
    pass(&mut device, 5, 9);
    // A load that comes before the page was staged finds none, and takes none.
    assert_eq!(Guest(&mut device, 0).read(at::GET_HOT_PAGE), at::EMPTY);
    assert_eq!(hot_pages(&mut device), [7]);
    let uses = device.uses();
    assert_eq!((uses.hot_pages, uses.hot_again, uses.reads, uses.resets), (3, 0, 26, 0));
    Guest(&mut device, 0).write(at::RESET, 1);
    pass(&mut device, 5, 4);
    assert_eq!(hot_pages(&mut device), [5], "after a reset it comes again");
    assert_eq!((device.uses().hot_again, device.uses().resets), (0, 1));
}

#[test]
fn a_full_buffer_says_no_more_than_it_can_hold_and_counts_what_it_refuses() {
    let mut device = device(None);
    Guest(&mut device, 0).write(at::SET_THRESHOLD, 1);
    (0..40).for_each(|page| pass(&mut device, page, 2));
    device.stage(0);
    (40..140).for_each(|page| pass(&mut device, page, 2));
    device.stage(0);
    assert_eq!(Guest(&mut device, 0).read(at::GET_NR_HOT_PAGE), 64);
    assert_eq!(device.uses().hot_refused, 75, "a page was taken out to be read");
}

#[test]
fn a_histogram_comes_whole_through_its_register_and_a_store_is_a_write_back() {
    let mut device = device(None);
    pass(&mut device, 3, 40);
    device.pass(0x1000_1000, true, || 0);
    device.pass(0x3000_0000, true, || panic!("nobody's"));
    device.stage(0);
    let histogram = read_histogram(&mut Guest(&mut device, 0)).expect("a NeoProf's sizes");
    assert_eq!((histogram.entries(), histogram.at_rank(1)), (4096, Some(40..=43)));
    let mut guest = Guest(&mut device, 0);
    assert_eq!([at::GET_RD_CNT, at::GET_WR_CNT].map(|register| guest.read(register)), [41, 1]);
}

#[test]
fn cycles_are_those_of_the_modelled_time_and_uses_have_their_price() {
    let mut device = device(None);
    pass(&mut device, 3, 40);
    device.stage(1_000);
    let mut guest = Guest(&mut device, 1_000);
    assert_eq!(guest.read(at::GET_NR_SAMPLE), 400, "1 us at 400 MHz");
    guest.write(at::RESET, 1);
    pass(&mut device, 3, 1000);
    device.stage(2_000);
    assert_eq!(Guest(&mut device, 2_000).read(at::GET_NR_SAMPLE), 1000, "more than there are cycles for");
    let before = device.uses();
    assert_eq!((before.register_reads, before.register_writes, before.register_ns), (2, 1, 2200));
    device.begin_phase();
    assert_eq!(device.uses(), Uses::default());
}

#[test]
fn a_device_goes_wrong_where_a_test_asks_for_it() {
    let mut version = device(Some(Fault::Version));
    assert_eq!(Guest(&mut version, 0).read(at::IDENTITY), at::IDENTITY_VALUE + 2);
    for (fault, expected) in [(Fault::Vanishes, u64::MAX), (Fault::Stuck, STUCK.1)] {
        let mut device = device(Some(fault));
        let mut guest = Guest(&mut device, 0);
        assert_eq!(guest.read(at::GET_HOT_PAGE), at::EMPTY);
        (0..SOUND).for_each(|_| _ = guest.read(at::STATUS));
        assert_eq!(guest.read(at::GET_HOT_PAGE), expected);
        assert_eq!(guest.read(at::IDENTITY) == u64::MAX, fault == Fault::Vanishes);
    }
}
