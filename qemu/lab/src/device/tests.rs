use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard};

use isotherm_chmu::Block;
use isotherm_chmu::registers as unit;
use isotherm_core::{DeviceRequest, Nanos};
use isotherm_linux::devices::Profiler as _;
use isotherm_linux::devices::chmu::Chmu;
use isotherm_neoprof::registers as at;
use isotherm_neoprof::{Registers as Device, read_histogram, read_hot_pages};

use super::neoprof::STUCK;
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

fn of_kind(kind: DeviceKind, bytes: u64, fault: Option<Fault>) -> Profiler {
    let registers: Memory = Box::leak((0..bytes / 8).map(|_| AtomicU64::new(0)).collect());
    // Around a hole: 16 pages, then more.
    let ranges = vec![0x1000_0000..0x1001_0000, 0x2000_0000..0x2010_0000];
    Profiler::new(kind, &profile(), None, (registers, ranges), fault).expect("sizes that can be")
}

fn device(fault: Option<Fault>) -> Profiler {
    let mut device = of_kind(DeviceKind::NeoProf, at::BYTES, fault);
    device.base = Some(WHERE);
    device
}

/// The guest: it loads and stores the shared memory, and QEMU calls afterwards.
struct Guest<'a>(&'a mut Profiler, u64);

impl Device for Guest<'_> {
    fn read(&mut self, offset: u64) -> u64 {
        let value = self.0.registers.get(offset);
        self.0.used(WHERE + offset, Access { reach: 7, store: false }, self.1);
        value
    }

    fn write(&mut self, offset: u64, value: u64) {
        self.0.registers.put(offset, value);
        self.0.used(WHERE + offset, Access { reach: 7, store: true }, self.1);
    }
}

fn pass(device: &mut Profiler, page: u64, times: usize) {
    let physical = if page < 16 { 0x1000_0000 + (page << 12) } else { 0x2000_0000 + ((page - 16) << 12) };
    (0..times).for_each(|_| device.pass(physical + 64, false, || 0));
}

fn hot_pages(device: &mut Profiler) -> Vec<u64> {
    device.stage(0);
    let mut pages = Vec::new();
    read_hot_pages(&mut Guest(device, 0), &mut pages);
    pages
}

#[test]
fn registers_are_known_by_their_identity_wherever_the_guest_sees_them() {
    let mut device = of_kind(DeviceKind::NeoProf, at::BYTES, None);
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
    assert_eq!(before.register_bytes, 24);
    device.begin_phase();
    assert_eq!(device.uses(), Uses { kind: "neoprof", ..Uses::default() });
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

/// A hotness monitoring unit as the guest sees it: its block is behind the page that names it.
#[derive(Clone)]
struct Unit(Arc<Mutex<Profiler>>);

impl Unit {
    fn new(kind: DeviceKind, fault: Option<Fault>) -> Self {
        let mut device = of_kind(kind, unit::STAND_IN_BYTES, fault);
        assert!(device.is_register(WHERE, || Some(unit::STAND_IN)));
        Self(Arc::new(Mutex::new(device)))
    }

    fn device(&self) -> MutexGuard<'_, Profiler> {
        self.0.lock().expect("one thread")
    }
}

impl Device for Unit {
    fn read(&mut self, offset: u64) -> u64 {
        Guest(&mut self.device(), 0).read(unit::STAND_IN_BLOCK + offset)
    }

    fn write(&mut self, offset: u64, value: u64) {
        Guest(&mut self.device(), 0).write(unit::STAND_IN_BLOCK + offset, value);
    }
}

/// A store of 16 bits leaves the rest of its word.
impl Block for Unit {
    fn read_half(&mut self, offset: u64) -> u16 {
        (self.read(offset & !7) >> (offset % 8 * 8)) as u16
    }

    fn write_half(&mut self, offset: u64, value: u16) {
        let (place, shift) = (unit::STAND_IN_BLOCK + (offset & !7), offset % 8 * 8);
        let word = self.device().registers.get(place) & !(0xffff << shift) | u64::from(value) << shift;
        Guest(&mut self.device(), 0).write(place, word);
    }
}

/// A unit of 64 entries and its driver, with a threshold of 3.
fn driven(kind: DeviceKind) -> (Unit, Chmu<Unit>) {
    let unit = Unit::new(kind, None);
    let mut driver = Chmu::open("mem0", unit.clone()).expect("a unit");
    driver.command(DeviceRequest { threshold: Some(3), ..DeviceRequest::default() }).expect("it answers");
    (unit, driver)
}

fn found(driver: &mut Chmu<Unit>) -> Vec<u64> {
    let mut pages = Vec::new();
    driver.read(false, &mut pages).expect("it answers");
    pages
}

#[test]
fn a_hotness_monitoring_unit_tells_at_once_through_its_hot_list() {
    let (unit, mut driver) = driven(DeviceKind::Chmu);
    [(20, 4), (5, 3), (7, 9)].into_iter().for_each(|(page, times)| pass(&mut unit.device(), page, times));
    unit.device().stage(0);
    assert_eq!(found(&mut driver), [20, 7, 7], "numbers go on behind the hole");
    assert!(found(&mut driver).is_empty());
    let uses = unit.device().uses();
    assert_eq!((uses.kind, uses.reads, uses.hot_pages, uses.hot_again), ("chmu", 16, 3, 1));
    driver.command(DeviceRequest { clear: true, ..DeviceRequest::default() }).expect("it answers");
    assert_eq!(unit.device().uses().resets, 1);
}

#[test]
fn one_that_reports_epochs_does_so_as_modelled_time_passes_and_its_list_overflows() {
    let (unit, mut driver) = driven(DeviceKind::ChmuEpochs);
    (0..100).for_each(|page| pass(&mut unit.device(), page, 4));
    unit.device().stage(99_000_000);
    assert!(found(&mut driver).is_empty());
    (0..1).for_each(|page| pass(&mut unit.device(), page, 1));
    unit.device().stage(101_000_000);
    assert_eq!((found(&mut driver), driver.lost()), ((0..63).collect(), 1));
    assert_eq!(unit.device().uses().hot_refused, 37);
}

#[test]
fn a_unit_goes_wrong_where_a_test_asks_for_it() {
    let opened = |unit| Chmu::open("mem0", unit).err().map(|error| error.to_string());
    let version = opened(Unit::new(DeviceKind::Chmu, Some(Fault::Version)));
    assert_eq!(version.as_deref(), Some("mem0: version 3 of its registers; this driver speaks 1"));
    for (fault, expected) in [
        (Fault::Vanishes, "mem0: it has vanished (its registers read all ones)"),
        (Fault::Stuck, "mem0: its status stands still at 0x1000010000"),
    ] {
        let mut unit = Unit::new(DeviceKind::Chmu, Some(fault));
        assert_eq!(opened(unit.clone()), None);
        (0..SOUND).for_each(|_| _ = unit.read(unit::CAPABILITY));
        assert_eq!(opened(unit).as_deref(), Some(expected));
    }
}
