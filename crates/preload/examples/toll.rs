//! Measures what hint faults cost a program: `toll LIBRARY SECONDS`.
//!
//! A program touches 64 MiB (a tenth of the pages gets nine tenths of the accesses) and counts its accesses
//! in a file. Its engine turns sampling on and off every quarter of a second; each pair of neighbours gives
//! one ratio, and the tool prints their median. Other load of the machine affects both alike.
//!
//! It prints two ratios: of accesses in the same time, and of accesses in the same time less what the program
//! spent ready to run but waiting for a processor (`/proc/PID/schedstat`). On an idle machine they are equal;
//! on a busy one the second is the cost of hint faults, and the first is mostly noise.

use std::os::unix::fs::FileExt;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use isotherm_core::{Nanos, Sampling, SamplingRate, SamplingScope};
use isotherm_linux::hint_faults::{HintFaultOptions, HintFaultSource};
use isotherm_linux::process::Pid;
use isotherm_linux::source::AccessSource;

const SLICE: Duration = Duration::from_millis(250);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--work", file] => work(file),
        [library, seconds] => measure(library, seconds),
        _ => Err("usage: toll LIBRARY SECONDS".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("toll: {error}");
            ExitCode::FAILURE
        }
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Runs the program: accesses memory for ever.
fn work(file: &str) -> Outcome {
    const PAGES: u64 = 16384;
    let file = std::fs::File::options().write(true).open(file)?;
    let mut memory = vec![1u64; (PAGES * 512) as usize];
    let (mut state, mut done) = (1u64, 0u64);
    loop {
        for _ in 0..20_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let hot = state & 0xff < 230;
            let draw = state >> 20 & 0xffff_ffff;
            // Hot pages are every tenth.
            let page = if hot { ((draw * (PAGES / 10)) >> 32) * 10 } else { (draw * PAGES) >> 32 };
            let word = &mut memory[(page * 512 + (state >> 55)) as usize];
            *word = word.wrapping_add(state);
        }
        done += 20_000;
        file.write_all_at(&done.to_ne_bytes(), 0)?;
    }
}

fn measure(library: &str, seconds: &str) -> Outcome {
    let folder = std::env::temp_dir().join(format!("toll-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let path = folder.join("count");
    std::fs::write(&path, [0; 8])?;
    let mut source = HintFaultSource::open(HintFaultOptions::default())?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("--work")
        .arg(&path)
        .envs(source.environment(library.as_ref()))
        .spawn()?;
    source.follow(Pid(child.id()))?;
    let result = alternate(&mut source, child.id(), &path, Duration::from_secs(seconds.parse()?));
    child.kill()?;
    child.wait()?;
    std::fs::remove_dir_all(folder)?;
    result
}

/// Returns the seconds that the main thread has waited for a processor.
fn delayed(process: u32) -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(format!("/proc/{process}/schedstat"))?;
    Ok(text.split_whitespace().nth(1).ok_or("no second field")?.parse::<f64>()? / 1e9)
}

fn alternate(source: &mut HintFaultSource, process: u32, path: &std::path::Path, time: Duration) -> Outcome {
    let file = std::fs::File::open(path)?;
    let count = || -> std::io::Result<u64> {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, 0).map(|()| u64::from_ne_bytes(bytes))
    };
    let slice = |source: &mut HintFaultSource, on: bool, time: Duration| {
        let rate = if on { SamplingRate::Frequency(1_000_000) } else { SamplingRate::Off };
        let tick = Nanos(10_000_000);
        source.request(&Sampling::loads(rate, SamplingScope::AllTiers, 4096, tick).and_stores())?;
        std::thread::sleep(Duration::from_millis(20));
        let (begin, from, delay, mut accesses) = (Instant::now(), count()?, delayed(process)?, Vec::new());
        while begin.elapsed() < time {
            std::thread::sleep(Duration::from_millis(10));
            accesses.clear();
            source.drain(&mut accesses)?;
        }
        let (done, delay) = ((count()? - from) as f64, delayed(process)? - delay);
        let seconds = begin.elapsed().as_secs_f64();
        Ok::<_, Box<dyn std::error::Error>>([done / seconds, done / (seconds - delay).max(1e-3)])
    };
    slice(source, true, Duration::from_secs(2))?;
    let (start, before) = (Instant::now(), source.statistics());
    let (mut ratios, mut undelayed, mut with_sampling) = (Vec::new(), Vec::new(), Duration::ZERO);
    while start.elapsed() < time {
        // In both orders, so that a drift of the machine's speed cancels out.
        let on_first = ratios.len() % 2 == 0;
        let first = slice(source, on_first, SLICE)?;
        let second = slice(source, !on_first, SLICE)?;
        let (on, off) = if on_first { (first, second) } else { (second, first) };
        ratios.push(off[0] / on[0] - 1.0);
        undelayed.push(off[1] / on[1] - 1.0);
        with_sampling += SLICE + Duration::from_millis(20);
    }
    let (after, counted) = (source.statistics(), source.counted());
    let part = |nanos: u64| 100.0 * nanos as f64 / with_sampling.as_nanos() as f64;
    for (name, ratios) in [("in all", &mut ratios), ("less waiting for a processor", &mut undelayed)] {
        ratios.sort_by(f64::total_cmp);
        let at = |part: usize| 100.0 * ratios[ratios.len() * part / 4];
        let count = ratios.len();
        println!(
            "{count} pairs, {name}: slowdown median {:.2} % (quartiles {:.2}, {:.2})",
            at(2),
            at(1),
            at(3)
        );
    }
    println!(
        "agent {:.2} % of a core; program lost {:.2} % (estimated)",
        part(after.agent_cpu.0 - before.agent_cpu.0),
        part(after.program_time.0 - before.program_time.0)
    );
    println!("{counted:?}");
    Ok(())
}
