//! Any bytes as a single-file trace, or as a trace's mappings, give rows, mappings or an error, and never a
//! panic.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;
use std::{env, fs, process};

use isotherm_trace::{MAPPINGS_FILE, Provenance, Row, Rows, Spaces, TraceReader, TraceWriter, read_mappings};
use libfuzzer_sys::fuzz_target;

/// File that holds the current input.
static INPUT: LazyLock<PathBuf> =
    LazyLock::new(|| env::temp_dir().join(format!("isotherm-fuzz-{}.parquet", process::id())));

/// Folder whose mappings are the current input.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = env::temp_dir().join(format!("isotherm-fuzz-{}", process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    folder
});

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
    fs::write(corpus.join("seed-mappings"), MAPPINGS).expect("written");
}

const MAPPINGS: &str = r#"{"row":0,"process":0,"event":"map","start":4096,"end":12288,"name":"/bin/p"}
{"row":1,"process":1,"event":"fork","parent":0}
{"row":2,"process":1,"event":"move","from":4096,"from_end":8192,"start":20480,"end":40960}
{"row":3,"process":0,"event":"unmap","start":4096,"end":8192}
{"row":4,"process":0,"event":"thread","thread":3,"name":"worker"}
"#;

fuzz_target!(init: seed(), |bytes: &[u8]| {
    fs::write(FOLDER.join(MAPPINGS_FILE), bytes).expect("the temporary directory takes the input");
    if let Ok(Some(events)) = read_mappings(&FOLDER) {
        let mut spaces = Spaces::default();
        for event in &events {
            spaces.apply(event);
        }
        let found = spaces.find(0, 4096);
        assert!(found.is_none_or(|(start, end, number)| {
            (start..end).contains(&4096) && spaces.mappings()[number].process == 0
        }));
    }
    fs::write(&*INPUT, bytes).expect("the temporary directory takes the input");
    let Ok(mut reader) = TraceReader::open(&*INPUT) else { return };
    let mut rows = Rows::default();
    while let Ok(true) = reader.next(&mut rows) {
        assert!(rows.len() <= 1 << 16, "a chunk is bounded");
        assert_eq!(rows.len(), rows.dependence.len(), "columns are in step");
    }
});
