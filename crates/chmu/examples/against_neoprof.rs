//! Prints what NeoProf and a hotness monitoring unit find on the same stream, and what reading them costs:
//! `cargo run --release -p isotherm-chmu --example against_neoprof`.
//!
//! GUPS on 256 MiB, all of it on the device at first: 90 % of the accesses go to an eighth of the pages,
//! scattered, in an interval a hundred to each hot page and one or two to each other page. The threshold is
//! 50, with which exact counts make no error. A device is read 500 times in an interval and cleared at its
//! end, where an epoch ends, too. A found page is promoted and passes the device no more.

use isotherm_chmu::{Block, Model as Chmu, Sizes, registers as at};
use isotherm_neoprof::registers::{RESET, SET_THRESHOLD};
use isotherm_neoprof::{Device, Model as NeoProf, Parameters, Registers, Request, read_hot_pages};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const PAGES: u64 = 65_536;
const HOT: u64 = PAGES / 8;
const HOT_ACCESSES: u64 = 100;
const READINGS: u64 = 500;
const INTERVALS: u64 = 10;
/// Prices of NeoMem's machine: an uncached read and a posted write, in nanoseconds.
const PRICES: [u64; 2] = [1000, 200];
/// The epoch's length that the unit is configured with, in nanoseconds and for its register.
const EPOCH: (u64, u64) = (100_000_000, (4 | 1 << 4) << 48);

/// A device whose uses are counted: reads, writes, and bytes.
struct Counted<D> {
    device: D,
    uses: [u64; 3],
}

impl<D> Counted<D> {
    fn new(device: D) -> Self {
        Self { device, uses: [0; 3] }
    }

    fn count(&mut self, write: bool, bytes: u64) -> &mut D {
        self.uses[usize::from(write)] += 1;
        self.uses[2] += bytes;
        &mut self.device
    }
}

impl<D: Registers> Registers for Counted<D> {
    fn read(&mut self, offset: u64) -> u64 {
        self.count(false, 8).read(offset)
    }

    fn write(&mut self, offset: u64, value: u64) {
        self.count(true, 8).write(offset, value);
    }
}

impl<D: Block> Block for Counted<D> {
    fn read_half(&mut self, offset: u64) -> u16 {
        self.count(false, 2).read_half(offset)
    }

    fn write_half(&mut self, offset: u64, value: u16) {
        self.count(true, 2).write_half(offset, value);
    }
}

/// A device in the comparison.
trait Finder {
    fn pass(&mut self, requests: &[Request]);
    fn find(&mut self, pages: &mut Vec<u64>);
    fn end_interval(&mut self);
    fn uses(&self) -> [u64; 3];
}

impl Finder for Counted<NeoProf> {
    fn pass(&mut self, requests: &[Request]) {
        self.device.accesses(requests);
    }

    fn find(&mut self, pages: &mut Vec<u64>) {
        read_hot_pages(self, pages);
    }

    fn end_interval(&mut self) {
        self.write(RESET, 1);
    }

    fn uses(&self) -> [u64; 3] {
        self.uses
    }
}

/// A unit as its driver has it.
struct Unit {
    unit: Counted<Chmu>,
    /// The word that enables it.
    enable: u64,
    at_once: bool,
    head: u64,
}

impl Unit {
    const BASE: u64 = at::FIRST_INSTANCE;

    fn new(entries: u16, at_once: bool) -> Result<Self, isotherm_chmu::SizeError> {
        let mut unit = Chmu::new(Sizes { entries, ..Sizes::of_memory(PAGES << 12) })?;
        unit.write(Self::BASE + at::RANGE_BITMAP_AT, u64::MAX);
        let mode = if at_once { at::MODE_ALWAYS_ON } else { EPOCH.1 };
        unit.write(Self::BASE + at::UNIT_AND_EPOCH, 12 | mode);
        let enable = at::READS_AND_WRITES | at::ENABLE | (HOT_ACCESSES / 2) << 32;
        unit.write(Self::BASE + at::CONFIGURATION, enable);
        Ok(Self { unit: Counted::new(unit), enable, at_once, head: 0 })
    }
}

