use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use isotherm_core::live_result::Traffic;
use isotherm_core::machine_status::{GroupStatus, MachineStatus, MappingStatus, ProgramStatus};
use isotherm_core::{Bytes, Nanos};
use proptest::prelude::*;

use super::*;
use crate::journal::{Priority, Told};
use crate::replay::{Replay, perfetto};

/// Start of the daemon in tests: 2026-11-26T03:00:00 UTC.
pub(crate) const START: u64 = 1_795_662_000;

/// Returns the state of a daemon with two groups after some seconds.
pub(crate) fn status(second: u64) -> MachineStatus {
    let program = |pid: u32| ProgramStatus { pid, command: "post\"gres".into(), ..ProgramStatus::default() };
    let group = |name: &str, programs: Vec<ProgramStatus>| GroupStatus {
        name: name.into(),
        policy: "isotherm".into(),
        resident_bytes: vec![Bytes(4096 * second), Bytes(8192)],
        hits: vec![90 * second, 10 * second],
        traffic: Traffic { promotions: 7 * (second / 10), ..Traffic::default() },
        running_ns: Nanos(second * 400_000_000),
        programs,
        ..GroupStatus::default()
    };
    MachineStatus {
        started_unix_s: START,
        time_ns: Nanos(second * Nanos::SECOND.0),
        cpu_ns: Nanos(second * 1_000_000),
        fast_bytes: Bytes(1 << 30),
        groups: vec![
            group("database", vec![program(7)]),
            group("batch", (8..8 + second as u32 % 2).map(program).collect()),
        ],
        ..MachineStatus::default()
    }
}

pub(crate) fn mappings() -> Vec<MappingStatus> {
    let cells = vec![(5, 100), (0, 0)];
    vec![MappingStatus { pid: 7, start: 1 << 30, bytes: Bytes(4 << 20), cells, ..MappingStatus::default() }]
}

fn bounds(directory: &Path, size: u64) -> Bounds {
    Bounds { directory: directory.to_owned(), size: Bytes(size), age: Nanos(3600 * Nanos::SECOND.0) }
}

fn told() -> Vec<Told> {
    vec![Told { priority: Priority::Warning, message: "late".into(), group: "database".into() }]
}

/// Logs some seconds, and the memory by address in each twentieth.
pub(crate) fn write(directory: &Path, seconds: std::ops::Range<u64>) {
    let mut log = Log::start(bounds(directory, 1 << 30), EVERY).expect("a directory");
    for second in seconds {
        assert!(log.take(&mut status(second), || if second == 3 { told() } else { Vec::new() }));
        if second % 20 == 0 {
            log.take_heat("database", &mappings());
        }
    }
}

