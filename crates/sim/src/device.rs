//! Profiling devices of the simulated machine: a NeoProf in front of each tier but the fastest.
//!
//! A device sees what its tier serves: the read of each miss, the write-back of each store, and the lines of
//! page copies, by pages of the run's size. Requests of a block reach it at the block's end, in order.

use isotherm_core::{DeviceReading, DeviceReport, DeviceRequest, DeviceTraffic, Nanos, PageId, TierId};
use isotherm_machine::{DeviceProfile, LINE_BYTES};
use isotherm_neoprof::registers as at;
use isotherm_neoprof::{Device, Model, Parameters, Registers, Request, read_histogram, read_hot_pages};

#[derive(Debug)]
pub(crate) struct Devices {
    devices: Vec<TierDevice>,
    cost: (Nanos, Nanos),
    report: bool,
}

#[derive(Debug)]
struct TierDevice {
    model: Counted<Model>,
    requests: Vec<Request>,
    cycle_ps: f64,
    cycles: u64,
}

/// A device whose register accesses are counted, since each has its price.
#[derive(Debug)]
struct Counted<D> {
    device: D,
    reads: u64,
    writes: u64,
}

impl<D: Registers> Registers for Counted<D> {
    fn read(&mut self, offset: u64) -> u64 {
        self.reads += 1;
        self.device.read(offset)
    }

    fn write(&mut self, offset: u64, value: u64) {
        self.writes += 1;
        self.device.write(offset, value);
    }
}

/// Returns the sizes of a profile's device at a scale: sizes that follow the footprint shrink with it.
pub(crate) fn sizes(profile: &DeviceProfile, footprint_scale: f64) -> Parameters {
    let shrink = |size: u32, least: u32| {
        let exact = (f64::from(size) / footprint_scale).max(f64::from(least));
        1 << exact.log2().round() as u32
    };
    Parameters {
        lanes: profile.lanes,
        width: shrink(profile.width, 64),
        counter_bits: profile.counter_bits,
        hot_entries: shrink(profile.hot_entries, 4),
        ..Parameters::default()
    }
}

impl Devices {
    /// Powers on devices in front of `tiers` - 1 tiers at `now_ps`; `None` if their size cannot be built.
    pub(crate) fn new(profile: &DeviceProfile, sizes: Parameters, tiers: usize, now_ps: u64) -> Option<Self> {
        let cycle_ps = 1e12 / profile.clock.max(1) as f64;
        let model = Model::new(sizes).ok()?;
        let device = |_| TierDevice {
            model: Counted { device: model.clone(), reads: 0, writes: 0 },
            requests: Vec::new(),
            cycle_ps,
            cycles: (now_ps as f64 / cycle_ps) as u64,
        };
        let devices = (1..tiers).map(device).collect();
        Some(Self { devices, cost: (profile.read, profile.write), report: false })
    }

    #[inline]
    pub(crate) fn pass(&mut self, tier: usize, page: u32, store: bool) {
        if let Some(device) = tier.checked_sub(1).and_then(|index| self.devices.get_mut(index)) {
            let page = u64::from(page);
            device.requests.push(Request { page, write: false });
            if store {
                device.requests.push(Request { page, write: true });
            }
        }
    }

    /// Passes on a page's lines, copied from or to `tier`.
    pub(crate) fn copy(&mut self, tier: TierId, page: PageId, bytes: u64, write: bool) {
        if let Some(device) = tier.index().checked_sub(1).and_then(|index| self.devices.get_mut(index)) {
            let request = Request { page: page.0.into(), write };
            device.requests.extend(std::iter::repeat_n(request, (bytes / LINE_BYTES) as usize));
        }
    }

    /// Ends a block at `now_ps`: its requests reach the devices.
    pub(crate) fn settle(&mut self, now_ps: u64) {
        self.devices.iter_mut().for_each(|device| device.settle(now_ps));
    }

    /// Carries a request out and returns its cost for the processor.
    pub(crate) fn request(&mut self, request: DeviceRequest) -> Nanos {
        for TierDevice { model, .. } in &mut self.devices {
            if let Some(threshold) = request.threshold {
                model.write(at::SET_THRESHOLD, threshold.into());
            }
            if request.clear {
                model.write(at::RESET, 1);
            }
        }
        self.report |= request.report;
        self.price()
    }

    /// Reads every device and returns the cost for the processor.
    pub(crate) fn read(&mut self, readings: &mut Vec<DeviceReading>) -> Nanos {
        let report = std::mem::take(&mut self.report);
        let mut pages = Vec::new();
        for (index, TierDevice { model, .. }) in self.devices.iter_mut().enumerate() {
            pages.clear();
            read_hot_pages(model, &mut pages);
            readings.push(DeviceReading {
                tier: TierId(index as u8 + 1),
                hot: pages.iter().map(|&page| PageId(page as u32)).collect(),
                again: false,
                report: report.then(|| report_of(model)),
            });
        }
        self.price()
    }

