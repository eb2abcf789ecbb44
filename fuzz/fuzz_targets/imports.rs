//! Any bytes as another tool's output give rows or one line of error. The first byte chooses the tool.

#![no_main]

use isotherm_core::Bytes;
use isotherm_core::cache::Geometry;
use isotherm_trace::Rows;
use isotherm_trace::import::{DamonOptions, PerfOptions, damon, lackey, oracle_general, perf};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let Some((&tool, text)) = text.split_first() else { return };
    let mut rows = 0;
    let mut sink = |batch: &Rows| {
        assert!(!batch.is_empty() && batch.thread.len() == batch.line.len());
        rows += batch.len() as u64;
    };
    let result = match tool {
        b'p' => perf(text, &PerfOptions::default(), &mut sink),
        b'l' => lackey(text, Geometry::new(Bytes(1 << 16), 4).expect("a cache"), &mut sink),
        b'd' => {
            // Fewer rows of the same text: a page of 2^40 bytes is one access.
            let options = DamonOptions { bytes_per_access: 1 << 40, ..DamonOptions::default() };
            damon(text, &options, &mut sink)
        }
        b'o' => oracle_general(text, &mut sink),
        _ => return,
    };
    match result {
        Ok(summary) => assert_eq!(summary.rows, rows),
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
});