/// Logs a second, and waits until the rows before it are written or dropped: each second is a file.
fn step(log: &mut Log, second: u64) {
    let rows = |log: &Log| log.status().written_rows + log.status().dropped_rows;
    let expected = rows(log) + log.rows.len() as u64;
    log.take(&mut status(second), Vec::new);
    let deadline = Instant::now() + Duration::from_secs(20);
    while rows(log) < expected {
        assert!(Instant::now() < deadline, "{:?}", log.status());
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn steps(log: &mut Log, seconds: std::ops::RangeInclusive<u64>) {
    seconds.for_each(|second| step(log, second));
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = all.filter(|path| path.extension().is_some_and(|end| end == "parquet")).collect();
    files.sort();
    files
}

fn rows(path: &Path) -> Result<Vec<Row>, LogError> {
    let mut rows = Vec::new();
    LogReader::open(path)?.read(i64::MIN, i64::MAX, |row| {
        rows.push(row.clone());
        Ok(())
    })?;
    Ok(rows)
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("deep/log");
    write(&directory, 1..41);
    assert_eq!(files(&directory).len(), 1, "one file in less than a minute");
    let read = rows(&directory).expect("a log");
    let of = |kind: Kind| read.iter().filter(move |row| row.kind == kind);
    assert_eq!([Kind::Machine, Kind::Group, Kind::Heat].map(|kind| of(kind).count()), [40, 80, 2]);
    let second = of(Kind::Group).nth(3).expect("the second moment's second group");
    assert_eq!(second.time_us, (START as i64 + 2) * 1_000_000);
    assert_eq!(second.parse::<GroupStatus>(&mut 0.0), Ok(status(2).groups[1].clone()));
    let events: Vec<Event> = of(Kind::Event).map(|row| row.parse(&mut 0.0).expect("an event")).collect();
    let event = |what: &str, message: &str, pid| Event { what: what.into(), message: message.into(), pid };
    assert_eq!(events[..2], [event("came", "post\"gres", Some(7)), event("came", "post\"gres", Some(8))]);
    assert_eq!(events[2..4], [event("went", "post\"gres", Some(8)), event("warning", "late", None)]);

    // A file alone is a log, and a part of the time is read without the rest.
    let mut times = Vec::new();
    let reader = LogReader::open(&files(&directory)[0]).expect("a file");
    let span = reader.span().expect("rows");
    assert_eq!([span.0, span.1].map(time), ["2026-11-26T03:00:01", "2026-11-26T03:00:40"]);
    let [from, to] =
        ["2026-11-26 03:00:05", "2026-11-26T03:00:06Z"].map(|text| parse_time(text).expect("a time"));
    let note = |row: &Row| {
        times.push(row.time_us / 1_000_000 - START as i64);
        Ok(())
    };
    reader.read(from, to, note).expect("a log");
    times.dedup();
    assert_eq!(times, [5, 6]);
}

#[test]
fn moments_are_a_second_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut log = Log::start(bounds(folder.path(), 1 << 30), EVERY).expect("a directory");
    assert!(log.take(&mut status(1), Vec::new) && !log.take(&mut status(1), told));
    drop(log);
    assert_eq!(rows(folder.path()).expect("a log").iter().filter(|row| row.kind == Kind::Machine).count(), 1);
}

/// A daemon that is killed writes nothing more: its files must be complete already.
#[test]
fn a_killed_daemon_loses_what_was_not_written_yet() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut log = Log::start(bounds(folder.path(), 1 << 30), Duration::ZERO).expect("a directory");
    steps(&mut log, 1..=5);
    std::fs::write(folder.path().join(".isotherm.tmp"), "half a file").expect("written");
    assert_eq!(files(folder.path()).len(), 4);
    assert_eq!(rows(folder.path()).expect("a log").iter().filter(|row| row.kind == Kind::Machine).count(), 4);
    std::mem::forget(log);
}

#[test]
fn the_oldest_files_go_when_there_are_too_many_or_they_are_too_old() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut log = Log::start(bounds(folder.path(), 1 << 30), Duration::ZERO).expect("a directory");
    steps(&mut log, 1..=4);
    drop(log);
    let sizes: Vec<u64> =
        files(folder.path()).iter().map(|path| path.metadata().expect("a file").len()).collect();
    let foreign = folder.path().join("isotherm-notes.parquet");
    std::fs::write(&foreign, "notes").expect("written");
    let room = sizes[2..].iter().sum::<u64>() + sizes[3] + 100;
    let mut log = Log::start(bounds(folder.path(), room), Duration::ZERO).expect("a directory");
    log.take(&mut status(5), Vec::new);
    drop(log);
    let names = |paths: Vec<PathBuf>| -> Vec<i64> {
        paths
            .iter()
            .filter_map(|path| begin(path.file_name()?.to_str()?))
            .map(|time| time / 1_000_000 - START as i64)
            .collect()
    };
    assert_eq!(names(files(folder.path())), [3, 4, 5]);
    let mut log = Log::start(bounds(folder.path(), 1 << 30), Duration::ZERO).expect("a directory");
    log.take(&mut status(3604), Vec::new);
    drop(log);
    assert_eq!(names(files(folder.path())), [4, 5, 3604], "an hour is kept");
    assert!(foreign.exists(), "a file of somebody else");
}

