//! Real programs run as without the library, and sampling finds the pages that they use.

mod support;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use isotherm_core::SamplingRate;
use isotherm_linux::hint_faults::{HintFaultOptions, HintFaultSource};
use isotherm_linux::source::{Access, AccessSource, SETTLED_EVERY, Untouched};
use support::{Run, example, generous, library, sampling};

/// Pages that an agent arms at the start to measure; the program's pages come on top.
const CALIBRATED: u64 = 32;

const ANY: SamplingRate = SamplingRate::Frequency(1_000_000);

/// Returns the program's output and status without Isotherm.
fn plain(program: &Path, arguments: &[&str]) -> (String, Option<i32>) {
    let output =
        Command::new(program).args(arguments).stdin(Stdio::null()).output().expect("the program runs");
    (String::from_utf8(output.stdout).expect("text"), output.status.code())
}

/// Runs the program with a generous budget and fails unless it behaves as without; returns the pages armed.
fn same(program: &Path, arguments: &[&str]) -> u64 {
    let expected = plain(program, arguments);
    let mut run = Run::new(program, arguments, generous(), ANY);
    let mut armed = 0;
    let mut status = None;
    run.drain_until(|run| {
        armed = run.source.counted().armed;
        status = run.child.try_wait().expect("a child");
        status.is_some()
    });
    let ended = run.finish();
    assert_eq!((ended.output, ended.status.code()), expected, "{} {arguments:?}", program.display());
    armed
}

/// Returns a program of the system, if it is installed.
fn installed(name: &str) -> Option<PathBuf> {
    let path =
        ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name)).into_iter().find(|p| p.exists());
    if path.is_none() {
        println!("skipped: {name} is not installed");
    }
    path
}

fn target(arguments: &[&str]) -> u64 {
    same(&example("planted-target"), arguments)
}

#[test]
fn planted_memory_is_intact() {
    assert!(target(&["planted", "--operations", "6000000", "--threads", "2", "--size", "16M"]) > CALIBRATED);
}

#[test]
fn storms_of_forks_are_intact() {
    target(&["fork-storm", "--children", "1000"]);
}

#[test]
fn chains_of_programs_are_intact() {
    target(&["exec-chain", "--times", "20"]);
}

#[test]
fn storms_of_mappings_are_intact() {
    assert!(target(&["unmap-storm", "--operations", "60000"]) > CALIBRATED);
}

#[test]
fn buffers_of_system_calls_are_intact() {
    assert!(target(&["syscalls", "--operations", "800"]) > CALIBRATED);
}

#[test]
fn two_hundred_threads_are_intact() {
    assert!(target(&["threads", "--operations", "20000", "--waves", "3"]) > CALIBRATED);
}

#[test]
fn small_programs_do_as_without() {
    let script = "import os,threading\nx=[i*i for i in range(300000)]\nt=[threading.Thread(target=lambda: sum(x)) \
                  for _ in range(8)]\n[i.start() for i in t]\n[i.join() for i in t]\np=os.fork()\n\
                  if p==0: os._exit(sum(x)%7)\nprint(sum(x), os.waitpid(p,0)[1])";
    let cases: [(&str, &[&str]); 5] = [
        ("sh", &["-c", "for i in 1 2 3 4 5; do echo $i | cat; done; exit 7"]),
        ("ls", &["-la", "/usr"]),
        ("python3", &["-c", script]),
        ("gcc", &["--version"]),
        ("perl", &["-e", "my %h=map{$_=>$_*2}1..200000;my $s=0;$s+=$_ for values %h;print \"$s\\n\";exit 3"]),
    ];
    for (name, arguments) in cases {
        if let Some(program) = installed(name) {
            same(&program, arguments);
        }
    }
}

/// A program that ignores the variable, as a statically linked one does.
#[test]
fn a_program_without_the_library_is_told() {
    let mut source = HintFaultSource::open(HintFaultOptions::default()).expect("a source");
    let mut child =
        Command::new(example("victim")).arg("read").stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let child = child.as_mut().expect("it starts");
    let pid = isotherm_linux::process::Pid(child.id());
    source.follow(pid).expect("to follow");
    std::thread::sleep(Duration::from_millis(100));
    source.drain(&mut Vec::new()).expect("to drain");
    assert_eq!(source.without_agent(Duration::from_millis(50)), [pid]);
    source.forget(pid);
    assert_eq!(source.without_agent(Duration::ZERO), []);
    drop(child.stdin.take());
    assert!(child.wait().expect("to wait").success());
}

/// Without an engine the library does nothing.
#[test]
fn the_library_alone_starts_no_thread() {
    let mut child = Command::new(example("victim"))
        .arg("read")
        .env("LD_PRELOAD", library())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    std::thread::sleep(Duration::from_millis(200));
    let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("its threads").count();
    drop(child.stdin.take());
    assert!(child.wait().expect("to wait").success());
    assert_eq!(threads, 1);
}

