//! Fails each system call and each allocation of `isotherm run`, of `isotherm attach` and of the agent once
//! in turn, on a fixed set of short runs. The program always ends as natively, and the tool ends with one
//! line at most. [`kills`] ends the engine anywhere, [`overheads`] observes a program that churns its memory
//! under every policy, [`programs`] observes real ones.
//!
//! `cargo test` takes a sample for some seconds each; `make torture` takes all. `ISOTHERM_TORTURE_POINTS=N`
//! takes N points a run (`all`: every one), `ISOTHERM_TORTURE_KILLS=N` kills N times, and
//! `ISOTHERM_TORTURE=all` takes every overhead and every program.

mod kills;
mod overheads;
mod programs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Time for a sample of the points of one kind of run.
const SAMPLE: Duration = Duration::from_secs(8);
/// Seconds after which a run hangs.
const PATIENCE: &str = "120";

struct Bench {
    folder: tempfile::TempDir,
    /// The program's output and status.
    native: (String, Option<i32>),
    /// Its output when it works three times as long.
    thrice: Vec<u8>,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, options) in [
            ("inject", &[][..]),
            ("fail_agent", &[]),
            ("program", &[]),
            ("churn", &["-pthread"]),
            ("fail_allocation", &["-shared", "-fPIC"]),
        ] {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/torture/{name}.c"));
            let mut command = Command::new("cc");
            command.args(["-O2", "-o"]).arg(folder.path().join(name)).arg(source).args(options);
            assert!(command.status().expect("cc is missing: run `make setup`").success());
        }
        let ran = Command::new(folder.path().join("program")).output().expect("it starts");
        let native = (String::from_utf8(ran.stdout).expect("text"), ran.status.code());
        let thrice = Command::new(folder.path().join("program")).arg("3").output().expect("it starts").stdout;
        Self { folder, native, thrice }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The kind of call that fails in a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    SystemCall,
    /// A call that `libisotherm.so` makes inside of the program.
    AgentCall,
    Allocation,
    /// An allocation of so many bytes.
    AllocationOf(usize),
}

/// Runs `isotherm` with its `number`th call or allocation failing; returns how many there were, if it tells.
fn run(bench: &Bench, fault: Fault, number: u64, arguments: &[String]) -> (Output, Option<u64>) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let count = bench.at(&format!("count-{}", NEXT.fetch_add(1, Relaxed)));
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", PATIENCE]);
    match fault {
        Fault::SystemCall => command.arg(bench.at("inject")).arg(number.to_string()).arg(&count),
        Fault::AgentCall => command.arg(bench.at("fail_agent")).arg(number.to_string()).arg(&count),
        Fault::Allocation | Fault::AllocationOf(_) => {
            command.arg("env").arg(format!("LD_PRELOAD={}", bench.at("fail_allocation").display()));
            if let Fault::AllocationOf(bytes) = fault {
                command.arg(format!("FAIL_SIZE={bytes}"));
            }
            command.arg(format!("FAIL_ALLOCATION={number}")).arg(format!("FAIL_COUNT={}", count.display()))
        }
    };
    // No core of each abort.
    let line = "ulimit -c 0; exec \"$@\"";
    command.args(["sh", "-c", line, "sh", env!("CARGO_BIN_EXE_isotherm")]).args(arguments);
    let output = command.env_remove("RUST_BACKTRACE").stdin(Stdio::null()).output().expect("it starts");
    let text = fs::read_to_string(&count).unwrap_or_default();
    let _ = fs::remove_file(&count);
    (output, text.split_whitespace().next().and_then(|count| count.parse().ok()))
}

/// Whether Rust's runtime ended the tool: it allocates a new thread's handle past the tool's allocator.
fn runtime_lacked_memory(told: &str) -> bool {
    told.starts_with("memory allocation of ") && told.contains(" bytes failed")
}

/// Says what is wrong about the end of a tool that launched the program.
fn judge(native: &(String, Option<i32>), output: &Output) -> Result<(), String> {
    let out = String::from_utf8_lossy(&output.stdout);
    let told = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    if out.is_empty() && runtime_lacked_memory(&told) {
        return Ok(());
    }
    let is = |right: bool, what: &str| if right { Ok(()) } else { Err(what.to_owned()) };
    is(code != Some(124) && code != Some(137), "it hangs")?;
    is(!told.contains("panicked"), "it panics")?;
    is(told.lines().count() <= 1 || runtime_lacked_memory(&told), "it says more than a line")?;
    match (out.is_empty(), code == native.1) {
        (true, _) => {
            is(!told.is_empty(), "it does not say why the program did not start")?;
            is(code != Some(0) && code != native.1, "it succeeds without the program")
        }
        (false, true) => is(*out == native.0, "the program's output is wrong"),
        (false, false) => Err("it replaces the program's status".into()),
    }
}

