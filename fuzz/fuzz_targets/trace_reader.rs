//! Any bytes as a single-file trace give rows or an error, and never a panic.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;
use std::{env, fs, process};

use isotherm_trace::{Provenance, Row, Rows, TraceReader, TraceWriter};
use libfuzzer_sys::fuzz_target;

/// File that holds the current input.
static INPUT: LazyLock<PathBuf> =
    LazyLock::new(|| env::temp_dir().join(format!("isotherm-fuzz-{}.parquet", process::id())));

/// Puts valid traces of some sizes into the corpus, because a fuzzer would not find the footer by itself.
fn seed() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus/trace_reader");
    fs::create_dir_all(&corpus).expect("a corpus directory");
    for count in [0, 3, 400_u32] {
        let trace = env::temp_dir().join(format!("isotherm-fuzz-{}-{count}.trace", process::id()));
        let mut writer = TraceWriter::create(&trace, Provenance::new("seed")).expect("a new trace");
        let mut rows = Rows::default();
        for index in 0..count {
            let line = u64::from(index.wrapping_mul(2_654_435_761));
            let store = index % 3 == 0;
            let dependence = (index % 5) as u8;
            rows.push(Row {
                process: index / 200,
                thread: index % 2,
                instructions: index,
                line,
                store,
                dependence,
            });
        }
        writer.append(&rows).expect("written");
        writer.finish().expect("finished");
        fs::copy(trace.join("part-00000.parquet"), corpus.join(format!("seed-{count}"))).expect("copied");
        fs::remove_dir_all(&trace).expect("removed");
    }
}

fuzz_target!(init: seed(), |bytes: &[u8]| {
    fs::write(&*INPUT, bytes).expect("the temporary directory takes the input");
    let Ok(mut reader) = TraceReader::open(&*INPUT) else { return };
    let mut rows = Rows::default();
    while let Ok(true) = reader.next(&mut rows) {
        assert!(rows.len() <= 1 << 16, "a chunk is bounded");
        assert_eq!(rows.len(), rows.dependence.len(), "columns are in step");
    }
});