/// The engine is killed while windows are open; the program's result stays the same.
#[test]
fn a_killed_engine_leaves_the_program_as_it_is() {
    let arguments = ["planted", "--operations", "20000000", "--size", "16M"];
    let (expected, _) = plain(&example("planted-target"), &arguments);
    let mut engine = Command::new(example("sample"))
        .arg(library())
        .arg("60")
        .arg(example("planted-target"))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the engine starts");
    std::thread::sleep(Duration::from_millis(700));
    engine.kill().expect("to kill");
    engine.wait().expect("to wait");
    let mut output = String::new();
    // The program holds the other end of the pipe until it ends.
    std::io::Read::read_to_string(&mut engine.stdout.take().expect("a pipe"), &mut output).expect("text");
    assert_eq!(output, expected);
    // The killed engine could not remove it.
    let folders = std::fs::read_dir(std::env::temp_dir()).expect("a directory").flatten();
    let left = format!("isotherm-{}-", engine.id());
    for folder in folders.filter(|folder| folder.file_name().to_string_lossy().starts_with(&left)) {
        let _ = std::fs::remove_dir_all(folder.path());
    }
}

#[test]
fn sampling_stops_and_goes_on() {
    let mut run = Run::new(&example("planted-target"), &["planted", "--seconds", "30"], generous(), ANY);
    assert!(run.drain_until(|run| run.refusal().is_some() || run.accesses.len() > 100));
    if let Some(reason) = run.refusal() {
        println!("skipped: {reason}");
        return;
    }
    run.source.request(&sampling(SamplingRate::Off)).expect("a rate");
    std::thread::sleep(Duration::from_millis(1500));
    run.source.drain(&mut run.accesses).expect("to drain");
    let armed = run.source.counted().armed;
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(run.source.counted().armed, armed);
    run.source.request(&sampling(ANY)).expect("a rate");
    assert!(run.drain_until(|run| run.source.counted().armed > armed));
    run.child.kill().expect("to kill");
    run.finish();
}

/// Returns the pages that a report names as hot, and how often each page was sampled.
fn counts(report: &str, accesses: &[Access]) -> (Vec<u64>, HashMap<u64, u32>) {
    let mut lines = report.lines();
    let range: Vec<u64> = lines
        .next()
        .expect("a range")
        .split(' ')
        .skip(1)
        .map(|word| u64::from_str_radix(word, 16).expect("an address"))
        .collect();
    let hot = lines.next().expect("hot pages").split(' ').skip(2).map(|word| word.parse().expect("a page"));
    let mut counts = HashMap::new();
    for access in accesses.iter().filter(|access| (range[0]..range[1]).contains(&access.address)) {
        *counts.entry((access.address - range[0]) / 4096).or_default() += 1;
    }
    (hot.collect(), counts)
}

/// Starts a program of whose 32 MiB a tenth gets nine tenths of the accesses; returns it with its report.
fn planted() -> Option<(Run, String)> {
    let folder = tempfile::tempdir().expect("a directory");
    let report = folder.path().join("report");
    let file = report.to_str().expect("a name");
    let arguments = ["planted", "--size", "32M", "--seconds", "600", "--report", file];
    let mut run = Run::new(&example("planted-target"), &arguments, HintFaultOptions::default(), ANY);
    assert!(run.drain_until(|run| run.refusal().is_some() || report.exists()));
    if let Some(reason) = run.refusal() {
        println!("skipped: {reason}");
        return None;
    }
    Some((run, std::fs::read_to_string(&report).expect("a report")))
}

/// Hot pages are told from the others.
#[test]
fn planted_hot_pages_are_found() {
    let Some((mut run, text)) = planted() else { return };
    // Samples from the program's start are no sign of heat.
    run.accesses.clear();
    let mut best = 0.0;
    // A busy machine lets the program do little, and few samples tell little: then it runs longer.
    for _ in 0..2 {
        run.drain_until(|run| {
            let (hot, counts) = counts(&text, &run.accesses);
            let mut ranked: Vec<_> = counts.iter().map(|(page, count)| (*count, *page)).collect();
            ranked.sort_unstable_by(|a, b| b.cmp(a));
            let found =
                ranked.iter().take(hot.len()).filter(|(_, page)| hot.binary_search(page).is_ok()).count();
            best = found as f64 / hot.len() as f64;
            best > 0.955
        });
    }
    run.child.kill().expect("to kill");
    run.finish();
    assert!(best >= 0.95, "{:.1} % of the hot pages found", 100.0 * best);
}

