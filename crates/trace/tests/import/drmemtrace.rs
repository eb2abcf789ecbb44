use std::fs;
use std::io::Cursor;

use isotherm_core::Bytes;
use isotherm_core::cache::Geometry;
use isotherm_trace::import::{self, TraceFile, drmemtrace_files};
use proptest::prelude::*;

use crate::packing::{Holds, gzip, is_whole, lz4, rows, zip};
use crate::{Imported, collect, damaged, is_judged};

// Types of records, and of markers, by `trace_entry.h`.
const READ: u16 = 0;
const WRITE: u16 = 1;
const PREFETCH: u16 = 2;
const INSTRUCTION: u16 = 10;
const JUMP: u16 = 48;
const REPEATED: u16 = 29;
const ENCODING: u16 = 47;
const DATA_FLUSH: u16 = 20;
const THREAD: u16 = 22;
const THREAD_EXIT: u16 = 23;
const PROCESS: u16 = 24;
const HEADER: u16 = 25;
const FOOTER: u16 = 26;
const MARKER: u16 = 28;
const TIME: u16 = 2;
const CPU: u16 = 3;
const FILE_TYPE: u16 = 9;
const VERSION: u16 = 12;
const CALL_STARTS: u16 = 27;
const CALL_ENDS: u16 = 28;

fn trace(records: &[(u16, u16, u64)]) -> Vec<u8> {
    let bytes = records.iter().map(|(kind, size, value)| {
        let mut record = [0; 12];
        record[..2].copy_from_slice(&kind.to_le_bytes());
        record[2..4].copy_from_slice(&size.to_le_bytes());
        record[4..].copy_from_slice(&value.to_le_bytes());
        record
    });
    bytes.flatten().collect()
}

/// Returns the file of a thread of process 7 with these records in it.
fn thread_file(thread: u64, records: &[(u16, u16, u64)]) -> Vec<u8> {
    let first = [
        (HEADER, 0, 7),
        (MARKER, VERSION, 7),
        // Of x86-64, with encodings, system calls' numbers and locks: what the tracer writes by default.
        (MARKER, FILE_TYPE, 0xe40),
        (THREAD, 4, thread),
        (PROCESS, 4, 7),
    ];
    trace(&[&first, records, &[(THREAD_EXIT, 4, thread), (FOOTER, 0, 0)]].concat())
}

fn files(files: Vec<TraceFile<'_>>) -> Imported {
    let geometry = Geometry::new(Bytes(1 << 20), 4).expect("a geometry");
    collect(|sink| import::drmemtrace(files, geometry, sink))
}

fn drmemtrace(bytes: &[u8]) -> Imported {
    files(vec![TraceFile { name: None, reader: Box::new(Cursor::new(bytes)) }])
}

fn small() -> Vec<u8> {
    let records = [
        (MARKER, TIME, 1000),
        (MARKER, CPU, 3),
        (ENCODING, 4, 0x1234),
        (INSTRUCTION, 4, 0x40_1000),
        (INSTRUCTION, 2, 0x40_1004),
        (READ, 8, 0x1000),
        (JUMP, 2, 0x40_1006),
        (WRITE, 8, 0x103c),
    ];
    thread_file(9, &records)
}

#[test]
fn instructions_are_counted_and_accesses_pass_the_cache() {
    let (rows, summary) = drmemtrace(&small()).expect("rows");
    let all: Vec<_> = rows.iter().map(|row| (row.line, row.instructions, row.store)).collect();
    assert_eq!(all, [(0x40, 2, false), (0x41, 1, true)], "0x103c with 8 bytes crosses a line");
    assert_eq!((rows.process, rows.thread, rows.dependence), (vec![0; 2], vec![0; 2], vec![0; 2]));
    assert_eq!((summary.accesses, summary.lines, summary.skipped), (2, 15, 0));
    assert_eq!(summary.processes, ["process 7"]);
}

