//! An engine that is inspected, changed and replaced at its socket while it runs.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use isotherm_core::machine_status::{MachineStatus, MappingStatus};
use isotherm_core::parameters::Scale;
use isotherm_core::{
    Bytes, FastLimit, MoveStatus, Nanos, Operation, PageSize, Sampling, SamplingRate, Signal, Signals, TierId,
};
use isotherm_linux::LinuxError;
use isotherm_linux::clock;
use isotherm_linux::process::Pid;
use isotherm_linux::source::{Access, AccessSource, Cause, SourceStatistics};
use isotherm_live::control::Control;
use isotherm_live::host::{AddressSpaces, LiveHost, Options, PresentRun, ProcessEvent, Processes, Tier};
use isotherm_live::policy_run::{PolicyRun, RunStats};

const BASE: u64 = 0x7f00_0000_0000;

/// A source that notes whether it was asked to sample, and has so many accesses to each page.
#[derive(Default)]
struct Scripted {
    asked: Arc<Mutex<Vec<bool>>>,
    accesses: u64,
}

impl AccessSource for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn offers(&self) -> Signals {
        Signals::NONE.with(Signal::LoadSamples).with(Signal::HintFaults)
    }
    fn follow(&mut self, _: Pid) -> Result<(), LinuxError> {
        Ok(())
    }
    fn forget(&mut self, _: Pid) {}
    fn request(&mut self, sampling: &Sampling) -> Result<(), LinuxError> {
        self.asked.lock().expect("one at a time").push(sampling.rate != SamplingRate::Off);
        Ok(())
    }
    fn drain(&mut self, accesses: &mut Vec<Access>) -> Result<(), LinuxError> {
        let access = |index: u64| Access {
            time: clock::monotonic(),
            process: Pid(7),
            address: BASE + index % 100 * 4096,
            weight: 1,
            latency: 0,
            tier: None,
            operation: Operation::Load,
            cause: Cause::Sampled,
        };
        accesses.extend((0..100 * std::mem::take(&mut self.accesses)).map(access));
        Ok(())
    }
    fn statistics(&self) -> SourceStatistics {
        SourceStatistics::default()
    }
}

/// An address space of a hundred pages.
struct Small;

impl AddressSpaces for Small {
    fn present(&mut self, _: Pid, found: &mut Vec<PresentRun>) -> Result<(), LinuxError> {
        found.push(PresentRun { range: BASE..BASE + 100 * 4096, swapped: false, huge: false });
        Ok(())
    }
    fn tiers(&mut self, _: Pid, _: &[u64], _: &mut Vec<Option<TierId>>) -> Result<(), LinuxError> {
        Ok(())
    }
    fn migrate(&mut self, _: Pid, _: &[(u64, TierId)], _: &mut Vec<MoveStatus>) {}
    fn reclaims(&self) -> bool {
        false
    }
    fn reclaim(&mut self, _: TierId, _: u64) -> u64 {
        0
    }
}

/// One process, until the test ends it.
struct One(Arc<AtomicBool>, bool);

impl Processes for One {
    fn update(&mut self, events: &mut Vec<ProcessEvent>) -> bool {
        if !std::mem::replace(&mut self.1, true) {
            events.push(ProcessEvent::Started(Pid(7)));
        }
        !self.0.load(Ordering::Relaxed)
    }
}

/// Sends a line and reads the whole answer.
fn ask(stream: &mut UnixStream, line: &str) -> String {
    stream.write_all(format!("{line}\n").as_bytes()).expect("the engine listens");
    hear(stream)
}

fn hear(stream: &mut UnixStream) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\n\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("the engine answers");
        answer.push(byte[0]);
    }
    String::from_utf8(answer).expect("text")
}

fn converse(path: &Path) -> Vec<String> {
    let mut stream = UnixStream::connect(path).expect("the engine listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    let lines = [
        "status",
        "set threshold=0",
        "set threshold=3",
        "parameters",
        "policy pte-scan",
        "pause",
        "status",
        "resume",
    ];
    let mut answers: Vec<String> = lines.iter().map(|line| ask(&mut stream, line)).collect();
    // Lines that arrive together are answered in one step, before the engine has built the requested policy.
    stream.write_all(b"set threshold=4\nparameters\npolicy tpp\nstatus\n").expect("the engine listens");
    answers.extend((0..4).map(|_| hear(&mut stream)));
    // A policy has gauges once it is built.
    let mut status = ask(&mut stream, "status");
    while !status.contains("\nactive-slow-pages = ") {
        status = ask(&mut stream, "status");
    }
    answers.push(status);
    answers.extend(["limit 64K", "status json", "mappings"].map(|line| ask(&mut stream, line)));
    answers
}

