//! What recording costs: GNU sort of a million lines natively, recorded, and recorded with dependences, side
//! by side.
//!
//! Repetitions are interleaved, since other load on the machine changes with time. The time is from start to
//! exit, the trace's conversion to Parquet included; the processor time is that of all processes and threads.
//! `ISOTHERM_BENCH_REPETITIONS` (5) says how often. The plugin is the one built with this bench, or the one
//! that `ISOTHERM_RECORDER_PLUGIN` names.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use isotherm_trace::record::{RecordOptions, record};

const LINES: u64 = 1_000_000;
const MODES: [&str; 3] = ["native", "recorded", "with dependences"];
/// Clock ticks in a second, as Linux reports times to programs on every machine.
const TICKS: f64 = 100.0;

/// Seconds from start to end, and of processor time.
type Times = (f64, f64);

fn main() {
    let repetitions = std::env::var("ISOTHERM_BENCH_REPETITIONS").ok().and_then(|count| count.parse().ok());
    let directory = tempfile::tempdir().expect("a directory");
    let input = directory.path().join("lines");
    fs::write(&input, lines()).expect("the input is written");
    for locale in ["C", "C.UTF-8"] {
        let command: Vec<OsString> = vec![
            "env".into(),
            format!("LC_ALL={locale}").into(),
            "sort".into(),
            "-o".into(),
            directory.path().join("sorted").into(),
            input.clone().into(),
        ];
        let mut times: [Vec<Times>; 3] = Default::default();
        for _ in 0..repetitions.unwrap_or(5).max(1) {
            for (mode, times) in times.iter_mut().enumerate() {
                times.push(measure(mode, &command, directory.path()));
            }
        }
        print(locale, &times);
    }
}

/// Random hexadecimal numbers of 16 digits, the same each time.
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

fn measure(mode: usize, command: &[OsString], directory: &Path) -> Times {
    let output = directory.join("trace");
    let _ = fs::remove_dir_all(&output);
    let (start, before) = (Instant::now(), processor_time());
    let status = if mode == 0 {
        let mut native = Command::new(&command[0]);
        let status = native.args(&command[1..]).stdin(Stdio::null()).status();
        status.expect("it starts").code().unwrap_or(1)
    } else {
        let options = RecordOptions { dependence: mode == 2, ..RecordOptions::new(command.to_vec(), output) };
        record(&options, &mut |_| {}).expect("it is recorded").status
    };
    assert_eq!(status, 0, "sort failed");
    (start.elapsed().as_secs_f64(), processor_time() - before)
}

/// Seconds of processor time of this process and of the children that it waited for.
fn processor_time() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").expect("Linux has /proc");
    let (_, fields) = text.rsplit_once(')').expect("the name is in parentheses");
    let ticks: u64 =
        fields.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS
}

fn print(locale: &str, times: &[Vec<Times>; 3]) {
    println!("\nsort of {LINES} lines, LC_ALL={locale}, {} runs of each", times[0].len());
    println!("{:18}{:>28}{:>34}", "", "elapsed", "processor");
    println!(
        "{:18}{:>9}{:>9}{:>12}{:>11}{:>9}{:>12}",
        "", "median", "least", "x native", "median", "least", "x native"
    );
    let elapsed = |time: &Times| time.0;
    let processor = |time: &Times| time.1;
    let [native, native_processor] =
        [statistics(&times[0], elapsed).0, statistics(&times[0], processor).0.max(1.0 / TICKS)];
    for (name, times) in MODES.iter().zip(times) {
        let ((median, least), (busy, least_busy)) =
            (statistics(times, elapsed), statistics(times, processor));
        println!(
            "{name:18}{median:7.2} s{least:7.2} s{:10.1} x{busy:9.2} s{least_busy:7.2} s{:10.1} x",
            median / native,
            busy / native_processor
        );
    }
}

/// The median and the least.
fn statistics(times: &[Times], of: impl Fn(&Times) -> f64) -> (f64, f64) {
    let mut values: Vec<f64> = times.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0])
}
