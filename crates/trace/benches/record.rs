//! Measures the cost of recording: programs natively, under plain emulation, recorded, and with dependences.
//!
//! GNU sort of a million lines, git, xz, a Python dictionary and sqlite3, as far as they are installed; and
//! the start-up of a short program over plain emulation. Repetitions are interleaved, since other load on the
//! machine changes with time. The time is from start to exit, including the trace's conversion to Parquet;
//! the processor time is that of all processes and threads. `ISOTHERM_BENCH_REPETITIONS` (5) is their number,
//! and `ISOTHERM_BENCH_PROGRAMS` (`sort,git,xz,python3,sqlite3,true`) names programs. The plugin is the one
//! built with this bench, or the one that `ISOTHERM_RECORDER_PLUGIN` names.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use isotherm_trace::record::{RecordOptions, record};

const LINES: u64 = 1_000_000;
const MODES: [&str; 4] = ["native", "emulated", "recorded", "with dependences"];
/// Clock ticks per second, as Linux reports times to programs on every machine.
const TICKS: f64 = 100.0;

const DICTIONARY: &str = "\
counts, x = {}, 1
for i in range(400000):
    x = (x * 6364136223846793005 + 1442695040888963407) & 0xffffffffffffffff
    counts[x >> 40] = counts.get(x >> 40, 0) + i
";

const DATABASE: &str = "\
CREATE TABLE t(a INTEGER PRIMARY KEY, b INTEGER, c TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<100000)
INSERT INTO t SELECT i, (i*7919)%100003, 'row '||i FROM n;
CREATE INDEX ib ON t(b);
CREATE TABLE joined AS SELECT t.a, t.c FROM t JOIN (SELECT b x FROM t WHERE b%3=0) ON t.b=x;
CREATE TABLE grouped AS SELECT b%100 k, count(*), max(c) FROM t GROUP BY 1 ORDER BY 2;
";

/// Seconds from start to end, and of processor time.
type Times = (f64, f64);

struct Program {
    title: &'static str,
    locale: &'static str,
    /// Its path and arguments.
    command: Vec<OsString>,
    /// Runs in place of each repetition, so that a short one can be measured.
    runs: usize,
}

fn main() {
    let repetitions = std::env::var("ISOTHERM_BENCH_REPETITIONS").ok().and_then(|count| count.parse().ok());
    let wanted = std::env::var("ISOTHERM_BENCH_PROGRAMS").unwrap_or_default();
    let directory = tempfile::tempdir().expect("a directory");
    let lines = lines();
    fs::write(directory.path().join("lines"), &lines).expect("the input is written");
    for name in ["sort", "git", "xz", "python3", "sqlite3", "true"] {
        if !wanted.is_empty() && !wanted.split(',').any(|wanted| wanted == name) {
            continue;
        }
        let Some(path) = find(name) else {
            println!("\n{name} is not installed: skipped");
            continue;
        };
        for program in programs(name, path, directory.path(), &lines) {
            let mut times: [Vec<Times>; 4] = Default::default();
            for _ in 0..repetitions.unwrap_or(5).max(1) {
                for (mode, times) in times.iter_mut().enumerate() {
                    times.push(measure(mode, &program, directory.path()));
                }
            }
            print(&program, &times);
        }
    }
}

/// Returns the program of this name in `PATH`, not a script that starts it.
fn find(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let mut paths = std::env::split_paths(&folders).map(|folder| folder.join(name));
    let path = paths.find(|path| path.is_file())?;
    if name != "python3" {
        return Some(path);
    }
    let output = Command::new(path).args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_file().then_some(path)
}

/// Returns what to measure of the program at `path`, whose input is in the folder `within`.
fn programs(name: &str, path: PathBuf, within: &Path, lines: &str) -> Vec<Program> {
    let file = |name: &str| within.join(name).into_os_string();
    let program = |title, locale, arguments: Vec<OsString>| {
        let runs = if name == "true" { 10 } else { 1 };
        let command = std::iter::once(path.clone().into_os_string()).chain(arguments).collect();
        Program { title, locale, command, runs }
    };
    match name {
        "sort" => {
            let sort =
                |title, locale| program(title, locale, vec!["-o".into(), file("sorted"), file("lines")]);
            vec![
                sort("sort of 1000000 lines, LC_ALL=C", "C"),
                sort("sort of 1000000 lines, LC_ALL=C.UTF-8", "C.UTF-8"),
            ]
        }
        "git" => {
            let arguments = ["--git-dir".into(), file("repository"), "diff".into(), "--stat".into()];
            let output = [&OsString::from("--output="), &file("difference")]
                .map(OsString::as_os_str)
                .join("".as_ref());
            make_repository(&path, within, lines);
            let arguments = arguments.into_iter().chain([output, "old".into(), "new".into()]).collect();
            vec![program("git diff of two files of 200000 lines", "C", arguments)]
        }
        "xz" => {
            fs::write(within.join("text"), &lines[..1_500_000]).expect("the input is written");
            vec![program("xz of 1.5 MB", "C", vec!["-kfT1".into(), file("text")])]
        }
        "python3" => vec![program("a Python dictionary", "C", vec!["-c".into(), DICTIONARY.into()])],
        "sqlite3" => vec![program("sqlite3, in memory", "C", vec![":memory:".into(), DATABASE.into()])],
        _ => vec![program("start-up: true", "C", vec![])],
    }
}

