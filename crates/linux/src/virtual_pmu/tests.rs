use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use isotherm_core::{Counters, Nanos, Operation, Sampling, SamplingRate, SamplingScope, Signal, TierId};
use isotherm_virtual_pmu::layout::MIN_BYTES;
use isotherm_virtual_pmu::{Control, Device, Identity, Prices, Process, Record, Snapshot};

use super::{SharedVirtualPmu, VirtualPmu, VirtualPmuSource, is_present};
use crate::process::Pid;
use crate::source::{Access, AccessSource, Cause};
use crate::sys::mmap::SharedWords as Mapping;

/// Machine in files: the PCI device, the kernel's types and symbols, and a plugin that answers.
struct Machine {
    root: tempfile::TempDir,
    plugin: Arc<Mutex<Device<Mapping>>>,
    /// Counts that the plugin hands over at its next answer.
    counters: Arc<Mutex<Snapshot>>,
    /// Whether the plugin takes a sample before each answer, and whether one found the ring full.
    sampling: Arc<AtomicBool>,
    was_full: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

const PRICES: Prices = Prices { sample: 1500, buffered_sample: 300, move_call: 27_000, move_page: 1200 };
const PCI: &str = "sys/bus/pci/devices/0000:00:04.0";

fn write(root: &Path, file: &str, content: impl AsRef<[u8]>) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
    fs::write(path, content).expect("writable");
}

