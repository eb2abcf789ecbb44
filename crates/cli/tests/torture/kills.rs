//! Kills the engine at random points: the program goes on and ends as natively, and nothing is left behind.
//!
//! `ISOTHERM_TORTURE_SEED` repeats the points of a run, which it prints.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime};

use isotherm_policies::Kind;

use super::Bench;

const QUICK: usize = 24;
/// Kills fall into the time that a run takes, and a little later.
const LONGEST: Duration = Duration::from_millis(220);
const PATIENCE: Duration = Duration::from_secs(60);
/// Sources that some machine without special hardware has.
const SOURCES: [&str; 4] = ["hint-faults", "accessed-bits", "idle-pages", "page-faults"];
/// Writes the program's output, its status, and where the engine's socket is.
const SCRIPT: &str = r#"printf %s "$ISOTHERM_SOCKET" >"$1"; "$0"; echo "status $?""#;

/// Returns the policies with the sources under which each runs here.
pub(super) fn sessions(sources: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    let policies = isotherm_policies::ALL.iter().filter(|entry| matches!(entry.kind, Kind::Policy(_)));
    let pairs = policies.flat_map(|entry| sources.iter().map(|source| (entry.name, *source)));
    let found: Vec<_> = pairs
        .filter(|(policy, source)| {
            let tried = engine(policy, source, "10%").args(["--", "true"]).output().expect("it starts");
            assert!(matches!(tried.status.code(), Some(0..=2)), "{policy}, {source}: {tried:?}");
            tried.status.success()
        })
        .collect();
    assert!(found.len() >= sources.len(), "{found:?}");
    found
}

/// Returns `isotherm run` without the program.
pub(super) fn engine(policy: &str, source: &str, overhead: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isotherm"));
    command.args(["run", "--shadow", "--quiet", "--model-counters", "--policy", policy]);
    command.args(["--source", source, "--overhead", overhead]).stdin(Stdio::null());
    command
}

/// A generator of numbers: splitmix64 (Steele et al., OOPSLA 2014).
fn mixed(seed: u64) -> u64 {
    let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Returns processes of a run: those that have its mark in their environment.
fn left(mark: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("its processes").flatten();
    processes
        .filter(|process| {
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            environment.windows(mark.len()).any(|part| part == mark.as_bytes())
        })
        .map(|process| {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            format!("{} {}", process.file_name().display(), name.trim())
        })
        .collect()
}

/// Kills one engine after `delay`; returns the folder of its socket, none if the program had not begun.
fn kill(bench: &Bench, at: usize, session: (&str, &str), delay: Duration) -> Result<Option<PathBuf>, String> {
    let (note, control) = (bench.at(&format!("note-{at}")), bench.at(&format!("control-{}", at % 2)));
    let mark = format!("ISOTHERM_TORTURE_RUN={}-{at}", bench.folder.path().display());
    let (name, value) = mark.split_once('=').expect("it has one");
    let mut engine = engine(session.0, session.1, "10%")
        .arg("--control")
        .arg(control)
        .args(["--", "sh", "-c", SCRIPT])
        .args([bench.at("program"), note.clone()])
        .env(name, value)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut output = engine.stdout.take().expect("its output");
    std::thread::sleep(delay);
    engine.kill().expect("to kill");
    engine.wait().expect("to wait");
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        // The program holds the other end until it ends.
        let _ = output.read_to_string(&mut text);
        let _ = sender.send(text);
    });
    let text = receiver.recv_timeout(PATIENCE).map_err(|_| format!("it hangs: {:?}", left(&mark)))?;
    let begun = fs::read_to_string(&note).ok();
    let expected = format!("{}status {}\n", bench.native.0, bench.native.1.expect("a status"));
    let right = if begun.is_some() { text == expected } else { text.is_empty() };
    if !right {
        return Err(format!("the program ends otherwise: {text:?}"));
    }
    await_end(&mark)?;
    let folder = begun.map(PathBuf::from);
    Ok(folder.map(|socket| socket.parent().unwrap_or(Path::new("")).to_owned()))
}

/// Waits until no process of a run is left.
fn await_end(mark: &str) -> Result<(), String> {
    let begun = Instant::now();
    while !left(mark).is_empty() {
        if begun.elapsed() > PATIENCE {
            return Err(format!("left over: {:?}", left(mark)));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// While the agent measures what a fault costs, a process of its own touches pages that only the agent gives.
#[test]
fn a_program_that_is_killed_as_it_begins_leaves_no_agent() {
    for at in 0..30 {
        let value = format!("{}-{at}", std::process::id());
        let mut engine = engine("hybridtier", "hint-faults", "50%")
            .args(["--", "sh", "-c", "echo $$; exec sleep 1000"])
            .env("ISOTHERM_TORTURE_KILLED", &value)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let mut output = BufReader::new(engine.stdout.take().expect("its output"));
        output.read_line(&mut line).expect("a line");
        // `sleep` gets its agent in the first milliseconds.
        std::thread::sleep(Duration::from_micros(250 * at));
        assert!(Command::new("kill").args(["-9", line.trim()]).status().expect("it starts").success());
        assert_eq!(engine.wait().expect("it ends").code(), Some(128 + 9));
        await_end(&format!("ISOTHERM_TORTURE_KILLED={value}")).unwrap_or_else(|left| panic!("{at}: {left}"));
    }
}

#[test]
fn a_program_outlives_its_killed_engine() {
    let bench = Bench::new();
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let kills = number("ISOTHERM_TORTURE_KILLS").map_or(QUICK, |kills: u64| kills as usize);
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time");
    let seed = number("ISOTHERM_TORTURE_SEED").unwrap_or(time.as_nanos() as u64);
    let sessions = sessions(&SOURCES);
    let next = AtomicUsize::new(0);
    let (wrong, folders) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    // Each of the two uses one control socket again and again.
    let work = |worker: usize| {
        for at in (worker..kills).step_by(2) {
            let session = sessions[at % sessions.len()];
            let delay = LONGEST.mul_f64(mixed(seed.wrapping_add(at as u64)) as f64 / u64::MAX as f64);
            match kill(&bench, at, session, delay) {
                Ok(Some(folder)) => folders.lock().expect("no panics").push(folder),
                Ok(None) => drop(next.fetch_add(1, Relaxed)),
                Err(why) => wrong.lock().expect("no panics").push(format!("{session:?}, {delay:?}: {why}")),
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| work(0));
        scope.spawn(|| work(1));
    });
    let (wrong, folders) = (wrong.into_inner().expect("no panics"), folders.into_inner().expect("no panics"));
    // The next engine removes what a killed one could not, and takes over its control socket.
    let mut last = engine("hybridtier", "hint-faults", "2%");
    last.arg("--control").arg(bench.at("control-0")).arg("--").arg(bench.at("program"));
    let last = last.output().expect("it starts");
    let kept: Vec<_> = folders.iter().filter(|folder| folder.exists()).collect();
    let early = next.into_inner();
    eprintln!(
        "kills of the engine: {kills} over {} pairs of policy and source, seed {seed}: {} wrong, {early} before \
         the program had begun",
        sessions.len(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "seed {seed}\n{}", wrong.join("\n"));
    assert_eq!(last.status.code(), bench.native.1, "{last:?}");
    assert!(kept.is_empty() && !bench.at("control-0").exists(), "{kept:?}");
    assert!(early < kills || kills == 0, "no program ever began");
}