/// Makes a repository of two trees with the tags `old` and `new`, whose file differs in every third line.
fn make_repository(git: &Path, within: &Path, lines: &str) {
    let old: Vec<_> = lines.lines().take(200_000).collect();
    let line =
        |(index, line): (usize, &&str)| if index % 3 == 0 { format!("{line}+") } else { (*line).into() };
    let new: Vec<String> = old.iter().enumerate().map(line).collect();
    let repository = within.join("repository");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(git);
        command.arg("--git-dir").arg(&repository).arg("--work-tree").arg(within.join("tree"));
        let status = command.args(arguments).stdout(Stdio::null()).status();
        assert!(status.is_ok_and(|status| status.success()), "git {arguments:?}");
    };
    fs::create_dir(within.join("tree")).expect("a folder");
    run(&["init", "-q"]);
    for (tag, text) in [("old", old.join("\n")), ("new", new.join("\n"))] {
        fs::write(within.join("tree/file"), text).expect("the input is written");
        run(&["add", "-A"]);
        run(&["-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", tag]);
        run(&["tag", tag]);
    }
}

/// Returns random hexadecimal numbers of 16 digits, the same each time.
fn lines() -> String {
    let mut state = 1_u64;
    (0..LINES).fold(String::new(), |mut text, _| {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        writeln!(text, "{:016x}", mixed ^ mixed >> 31).expect("strings take everything");
        text
    })
}

fn measure(mode: usize, program: &Program, directory: &Path) -> Times {
    let (start, before) = (Instant::now(), processor_time());
    for _ in 0..program.runs {
        assert_eq!(run(mode, program, directory), 0, "{} failed", program.title);
    }
    let runs = program.runs as f64;
    (start.elapsed().as_secs_f64() / runs, (processor_time() - before) / runs)
}

/// Runs a program and returns its exit status.
fn run(mode: usize, program: &Program, directory: &Path) -> i32 {
    let output = directory.join("trace");
    let _ = fs::remove_dir_all(&output);
    if mode < 2 {
        let emulator = (mode == 1).then(|| "qemu-x86_64".into());
        let words: Vec<OsString> = emulator.into_iter().chain(program.command.iter().cloned()).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env("LC_ALL", program.locale).stdin(Stdio::null());
        return command.status().expect("it starts").code().unwrap_or(1);
    }
    let mut command = vec!["env".into(), format!("LC_ALL={}", program.locale).into()];
    command.extend(program.command.iter().cloned());
    let command = if program.runs > 1 { program.command.clone() } else { command };
    let options = RecordOptions { dependence: mode == 3, ..RecordOptions::new(command, output) };
    record(&options, &mut |_| {}).expect("it is recorded").status
}

/// Returns the seconds of processor time of this process and of the children that it waited for.
fn processor_time() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").expect("Linux has /proc");
    let (_, fields) = text.rsplit_once(')').expect("the name is in parentheses");
    let ticks: u64 =
        fields.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS
}

fn print(program: &Program, times: &[Vec<Times>; 4]) {
    println!("\n{}, {} runs of each", program.title, times[0].len() * program.runs);
    println!("{:18}{:>28}{:>34}", "", "elapsed", "processor");
    println!(
        "{:18}{:>9}{:>9}{:>12}{:>11}{:>9}{:>12}",
        "", "median", "least", "x native", "median", "least", "x native"
    );
    let of = |mode: usize| (statistics(&times[mode], |time| time.0), statistics(&times[mode], |time| time.1));
    let ((native, _), (native_busy, _)) = of(0);
    for (mode, name) in MODES.iter().enumerate() {
        let ((median, least), (busy, least_busy)) = of(mode);
        println!(
            "{name:18}{median:7.3} s{least:7.3} s{:10.1} x{busy:9.3} s{least_busy:7.3} s{:10.1} x",
            median / native,
            busy / native_busy.max(1.0 / TICKS / program.runs as f64)
        );
    }
    if program.runs > 1 {
        let over = |mode: usize| of(mode).0.0 - of(1).0.0;
        println!("over plain emulation: {:.3} s, with dependences {:.3} s", over(2), over(3));
    }
}

/// Returns the median and the minimum.
fn statistics(times: &[Times], of: impl Fn(&Times) -> f64) -> (f64, f64) {
    let mut values: Vec<f64> = times.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0])
}
