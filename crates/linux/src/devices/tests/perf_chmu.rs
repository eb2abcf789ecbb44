use std::collections::VecDeque;
use std::io;

use super::*;
use crate::devices::perf_chmu::hot_list::{Tally, decode};
use crate::devices::perf_chmu::{HotLists, PerfChmu, Refusal, find, lacks};
use crate::files::Tree;
use crate::perf::pmu::tests::tree;
use crate::perf::pmu::{Encoding, Pmu};

/// Sysfs files of a unit: the driver's `PMU_FORMAT_ATTR`s (RFC of 2024-11-21), type and processor.
const UNIT: &[(&str, &str)] = &[
    ("cxl_hmu_mem3.0.1/type", "21"),
    ("cxl_hmu_mem3.0.1/cpumask", "2"),
    ("cxl_hmu_mem3.0.1/format/epoch_type", "config:0-1"),
    ("cxl_hmu_mem3.0.1/format/access_type", "config:2-9"),
    ("cxl_hmu_mem3.0.1/format/epoch_scale", "config:10-13"),
    ("cxl_hmu_mem3.0.1/format/epoch_multiplier", "config:14-25"),
    ("cxl_hmu_mem3.0.1/format/randomized_downsampling", "config:26-26"),
    ("cxl_hmu_mem3.0.1/format/downsampling_factor", "config:27-34"),
    ("cxl_hmu_mem3.0.1/format/hotness_threshold", "config1:0-31"),
    ("cxl_hmu_mem3.0.1/format/hotness_granual", "config1:32-63"),
    ("cxl_hmu_mem3.0.1/format/range_base", "config2:0-31"),
    ("cxl_hmu_mem3.0.1/format/range_size", "config2:32-63"),
];

fn unit(files: &[(&str, &str)]) -> Pmu {
    let root = tree(files);
    let memories = ["mem1".to_owned(), "mem3".to_owned()];
    find(Tree::new(root.path()), &memories).expect("well-formed").expect("there")
}

#[test]
fn a_unit_is_found_by_the_name_of_its_memory_device() {
    let root = tree(UNIT);
    let found = |memory: &str| {
        let pmu = find(Tree::new(root.path()), &[memory.to_owned()]).expect("well-formed");
        pmu.map(|pmu| (pmu.name, pmu.kind, pmu.cpus))
    };
    assert_eq!(found("mem3"), Some(("cxl_hmu_mem3.0.1".to_owned(), 21, vec![2])));
    assert_eq!((found("mem0"), found("mem"), found("mem33")), (None, None, None));
}

/// The driver, as far as the event can tell: what it was asked, and the lists that it will write.
#[derive(Debug, Default)]
struct Kernel {
    opened: Vec<Encoding>,
    /// Errors of the events to be opened next.
    refuses: VecDeque<i32>,
    events: Vec<&'static str>,
    /// Data written to the AUX area since it was read, and data that follows when the event stops.
    written: Vec<Vec<u8>>,
    at_stop: Vec<u8>,
}

struct Fake(Arc<Mutex<Kernel>>);

impl HotLists for Fake {
    fn start(&mut self) -> io::Result<()> {
        self.0.lock().expect("one thread").events.push("start");
        Ok(())
    }

    fn stop(&mut self) -> io::Result<()> {
        let mut kernel = self.0.lock().expect("one thread");
        kernel.events.push("stop");
        let list = std::mem::take(&mut kernel.at_stop);
        kernel.written.push(list);
        Ok(())
    }

    fn drain(&mut self, visit: &mut dyn FnMut(u64, u64)) -> Tally {
        let mut all = Tally::default();
        for list in self.0.lock().expect("one thread").written.drain(..) {
            let tally = decode(&list, &[], &mut Vec::new(), &mut *visit);
            all.missing += tally.missing;
            all.damaged += tally.damaged;
        }
        all
    }
}

/// Returns a list of units with counts of 16 bits, of which the header announces so many.
fn list(announced: u64, units: &[u64]) -> Vec<u8> {
    let entries = units.iter().map(|unit| unit << 16 | 300);
    [16 << 16 | announced, 0xdead_beef].into_iter().chain(entries).flat_map(u64::to_ne_bytes).collect()
}

fn attached(pmu: Pmu, refuses: &[i32]) -> (Result<PerfChmu<Fake>, Refusal>, Arc<Mutex<Kernel>>) {
    let kernel =
        Arc::new(Mutex::new(Kernel { refuses: refuses.iter().copied().collect(), ..Kernel::default() }));
    let handle = kernel.clone();
    let open = move |encoding| {
        let mut kernel = handle.lock().expect("one thread");
        kernel.opened.push(encoding);
        match kernel.refuses.pop_front() {
            Some(error) => Err(io::Error::from_raw_os_error(error)),
            None => Ok(Fake(handle.clone())),
        }
    };
    (PerfChmu::new(pmu, Box::new(open)), kernel)
}