/// Hot pages, each accessed 81 times as often as a cold one, win races against as many cold ones.
#[test]
fn hot_pages_win_races() {
    const EACH: usize = 10;
    let Some((mut run, text)) = planted() else { return };
    let (hot, _) = counts(&text, &[]);
    let start = u64::from_str_radix(text.split(' ').nth(1).expect("a range"), 16).expect("an address");
    let cold = (0..8192).filter(|page| hot.binary_search(page).is_err());
    let pages: Vec<u64> =
        hot.iter().copied().step_by(7).take(EACH).chain(cold.step_by(7).take(EACH)).collect();
    let addresses: Vec<u64> = pages.iter().map(|page| start + page * 4096).collect();
    run.source.set_racers(run.pid(), 7, &addresses);
    let mut races = Vec::new();
    assert!(run.drain_until(|run| {
        run.source.races(&mut races);
        races.len() >= 200
    }));
    run.child.kill().expect("to kill");
    run.finish();
    assert!(races.iter().all(|race| race.list == 7 && race.armed >> race.first & 1 != 0), "{races:?}");
    // As long as half of the hot pages are left, one of them is next.
    let hot_left = |armed: u128| (armed & ((1 << EACH) - 1)).count_ones() as usize;
    let open: Vec<_> = races.iter().filter(|race| hot_left(race.armed) >= EACH / 2).collect();
    let won = open.iter().filter(|race| usize::from(race.first) < EACH).count();
    assert!(open.len() >= 20 && won * 10 > open.len() * 9, "{won} of {}", open.len());
}

/// The first half of the memory, named settled, is in a quarter of the windows, and its touches count four
/// times.
#[test]
fn settled_memory_is_in_a_quarter_of_the_windows() {
    let Some((mut run, text)) = planted() else { return };
    let start = u64::from_str_radix(text.split(' ').nth(1).expect("a range"), 16).expect("an address");
    let halves = [start..start + 4096 * 4096, start + 4096 * 4096..start + 8192 * 4096];
    run.source.set_settled(run.pid(), &halves[..1]);
    let within = |half: usize, address: u64| halves[half].contains(&address);
    // From the first pass on that knows.
    let known = |run: &mut Run| run.accesses.iter().any(|access| access.weight == SETTLED_EVERY);
    assert!(run.drain_until(known));
    run.accesses.clear();
    let mut windows = Vec::new();
    run.source.untouched(&mut windows);
    windows.clear();
    let count = |run: &Run, windows: &[Untouched], half| {
        let untouched = windows.iter().filter(|window| within(half, window.start));
        let touched = run.accesses.iter().filter(|access| within(half, access.address));
        untouched.map(|window| window.pages.count_ones() as usize).sum::<usize>() + touched.count()
    };
    assert!(run.drain_until(|run| {
        run.source.untouched(&mut windows);
        count(run, &windows, 1) > 6 * 4096
    }));
    run.child.kill().expect("to kill");
    let armed = [0, 1].map(|half| count(&run, &windows, half));
    let accesses = run.finish().accesses;
    let weights = |half| accesses.iter().filter(move |access| within(half, access.address)).map(|a| a.weight);
    assert!(weights(0).all(|weight| weight == SETTLED_EVERY) && weights(1).all(|weight| weight == 1));
    let share = armed[0] as f64 / armed[1] as f64;
    assert!((0.15..0.4).contains(&share), "{armed:?}");
}

/// Returns whether the process has an agent; one that has ended may be left as a zombie.
fn has_agent(process: u32) -> bool {
    support::agents(process).iter().any(|agent| {
        let stat = std::fs::read_to_string(format!("/proc/{agent}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    })
}

#[test]
fn without_its_engine_the_agent_ends() {
    let mut run = Run::new(&example("planted-target"), &["planted", "--seconds", "60"], generous(), ANY);
    assert!(run.drain_until(|run| run.refusal().is_some() || run.accesses.len() > 100));
    if let Some(reason) = run.refusal() {
        println!("skipped: {reason}");
        return;
    }
    let Run { source, mut child, .. } = run;
    assert!(has_agent(child.id()));
    drop(source);
    let start = std::time::Instant::now();
    while has_agent(child.id()) && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = !has_agent(child.id());
    child.kill().expect("to kill");
    child.wait().expect("to wait");
    assert!(ended, "the agent lives on");
}

/// A policy may ask for any page: the engine asks for every page of the address space, again and again, while
/// the program changes its mappings. The agent once armed the library's own variables and waited for itself.
#[test]
fn every_page_of_the_address_space_may_be_asked_for() {
    for arguments in [
        &["unmap-storm", "--operations", "20000"][..],
        &["threads", "--operations", "4000", "--waves", "2"],
        &["fork-storm", "--children", "100"],
    ] {
        let expected = plain(&example("planted-target"), arguments);
        let mut run = Run::new(&example("planted-target"), arguments, generous(), SamplingRate::Off);
        let pid = run.pid();
        let mut status = None;
        run.drain_until(|run| {
            let maps = std::fs::read_to_string(format!("/proc/{}/maps", pid.0)).unwrap_or_default();
            let pages: Vec<u64> = maps.lines().flat_map(pages_of).collect();
            run.source.arm(pid, &pages).expect("to arm");
            status = run.child.try_wait().expect("a child");
            status.is_some()
        });
        let ended = run.finish();
        assert_eq!((ended.output, ended.status.code()), expected, "{arguments:?}");
    }
}

/// Returns the first 4096 pages of a line of `/proc/PID/maps`.
fn pages_of(line: &str) -> Vec<u64> {
    let range = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
    let [start, end] = [range.0, range.1].map(|word| u64::from_str_radix(word, 16).expect("an address"));
    (start..end.min(start.saturating_add(4096 * 4096))).step_by(4096).collect()
}
