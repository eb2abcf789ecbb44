//! Any values of a device's registers, changing from read to read, give hot pages or one line of error.

#![no_main]

use isotherm_core::DeviceRequest;
use isotherm_linux::devices::chmu::{Block, Chmu};
use isotherm_linux::devices::neoprof::NeoProf;
use isotherm_linux::devices::{DeviceError, Profiler};
use isotherm_neoprof::Registers;
use isotherm_neoprof::registers as at;
use libfuzzer_sys::fuzz_target;

/// Answers reads with the input's words, in turn. `identity` is what NeoProf's driver looks for first.
#[derive(Clone)]
struct Noise {
    words: Vec<u64>,
    next: usize,
    neoprof: bool,
}

impl Noise {
    fn word(&mut self) -> u64 {
        self.next += 1;
        self.words.get((self.next - 1) % self.words.len().max(1)).copied().unwrap_or(0)
    }
}

impl Registers for Noise {
    fn read(&mut self, offset: u64) -> u64 {
        if self.neoprof && offset == at::IDENTITY { at::IDENTITY_VALUE } else { self.word() }
    }

    fn write(&mut self, _offset: u64, _value: u64) {}
}

impl Block for Noise {
    fn read_half(&mut self, _offset: u64) -> u16 {
        self.word() as u16
    }

    fn write_half(&mut self, _offset: u64, _value: u16) {}
}

fn use_it(device: Result<impl Profiler, DeviceError>) -> Result<(), DeviceError> {
    let mut device = device?;
    device.command(DeviceRequest { threshold: Some(9), clear: true, report: device.reports() })?;
    let mut pages = Vec::new();
    for _ in 0..4 {
        device.read(device.reports(), &mut pages)?;
        pages.clear();
    }
    Ok(())
}

fuzz_target!(|input: (bool, Vec<u64>)| {
    let (neoprof, words) = input;
    let noise = Noise { words, next: 0, neoprof };
    let used =
        if neoprof { use_it(NeoProf::open("noise", noise)) } else { use_it(Chmu::open("noise", noise)) };
    if let Err(error) = used {
        assert!(!error.to_string().contains('\n'), "{error}");
    }
});
