//! The reader reports any fault of the files in one line, and never panics.

mod common;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use common::{provenance, read, read_error, sample, write};
use isotherm_trace::{PROVENANCE_KEY, Rows, TraceError, TraceWriter, VERSION_KEY};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

/// Returns the bytes of a trace of `count` rows in one file.
fn part(count: usize) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = write(directory.path(), "a.trace", &sample(count));
    fs::read(path.join("part-00000.parquet")).expect("a part")
}

fn error_of_bytes(bytes: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), bytes).expect("written");
    read_error(file.path())
}

/// Writes a Parquet file of another maker with these columns (all `INT32` or `INT64`) and keys.
fn foreign(file: &Path, message: &str, lengths: &[usize], keys: &[(&str, &str)]) {
    let schema = Arc::new(parse_message_type(message).expect("a schema"));
    let keys = keys.iter().map(|&(key, value)| KeyValue::new(key.into(), value.to_owned())).collect();
    let properties = WriterProperties::builder().set_key_value_metadata(Some(keys)).build();
    let sink = fs::File::create(file).expect("a file");
    let mut writer = SerializedFileWriter::new(sink, schema, Arc::new(properties)).expect("a writer");
    let mut group = writer.next_row_group().expect("a row group");
    for &length in lengths {
        let mut column = group.next_column().expect("a column").expect("as many as lengths");
        let wide = matches!(column.untyped(), parquet::column::writer::ColumnWriter::Int64ColumnWriter(_));
        if wide {
            column.typed::<Int64Type>().write_batch(&vec![300; length], None, None).expect("written");
        } else {
            column.typed::<Int32Type>().write_batch(&vec![300; length], None, None).expect("written");
        }
        column.close().expect("closed");
    }
    group.close().expect("closed");
    writer.close().expect("closed");
}

fn foreign_error(message: &str, columns: usize, keys: &[(&str, &str)]) -> String {
    let file = tempfile::NamedTempFile::new().expect("a file");
    foreign(file.path(), message, &vec![3; columns], keys);
    read_error(file.path())
}

#[test]
fn a_file_cut_at_any_byte_is_refused() {
    let bytes = part(40);
    for length in 0..bytes.len() {
        let message = error_of_bytes(&bytes[..length]);
        assert!(message.contains("truncated"), "{length}: {message}");
    }
}

#[test]
fn a_footer_on_a_shorter_body_is_refused() {
    let bytes = part(40);
    for cut in [1, 10, 100, 400] {
        let shorter = [&bytes[..4], &bytes[4 + cut..]].concat();
        error_of_bytes(&shorter);
    }
}

#[test]
fn what_is_no_parquet_is_refused() {
    assert!(error_of_bytes(b"").contains("truncated: it has 0 bytes"));
    assert!(error_of_bytes(b"hello, this is a text file").contains("not a trace"));
    assert!(error_of_bytes(b"PAR1\xff\xff\xff\xffPAR1").contains("its footer has 4294967295 bytes"));
    assert!(error_of_bytes(b"PAR1\x00\x00\x00\x00PAR1").contains("footer is unreadable"));
    assert!(read_error(Path::new("/dev/null")).contains("not a regular file"));
    assert!(read_error(Path::new("/nowhere/at/all")).contains("cannot open"));
}

#[test]
fn foreign_parquet_is_refused_by_what_it_lacks() {
    let version = (VERSION_KEY, "1");
    let good = (PROVENANCE_KEY, "{}");
    let one = "message a { required int32 a; }";
    assert!(foreign_error(one, 1, &[]).contains("it lacks the key isotherm.trace.version"));
    let message = foreign_error(one, 1, &[(VERSION_KEY, "17"), good]);
    assert!(message.contains("isotherm.trace.version is '17'; expected 1"), "{message}");
    assert!(foreign_error(one, 1, &[version]).contains("isotherm.trace.provenance: missing"));
    let message = foreign_error(one, 1, &[version, (PROVENANCE_KEY, "{\"lost\": \"many\"}")]);
    assert!(message.contains("isotherm.trace.provenance: invalid type"), "{message}");
    let message = foreign_error(one, 1, &[version, good]);
    assert!(message.contains("column 'process' is missing"), "{message}");
    let message = foreign_error("message a { required int64 process; }", 1, &[version, good]);
    assert!(message.contains("column 'process' has the type INT64"), "{message}");
    let message = foreign_error(
        "message a { required group process { required int32 process; } }",
        1,
        &[version, good],
    );
    assert!(message.contains("column 'process' is missing"), "{message}");
}

