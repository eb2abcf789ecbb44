//! The importers, on real output of the tools and on garbage.

mod champsim;
mod damon_records;
mod drmemtrace;
mod memtierd;
mod packing;

use std::io::{BufReader, Cursor};

use isotherm_core::cache::Geometry;
use isotherm_core::{Bytes, PageSize};
use isotherm_trace::import::{self, HeatOptions, ImportError, ImportSummary, PerfOptions};
use isotherm_trace::{Provenance, Row, Rows, TraceReader, TraceWriter, export};
use proptest::prelude::*;

/// Real output: `valgrind --tool=lackey --trace-mem=yes` of a static program, its first 300 instructions and
/// accesses.
const LACKEY: &str = include_str!("../data/lackey.txt");
/// Real output: `perf record -e page-faults -d` of a shell pipeline, some of its samples.
const PERF_SCRIPT: &str = include_str!("../data/perf-script.txt");
/// The same samples as printed by `perf mem report -D`.
const PERF_MEMORY: &str = include_str!("../data/perf-mem-report.txt");
/// The example in DAMON's user-space tool's USAGE.md.
const DAMON: &str = include_str!("../data/damon.txt");

type Imported = Result<(Rows, ImportSummary), ImportError>;

fn collect(import: impl FnOnce(&mut dyn FnMut(&Rows)) -> Result<ImportSummary, ImportError>) -> Imported {
    let mut all = Rows::default();
    let summary = import(&mut |rows| all.extend_from(rows, 0..rows.len()))?;
    assert_eq!(summary.rows, all.len() as u64);
    Ok((all, summary))
}

fn lackey(text: &[u8], lines: u64) -> Imported {
    let geometry = Geometry::new(Bytes(lines << 6), 4).expect("a geometry");
    collect(|sink| import::lackey(Cursor::new(text), geometry, sink))
}

fn perf(text: &[u8], options: PerfOptions) -> Imported {
    collect(|sink| import::perf(Cursor::new(text), &options, sink))
}

fn damon(text: &[u8], options: HeatOptions) -> Imported {
    collect(|sink| import::damon(Cursor::new(text), &options, sink))
}

/// Counts lines of the sample that begin with a prefix.
fn starting(text: &str, starts: &[&str]) -> u64 {
    text.lines().filter(|line| starts.iter().any(|start| line.starts_with(start))).count() as u64
}

#[test]
fn lackeys_accesses_pass_the_cache_and_its_instructions_are_counted() {
    let (rows, summary) = lackey(LACKEY.as_bytes(), 1 << 14).expect("real output");
    assert_eq!(summary.accesses, starting(LACKEY, &[" L", " S", " M"]));
    assert!(summary.accesses > 50, "the sample has accesses");
    let mut lines: Vec<u64> = rows.line.clone();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), rows.len(), "a large cache misses each line once");
    let instructions: u64 = rows.instructions.iter().map(|&count| u64::from(count)).sum();
    let counted = starting(LACKEY, &["I "]);
    assert!((1..=counted).contains(&instructions), "{instructions} of {counted}");
}

#[test]
fn lackeys_rows_are_the_misses_in_order() {
    let text = "==7== Lackey\nI  00401000,3\nI  00401003,2\n L 1000,8\n S 1008,8\nI  00401005,1\n S 203c,8\n M 3000,4\n";
    let (rows, summary) = lackey(text.as_bytes(), 64).expect("Lackey's form");
    let row =
        |instructions, line, store| Row { process: 0, thread: 0, instructions, line, store, dependence: 0 };
    let expected = [row(2, 0x40, false), row(1, 0x80, true), row(0, 0x81, true), row(0, 0xc0, false)];
    assert_eq!(rows.iter().collect::<Vec<_>>(), expected, "0x203c with 8 bytes crosses a line");
    assert_eq!((summary.lines, summary.accesses, summary.rows), (8, 4, 4));
}

#[test]
fn perf_script_gives_a_row_a_sample() {
    let (rows, summary) = perf(PERF_SCRIPT.as_bytes(), PerfOptions::default()).expect("real output");
    assert_eq!(summary.accesses, PERF_SCRIPT.lines().count() as u64);
    assert_eq!(summary.rows + summary.skipped, summary.accesses);
    let processes = ["sh", "sh", "sort", "sh", "uniq"];
    assert_eq!(summary.processes, processes.map(String::from), "two children are shells until they execute");
    // The first line of the sample: "sh 21292/21292  2107.241423: page-faults:     55fec2ae7240".
    let first = Row {
        process: 0,
        thread: 0,
        instructions: 100,
        line: 0x55fe_c2ae_7240 >> 6,
        store: false,
        dependence: 0,
    };
    assert_eq!(rows.get(0), first);
}

#[test]
fn perf_memory_reports_give_a_row_a_sample() {
    let (rows, summary) = perf(PERF_MEMORY.as_bytes(), PerfOptions::default()).expect("real output");
    assert_eq!(summary.accesses, PERF_MEMORY.lines().count() as u64 - 1, "all but the heading");
    assert!(!rows.is_empty() && rows.store.iter().all(|&store| store == 0), "page faults are no stores");
    assert!(summary.processes[0].starts_with("process "), "{:?}", summary.processes);
}

