//! Devices with faults, and how the drivers handle them.

mod chmu;
mod chmu_model;
mod found;
mod merged;
mod neoprof;
mod perf_chmu;

use std::sync::{Arc, Mutex};

use isotherm_core::{DeviceReport, DeviceRequest};
use isotherm_neoprof::{Device, Model, Parameters, Registers};

use super::neoprof::NeoProf;
use super::*;

fn sizes() -> Parameters {
    Parameters { width: 1 << 12, hot_entries: 64, ..Parameters::default() }
}

/// A fault of a device on its bus.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Reads return all ones.
    Vanished,
    /// This register always reads this value.
    Reads(u64, u64),
}

/// A model whose registers can go wrong.
struct Faulty {
    model: Model,
    fault: Arc<Mutex<Fault>>,
}

type Handle = Arc<Mutex<Fault>>;

impl Faulty {
    /// Returns a device after power-on, and a handle that injects faults.
    fn new(fault: Fault) -> (Self, Handle) {
        let fault = Arc::new(Mutex::new(fault));
        let model = Model::new(sizes()).expect("sizes that can be");
        (Self { model, fault: fault.clone() }, fault)
    }
}

impl Registers for Faulty {
    fn read(&mut self, offset: u64) -> u64 {
        match *self.fault.lock().expect("one thread") {
            Fault::Vanished => u64::MAX,
            Fault::Reads(register, value) if register == offset => value,
            _ => self.model.read(offset),
        }
    }

    fn write(&mut self, offset: u64, value: u64) {
        self.model.write(offset, value);
    }
}

/// A driver whose device still counts what is sent past it.
struct Running {
    driver: NeoProf<Shared>,
    device: Arc<Mutex<Faulty>>,
    fault: Handle,
}

/// Registers that the test and the driver both have.
#[derive(Clone)]
struct Shared(Arc<Mutex<Faulty>>);

impl Registers for Shared {
    fn read(&mut self, offset: u64) -> u64 {
        self.0.lock().expect("one thread").read(offset)
    }

    fn write(&mut self, offset: u64, value: u64) {
        self.0.lock().expect("one thread").write(offset, value);
    }
}

fn running() -> Running {
    let (device, fault) = Faulty::new(Fault::None);
    let device = Arc::new(Mutex::new(device));
    let driver = NeoProf::open("0000:3a:00.0", Shared(device.clone())).expect("a NeoProf");
    Running { driver, device, fault }
}

impl Running {
    fn access(&self, page: u64, times: usize) {
        let mut device = self.device.lock().expect("one thread");
        (0..times).for_each(|_| device.model.access(page, false));
    }

    fn break_it(&self, fault: Fault) {
        *self.fault.lock().expect("one thread") = fault;
    }

    fn threshold(&mut self, threshold: u32) -> Result<(), DeviceError> {
        self.driver.command(DeviceRequest { threshold: Some(threshold), ..DeviceRequest::default() })
    }

    fn read(&mut self, report: bool) -> Result<(Vec<u64>, Option<DeviceReport>), String> {
        let mut pages = Vec::new();
        let report = self.driver.read(report, &mut pages).map_err(|error| error.to_string())?;
        Ok((pages, report))
    }
}