/// Runs a policy on the source while a client talks to its engine. Returns what the client says, and the
/// policy that ran last.
fn run<T: Send + 'static>(
    policy: &str,
    source: Scripted,
    client: fn(&Path) -> T,
) -> (T, PolicyRun, RunStats) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("control");
    let mut control = Control::open(&path).expect("nobody listens there");
    let ended = Arc::new(AtomicBool::new(false));
    let options = Options {
        page_size: PageSize::Base,
        tiers: [100, 300]
            .map(|latency| Tier { size: Bytes(1 << 30), latency: Nanos(latency), bandwidth: 0 })
            .to_vec(),
        fast: FastLimit::Share(0.5),
        shadow: true,
        share: None,
        nodes: Vec::new(),
        inside: None,
        scan_interval: Nanos(0),
        scan_budget: 1.0,
        overhead: 0.02,
        model_counters: false,
    };
    let processes = Box::new(One(ended.clone(), false));
    let mut host = LiveHost::new(options, vec![Box::new(source)], Box::new(Small), processes);
    assert!(host.settle(Duration::from_millis(50)));
    let mut tiering = PolicyRun::new(isotherm_policies::find(policy).expect("a policy"));
    tiering.scale = Some(Scale::NONE);
    let client = std::thread::spawn(move || {
        let answers = client(&path);
        ended.store(true, Ordering::Relaxed);
        answers
    });
    let ran = tiering.run(&mut host, Some(&mut control)).expect("it runs");
    (client.join().expect("every line was answered"), tiering, ran)
}

/// It began with empty counts.
#[test]
fn a_policy_with_another_parameter_knows_what_it_knew() {
    let hot_pages = |path: &Path| {
        let mut stream = UnixStream::connect(path).expect("the engine listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        let hot = |stream: &mut UnixStream, enough: u64| loop {
            let status = ask(stream, "status");
            let count =
                status.lines().find_map(|line| line.strip_prefix("hot-pages = ")?.parse::<u64>().ok());
            if let Some(count) = count.filter(|&count| count >= enough) {
                break count;
            }
        };
        let before = hot(&mut stream, 1);
        assert_eq!(ask(&mut stream, "set scan_batch=512"), "ok\n\n");
        (before, hot(&mut stream, 0))
    };
    let source = Scripted { accesses: 100, ..Scripted::default() };
    let ((before, after), ..) = run("hybridtier", source, hot_pages);
    assert_eq!(after, before);
}

#[test]
fn a_running_engine_is_read_changed_and_its_policy_replaced() {
    let source = Scripted::default();
    let watched = source.asked.clone();
    let (answers, tiering, ran) = run("pmu-sampling", source, converse);
    assert!(answers[0].starts_with("ok\npolicy = pmu-sampling\n") && answers[0].contains("tier.1.free"));
    assert_eq!(answers[1], "error: pmu-sampling.threshold: '0' is not a whole number from 1 to 254\n\n");
    assert_eq!(answers[2], "ok\n\n");
    assert!(answers[3].contains("\npmu-sampling.threshold = 3\n"), "{}", answers[3]);
    assert!(answers[4].starts_with("error: this run lacks accessed bits"), "{}", answers[4]);
    assert!(answers[6].contains("\nstate = paused\n"), "{}", answers[6]);
    assert!(answers[9].contains("\npmu-sampling.threshold = 4\n"), "{}", answers[9]);
    for line in [5, 7, 8, 10] {
        assert_eq!(answers[line], "ok\n\n");
    }
    for line in [11, 12] {
        assert!(answers[line].starts_with("ok\npolicy = tpp\nstate = running\n"), "{}", answers[line]);
    }
    assert_eq!(answers[13], "ok\n\n");
    let json = |answer: &str| answer.strip_prefix("ok\n").expect("an answer").trim().to_owned();
    let status: MachineStatus = serde_json::from_str(&json(&answers[14])).expect("a status");
    assert_eq!((status.fast_bytes, &*status.groups[0].policy), (Bytes(64 << 10), "tpp"));
    assert_eq!(status.groups[0].programs[0].pid, 7);
    let mappings: Vec<MappingStatus> = serde_json::from_str(&json(&answers[15])).expect("mappings");
    let [one] = &mappings[..] else { panic!("one mapping: {mappings:?}") };
    assert_eq!((one.pid, one.start, one.bytes), (7, 0x7f00_0000_0000, Bytes(100 * 4096)));
    assert_eq!((one.cells.len(), one.resident_bytes.iter().copied().sum()), (64, Bytes(100 * 4096)));
    // The requests: the policy, the changed parameter, pause, resume; TPP takes no samples.
    let asked = watched.lock().expect("one at a time").clone();
    let mut turns = asked.clone();
    turns.dedup();
    // On a busy machine the pause is there before the changed parameter has been asked for.
    assert!(asked.len() > turns.len() && turns.starts_with(&[true, false, true]), "{asked:?}");
    assert_eq!((tiering.entry.name, ran.resized), ("tpp", 0));
}