    /// Returns the cost of the register accesses since the last call.
    fn price(&mut self) -> Nanos {
        let uses = self.devices.iter_mut().map(|device| {
            let model = &mut device.model;
            (std::mem::take(&mut model.reads), std::mem::take(&mut model.writes))
        });
        let (reads, writes) = uses.fold((0, 0), |sum, uses| (sum.0 + uses.0, sum.1 + uses.1));
        Nanos(self.cost.0.0 * reads + self.cost.1.0 * writes)
    }
}

impl TierDevice {
    fn settle(&mut self, now_ps: u64) {
        let device = &mut self.model.device;
        device.accesses(&self.requests);
        self.cycles += self.requests.len() as u64;
        self.requests.clear();
        // Cycles without a request. A block that asks for more than its time offers owes them to the next.
        let now = (now_ps as f64 / self.cycle_ps) as u64;
        let idle = now.saturating_sub(self.cycles);
        device.idle(idle);
        self.cycles += idle;
    }
}

fn report_of(device: &mut impl Registers) -> DeviceReport {
    // The model reports its own checked sizes.
    let histogram = read_histogram(device).unwrap_or_default();
    DeviceReport {
        histogram,
        lanes: Parameters::from_word(device.read(at::PARAMETERS), 0).map_or(1, |sizes| sizes.lanes),
        traffic: DeviceTraffic {
            cycles: device.read(at::GET_NR_SAMPLE),
            reads: device.read(at::GET_RD_CNT),
            writes: device.read(at::GET_WR_CNT),
        },
        refused: device.read(at::HOT_REFUSED),
        dropped: device.read(at::ACCESSES_DROPPED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: TierId = TierId(1);

    fn devices() -> Devices {
        let profile = DeviceProfile {
            lanes: 2,
            width: 1 << 19,
            counter_bits: 16,
            hot_entries: 1 << 14,
            clock: 400_000_000,
            read: Nanos(1000),
            write: Nanos(200),
        };
        Devices::new(&profile, sizes(&profile, 256.0), 2, 0).expect("the paper's sizes over 256")
    }

    #[test]
    fn sizes_shrink_with_the_footprint_to_powers_of_two() {
        let profile = DeviceProfile { width: 1 << 19, hot_entries: 1 << 14, ..DeviceProfile::default() };
        let of = |scale| (sizes(&profile, scale).width, sizes(&profile, scale).hot_entries);
        assert_eq!(of(1.0), (1 << 19, 1 << 14));
        assert_eq!(of(240.0), (2048, 64), "2184 and 68");
        assert_eq!(of(1e9), (64, 4));
    }

    #[test]
    fn slow_pages_above_the_threshold_are_reported_at_a_price() {
        let mut devices = devices();
        let price = devices.request(DeviceRequest { threshold: Some(2), clear: true, report: false });
        assert_eq!(price, Nanos(400));
        (0..3).for_each(|_| devices.pass(1, 7, false));
        (0..9).for_each(|_| devices.pass(0, 8, false));
        (0..2).for_each(|_| devices.pass(1, 9, true));
        devices.settle(1_000_000);
        let mut readings = Vec::new();
        assert_eq!(devices.read(&mut readings), Nanos(2000), "how many, and which");
        assert_eq!(
            readings,
            [DeviceReading { tier: SLOW, hot: vec![PageId(7)], again: false, report: None }]
        );
    }

    #[test]
    fn a_report_tells_what_passed_and_is_given_once() {
        let mut devices = devices();
        devices.request(DeviceRequest { report: true, ..DeviceRequest::default() });
        (0..3).for_each(|_| devices.pass(1, 7, true));
        devices.copy(SLOW, PageId(9), 4096, false);
        devices.settle(1_000_000);
        let mut readings = Vec::new();
        devices.read(&mut readings);
        let report = readings[0].report.as_ref().expect("asked for");
        assert_eq!(report.traffic, DeviceTraffic { cycles: 400, reads: 67, writes: 3 });
        assert_eq!((report.lanes, report.histogram.entries()), (2, 2048));
        assert_eq!(report.histogram.at_rank(1), Some(64..=71));
        readings.clear();
        devices.read(&mut readings);
        assert_eq!(readings[0].report, None);
    }

    #[test]
    fn a_block_beyond_the_clock_owes_its_cycles() {
        let mut devices = devices();
        (0..500).for_each(|_| devices.pass(1, 7, false));
        devices.settle(1_000_000);
        devices.settle(2_000_000);
        devices.request(DeviceRequest { report: true, ..DeviceRequest::default() });
        let mut readings = Vec::new();
        devices.read(&mut readings);
        assert_eq!(readings[0].report.as_ref().map(|report| report.traffic.cycles), Some(800));
    }
}
