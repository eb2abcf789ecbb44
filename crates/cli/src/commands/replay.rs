//! `isotherm replay`: a past hour of the daemon's log.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use isotherm_core::Nanos;
use isotherm_daemon::log::{LogReader, parse_time};
use isotherm_daemon::replay::{Replay, ReplayError, View, perfetto};

use crate::args::{ReplayLogArgs, TopArgs};
use crate::commands::top;
use crate::failure::Failure;
use crate::output::{Output, say};

/// The time that pages show.
const PAGE: Nanos = Nanos(3600 * Nanos::SECOND.0);
/// How many times as fast the terminal shows a log as it was.
const TOP_SPEED: f64 = 60.0;

pub(crate) fn run(args: &ReplayLogArgs) -> Result<(), Failure> {
    let reader = LogReader::open(&args.log).map_err(Failure::usage)?;
    let (begin, end) = reader.span().map_err(Failure::usage)?;
    let length = (args.time.0 / 1000).cast_signed();
    let from = match &args.from {
        None => end.saturating_sub(length).max(begin),
        Some(text) => start(text, end)?,
    };
    let to = from.saturating_add(length).min(end);
    if from > end || to < begin {
        return Err(Failure::usage(format!("--from: the log has nothing then; {}", extent(begin, end))));
    }
    if let Some(path) = &args.perfetto {
        let output = Output::open(path)?;
        let trace = perfetto(&reader, from, to).map_err(Failure::usage)?;
        return output.write(trace);
    }
    let speed = speed(args)?;
    let mut replay = Replay::new(reader, from);
    if speed.is_none() && !replay.advance(to).map_err(Failure::usage)? {
        return Err(Failure::usage(format!("--from: the daemon did not run then; {}", extent(begin, end))));
    }
    if args.top { in_terminal(args, replay, to, speed) } else { as_page(args, replay, to, speed) }
}

/// Parses the begin of what is shown.
fn start(text: &str, end: i64) -> Result<i64, Failure> {
    let before = |time: Nanos| end.saturating_sub((time.0 / 1000).cast_signed());
    let relative =
        text.parse().ok().filter(|_| text.ends_with(|last: char| last.is_ascii_alphabetic() && last != 'Z'));
    parse_time(text).or(relative.map(before)).ok_or_else(|| {
        Failure::usage(format!(
            "--from '{text}': expected a time in UTC such as 2026-11-26T03:00, or a time before the log's end \
             such as 2h"
        ))
    })
}

fn extent(begin: i64, end: i64) -> String {
    let [begin, end] = [begin, end].map(isotherm_daemon::log::time);
    format!("expected a time from {begin} to {end}")
}

fn speed(args: &ReplayLogArgs) -> Result<Option<f64>, Failure> {
    match args.speed {
        Some(speed) if !(0.01..=100_000.0).contains(&speed) => {
            Err(Failure::usage(format!("--speed {speed}: expected a number from 0.01 to 100000")))
        }
        None if args.top && !args.once && !args.json && io::stdout().is_terminal() => Ok(Some(TOP_SPEED)),
        None if !args.top && args.time > PAGE => {
            Err(Failure::usage("--for: expected at most 1h, as much as a page shows, or --speed"))
        }
        speed => Ok(speed),
    }
}

fn in_terminal(args: &ReplayLogArgs, replay: Replay, to: i64, speed: Option<f64>) -> Result<(), Failure> {
    let folder =
        tempfile::tempdir().map_err(|error| Failure::failed(format!("temporary folder: {error}")))?;
    let socket = folder.path().join("socket");
    let (ended, ready) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| replay.serve(to, speed, View::Socket(&socket), &ready, &ended));
        while !ready.load(Relaxed) && !serving.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let shown = match serving.is_finished() {
            true => Ok(()),
            false => top::run(&TopArgs { socket: socket.clone(), once: args.once, json: args.json }),
        };
        ended.store(true, Relaxed);
        let served = serving.join().unwrap_or(Ok(()));
        served.map_err(failure).and(shown)
    })
}

fn as_page(args: &ReplayLogArgs, replay: Replay, to: i64, speed: Option<f64>) -> Result<(), Failure> {
    let ended = Arc::new(AtomicBool::new(false));
    let noted = ended.clone();
    ctrlc::set_handler(move || noted.store(true, Relaxed)).map_err(Failure::failed)?;
    say(&format!("the page is at http://{}/ until you press Ctrl-C\n", args.listen));
    replay.serve(to, speed, View::Page(args.listen), &AtomicBool::new(false), &ended).map_err(failure)
}

fn failure(error: ReplayError) -> Failure {
    match error {
        ReplayError::Log(_) | ReplayError::Listen(_) => Failure::usage(error),
        ReplayError::Socket(_) => Failure::failed(error),
    }
}
