use super::*;
use isotherm_chmu::Block;

use crate::devices::chmu::Chmu;

/// A hotness monitoring unit of one instance with a ring of eight entries, whose counts take 16 bits.
struct Unit {
    words: std::collections::BTreeMap<u64, u64>,
    head: u16,
    tail: u16,
    vanished: bool,
    /// The status says that an operation is under way, forever.
    busy: bool,
}

const RING: u64 = 0x80;

impl Unit {
    fn new() -> Self {
        let capabilities = 1 << 10 | 3 << 16 | 100 << 20 | 8 << 48;
        let units = 1 << 4 | 1 << 32 | 1 << 49;
        let words = [
            (0x00, 1 | 1 << 8),
            (0x08, 0x100),
            (0x10, capabilities),
            (0x18, units),
            (0x20, 0x78),
            (0x28, RING),
        ];
        Self { words: words.into(), head: 0, tail: 0, vanished: false, busy: false }
    }

    fn with(mut self, offset: u64, value: u64) -> Self {
        self.words.insert(offset, value);
        self
    }

    fn report(&mut self, unit: u64, count: u64) {
        self.words.insert(0x10 + RING + u64::from(self.tail) * 8, unit << 16 | count);
        self.tail = (self.tail + 1) % 8;
    }
}

impl Registers for &mut Unit {
    fn read(&mut self, offset: u64) -> u64 {
        match offset {
            _ if self.vanished => u64::MAX,
            0x70 => self.words.get(&0x70).copied().unwrap_or(0) | u64::from(self.busy) << 16 | 16 << 32,
            _ => self.words.get(&offset).copied().unwrap_or(0),
        }
    }

    fn write(&mut self, offset: u64, value: u64) {
        // The overflow's bit is cleared by writing it.
        let kept = if offset == 0x70 { self.words.get(&0x70).copied().unwrap_or(0) & !value } else { value };
        self.words.insert(offset, kept);
    }
}

impl Block for &mut Unit {
    fn read_half(&mut self, offset: u64) -> u16 {
        match offset {
            _ if self.vanished => u16::MAX,
            0x78 => self.head,
            _ => self.tail,
        }
    }

    fn write_half(&mut self, offset: u64, value: u16) {
        assert_eq!(offset, 0x78, "only the start of the ring is the host's");
        self.head = value;
    }
}

fn set(threshold: u32) -> DeviceRequest {
    DeviceRequest { threshold: Some(threshold), ..DeviceRequest::default() }
}

#[test]
fn a_hotness_monitoring_unit_is_configured_and_its_ring_read_around_the_end() {
    let mut unit = Unit::new();
    let mut chmu = Chmu::open("mem0", &mut unit).expect("a unit");
    assert!(!chmu.reports());
    chmu.command(set(200)).expect("it answers");
    assert_eq!(unit.words[&0x50], 3 | 1 << 16 | 200 << 32, "reads and writes, enabled, the threshold");
    assert_eq!(unit.words[&0x58] & 0xffff_ffff, 12, "units of 4 KiB");
    assert_eq!(unit.words[&0x58] >> 40 & 0xff, 1, "always on");
    assert_eq!(unit.words[&0x88], u64::MAX, "all memory");
    (unit.head, unit.tail) = (6, 6);
    (1..=4).for_each(|page| unit.report(page * 10, 201));
    unit.words.insert(0x70, 1 << 40);
    let mut chmu = Chmu::open("mem0", &mut unit).expect("a unit");
    let mut pages = Vec::new();
    assert_eq!(chmu.read(true, &mut pages), Ok(None), "it keeps no histogram");
    assert_eq!((pages, chmu.lost()), (vec![10, 20, 30, 40], 1));
    assert_eq!((unit.head, unit.words[&0x70]), (2, 0), "taken, and the overflow seen");
}

#[test]
fn units_that_cannot_be_used_are_refused() {
    let refused = |mut unit: Unit| Chmu::open("mem0", &mut unit).err().map(|error| error.to_string());
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(refused(Unit::new()), None);
    assert_eq!(
        refused(Unit::new().with(0, 9 | 1 << 8)),
        text("mem0: version 9 of its registers; this driver speaks 1")
    );
    assert_eq!(refused(Unit::new().with(0, 1)), text("mem0: it lacks an instance"));
    assert_eq!(
        refused(Unit::new().with(0x18, 1 << 20 | 1 << 49)),
        text("mem0: it lacks units of 4 KiB to 2 MiB")
    );
    assert_eq!(refused(Unit::new().with(0x18, 1 << 4)), text("mem0: it lacks a reporting mode"));
    assert_eq!(
        refused(Unit { vanished: true, ..Unit::new() }),
        text("mem0: it has vanished (its registers read all ones)")
    );
    let busy = refused(Unit { busy: true, ..Unit::new() }).expect("never ready");
    assert!(busy.starts_with("mem0: its status stands still at 0x"), "{busy}");
}

#[test]
fn a_hot_list_beyond_every_unit_is_refused_before_the_bitmap_is_written_up_to_it() {
    let mut unit = Unit::new().with(0x28, u64::MAX - 8);
    let refused = Chmu::open("mem0", &mut unit).err().map(|error| error.to_string());
    assert_eq!(refused.as_deref(), Some("mem0: it lacks a hot list behind its registers"));
}

#[test]
fn a_unit_whose_ring_makes_no_sense_is_given_up() {
    let mut unit = Unit::new();
    unit.tail = 12;
    let mut chmu = Chmu::open("mem0", &mut unit).expect("a unit");
    let error = chmu.read(false, &mut Vec::new()).expect_err("beyond the ring").to_string();
    assert_eq!(error, "mem0: the end of the hot list is 12, and can be 7 at most");
}