#[test]
fn what_is_no_access_of_the_program_is_left_out() {
    let records = [
        (INSTRUCTION, 4, 0x40_1000),
        (REPEATED, 4, 0x40_1000),
        // Only tells where the next access comes from.
        (INSTRUCTION, 0, 0x40_1000),
        (PREFETCH, 1, 0x1000),
        (DATA_FLUSH, 64, 0x2000),
        (READ, 8, 0xffff_8000_0000_0000),
        (MARKER, CALL_STARTS, 1),
        (INSTRUCTION, 4, 0xffff_8000_0000_1000),
        (READ, 8, 0x3000),
        (MARKER, CALL_ENDS, 1),
        (READ, 0, 0x4000),
    ];
    let (rows, summary) = drmemtrace(&thread_file(9, &records)).expect("rows");
    assert_eq!((rows.line, rows.instructions), (vec![0x100], vec![1]));
    assert_eq!((summary.accesses, summary.skipped), (4, 3));
}

#[test]
fn a_trace_is_read_however_it_is_packed() {
    let bytes = small();
    let plain = rows(drmemtrace(&bytes));
    // The tracer cuts a trace at a whole record.
    let (first, second) = bytes.split_at(10 * 12);
    let chunks = zip(&[(first, Holds::Deflated), (second, Holds::Deflated)]);
    // All records are before the mark of 4 bytes that ends a frame of LZ4.
    for (packed, spare) in [(gzip(&bytes), 0), (lz4(&bytes), 4), (chunks, 0)] {
        assert_eq!(rows(drmemtrace(&packed)), plain);
        is_whole(drmemtrace, &packed[..packed.len() - spare]);
    }
    is_whole(drmemtrace, &bytes);
    assert_eq!(
        drmemtrace(&bytes[..bytes.len() - 12]).expect_err("cut off").to_string(),
        "record 14: the end; expected a footer as the last record: the file is truncated"
    );
    assert!(drmemtrace(&[]).expect_err("nothing").to_string().starts_with("record 0: the end; "));
}

/// Two threads, of which each runs twice, in turns.
fn turns() -> [Vec<u8>; 2] {
    let turn = |time, page: u64| [(MARKER, TIME, time), (INSTRUCTION, 4, 0), (READ, 8, page << 12)];
    let both = |thread, first: [_; 3], second: [_; 3]| thread_file(thread, &[first, second].concat());
    [both(20, turn(100, 1), turn(300, 3)), both(10, turn(200, 2), turn(400, 4))]
}

#[test]
fn the_threads_of_a_directory_are_merged_by_their_timestamps() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, bytes).expect("written");
    };
    let [first, second] = turns();
    write("trace/drmemtrace.app.20.0001.trace.gz", &gzip(&first));
    write("trace/drmemtrace.app.10.0002.trace.lz4", &lz4(&second));
    write("trace/serial_schedule.bin.gz", b"no trace");
    write("trace/cpu_schedule.bin.zip", b"no trace");
    write("raw/modules.log", b"no trace");
    let read = |path: &std::path::Path| files(drmemtrace_files(path).expect("files"));
    let (rows, summary) = read(folder.path()).expect("rows");
    assert_eq!((rows.line, rows.thread), (vec![0x40, 0x80, 0xc0, 0x100], vec![1, 0, 1, 0]));
    assert_eq!((rows.process, rows.instructions), (vec![0; 4], vec![1; 4]));
    assert_eq!((summary.rows, summary.processes.len()), (4, 1));
    assert_eq!(read(&folder.path().join("trace")).expect("rows").0.len(), 4);

    write("trace/other", b"something else");
    let message = read(folder.path()).expect_err("no trace").to_string();
    assert!(message.starts_with("other: record 0: type 28531; expected drmemtrace's header"), "{message}");
    let message = drmemtrace_files(&folder.path().join("raw")).err().expect("no trace").to_string();
    assert!(message.starts_with("it holds no file; expected "), "{message}");
}