impl Machine {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        write(root.path(), &format!("{PCI}/vendor"), "0x1af4\n");
        write(root.path(), &format!("{PCI}/device"), "0x1110\n");
        write(root.path(), &format!("{PCI}/enable"), "0\n");
        write(root.path(), &format!("{PCI}/resource2"), vec![0; MIN_BYTES]);
        write(root.path(), "sys/bus/pci/devices/0000:00:00.0/vendor", "0x8086\n");
        write(root.path(), "sys/kernel/btf/vmlinux", super::btf::tests::kernel());
        write(
            root.path(),
            "proc/kallsyms",
            "0000000000000000 A __per_cpu_start\n0000000000020000 A pcpu_hot\n",
        );
        let file = OpenOptions::new().read(true).write(true).open(root.path().join(PCI).join("resource2"));
        let mapping = Mapping::new(&file.expect("there"), MIN_BYTES).expect("mapped");
        let device = Device::new(mapping, Identity { tiers: 2, vcpus: 1, prices: PRICES }).expect("a layout");
        let mut machine = Self {
            root,
            plugin: Arc::new(Mutex::new(device)),
            counters: Arc::default(),
            sampling: Arc::default(),
            was_full: Arc::default(),
            ended: Arc::default(),
            thread: None,
        };
        machine.answer();
        machine
    }

    /// Starts the plugin's answers.
    fn answer(&mut self) {
        let (plugin, counters) = (Arc::clone(&self.plugin), Arc::clone(&self.counters));
        let (sampling, was_full) = (Arc::clone(&self.sampling), Arc::clone(&self.was_full));
        let ended = Arc::clone(&self.ended);
        self.thread = Some(std::thread::spawn(move || {
            let mut answered = 0;
            while !ended.load(Ordering::Relaxed) {
                let mut device = plugin.lock().expect("no panic");
                if device.doorbell() != answered {
                    if sampling.load(Ordering::Relaxed) && !device.push(record(7, 0)) {
                        was_full.store(true, Ordering::Relaxed);
                    }
                    answered = device.doorbell();
                    let snapshot =
                        Snapshot { epoch: device.control().epoch, ..*counters.lock().expect("no panic") };
                    device.publish(&snapshot);
                    device.answer(answered);
                }
                drop(device);
                std::thread::yield_now();
            }
        }));
    }

    fn source(&self) -> VirtualPmuSource {
        VirtualPmuSource::open(self.root.path()).expect("a device")
    }

    fn control(&self) -> Control {
        self.plugin.lock().expect("no panic").control()
    }

    fn filter(&self) -> Vec<u32> {
        self.plugin.lock().expect("no panic").filter().collect()
    }

    fn push(&self, record: Record) -> bool {
        self.plugin.lock().expect("no panic").push(record)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn record(tgid: u32, address: u64) -> Record {
    let process = Process::Tgid(tgid);
    Record { address, process, time: 0, tier: 1, store: true, vcpu: 0, latency: 190, weight: 7 }
}

/// Returns the plugin's snapshot at that time of the model.
fn modelled(time: u64, load_misses: u64) -> Snapshot {
    let mut snapshot = Snapshot { time, ..Snapshot::default() };
    snapshot.tiers[0].load_misses = load_misses;
    snapshot
}

fn sampling(rate: SamplingRate, scope: SamplingScope, stores: bool) -> Sampling {
    Sampling { stores, ..Sampling::loads(rate, scope, 1, Nanos(1)) }
}

#[test]
fn samples_of_followed_processes_become_accesses() {
    let machine = Machine::new();
    machine.counters.lock().expect("no panic").time = 1000;
    let mut source = machine.source();
    source.follow(Pid(7)).expect("followed");
    let foreign = Record { process: Process::PageTables(4096), ..record(0, 0) };
    for record in [
        Record { time: 400, ..record(7, 0x1000) },
        record(8, 0x2000),
        foreign,
        Record { store: false, tier: 0, ..record(7, 0x3000) },
    ] {
        assert!(machine.push(record));
    }
    let mut accesses = Vec::new();
    source.drain(&mut accesses).expect("drained");
    let first = Access {
        time: Nanos(400),
        process: Pid(7),
        address: 0x1000,
        weight: 7,
        latency: 190,
        tier: Some(TierId(1)),
        operation: Operation::Store,
        cause: Cause::Sampled,
    };
    let (tier, operation) = (Some(TierId::FAST), Operation::Load);
    assert_eq!(accesses, [first, Access { address: 0x3000, tier, operation, time: Nanos(0), ..first }]);
    assert_eq!(source.clock(), Some(Nanos(1000)), "the modelled machine's time");
    let statistics = source.statistics();
    assert_eq!((statistics.delivered, statistics.foreign, statistics.lost), (2, 2, 0));
}

#[test]
fn samples_that_found_no_room_are_counted_as_lost() {
    let machine = Machine::new();
    // Samples and losses of an earlier user do not count.
    let capacity = (0..).take_while(|&n| machine.push(record(7, n))).count() as u64;
    let mut source = machine.source();
    source.follow(Pid(7)).expect("followed");
    let mut accesses = Vec::new();
    source.drain(&mut accesses).expect("drained");
    assert_eq!((accesses.len(), source.statistics().lost), (0, 0));
    let fitted = (0..capacity + 5).filter(|&n| machine.push(record(7, n))).count() as u64;
    source.drain(&mut accesses).expect("drained");
    assert_eq!((accesses.len() as u64, source.statistics().lost), (capacity, 5));
    assert_eq!(fitted, capacity);
}

#[test]
fn the_filter_is_what_is_followed_and_nobody_is_not_everybody() {
    let machine = Machine::new();
    let mut source = machine.source();
    assert_eq!(machine.control().epoch, 0);
    source.follow(Pid(7)).expect("followed");
    source.follow(Pid(9)).expect("followed");
    source.follow(Pid(9)).expect("no error");
    assert_eq!(machine.filter(), [7, 9]);
    let control = machine.control();
    assert_eq!((control.counting, control.children, control.epoch), (true, true, 1));
    source.forget(Pid(7));
    assert_eq!(machine.filter(), [9]);
    source.forget(Pid(9));
    assert!(!machine.control().counting, "an empty filter would count everybody");
}

#[test]
fn who_measures_itself_and_who_samples_it_do_not_undo_each_others_requests() {
    let machine = Machine::new();
    // The engine first: sampling and filter stay, counters restart.
    let mut source = machine.source();
    source.follow(Pid(7)).expect("followed");
    source.follow(Pid(9)).expect("followed");
    source.request(&sampling(SamplingRate::Period(100), SamplingScope::EachTier, true)).expect("answered");
    assert!(machine.push(record(7, 0x1000)));
    assert_eq!(VirtualPmu::measure(machine.root.path(), 7).expect("measured"), 2);
    let control = machine.control();
    assert_eq!((machine.filter(), control.epoch, control.periods[1]), (vec![7, 9], 2, 100));
    let mut accesses = Vec::new();
    source.drain(&mut accesses).expect("drained");
    assert_eq!(accesses.len(), 1, "samples are left to who takes them");
    source.request(&sampling(SamplingRate::Period(50), SamplingScope::AllTiers, true)).expect("answered");
    assert_eq!((machine.control().epoch, machine.control().counting), (2, true));
    drop(source);

    // The program first: following it begins nothing.
    let machine = Machine::new();
    let mut source = machine.source();
    assert_eq!(VirtualPmu::measure(machine.root.path(), 7).expect("measured"), 1);
    source.request(&sampling(SamplingRate::Period(100), SamplingScope::AllTiers, true)).expect("answered");
    assert!(machine.control().counting, "counted before it is followed");
    source.follow(Pid(7)).expect("followed");
    let control = machine.control();
    assert_eq!((machine.filter(), control.epoch, control.children), (vec![7], 1, true));
}

#[test]
fn an_engine_inside_of_the_program_leaves_its_own_thread_out() {
    let machine = Machine::new();
    let source = VirtualPmuSource::inside(machine.root.path()).expect("a device");
    let status = fs::read_to_string("/proc/thread-self/status").expect("readable");
    let own = status.lines().find_map(|line| line.strip_prefix("Pid:")).map(str::trim);
    assert_eq!(own, Some(machine.control().left_out.to_string().as_str()));
    drop(source);
    assert_eq!(machine.control().left_out, 0);
}

#[test]
fn engines_that_share_the_device_get_the_samples_of_their_own_processes() {
    let machine = Machine::new();
    let [mut one, mut other] =
        [(); 2].map(|()| SharedVirtualPmu::open(machine.root.path()).expect("a device"));
    one.follow(Pid(7)).expect("followed");
    other.follow(Pid(8)).expect("followed");
    assert_eq!(machine.filter(), [7, 8]);
    let period = |period| sampling(SamplingRate::Period(period), SamplingScope::AllTiers, true);
    one.request(&period(100)).expect("answered");
    other.request(&period(1000)).expect("answered");
    assert_eq!(machine.control().periods[0], 100, "the more eager one's");
    for process in [7, 8, 7, 8, 8] {
        assert!(machine.push(record(process, 0x1000)));
    }
    let [mut of_one, mut of_other] = [const { Vec::new() }; 2];
    one.drain(&mut of_one).expect("drained");
    other.drain(&mut of_other).expect("drained");
    let processes = |accesses: &[Access]| accesses.iter().map(|access| access.process.0).collect::<Vec<_>>();
    assert_eq!((processes(&of_one), processes(&of_other)), (vec![7, 7], vec![8, 8, 8]));
    assert_eq!((one.statistics().delivered, other.statistics().delivered), (2, 3));
    assert!(!one.offers().has(Signal::TierHits), "the device counts those of both");
    drop(one);
    assert_eq!((machine.filter(), machine.control().periods[0]), (vec![8], 1000));
    drop(other);
    assert_eq!(machine.control().periods, [0; 8], "whoever goes leaves no sampling behind");
}

#[test]
fn requests_become_periods_and_events() {
    let machine = Machine::new();
    let mut source = machine.source();
    let mut ask = |rate, scope, stores| {
        source.request(&sampling(rate, scope, stores)).expect("answered");
        machine.control()
    };
    let control = ask(SamplingRate::Period(100), SamplingScope::AllTiers, false);
    assert_eq!((control.periods[0], control.each_tier, control.exact), (100, false, false));
    assert_eq!(control.events & 0b1111, 0b0101);
    let control = ask(SamplingRate::Period(0), SamplingScope::EachTier, true);
    assert_eq!((control.periods[1], control.each_tier, control.events & 0b1111), (1, true, 0b1111));
    assert_eq!(ask(SamplingRate::Off, SamplingScope::AllTiers, true).periods, [0; 8]);
    ask(SamplingRate::Period(5), SamplingScope::AllTiers, true);
    drop(source);
    assert_eq!(machine.control().periods, [0; 8], "whoever goes leaves no sampling behind");
}

/// The lab's engine kept a period of 1 while a backlog of samples kept it from draining, and lost millions.
#[test]
fn regression_a_frequency_follows_the_rate_of_misses_also_where_nothing_is_drained() {
    let machine = Machine::new();
    let mut source = machine.source();
    source.follow(Pid(7)).expect("followed");
    source
        .request(&sampling(SamplingRate::Frequency(1000), SamplingScope::AllTiers, false))
        .expect("answered");
    let first = machine.control().periods[0];
    // A hundred million misses per modelled second: every hundred-thousandth is sampled.
    *machine.counters.lock().expect("no panic") = modelled(Nanos::SECOND.0, 100_000_000);
    source.count(&mut Counters::default()).expect("answered");
    assert_eq!((first, machine.control().periods[0]), (256, 100_000));
}

#[test]
fn a_full_ring_is_read_after_the_period_has_become_longer() {
    let machine = Machine::new();
    let mut source = machine.source();
    source.follow(Pid(7)).expect("followed");
    source
        .request(&sampling(SamplingRate::Frequency(1000), SamplingScope::AllTiers, false))
        .expect("answered");
    while machine.push(record(7, 0)) {}
    *machine.counters.lock().expect("no panic") = modelled(Nanos::SECOND.0, 100_000_000);
    source.follow(Pid(8)).expect("answered, with the counters");
    machine.sampling.store(true, Ordering::Relaxed);
    source.drain(&mut Vec::new()).expect("drained");
    assert_eq!(machine.control().periods[0], 100_000);
    assert!(machine.was_full.load(Ordering::Relaxed), "it was read before");
}

#[test]
fn counters_of_each_tier_are_those_of_the_plugin() {
    let machine = Machine::new();
    let mut source = machine.source();
    {
        let mut counters = machine.counters.lock().expect("no panic");
        (counters.tiers[0].load_misses, counters.tiers[1].store_misses) = (5, 6);
        (counters.tiers[1].stall, counters.tiers[1].occupancy, counters.tiers[1].busy) = (7, 8, 9);
        (counters.tiers[0].bytes_read, counters.tiers[0].bytes_written) = (10, 11);
    }
    let mut counters = Counters::default();
    source.count(&mut counters).expect("answered");
    let [fast, slow] = &counters.tiers[..] else { panic!("{counters:?}") };
    assert_eq!((fast.load_misses, fast.bytes_read.0, fast.bytes_written.0), (5, 10, 11));
    assert_eq!((slow.store_misses, slow.stall.0, slow.occupancy, slow.busy), (6, 7, 8, 9));
    assert!(source.offers().has(Signal::TierStalls) && source.offers().has(Signal::SampleLatency));
}

#[test]
fn a_device_is_enabled_and_told_where_the_kernel_keeps_processes() {
    let machine = Machine::new();
    assert!(is_present(machine.root.path()));
    let _pmu = VirtualPmu::open(machine.root.path()).expect("a device");
    let enable = fs::read_to_string(machine.root.path().join(PCI).join("enable")).expect("readable");
    assert_eq!(enable, "1");
    let mailbox = machine.plugin.lock().expect("no panic").mailbox().expect("told");
    assert_eq!((mailbox.current_task, mailbox.tgid, mailbox.parent), (0x20000 + 12, 12, 24));
}

#[test]
fn each_machine_without_a_virtual_pmu_says_why() {
    let root = tempfile::tempdir().expect("a directory");
    let error = |root: &Path| VirtualPmuSource::open(root).map(|_| ()).expect_err("refused").to_string();
    assert!(!is_present(root.path()));
    assert!(error(root.path()).contains("isotherm lab run"));
    let machine = Machine::new();
    // It is mapped, and must not be shortened.
    let resource = OpenOptions::new().write(true).open(machine.root.path().join(PCI).join("resource2"));
    resource.expect("there").write_all_at(&[0; 8], 0).expect("writable");
    assert!(error(machine.root.path()).contains("the plugin did not load"));
    fs::write(machine.root.path().join(PCI).join("device"), "0x1111\n").expect("writable");
    assert!(!is_present(machine.root.path()));
    fs::write(machine.root.path().join(PCI).join("device"), "nonsense").expect("writable");
    assert!(!is_present(machine.root.path()));
}

#[test]
fn a_plugin_that_does_not_answer_is_named() {
    let mut machine = Machine::new();
    machine.ended.store(true, Ordering::Relaxed);
    machine.thread.take().expect("it runs").join().expect("no panic");
    let error = VirtualPmu::open(machine.root.path()).map(|_| ()).expect_err("no answer").to_string();
    assert!(error.contains("does not answer"), "{error}");
}