#[test]
fn a_directory_needs_all_its_parts() {
    let directory = tempfile::tempdir().expect("a directory");
    assert!(read_error(directory.path()).contains("no finished part"));
    fs::write(directory.path().join(".part-00000.tmp"), b"PAR1").expect("written");
    assert!(read_error(directory.path()).contains("beside the unfinished one"));
    fs::write(directory.path().join("part-00001.parquet"), part(5)).expect("written");
    assert!(read_error(directory.path()).contains("part-00000.parquet: missing"));
    fs::write(directory.path().join("part-00000.parquet"), part(5)).expect("written");
    assert_eq!(read(directory.path()).expect("a trace").len(), 10, "the unfinished part is ignored");
    fs::write(directory.path().join("part-00002.parquet"), b"PAR1").expect("written");
    assert!(read_error(directory.path()).contains("part-00002.parquet: truncated"));
}

#[test]
fn the_writer_refuses_what_is_there_and_columns_of_different_lengths() {
    let directory = tempfile::tempdir().expect("a directory");
    let error = TraceWriter::create(directory.path(), provenance()).expect_err("exists");
    assert!(matches!(error, TraceError::Exists { .. }), "{error}");
    let error = TraceWriter::create("/nowhere/at/all", provenance()).expect_err("no parent");
    assert!(error.to_string().contains("/nowhere/at/all: cannot create the directory"), "{error}");
    let mut writer = TraceWriter::create(directory.path().join("a"), provenance()).expect("a new trace");
    let mut rows: Rows = sample(4);
    rows.thread.pop();
    let error = writer.append(&rows).expect_err("unequal").to_string();
    assert!(error.contains("column 'thread' has 3 values; expected 4"), "{error}");
}

/// The footer says 301 in one place after another where it should say 300.
#[test]
fn columns_of_different_lengths_are_refused() {
    let bytes = part(300);
    // A 64-bit field, the next one, of 600 or 602 as zigzag varint.
    let (right, wrong) = ([0x16, 0xd8, 0x04], [0x16, 0xda, 0x04]);
    let places = (0..bytes.len() - 2).filter(|&place| bytes[place..place + 3] == right);
    let messages: Vec<_> = places
        .map(|place| {
            let mut changed = bytes.clone();
            changed[place..place + 3].copy_from_slice(&wrong);
            let file = tempfile::NamedTempFile::new().expect("a file");
            fs::write(file.path(), &changed).expect("written");
            read(file.path()).err().map(|error| error.to_string())
        })
        .collect();
    let columns = ["process", "thread", "instructions", "line", "store", "dependence"];
    for column in columns {
        let expected = format!("column '{column}' has 301 values; expected 300 as the row group has rows");
        let found = messages.iter().flatten().any(|message| message.ends_with(&expected));
        assert!(found, "{column}: {messages:?}");
    }
}

/// Mutation of a byte.
fn mutate(bytes: &mut Vec<u8>, mutations: &[(usize, u8, u8)]) {
    for &(position, kind, value) in mutations {
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
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn mutated_files_give_rows_or_an_error(mutations in proptest::collection::vec((any::<usize>(), 0u8..8, any::<u8>()), 1..6)) {
        static PART: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| part(300));
        let mut bytes = PART.clone();
        mutate(&mut bytes, &mutations);
        let file = tempfile::NamedTempFile::new()?;
        fs::write(file.path(), &bytes)?;
        if let Err(error) = read(file.path()) {
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }
}
