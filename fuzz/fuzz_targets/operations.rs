//! Any bytes as a file of the daemon's log give a replay and a trace, or errors of one line.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;
use std::{env, fs, process};

use isotherm_daemon::log::{LogError, LogReader};
use isotherm_daemon::replay::{Replay, perfetto};
use libfuzzer_sys::fuzz_target;

/// File that holds the current input.
static INPUT: LazyLock<PathBuf> =
    LazyLock::new(|| env::temp_dir().join(format!("isotherm-fuzz-{}.log.parquet", process::id())));

fn check<T>(result: Result<T, LogError>) {
    if let Err(error) = result {
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    fs::write(&*INPUT, bytes).expect("the temporary directory takes the input");
    let reader = LogReader::open(&INPUT).expect("it is there");
    check(reader.span());
    check(perfetto(&reader, i64::MIN, i64::MAX));
    check(Replay::new(reader, i64::MIN).advance(i64::MAX));
});