/// Output of `perf script -F comm,pid,tid,cpu,time,period,event,addr,data_src,weight` where the processor
/// samples memory.
const SAMPLED: &str = "\
redis 1 90/91 [003]  12.000001:  1000  mem-loads:P:  7f0000001040  68100842 |OP LOAD|LVL L3 hit|SNP None  61
redis 1 90/91 [003]  12.000002:  1000  mem-loads:P:  7f0000001080  68101042 |OP LOAD|LVL Local RAM hit|SNP None  300
redis 1 90/90 [001]  12.000003:  1000  mem-stores:P:  7f00000010c0
redis 1 90/90 [001]  12.000004:  1000  mem-stores:P:  0
redis 1 90/90 [001]  12.000005:  1000  mem-loads:P:  ffff888000001000
";

#[test]
fn perf_samples_tell_period_thread_operation_and_level() {
    let (rows, summary) = perf(SAMPLED.as_bytes(), PerfOptions::default()).expect("perf's form");
    let row =
        |thread, line, store| Row { process: 0, thread, instructions: 100_000, line, store, dependence: 0 };
    let expected = [row(0, 0x7f00_0000_1080 >> 6, false), row(1, 0x7f00_0000_10c0 >> 6, true)];
    assert_eq!(rows.iter().collect::<Vec<_>>(), expected);
    assert_eq!((summary.accesses, summary.skipped), (5, 3), "a hit, no address, the kernel's address");
    assert_eq!(summary.processes, ["redis 1"]);
    let all = PerfOptions { misses_only: false, ..PerfOptions::default() };
    assert_eq!(perf(SAMPLED.as_bytes(), all).expect("perf's form").1.skipped, 2);
}

#[test]
fn damons_regions_become_rounds_of_accesses() {
    let (rows, summary) = damon(DAMON.as_bytes(), HeatOptions::default()).expect("real output");
    let pages = |start: u64, end: u64| (end - start) / 4096;
    let large = pages(0x563e_baa0_0000, 0x563e_bc99_e000);
    let small = pages(0x7fff_66b0_a000, 0x7fff_66bb_2000);
    assert_eq!(summary.rows, 2 * large + 5 * small);
    assert_eq!(summary.processes, ["target 18446623438842320000"]);
    let first = 0x563e_baa0_0000 >> 12;
    assert!(rows.iter().take(large as usize).map(|row| row.line >> 6).eq(first..first + large));
    let per_row = rows.instructions[0];
    assert_eq!(per_row, (104_599_f64 * 1000.0 / large as f64) as u32, "the interval's instructions, evenly");
}

#[test]
fn bad_lines_are_named() {
    let error = |imported: Imported| imported.expect_err("bad").to_string();
    let message = error(lackey(b" L 1000,8\nhello\n", 64));
    assert_eq!(
        message,
        "line 2: 'hello'; expected Lackey's 'I  address,size', ' L address,size', ' S ...' or ' M ...'"
    );
    for text in
        [" L 1000", " L xyz,8", " L 1000,0", " L 1000,99999999", " L ffffffffffffffff,8", " Q 1,1", "\u{e9}"]
    {
        assert!(error(lackey(text.as_bytes(), 64)).starts_with("line 1: "), "{text}");
    }
    for text in ["sort 1/2 3.0: faults:", "sort x/2 3.0: faults: 1000", "1 2 0x3 0x4", "nothing"] {
        let message = error(perf(text.as_bytes(), PerfOptions::default()));
        assert!(message.starts_with("line 1: ") && message.contains("perf script -F"), "{message}");
    }
    for text in ["1000-2000(4 KiB): 1", "target_id: 1\n1000(4 KiB): 1", "monitoring_duration: long", "what?"]
    {
        assert!(error(damon(text.as_bytes(), HeatOptions::default())).contains("; expected "), "{text}");
    }
    let endless = vec![b'x'; 1 << 17];
    assert!(error(lackey(&endless, 64)).contains("a line of at most 65535 bytes"));
}

#[test]
fn a_reader_that_fails_is_an_error() {
    struct Failing;
    impl std::io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the pipe broke"))
        }
    }
    let error = collect(|sink| import::perf(BufReader::new(Failing), &PerfOptions::default(), sink));
    assert_eq!(error.expect_err("broken").to_string(), "line 1: cannot read: the pipe broke");
}

/// Sample with some of its bytes replaced.
fn mangled(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec((0..text.len(), any::<u8>()), 1..8).prop_map(move |changes| {
        let mut bytes = text.as_bytes().to_vec();
        changes.into_iter().for_each(|(position, value)| bytes[position] = value);
        bytes
    })
}

fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let token = proptest::sample::select(vec![
        "I ",
        " L ",
        "1000",
        ",",
        "8",
        "\n",
        "12/13",
        "1.5:",
        "f:",
        "ffffffffffffffff",
        "|OP",
        "0x",
        "-",
        "(",
        "):",
        "[0]",
        "target_id:",
        "monitoring_start:",
        "monitoring_duration:",
        "ms",
        " ",
        "99999999999999999999",
    ]);
    let words = proptest::collection::vec(token, 0..40).prop_map(|words| words.concat().into_bytes());
    let bytes = proptest::collection::vec(any::<u8>(), 0..300);
    prop_oneof![words, bytes, mangled(LACKEY), mangled(PERF_SCRIPT), mangled(SAMPLED), mangled(DAMON)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn garbage_gives_rows_or_an_error(text in garbage()) {
        // Large steps, so that an absurd region makes few rows.
        let options = HeatOptions { bytes_per_access: 1 << 40, ..HeatOptions::default() };
        for imported in [lackey(&text, 64), perf(&text, PerfOptions::default()), damon(&text, options)] {
            if let Err(error) = imported {
                prop_assert!(!error.to_string().contains('\n'), "{}", error);
            }
        }
    }
}

/// A record of oracleGeneral.
fn record(object: u64, next: i64) -> Vec<u8> {
    let mut bytes = 7u32.to_le_bytes().to_vec();
    bytes.extend(object.to_le_bytes());
    bytes.extend(4096u32.to_le_bytes());
    bytes.extend(next.to_le_bytes());
    bytes
}

fn oracle_general(bytes: &[u8]) -> Imported {
    collect(|sink| import::oracle_general(Cursor::new(bytes), sink))
}

#[test]
fn objects_of_oracle_general_become_pages_in_the_order_of_appearance() {
    let records = [record(u64::MAX, 2), record(5, -1), record(u64::MAX, i64::MAX)].concat();
    let (rows, summary) = oracle_general(&records).expect("three records");
    assert_eq!((rows.line, summary.accesses), (vec![0, 64, 0], 3));
    assert_eq!((rows.instructions, rows.store), (vec![100; 3], vec![0; 3]));
    assert_eq!(oracle_general(&[]).expect("no record").0.len(), 0);
}

#[test]
fn truncated_and_other_files_are_refused_in_one_line() {
    let refused = |bytes: &[u8]| oracle_general(bytes).expect_err("no oracleGeneral").to_string();
    let records = [record(1, 1), record(1, -1)].concat();
    assert_eq!(
        refused(&records[..47]),
        "record 1: 23 bytes of 24; expected a whole record: the file is truncated"
    );
    let later = "expected a record of oracleGeneral, whose next use comes later";
    assert_eq!(refused(&[record(1, 0)].concat()), format!("record 0: next use 0; {later}"));
    assert_eq!(refused(&[record(1, 1), record(1, -2)].concat()), format!("record 1: next use -2; {later}"));
    assert!(refused(&[0; 24]).starts_with("record 0: next use 0; "));
}

/// Checks that bytes give rows or one line of error, whatever `import` they are for.
fn is_judged(import: impl FnOnce(&[u8]) -> Imported, bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Err(error) = import(bytes) {
        prop_assert!(!error.to_string().contains('\n'), "{}", error);
    }
    Ok(())
}

/// Bytes of which some are replaced and the end may be missing.
fn damaged(bytes: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (changes, 0..=bytes.len()).prop_map(move |(changes, length)| {
        let mut bytes = bytes.clone();
        changes.into_iter().for_each(|(place, value)| *place.get_mut(&mut bytes) = value);
        bytes.truncate(length);
        bytes
    })
}

proptest! {
    #[test]
    fn an_exported_trace_comes_back_page_by_page(rows in prop::collection::vec((0u32..3, 0u64..40), 1..300)) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.trace");
        let mut writer = TraceWriter::create(&path, Provenance::new("test")).expect("a new trace");
        let mut written = Rows::default();
        for &(process, page) in &rows {
            let line = (0x7f_0000_0000 + page) << 6 | page;
            let row = Row { process, thread: 0, instructions: 9, line, store: true, dependence: 1 };
            written.push(row);
        }
        writer.append(&written).expect("written");
        writer.finish().expect("finished");
        let mut records = Vec::new();
        let mut reader = TraceReader::open(&path).expect("a trace");
        let count = export::oracle_general(&mut reader, PageSize::Base, &mut records).expect("exported");
        prop_assert_eq!((count, records.len()), (rows.len() as u64, 24 * rows.len()));
        let (back, _) = oracle_general(&records).expect("it is read");
        for (first, one) in rows.iter().enumerate() {
            let next = rows[first + 1..].iter().position(|other| other == one).map(|next| first + 1 + next);
            let stored = i64::from_le_bytes(records[24 * first + 16..24 * first + 24].try_into().expect("8 bytes"));
            prop_assert_eq!(stored, next.map_or(i64::MAX, |next| next as i64));
            let same = |other: usize| back.line[other] == back.line[first];
            prop_assert!((0..rows.len()).all(|other| same(other) == (rows[other] == *one)));
        }
    }
}
