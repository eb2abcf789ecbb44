//! The access source over several profiling devices, merged.

use isotherm_core::{Bytes, DeviceReport, DeviceRequest, Sampling, Signal, Signals};

use super::owners::Owners;
use super::region::Region;
use super::{DeviceError, Profiler};
use crate::LinuxError;
use crate::clock;
use crate::process::Pid;
use crate::source::{Access, AccessSource, DeviceAnswer, SourceStatistics};

/// A device and the regions that its memory is part of.
pub struct Attached {
    pub profiler: Box<dyn Profiler>,
    pub regions: Vec<Region>,
}

/// A source of followed processes' pages that devices find hot.
pub struct DeviceSource {
    devices: Vec<Attached>,
    owners: Box<dyn Owners>,
    /// Whether the policy has requested anything; before, the devices are not read.
    on: bool,
    report: bool,
    broken: Vec<DeviceError>,
    lost: u64,
    statistics: SourceStatistics,
    pages: Vec<u64>,
    frames: Vec<u64>,
}

impl DeviceSource {
    /// Returns the source over these devices, which are stopped until the policy requests something.
    pub fn new(devices: Vec<Attached>, owners: Box<dyn Owners>) -> Self {
        Self {
            devices,
            owners,
            on: false,
            report: false,
            broken: Vec::new(),
            lost: 0,
            statistics: SourceStatistics::default(),
            pages: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// Returns whether its devices count: they tell a page each time that it was accessed so often.
    pub fn counts(&self) -> bool {
        !self.devices.is_empty() && self.devices.iter().all(|device| device.profiler.tells_again())
    }

    /// Is read from the start, so that a policy that can do without it learns that it is there.
    #[must_use]
    pub fn beside_others(self) -> Self {
        Self { on: true, ..self }
    }

    /// Calls every device, and drops those that can no longer be used.
    fn each(&mut self, mut call: impl FnMut(&mut Attached) -> Result<(), DeviceError>) {
        let (broken, lost) = (&mut self.broken, &mut self.lost);
        self.devices.retain_mut(|device| match call(device) {
            Ok(()) => true,
            Err(error) => {
                *lost += device.profiler.lost();
                broken.push(error);
                false
            }
        });
    }

    /// Returns an error for the first device dropped since the last call.
    fn warning(&mut self) -> Result<(), LinuxError> {
        self.broken.pop().map_or(Ok(()), |error| Err(error.into()))
    }
}

impl AccessSource for DeviceSource {
    fn name(&self) -> &'static str {
        "device"
    }

    fn offers(&self) -> Signals {
        let offered = Signals::NONE.with(Signal::DeviceHotPages);
        // A policy that needs reports needs them of all memory.
        let all = !self.devices.is_empty() && self.devices.iter().all(|device| device.profiler.reports());
        if all { offered.with(Signal::DeviceReports) } else { offered }
    }

    fn follow(&mut self, process: Pid) -> Result<(), LinuxError> {
        self.owners.follow(process);
        Ok(())
    }

    fn forget(&mut self, process: Pid) {
        self.owners.forget(process);
    }

    fn request(&mut self, _sampling: &Sampling) -> Result<(), LinuxError> {
        Ok(())
    }

    fn drain(&mut self, _accesses: &mut Vec<Access>) -> Result<(), LinuxError> {
        Ok(())
    }

    fn command(&mut self, request: DeviceRequest) -> Result<(), LinuxError> {
        self.on = true;
        self.report |= request.report;
        self.each(|device| device.profiler.command(request));
        self.warning()
    }

    fn read_devices(&mut self, answers: &mut Vec<DeviceAnswer>) -> Result<(), LinuxError> {
        if !self.on {
            return Ok(());
        }
        let report = std::mem::take(&mut self.report);
        let (mut pages, mut frames) = (std::mem::take(&mut self.pages), std::mem::take(&mut self.frames));
        frames.clear();
        let mut reports: Vec<DeviceReport> = Vec::new();
        self.each(|device| {
            pages.clear();
            reports.extend(device.profiler.read(report, &mut pages)?);
            let of_page = |&page: &u64| device.regions.iter().flat_map(move |region| region.frames(page));
            frames.extend(pages.iter().flat_map(of_page));
            Ok(())
        });
        // Devices that share a page's lines both report it.
        let mut seen = std::collections::HashSet::with_capacity(frames.len());
        frames.retain(|&frame| seen.insert(frame));
        let mut answer = DeviceAnswer { again: self.counts(), ..DeviceAnswer::default() };
        let found = self.owners.find(&frames, clock::monotonic(), &mut answer.hot);
        self.statistics.delivered += answer.hot.len() as u64;
        self.statistics.foreign += found.as_ref().copied().unwrap_or(0);
        // Hot pages come once; reports come one per device.
        let mut reports = reports.into_iter();
        answer.report = reports.next();
        answers.push(answer);
        answers
            .extend(reports.map(|report| DeviceAnswer { report: Some(report), ..DeviceAnswer::default() }));
        (self.pages, self.frames) = (pages, frames);
        found?;
        self.warning()
    }

    fn statistics(&self) -> SourceStatistics {
        let lost = self.devices.iter().map(|device| device.profiler.lost()).sum::<u64>() + self.lost;
        let memory = (self.pages.capacity() + self.frames.capacity()) * size_of::<u64>();
        SourceStatistics { lost, memory: Bytes(memory as u64), ..self.statistics }
    }
}
