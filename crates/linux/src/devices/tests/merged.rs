use isotherm_core::{Nanos, Signal};

use super::*;
use crate::LinuxError;
use crate::devices::owners::Owners;
use crate::devices::region::Region;
use crate::process::Pid;
use crate::source::{AccessSource, DeviceAnswer};

const PID: Pid = Pid(7);

/// The owner of frame f has page f - 100 of its one process, for 100 to 199.
#[derive(Default)]
pub(super) struct Plain;

impl Owners for Plain {
    fn follow(&mut self, _: Pid) {}
    fn forget(&mut self, _: Pid) {}
    fn find(&mut self, frames: &[u64], _: Nanos, pages: &mut Vec<(Pid, u64)>) -> Result<u64, LinuxError> {
        let ours = frames.iter().filter(|frame| (100..200).contains(*frame));
        pages.extend(ours.map(|frame| (PID, (frame - 100) * PAGE)));
        Ok(frames.iter().filter(|frame| !(100..200).contains(*frame)).count() as u64)
    }
}

pub(super) fn interleaved(position: u64) -> Vec<Region> {
    let (base, size) = (100 * PAGE, 64 * PAGE);
    vec![Region { base, size, device_base: 0, ways: 2, granularity: 256, position }]
}

#[test]
fn pages_interleaved_over_two_devices_are_merged_and_a_lost_device_leaves_the_other() {
    let (one, two) = (running(), running());
    let handles = [one.device.clone(), two.device.clone()];
    let fault = one.fault.clone();
    let attach = |running: Running, position| Attached {
        profiler: Box::new(running.driver),
        regions: interleaved(position),
    };
    let mut source = DeviceSource::new(vec![attach(one, 0), attach(two, 1)], Box::new(Plain));
    assert!(source.offers().has(Signal::DeviceReports));
    assert!(!source.counts(), "NeoProf tells a page once");
    source.command(DeviceRequest { threshold: Some(1), clear: true, report: true }).expect("they answer");
    for device in &handles {
        (0..2).for_each(|_| device.lock().expect("one thread").model.access(3, false));
    }
    (0..2).for_each(|_| handles[1].lock().expect("one thread").model.access(5, false));
    let mut answers: Vec<DeviceAnswer> = Vec::new();
    source.read_devices(&mut answers).expect("they answer");
    let hot: Vec<u64> = answers[0].hot.iter().map(|(_, address)| address / PAGE).collect();
    assert_eq!(hot, [6, 7, 10, 11], "page 3 of either holds lines of frames 106 and 107");
    assert!(!answers[0].again && answers.len() == 2 && answers.iter().all(|answer| answer.report.is_some()));
    *fault.lock().expect("one thread") = Fault::Vanished;
    (0..2).for_each(|_| handles[1].lock().expect("one thread").model.access(8, false));
    answers.clear();
    let error = source.read_devices(&mut answers).expect_err("one vanished").to_string();
    assert_eq!(error, "0000:3a:00.0: it has vanished (its registers read all ones)");
    assert_eq!(answers[0].hot.len(), 2, "the other goes on");
    answers.clear();
    source.read_devices(&mut answers).expect("told once");
}
