//! Another implementation of Parquet reads the trace, and the reader reads what that implementation writes.
//!
//! Needs a Python with pyarrow and duckdb: `ISOTHERM_PYTHON`, or else the workspace's
//! `build/venv/bin/python`, which `make setup` creates.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{provenance, read, read_error, sample, write};
use isotherm_trace::TraceReader;

fn python() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("ISOTHERM_PYTHON").map_or_else(|| workspace.join("build/venv/bin/python"), PathBuf::from)
}

/// Runs the script with numpy, pyarrow and its Parquet module imported, and returns its output.
fn run(script: &str, arguments: &[&Path]) -> String {
    let python = python();
    let output = Command::new(&python).arg("-c").arg(script).args(arguments).output().unwrap_or_else(|error| {
        panic!(
            "{}: {error}; this test needs a Python with pyarrow and duckdb: run `make setup` or set ISOTHERM_PYTHON",
            python.display()
        )
    });
    assert!(output.status.success(), "{}: {}", python.display(), String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn pyarrow_reads_what_we_write() {
    let directory = tempfile::tempdir().expect("a directory");
    let rows = sample(300_000);
    let path = write(directory.path(), "a.trace", &rows);
    let script = r#"
import json, sys
import pyarrow.dataset, pyarrow.parquet
table = pyarrow.dataset.dataset(sys.argv[1], format="parquet").to_table()
print(table.schema.to_string(show_schema_metadata=False))
for column in table.column_names:
    print(sum((i % 7 + 1) * int(value) for i, value in enumerate(table[column].to_pylist())))
metadata = pyarrow.parquet.read_metadata(sys.argv[1] + "/part-00000.parquet").metadata
print(metadata[b"isotherm.trace.version"].decode())
print(json.loads(metadata[b"isotherm.trace.provenance"])["command"])
"#;
    let printed = run(script, &[&path]);
    let sum = |values: &mut dyn Iterator<Item = u64>| {
        let weighted =
            values.enumerate().map(|(index, value)| u128::from(index as u64 % 7 + 1) * u128::from(value));
        weighted.sum::<u128>().to_string()
    };
    let narrow = |values: &[u32]| sum(&mut values.iter().map(|&value| value.into()));
    let bytes = |values: &[u8]| sum(&mut values.iter().map(|&value| value.into()));
    let types = ["uint32", "uint32", "uint32", "uint64", "bool", "uint8"];
    let names = ["process", "thread", "instructions", "line", "store", "dependence"];
    let mut expected: Vec<String> =
        names.iter().zip(types).map(|(name, kind)| format!("{name}: {kind} not null")).collect();
    expected.extend([narrow(&rows.process), narrow(&rows.thread), narrow(&rows.instructions)]);
    expected.push(sum(&mut rows.line.iter().copied()));
    expected.extend([bytes(&rows.store), bytes(&rows.dependence)]);
    expected.extend(["1".into(), provenance().command]);
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn duckdb_reads_the_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let rows = sample(1000);
    let path = write(directory.path(), "a.trace", &rows);
    let script = r#"
import duckdb, sys
print(duckdb.sql(f"SELECT count(*), count(DISTINCT line >> 6) FROM '{sys.argv[1]}/*.parquet' WHERE NOT store").fetchall()[0])
"#;
    let loads = rows.iter().filter(|row| !row.store);
    let mut pages: Vec<u64> = loads.map(|row| row.line >> 6).collect();
    let count = pages.len();
    pages.sort_unstable();
    pages.dedup();
    assert_eq!(run(script, &[&path]).trim(), format!("({count}, {})", pages.len()));
}

/// Writes a trace with pyarrow, changed by `change`: an expression over `table` that gives a table, its
/// compression, and perhaps other options.
fn rewritten(directory: &Path, change: &str) -> PathBuf {
    let path = write(directory, "a.trace", &sample(5000));
    let file = directory.join("changed.parquet");
    let script = format!(
        r#"
import sys
import pyarrow, pyarrow.parquet
table = pyarrow.parquet.read_table(sys.argv[1] + "/part-00000.parquet")
table, compression, *options = {change}
pyarrow.parquet.write_table(table, sys.argv[2], compression=compression, **dict(*options))
"#
    );
    run(&script, &[&path, &file]);
    file
}

#[test]
fn we_read_what_pyarrow_writes() {
    let directory = tempfile::tempdir().expect("a directory");
    // Nullable columns in another order, with another one among them; pages with other encodings.
    let change = r#"(table.select(["line", "store", "dependence", "instructions", "thread", "process"])
        .append_column("page", pyarrow.array(range(len(table))))
        .cast(pyarrow.schema([(f.name, f.type) for f in table.select(["line", "store", "dependence", "instructions",
            "thread", "process"]).schema] + [("page", pyarrow.int64())], metadata=table.schema.metadata)), "zstd")"#;
    let file = rewritten(directory.path(), change);
    assert_eq!(read(&file).expect("a trace"), sample(5000));
    assert_eq!(TraceReader::open(&file).expect("a trace").provenance(), &provenance());
}

#[test]
fn we_read_split_bytes_beside_levels_and_without_compression() {
    let directory = tempfile::tempdir().expect("a directory");
    for (version, compression) in [("1.0", "zstd"), ("2.0", "zstd"), ("1.0", "none"), ("2.0", "none")] {
        for nullable in ["False", "True"] {
            let change = format!(
                r#"(table.cast(pyarrow.schema([(f.with_nullable({nullable})) for f in table.schema],
                metadata=table.schema.metadata)), "{compression}", dict(data_page_version="{version}",
                use_dictionary=False, data_page_size=8000,
                column_encoding=dict.fromkeys(["line", "instructions", "thread"], "BYTE_STREAM_SPLIT")))"#
            );
            let directory = tempfile::tempdir_in(directory.path()).expect("a directory");
            let file = rewritten(directory.path(), &change);
            assert_eq!(read(&file).expect("a trace"), sample(5000), "{change}");
        }
    }
}

#[test]
fn what_we_cannot_read_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let error = |change| {
        let directory = tempfile::tempdir_in(directory.path()).expect("a directory");
        read_error(&rewritten(directory.path(), change))
    };
    let message = error(r#"(table, "snappy")"#);
    assert!(
        message.contains("column 'process' is compressed with SNAPPY; expected ZSTD or none"),
        "{message}"
    );
    let distances =
        r#"(table.set_column(5, "dependence", pyarrow.array([300] * len(table), pyarrow.uint32())), "zstd")"#;
    let message = error(distances);
    assert!(
        message.contains("column 'dependence' holds 300; expected distances of at most 255"),
        "{message}"
    );
    let message = error(
        r#"(table.set_column(3, "line", pyarrow.array([None] * len(table), pyarrow.uint64())), "zstd")"#,
    );
    assert!(message.contains("column 'line' is unreadable (a value is null)"), "{message}");
    let message =
        error(r#"(table.set_column(4, "store", pyarrow.array([1] * len(table), pyarrow.uint8())), "zstd")"#);
    assert!(message.contains("column 'store' has the type INT32; expected a boolean"), "{message}");
    let message = error(r#"(table.drop_columns(["thread"]), "zstd")"#);
    assert!(message.contains("column 'thread' is missing"), "{message}");
    let message = error(r#"(table.replace_schema_metadata({}), "zstd")"#);
    assert!(message.contains("lacks the key isotherm.trace.version"), "{message}");
}
