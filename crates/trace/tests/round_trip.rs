//! Traces read back as written, and have the same bytes each time.

mod common;

use std::fs;

use common::{provenance, read, sample, write};
use isotherm_trace::{Row, Rows, TraceReader, TraceWriter};
use proptest::collection::vec;
use proptest::prelude::*;

fn any_row() -> impl Strategy<Value = Row> {
    let small = prop_oneof![any::<u32>(), 0..3u32];
    (small.clone(), small.clone(), small, any::<u64>(), any::<bool>(), any::<u8>()).prop_map(
        |(process, thread, instructions, line, store, dependence)| Row {
            process,
            thread,
            instructions,
            line,
            store,
            dependence,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_rows_in_any_parts_are_read_as_they_were_written(parts in vec(vec(any_row(), 0..200), 0..5)) {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("a.trace");
        let mut writer = TraceWriter::create(&path, provenance())?;
        let mut all = Rows::default();
        for part in &parts {
            let mut rows = Rows::default();
            part.iter().for_each(|&row| rows.push(row));
            writer.append(&rows)?;
            writer.flush_part()?;
            all.extend_from(&rows, 0..rows.len());
        }
        let summary = writer.finish()?;
        prop_assert_eq!(summary.rows, all.len() as u64);
        prop_assert_eq!(read(&path)?, all);
    }
}

#[test]
fn a_trace_of_several_parts_and_row_groups_is_read_in_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let rows = sample(2_500_000);
    let path = write(directory.path(), "a.trace", &rows);
    let reader = TraceReader::open(&path).expect("a trace");
    assert_eq!((reader.parts(), reader.rows()), (2, 2_500_000));
    assert_eq!(read(&path).expect("a trace"), rows);
    let names = fs::read_dir(&path).expect("a directory").count();
    assert_eq!(names, 2, "nothing unfinished is left");
}

#[test]
fn the_summary_and_the_reader_know_the_size_on_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.trace");
    let mut writer = TraceWriter::create(&path, provenance()).expect("a new trace");
    writer.append(&sample(1000)).expect("written");
    writer.flush_part().expect("written");
    assert!(writer.bytes() > 0);
    writer.append(&sample(10)).expect("written");
    let summary = writer.finish().expect("finished");
    let entries = fs::read_dir(&path).expect("a directory");
    let bytes: u64 =
        entries.map(|entry| entry.and_then(|entry| entry.metadata()).expect("a file").len()).sum();
    assert_eq!((summary.parts, summary.rows, summary.bytes), (2, 1010, bytes));
    assert_eq!(TraceReader::open(&path).expect("a trace").bytes_on_disk(), bytes);
}

#[test]
fn the_last_part_tells_the_provenance() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.trace");
    let mut writer = TraceWriter::create(&path, provenance()).expect("a new trace");
    writer.append(&sample(10)).expect("written");
    writer.flush_part().expect("written");
    assert_eq!(TraceReader::open(&path).expect("readable already").provenance(), &provenance());
    writer.provenance_mut().lost = 99;
    writer.finish().expect("finished");
    assert_eq!(TraceReader::open(&path).expect("a trace").provenance().lost, 99);
    assert_eq!(read(&path).expect("a trace"), sample(10));
}

#[test]
fn a_single_file_is_a_trace() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = write(directory.path(), "a.trace", &sample(300));
    let file = directory.path().join("single.parquet");
    fs::copy(path.join("part-00000.parquet"), &file).expect("copied");
    assert_eq!(read(&file).expect("a trace"), sample(300));
    assert_eq!(TraceReader::open(&file).expect("a trace").provenance(), &provenance());
}

#[test]
fn a_trace_without_rows_is_a_trace() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = write(directory.path(), "a.trace", &Rows::default());
    assert!(read(&path).expect("a trace").is_empty());
}

#[test]
fn same_rows_same_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    let bytes = |name, pieces: usize| {
        let path = directory.path().join(name);
        let mut writer = TraceWriter::create(&path, provenance()).expect("a new trace");
        let rows = sample(300_000);
        for start in (0..rows.len()).step_by(pieces) {
            let mut piece = Rows::default();
            piece.extend_from(&rows, start..(start + pieces).min(rows.len()));
            writer.append(&piece).expect("written");
        }
        writer.finish().expect("finished");
        fs::read(path.join("part-00000.parquet")).expect("a part")
    };
    assert!(bytes("one", 300_000) == bytes("two", 777), "however the rows arrive");
}

/// Guards against accidental changes of the format: the bytes of a small trace, as an FNV-1a hash.
#[test]
fn golden_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.trace");
    let mut fixed = provenance();
    fixed.version = "0".into();
    let mut writer = TraceWriter::create(&path, fixed).expect("a new trace");
    writer.append(&sample(5000)).expect("written");
    writer.finish().expect("finished");
    let bytes = fs::read(path.join("part-00000.parquet")).expect("a part");
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    assert_eq!(
        (bytes.len(), hash),
        (17_164, 2_955_370_185_184_991_649),
        "the format has changed; is that meant?"
    );
}