impl Finder for Unit {
    fn pass(&mut self, requests: &[Request]) {
        self.unit.device.accesses(requests);
    }

    /// As `linux::devices::chmu` reads it.
    fn find(&mut self, pages: &mut Vec<u64>) {
        let Self { unit, head, .. } = self;
        let entries = at::bits(unit.device.read(Self::BASE + at::CAPABILITIES), 48, 63);
        let list = Self::BASE + unit.device.read(Self::BASE + at::HOT_LIST);
        let tail = unit.read_half(Self::BASE + at::TAIL);
        if *head == u64::from(tail) {
            return;
        }
        while *head != u64::from(tail) {
            pages.push(unit.read(list + *head * 8) >> 16);
            *head = (*head + 1) % entries;
        }
        unit.write_half(Self::BASE + at::HEAD, tail);
        if unit.read(Self::BASE + at::STATUS) & at::OVERFLOW != 0 {
            unit.write(Self::BASE + at::STATUS, at::OVERFLOW);
        }
    }

    fn end_interval(&mut self) {
        let Self { unit, enable, at_once, .. } = self;
        if *at_once {
            unit.write(Self::BASE + at::CONFIGURATION, *enable | at::RESET_COUNTERS);
        } else {
            unit.device.elapse(EPOCH.0);
        }
    }

    fn uses(&self) -> [u64; 3] {
        self.unit.uses
    }
}

/// Runs the intervals and prints a row.
fn row(name: &str, device: &mut dyn Finder) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut promoted = vec![false; PAGES as usize];
    let (mut first, mut found) = (0, Vec::new());
    for interval in 0..INTERVALS {
        for _ in 0..READINGS {
            let requests = (0..HOT * HOT_ACCESSES * 10 / 9 / READINGS).map(|_| {
                let span = if random.random_bool(0.9) { HOT } else { PAGES };
                Request { page: scattered(random.random_range(0..span)), write: false }
            });
            let slow = requests.filter(|request| !promoted[request.page as usize]).collect::<Vec<_>>();
            device.pass(&slow);
            let before = found.len();
            device.find(&mut found);
            found[before..].iter().for_each(|&page| promoted[page as usize] = true);
        }
        device.end_interval();
        if interval == 0 {
            first = found.len();
        }
    }
    device.find(&mut found);
    found.iter().for_each(|&page| promoted[page as usize] = true);
    let hot = (0..HOT).filter(|&page| promoted[scattered(page) as usize]).count() as f64;
    let (of_hot, of_found) = (100.0 * hot / HOT as f64, 100.0 * hot / found.len().max(1) as f64);
    let [reads, writes, bytes] = device.uses();
    let price = (reads * PRICES[0] + writes * PRICES[1]) as f64 / 1e6;
    print!("| {name} | {first} | {of_hot:.2} % | {of_found:.2} % ");
    println!("| {reads} | {writes} | {price:.2} ms | {bytes} |");
}

/// Scatters a program's pages over the device, no two to the same place, since each step is invertible.
fn scattered(page: u64) -> u64 {
    let mixed = page.wrapping_mul(0x9e37) & (PAGES - 1);
    mixed ^ mixed >> 8
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "| device | in the first interval | hot pages found | of those found | reads | writes | price | bytes |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut neoprof = Counted::new(NeoProf::new(Parameters::default())?);
    neoprof.device.write(SET_THRESHOLD, HOT_ACCESSES / 2);
    row("NeoProf", &mut neoprof);
    row("unit, at once, 1,024 entries", &mut Unit::new(1024, true)?);
    row("unit, at once, 16 entries", &mut Unit::new(16, true)?);
    row("unit, by epochs, 1,024 entries", &mut Unit::new(1024, false)?);
    row("unit, by epochs, 7,000 entries", &mut Unit::new(7000, false)?);
    Ok(())
}
