//! Helpers of the trace's tests.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test uses its part")]

use std::path::{Path, PathBuf};

use isotherm_core::Bytes;
use isotherm_core::cache::Geometry;
use isotherm_trace::{Provenance, Row, Rows, TraceError, TraceReader, TraceWriter};

/// Returns rows like those of a program with some threads: streams and random lines.
pub fn sample(count: usize) -> Rows {
    let mut rows = Rows::default();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for index in 0..count as u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = state >> 33;
        rows.push(Row {
            process: (index / 50_000) as u32,
            thread: (index / 1000 % 3) as u32,
            instructions: (random % 90) as u32 + 1,
            line: if index % 4 == 0 { 0x7f_0000_0000 + index } else { 0x55_0000_0000 + (random & 0xffff) },
            store: random.is_multiple_of(5),
            dependence: (random % 3) as u8,
        });
    }
    rows
}

pub fn provenance() -> Provenance {
    Provenance {
        recorder: "test 1.0".into(),
        cache: Geometry::new(Bytes(1 << 20), 16),
        dependence: true,
        processes: vec!["sort".into(), "sh -c \"sort\"".into()],
        accesses: 12_345_678_901,
        lost: 2,
        untraced: 1,
        workload: Some("gups seed=7".into()),
        ..Provenance::new("sort file | uniq")
    }
}

/// Writes `rows` as a trace named `name` and returns its directory.
pub fn write(directory: &Path, name: &str, rows: &Rows) -> PathBuf {
    let path = directory.join(name);
    let mut writer = TraceWriter::create(&path, provenance()).expect("a new trace");
    writer.append(rows).expect("rows are written");
    writer.finish().expect("the trace is finished");
    path
}

/// Reads the whole trace.
pub fn read(path: &Path) -> Result<Rows, TraceError> {
    let mut reader = TraceReader::open(path)?;
    let (mut all, mut chunk) = (Rows::default(), Rows::default());
    while reader.next(&mut chunk)? {
        assert!(!chunk.is_empty());
        all.extend_from(&chunk, 0..chunk.len());
    }
    assert!(chunk.is_empty(), "the end has no rows");
    assert_eq!(all.len() as u64, reader.rows(), "the footers tell the truth");
    Ok(all)
}

/// Returns the error of reading the whole trace; panics if it is readable.
pub fn read_error(path: &Path) -> String {
    let message = read(path).expect_err("the trace is bad").to_string();
    assert!(!message.contains('\n'), "one line: {message}");
    assert!(message.contains(&path.display().to_string()), "names the file: {message}");
    message
}