/// A directory that cannot be used never stops the daemon: it is told, and tried again.
#[test]
fn a_directory_that_cannot_be_used_is_tried_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("log");
    std::fs::write(&directory, "a file").expect("written");
    let start = || Log::start(bounds(&directory, 1 << 30), Duration::ZERO).expect("a thread");
    let mut log = start();
    steps(&mut log, 1..=3);
    let message = log.news().expect("news").1;
    assert!(message.contains("log: File exists") && log.status().dropped_rows > 0, "{message}");
    std::fs::remove_file(&directory).expect("removed");
    steps(&mut log, 4..=5);
    assert!(log.news().expect("news").1.contains("goes on") && log.status().written_rows > 0);
    let mut second = start();
    steps(&mut second, 6..=7);
    assert!(second.news().expect("news").1.contains("another daemon writes there"));
}

/// Set when the test starts itself with a small disk of its own.
const DISK: &str = "ISOTHERM_FULL_DISK_TEST";

/// Fills the disk, and makes room again.
fn log_on_a_full_disk(disk: &Path) {
    let mut log = Log::start(bounds(&disk.join("log"), 1 << 30), Duration::ZERO).expect("room for a folder");
    steps(&mut log, 1..=2);
    assert!(log.status().written_rows > 0);
    assert_eq!(log.news(), None);
    let filler = disk.join("filler");
    std::fs::write(&filler, vec![1; 8 << 20]).expect_err("a small disk");
    steps(&mut log, 3..=8);
    let (priority, message) = log.news().expect("news");
    assert!(priority == Priority::Warning && message.contains("No space left on device"), "{message}");
    assert_eq!(log.news(), None, "it is told once");
    assert!(!disk.join("log/.isotherm.tmp").exists(), "half a file gives its space back");
    std::fs::remove_file(filler).expect("removed");
    steps(&mut log, 9..=10);
    let (priority, message) = log.news().expect("news");
    assert!(priority == Priority::Info && message.contains("goes on"), "{message}");
    drop(log);
    let seen = rows(&disk.join("log")).expect("a log");
    let seconds: Vec<i64> = seen
        .iter()
        .filter(|row| row.kind == Kind::Machine)
        .map(|row| row.time_us / 1_000_000 - START as i64)
        .collect();
    // A small file may fit where the filler left a page.
    assert!(seconds.starts_with(&[1]) && seconds.ends_with(&[9, 10]) && seconds.len() < 10, "{seconds:?}");
}

#[test]
fn a_full_disk_loses_rows_is_told_once_and_goes_on_when_there_is_room() {
    if let Ok(disk) = std::env::var(DISK) {
        return log_on_a_full_disk(Path::new(&disk));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = "mount -t tmpfs -o size=256k tmpfs \"$0\" && exec \"$1\" --exact \"$2\" --nocapture";
    let name = "log::tests::a_full_disk_loses_rows_is_told_once_and_goes_on_when_there_is_room";
    let mut child = Command::new("unshare");
    child.args(["--map-root-user", "--mount", "sh", "-c", script]).arg(folder.path());
    child.arg(std::env::current_exe().expect("this test")).arg(name).env(DISK, folder.path());
    let output = child.output().expect("unshare of util-linux");
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    if err.contains("unshare failed") || err.contains("permission denied") {
        return eprintln!("skipped: this user may not mount a small disk: {err}");
    }
    assert!(output.status.success() && out.contains("1 passed"), "{out}{err}");
}

fn refusal(bytes: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), bytes).expect("written");
    rows(file.path()).expect_err("no log").to_string()
}

/// Returns the bytes of a file of a log.
fn file() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), 1..41);
    std::fs::read(&files(folder.path())[0]).expect("a file")
}