fn ask(chmu: &mut PerfChmu<Fake>, threshold: Option<u32>, clear: bool) {
    chmu.command(DeviceRequest { threshold, clear, report: false }).expect("it answers");
}

#[test]
fn the_event_is_encoded_by_the_formats_in_sysfs() {
    let (chmu, kernel) = attached(unit(UNIT), &[]);
    ask(&mut chmu.expect("usable"), Some(200), true);
    let first = Encoding { kind: 21, config: [1 | 3 << 2, 1 | 12 << 32, 0, 0] };
    let second = Encoding { config: [1 | 3 << 2, 200 | 12 << 32, 0, 0], ..first };
    assert_eq!(
        kernel.lock().expect("one thread").opened,
        [first, second],
        "always on, 4 KiB; tried, then used"
    );
    // Another kernel may lay the fields out otherwise.
    let moved: Vec<_> = UNIT
        .iter()
        .map(|&(file, text)| (file, if file.ends_with("hotness_threshold") { "config2:4-11" } else { text }))
        .map(|(file, text)| (file, if file.ends_with("range_base") { "config3:0-31" } else { text }))
        .collect();
    let (chmu, kernel) = attached(unit(&moved), &[]);
    ask(&mut chmu.expect("usable"), Some(1000), false);
    assert_eq!(
        kernel.lock().expect("one thread").opened[1].config,
        [1 | 3 << 2, 12 << 32, 255 << 4, 0],
        "capped"
    );
}

#[test]
fn what_the_driver_refuses_is_asked_otherwise() {
    let not_supported = [libc::EOPNOTSUPP; 12];
    let (chmu, kernel) = attached(unit(UNIT), &not_supported);
    assert!(chmu.is_ok());
    let last = kernel.lock().expect("one thread").opened[12];
    // All ten sizes with always on, then epochs of a second with 4 and 8 KiB, then 16 KiB.
    assert_eq!(last.config[..2], [3 << 2 | 5 << 10 | 1 << 14, 1 | 14 << 32]);
    let (chmu, _) = attached(unit(UNIT), &[libc::EOPNOTSUPP; 60]);
    let Err(Refusal::Device(error)) = chmu else { panic!("refused all") };
    assert_eq!(error.to_string(), "cxl_hmu_mem3.0.1: it lacks a mode that its driver takes");
    let (chmu, kernel) = attached(unit(UNIT), &[libc::EACCES]);
    assert!(matches!(chmu, Err(Refusal::Call(error)) if error.raw_os_error() == Some(libc::EACCES)));
    assert_eq!(kernel.lock().expect("one thread").opened.len(), 1, "no use in asking again");
}

#[test]
fn a_driver_without_a_field_is_refused() {
    let without: Vec<_> = UNIT.iter().copied().filter(|(file, _)| !file.ends_with("granual")).collect();
    assert_eq!((lacks(&unit(UNIT)), lacks(&unit(&without))), (None, Some("hotness_granual")));
    let (chmu, _) = attached(unit(&without), &[]);
    let Err(Refusal::Device(error)) = chmu else { panic!("refused") };
    assert_eq!(error.to_string(), "cxl_hmu_mem3.0.1: it lacks hotness_granual");
}

#[test]
fn hot_units_come_with_half_a_list_and_with_a_clear() {
    // Units of 8 KiB: two pages each.
    let (chmu, kernel) = attached(unit(UNIT), &[libc::EOPNOTSUPP]);
    let mut chmu = chmu.expect("usable");
    let mut pages = Vec::new();
    ask(&mut chmu, Some(100), false);
    kernel.lock().expect("one thread").written.extend([list(2, &[5, 9]), list(1, &[1])]);
    assert_eq!(chmu.read(true, &mut pages), Ok(None), "it keeps no histogram");
    assert_eq!(pages, [10, 11, 18, 19, 2, 3]);
    kernel.lock().expect("one thread").at_stop = list(1, &[40]);
    ask(&mut chmu, None, true);
    pages.clear();
    chmu.read(false, &mut pages).expect("it answers");
    assert_eq!(pages, [80, 81], "less than half a list");
    assert_eq!(kernel.lock().expect("one thread").events, ["start", "stop", "start"]);
    assert_eq!((chmu.lost(), chmu.reports()), (0, false));
}

#[test]
fn lists_that_are_cut_or_damaged_are_losses() {
    let (chmu, kernel) = attached(unit(UNIT), &[]);
    let mut chmu = chmu.expect("usable");
    ask(&mut chmu, Some(100), false);
    kernel.lock().expect("one thread").written.extend([list(7, &[5, 9]), vec![1; 64]]);
    let mut pages = Vec::new();
    chmu.read(false, &mut pages).expect("it answers");
    assert_eq!((pages, chmu.lost()), (vec![5, 9], 5 + 1));
}
