use std::io::Cursor;

use isotherm_trace::import::{self, HeatOptions};
use proptest::prelude::*;

use crate::packing::rows;
use crate::{Imported, collect, damaged, is_judged};

/// Two dumps in memtierd's form, of two processes and three scans.
const DUMPS: &str = "          timestamp       pid             addr    pages     accs   writes
 1700000000000000000     4711           400000        2        1        0
 1700000000000000000     4711     7f0000000000        1        2        1
 1700000000000000500     4712           400000        1        1        0
 1700000000005000000     4711           400000        2        0        0
 1700000000005000000     4711     7f0000000000        1        0        1
          timestamp       pid             addr    pages     accs   writes
 1700000000007000000     4711           400000        2        1        0
";

fn memtierd(bytes: &[u8], options: HeatOptions) -> Imported {
    collect(|sink| import::memtierd(Cursor::new(bytes), &options, sink))
}

/// With large steps, so that an absurd range makes few rows.
fn coarse(bytes: &[u8]) -> Imported {
    memtierd(bytes, HeatOptions { bytes_per_access: 1 << 40, ..HeatOptions::default() })
}

#[test]
fn scans_become_rounds_of_accesses() {
    let (rows, summary) = memtierd(DUMPS.as_bytes(), HeatOptions::default()).expect("events");
    let all: Vec<_> =
        rows.iter().map(|row| (row.process, row.line >> 6, row.instructions, row.store)).collect();
    let heap = 0x7f00_0000_0000 >> 12;
    let expected = [
        // 5 ms, until the next scan, at 1,000 instructions per microsecond for 4 rows.
        (0, 0x400, 1_250_000, false),
        (0, 0x401, 1_250_000, false),
        (0, heap, 1_250_000, true),
        (0, heap, 1_250_000, false),
        // 5 ms, since the scan before.
        (0, heap, 5_000_000, true),
        // What has not ended comes last: 2 ms, and the only scan of the other process.
        (0, 0x400, 1_000_000, false),
        (0, 0x401, 1_000_000, false),
        (1, 0x400, 1, false),
    ];
    assert_eq!(all, expected);
    assert!(rows.thread == rows.process && rows.dependence == [0; 8]);
    assert_eq!(summary.processes, ["process 4711", "process 4712"]);
    assert_eq!((summary.lines, summary.accesses), (8, 8));
}

#[test]
fn other_lines_are_refused() {
    let expected =
        "expected a line of memtierd's 'tracker -dump raw new': timestamp, pid, addr, pages, accs and writes";
    for line in [
        "error: not recording",
        "1 1 1000 1 1",
        "1 1 1000 1 1 0 0",
        "x 1 1000 1 1 0",
        "1 -1 1000 1 1 0",
        "1 1 0x1000 1 1 0",
        "1 1 fffffffffffff000 1 1 0",
        "1 1 1000 9999999999999999 1 0",
    ] {
        let text = format!("1 1 1000 1 1 0\n{line}\n");
        let message = coarse(text.as_bytes()).expect_err(line).to_string();
        assert_eq!(message, format!("line 2: '{line}'; {expected}"));
    }
    let absurd = memtierd(b"1 1 0 4503599627370495 1 0", HeatOptions::default());
    assert!(absurd.expect_err("absurd").to_string().contains("expected fewer accesses"));
    assert_eq!(rows(coarse(b"")).len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn damage_gives_rows_or_an_error(bytes in damaged(DUMPS.into())) {
        is_judged(coarse, &bytes)?;
    }
}