/// Fails points one after the other: all, or a sample spread over the run. A `case` fails one, none for 0,
/// and returns how many there were and what was wrong.
fn torture(name: &str, case: impl Fn(u64) -> (Option<u64>, Result<(), String>) + Sync) {
    let (count, plain) = case(0);
    plain.unwrap_or_else(|wrong| panic!("{name}, nothing failing: {wrong}"));
    let count = count.expect("the number of points");
    let wanted = std::env::var("ISOTHERM_TORTURE_POINTS").ok();
    let (most, time) = match wanted.as_deref() {
        None => (count, SAMPLE),
        Some("all") => (count, Duration::MAX),
        Some(number) => (number.parse().expect("ISOTHERM_TORTURE_POINTS: a number or all"), Duration::MAX),
    };
    // Steps of the golden section spread any number of points evenly.
    let golden = (count as f64 * 0.618) as u64;
    let step = (golden..golden + count).find(|&step| coprime(step, count)).unwrap_or(1);
    let (next, begun, wrong) = (AtomicU64::new(0), Instant::now(), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Relaxed);
            if at >= most.min(count) || begun.elapsed() >= time {
                return;
            }
            let number = 1 + at * step % count;
            if let Err(why) = case(number).1 {
                wrong.lock().expect("no panics").push(format!("{number}: {why}"));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let (tried, wrong) = (next.into_inner().min(count), wrong.into_inner().expect("no panics"));
    eprintln!("{name}: {tried} of {count} points, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{name}\n{}", wrong.join("\n"));
}

fn coprime(a: u64, b: u64) -> bool {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}

/// Returns the arguments of a session that uses most of what there is.
fn session(bench: &Bench, source: &str, policy: &str) -> Vec<String> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let own = |name: &str| bench.at(&format!("{name}-{}", NEXT.fetch_add(1, Relaxed))).display().to_string();
    let options = ["run", "--shadow", "--quiet", "--overhead", "50%", "--source", source, "--policy", policy];
    let mut words: Vec<String> = options.map(str::to_owned).into();
    words.extend(["--control".into(), own("control"), "--summary".into(), own("summary")]);
    words.extend(["--".into(), bench.at("program").display().to_string()]);
    words
}

/// Fails one point of a session that launches the program.
fn launch(
    bench: &Bench,
    fault: Fault,
    source: &str,
    policy: &str,
    number: u64,
) -> (Option<u64>, Result<(), String>) {
    let (output, count) = run(bench, fault, number, &session(bench, source, policy));
    let right = judge(&bench.native, &output);
    let untouched = number > 0 || output.status.code() == bench.native.1;
    let right = right.and(if untouched { Ok(()) } else { Err("it fails".into()) });
    (count, right.map_err(|wrong| format!("{wrong}: {output:?}")))
}

/// Fails one point of a session that follows the program.
fn attach(bench: &Bench, fault: Fault, number: u64) -> (Option<u64>, Result<(), String>) {
    let program =
        Command::new(bench.at("program")).arg("3").stdout(Stdio::piped()).spawn().expect("it starts");
    let words =
        ["attach", "--shadow", "--quiet", "--policy", "multi-clock", "--for", "300ms"].map(str::to_owned);
    let (output, count) = run(bench, fault, number, &[&words[..], &[program.id().to_string()]].concat());
    let ended = program.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr);
    let one_line = runtime_lacked_memory(&told)
        || told.lines().count() == usize::from(!output.status.success()) && !told.contains("panicked");
    let right = if ended.stdout != bench.thrice || ended.status.code() != bench.native.1 {
        Err(format!("the program's end is wrong: {ended:?}"))
    } else if !one_line || output.status.code() == Some(124) || (number == 0 && !output.status.success()) {
        Err(format!("{output:?}"))
    } else {
        Ok(())
    };
    (count, right)
}

/// Ways to observe a program: the source and its overhead, which only hint faults go by.
const MODES: [(&str, &str); 4] =
    [("hint-faults", "2%"), ("hint-faults", "10%"), ("hint-faults", "50%"), ("accessed-bits", "2%")];

/// Returns these ways, or, in the quick form, one overhead of each source, another one for each `at`.
fn modes(at: usize, sources: &[&str]) -> Vec<(&'static str, &'static str)> {
    let all = std::env::var("ISOTHERM_TORTURE").is_ok_and(|value| value == "all");
    let chosen = |mode: &(&str, &str)| all || mode.0 != "hint-faults" || *mode == MODES[at % 3];
    MODES.into_iter().filter(|mode| sources.contains(&mode.0) && chosen(mode)).collect()
}

const SESSIONS: [(&str, &str); 2] = [("hint-faults", "hybridtier"), ("accessed-bits", "multi-clock")];

#[test]
fn every_failing_system_call_leaves_the_program_right() {
    let bench = Bench::new();
    for (source, policy) in SESSIONS {
        let name = format!("system calls of run, {source}");
        torture(&name, |number| launch(&bench, Fault::SystemCall, source, policy, number));
    }
    torture("system calls of attach", |number| attach(&bench, Fault::SystemCall, number));
}

#[test]
fn every_failing_system_call_of_an_agent_leaves_the_program_right() {
    let bench = Bench::new();
    let (source, policy) = SESSIONS[0];
    torture("system calls of the agent", |number| launch(&bench, Fault::AgentCall, source, policy, number));
}

#[test]
fn every_failing_allocation_leaves_the_program_right() {
    let bench = Bench::new();
    for (source, policy) in SESSIONS {
        let name = format!("allocations of run, {source}");
        torture(&name, |number| launch(&bench, Fault::Allocation, source, policy, number));
    }
}

#[test]
fn every_failing_allocation_of_attach_leaves_the_program_right() {
    let bench = Bench::new();
    torture("allocations of attach", |number| attach(&bench, Fault::Allocation, number));
}

/// The program was forked, and nobody knew of it yet, when memory for its name was asked for.
#[test]
fn a_program_whose_name_finds_no_memory_keeps_its_status() {
    let bench = Bench::new();
    let (source, policy) = SESSIONS[0];
    let name = Fault::AllocationOf(bench.at("program").as_os_str().len());
    torture("allocations as long as the name", |number| launch(&bench, name, source, policy, number));
}
