//! The hardware and its model answer alike to random sequences of requests and register uses.

use isotherm_neoprof::registers as at;
use isotherm_neoprof::{Device, Model, Registers, Request};
use isotherm_neoprof_rtl::{Rtl, Variant};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Returns the number of accesses to compare, spread over the variants; `make hw-test` asks for 50 million.
fn accesses() -> u64 {
    std::env::var("HW_ACCESSES")
        .map_or(2_000_000, |text| text.parse().expect("HW_ACCESSES: a number of accesses"))
}

/// Both devices, and the number of values compared.
struct Pair {
    rtl: Rtl,
    model: Model,
    random: Xoshiro256PlusPlus,
    accesses: u64,
    compared: u64,
}

impl Pair {
    fn new(variant: Variant, seed: u64) -> Self {
        Self {
            rtl: Rtl::new(variant),
            model: Model::new(variant.parameters()).expect("sizes of hardware"),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            accesses: 0,
            compared: 0,
        }
    }

    fn write(&mut self, offset: u64, value: u64) {
        self.rtl.write(offset, value);
        self.model.write(offset, value);
    }

    /// Reads a register of both and compares.
    fn read(&mut self, offset: u64) -> u64 {
        let (rtl, model) = (self.rtl.read(offset), self.model.read(offset));
        assert_eq!(rtl, model, "register {offset:#x} after {} accesses", self.accesses);
        self.compared += 1;
        rtl
    }

    /// Sends a burst of requests of one kind: few pages, one page, uniform, skewed, in order, or alternating.
    fn burst(&mut self, length: u64) {
        let channels = self.model.parameters().channels as usize;
        let kind = self.random.random_range(0..6);
        let writes = self.random.random_range(0..4);
        let base = self.random.random::<u64>() & self.model.parameters().page_mask() & !0xff;
        let span = 1u64 << self.random.random_range(1..24);
        let rate = [None, Some(256 * channels as u32), Some(400), Some(97)][self.random.random_range(0..4)];
        self.rtl.set_core_rate(rate);
        let mut sent = 0;
        while sent < length {
            let requests: Vec<Request> = (0..self.random.random_range(0..=channels))
                .map(|_| {
                    sent += 1;
                    let random = &mut self.random;
                    let page = match kind {
                        0 => base + random.random_range(0..6),
                        1 => base,
                        2 => random.random(),
                        3 => {
                            let span = random.random_range(0..span);
                            base + random.random_range(0..=span)
                        }
                        4 => base + sent,
                        _ => base + sent % random.random_range(1..4u64),
                    };
                    Request { page, write: random.random_range(0..4) < writes }
                })
                .collect();
            self.rtl.cycle(&requests);
            self.model.cycle(&requests);
        }
        self.accesses += sent;
    }

    /// Uses registers: mostly reads some of the results, sometimes all of them, sometimes changes a setting.
    fn registers(&mut self) {
        for offset in [at::GET_NR_HOT_PAGE, at::HOT_REFUSED, at::GET_RD_CNT, at::GET_WR_CNT] {
            self.read(offset);
        }
        assert_eq!(self.rtl.read(at::ACCESSES_DROPPED), 0);
        for _ in 0..self.random.random_range(0..40) {
            self.read(at::GET_HOT_PAGE);
        }
        match self.random.random_range(0..8) {
            0 => self.write(at::RESET, 1),
            1 => self.write(at::RESET, 2),
            2 => {
                let threshold = self.random.random_range(0..40);
                self.write(at::SET_THRESHOLD, threshold);
            }
            3 => {
                let mode = self.random.random_range(0..2);
                self.write(at::MODE, mode);
            }
            4 => self.histogram(),
            5 => {
                let offset = self.random.random_range(0..0x1100u64) & !7;
                if offset != at::GET_NR_SAMPLE && offset != at::STATUS {
                    self.read(offset);
                }
            }
            _ => {}
        }
    }

    fn histogram(&mut self) {
        self.write(at::SET_HIST_EN, 1);
        let bins = self.read(at::GET_NR_HIST_BIN);
        assert_eq!(bins, self.model.parameters().histogram_bins.into());
        let total: u64 = (0..bins).map(|_| self.read(at::GET_HIST)).sum();
        assert_eq!(total, self.model.parameters().width.into());
        self.read(at::GET_HIST);
    }

    fn run(&mut self, accesses: u64, longest: u64) {
        while self.accesses < accesses {
            let length = 1 << self.random.random_range(0..longest.ilog2());
            self.burst(length);
            self.registers();
        }
        self.histogram();
        println!("{} accesses, {} register values compared, 0 mismatches", self.accesses, self.compared);
    }
}

#[test]
fn the_papers_sizes() {
    Pair::new(Variant::Paper, 1).run(accesses() * 6 / 10, 1 << 17);
}

#[test]
fn three_lanes_and_channels() {
    Pair::new(Variant::Small, 2).run(accesses() * 2 / 10, 1 << 13);
}

#[test]
fn one_lane() {
    Pair::new(Variant::Single, 3).run(accesses() * 2 / 10, 1 << 15);
}