#[test]
fn processes_share_the_cache_but_not_their_addresses() {
    let records = |thread: u64| [(THREAD, 4, thread), (PROCESS, 4, thread), (READ, 8, 0x1000)];
    let [one, other] = [records(1), records(2)];
    // Of a thread that was there before, only the thread is told.
    let again = [(THREAD, 4, 1), (READ, 8, 0x1000), (READ, 8, 0x2000)];
    let bytes = thread_file(9, &[&one[..], &other, &again].concat());
    let (rows, summary) = drmemtrace(&bytes).expect("rows");
    assert_eq!(
        (rows.line, rows.process, rows.thread),
        (vec![0x40, 0x40, 0x80], vec![1, 2, 1], vec![1, 2, 1])
    );
    assert_eq!(summary.processes, ["process 7", "process 1", "process 2"]);
}

#[test]
fn other_files_and_partial_traces_are_refused() {
    let refused = |bytes: &[u8]| drmemtrace(bytes).expect_err("refused").to_string();
    let header = "expected drmemtrace's header of version 1 to 7: a file *.trace.zip, *.trace.lz4 or *.trace.gz, not a raw one";
    assert_eq!(refused(&trace(&[(INSTRUCTION, 4, 0)])), format!("record 0: type 10; {header}"));
    assert_eq!(refused(&trace(&[(HEADER, 0, 8)])), format!("record 0: version 8; {header}"));
    assert_eq!(refused(&trace(&[(HEADER, 0, 0)])), format!("record 0: version 0; {header}"));
    let file_type = |file_type| refused(&trace(&[(HEADER, 0, 7), (MARKER, FILE_TYPE, file_type)]));
    for partial in [0x1, 0x4, 0x80, 0x100] {
        let message = file_type(0x40 | partial);
        assert!(
            message.starts_with("record 1: file type ") && message.contains("without a filter"),
            "{message}"
        );
    }
    for narrow in [0x10, 0x20] {
        assert!(file_type(narrow).ends_with("; expected the trace of a 64-bit program"));
    }
    let unknown = refused(&thread_file(9, &[(50, 1, 0)]));
    assert_eq!(unknown, "record 5: type 50, size 1; expected a type of record that drmemtrace writes");
    for early in [(READ, 8, 64), (INSTRUCTION, 4, 0), (PROCESS, 4, 1)] {
        let message = refused(&trace(&[(HEADER, 0, 7), early]));
        assert!(message.starts_with("record 1: no thread or process yet; expected "), "{message}");
    }
    let message = refused(&trace(&[(HEADER, 0, 7), (THREAD, 4, 1), (READ, 8, 64)]));
    assert!(message.starts_with("record 2: no thread or process yet; expected "), "{message}");
}

#[test]
fn endless_threads_and_processes_are_refused() {
    for kind in [THREAD, PROCESS] {
        let many: Vec<_> = (0..1 << 21).map(|number| (kind, 4, number)).collect();
        let message = drmemtrace(&lz4(&thread_file(9, &many))).expect_err("too many").to_string();
        assert!(message.contains("expected at most 2^20"), "{message}");
    }
}

fn two(bytes: &[u8]) -> Imported {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    files(
        [first, second].map(|bytes| TraceFile { name: Some("half".into()), reader: Box::new(bytes) }).into(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn damage_gives_rows_or_an_error(
        bytes in prop_oneof![
            damaged(small()),
            damaged(turns().concat()),
            damaged(gzip(&small())),
            damaged(lz4(&small())),
            damaged(zip(&[(&small(), Holds::Deflated)])),
            prop::collection::vec((0u16..52, any::<u16>(), any::<u64>()), 0..40)
                .prop_map(|records| thread_file(9, &records)),
        ]
    ) {
        is_judged(drmemtrace, &bytes)?;
        is_judged(two, &bytes)?;
    }
}
