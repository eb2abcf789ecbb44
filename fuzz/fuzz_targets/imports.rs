//! Any bytes as another tool's output give rows or one line of error. The first byte chooses the tool.

#![no_main]

use isotherm_core::Bytes;
use isotherm_core::cache::Geometry;
use isotherm_trace::Rows;
use isotherm_trace::import::{
    HeatOptions, PerfOptions, TraceFile, champsim, damon, drmemtrace, lackey, memtierd, oracle_general, perf,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&tool, input)) = input.split_first() else { return };
    let mut rows = 0;
    let mut sink = |batch: &Rows| {
        assert!(!batch.is_empty() && batch.thread.len() == batch.line.len());
        rows += batch.len() as u64;
    };
    let cache = Geometry::new(Bytes(1 << 16), 4).expect("a cache");
    // Few rows of any region: a page of 2^63 bytes is one access.
    let options = HeatOptions { bytes_per_access: 1 << 63, ..HeatOptions::default() };
    let result = match tool {
        b'p' => perf(input, &PerfOptions::default(), &mut sink),
        b'l' => lackey(input, cache, &mut sink),
        b'd' => damon(input, &options, &mut sink),
        b'm' => memtierd(input, &options, &mut sink),
        b'c' => champsim(input, cache, &mut sink),
        b'r' => drmemtrace(vec![file(None, input)], cache, &mut sink),
        // The next two bytes are the length of the first of two files.
        b'R' => {
            let Some((&length, input)) = input.split_first_chunk::<2>() else { return };
            let length = usize::from(u16::from_le_bytes(length)).min(input.len());
            let (first, second) = input.split_at(length);
            drmemtrace(vec![file(Some("first"), first), file(Some("second"), second)], cache, &mut sink)
        }
        b'o' => oracle_general(input, &mut sink),
        _ => return,
    };
    match result {
        Ok(summary) => assert_eq!(summary.rows, rows),
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
});

fn file<'a>(name: Option<&str>, bytes: &'a [u8]) -> TraceFile<'a> {
    TraceFile { name: name.map(Into::into), reader: Box::new(bytes) }
}