#[test]
fn what_is_no_log_is_refused_in_a_line() {
    let bytes = file();
    for length in (0..bytes.len()).step_by(7) {
        let message = refusal(&bytes[..length]);
        assert!(message.contains("truncated") && !message.contains('\n'), "{length}: {message}");
    }
    assert!(refusal(b"hello, this is no Parquet").contains("not a log of the daemon"));
    let folder = tempfile::tempdir().expect("a folder");
    let message = rows(folder.path()).expect_err("empty").to_string();
    assert!(message.contains("holds no file of a log; expected isotherm-*.parquet"), "{message}");
    assert!(rows(Path::new("/nowhere")).expect_err("missing").to_string().contains("cannot open"));

    let trace = folder.path().join("a.trace");
    let mut writer =
        isotherm_trace::TraceWriter::create(&trace, isotherm_trace::Provenance::new("true")).expect("new");
    let mut accesses = isotherm_trace::Rows::default();
    accesses.push(isotherm_trace::Row {
        process: 0,
        thread: 0,
        instructions: 1,
        line: 2,
        store: true,
        dependence: 0,
    });
    writer.append(&accesses).and_then(|()| writer.finish()).expect("written");
    let message = rows(&trace.join("part-00000.parquet")).expect_err("a trace").to_string();
    assert!(message.contains("it lacks the key isotherm.operations.version"), "{message}");
}

/// Returns a file with one moment whose group has this state.
fn with_group(state: &str) -> Vec<u8> {
    let row = |kind, state: &str| writer::Raw {
        time_us: 5,
        kind,
        group: "g".into(),
        figures: Default::default(),
        state: state.into(),
    };
    let machine = serde_json::to_string(&MachineStatus::default()).expect("JSON");
    writer::encode(&[row(Kind::Machine, &machine), row(Kind::Group, state)]).expect("a file")
}

#[test]
fn figures_that_no_machine_has_are_refused() {
    let group = |bytes: u64| {
        let group = GroupStatus { resident_bytes: vec![Bytes(bytes); 3], ..GroupStatus::default() };
        serde_json::to_string(&group).expect("JSON")
    };
    let replayed = |state: &str| {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), with_group(state)).expect("written");
        let reader = || LogReader::open(file.path()).expect("a file");
        let trace = perfetto(&reader(), 0, 9).map(drop).map_err(|error| error.to_string());
        let shown = Replay::new(reader(), 0).advance(9).map_err(|error| error.to_string());
        (shown, trace)
    };
    assert_eq!(replayed(&group(1 << 40)), (Ok(true), Ok(())));
    for (state, why) in
        [(group(u64::MAX), "larger than any machine's"), ("{".into(), "its state is no group")]
    {
        let (shown, trace) = replayed(&state);
        let message = shown.expect_err(&state);
        assert!(message.contains("row 1: ") && message.contains(why), "{message}");
        assert!(trace.expect_err(&state).contains(why));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutated_files_give_a_replay_or_an_error_of_one_line(mutations in proptest::collection::vec((any::<usize>(), 0u8..8, any::<u8>()), 1..6)) {
        static FILE: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(file);
        let mut bytes = FILE.clone();
        for (position, kind, value) in mutations {
            // Half of the mutations hit the footer, where the structure is.
            let footer = bytes.len() / 3;
            let index = if kind & 1 == 0 { position % bytes.len() } else { bytes.len() - 1 - position % footer };
            match kind >> 1 {
                0 => bytes[index] = value,
                1 => bytes[index] ^= 1 << (value & 7),
                2 => drop(bytes.remove(index)),
                _ => bytes.insert(index, value),
            }
        }
        let place = tempfile::NamedTempFile::new()?;
        std::fs::write(place.path(), &bytes)?;
        let reader = LogReader::open(place.path()).expect("a file is there");
        let span = reader.span().map(drop);
        let trace = perfetto(&reader, i64::MIN, i64::MAX).map(drop);
        let shown = Replay::new(reader, i64::MIN).advance(i64::MAX).map(drop);
        for error in [span, trace, shown].into_iter().filter_map(Result::err) {
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }
}
