//! `clear_refs` and `smaps` on a program with planted hot pages.

use std::time::Duration;

use isotherm_core::{Nanos, PageSize};
use isotherm_linux::accessed_bits::{BitSource, ClearRefs, Found, Pace, Resolution, Scanner};
use isotherm_linux::source::AccessSource;

use crate::program::{Program, bytes_within, until};

/// Scans as fast as possible.
const EAGER: Pace = Pace { interval: Nanos(0), budget: 1.0, program_budget: 1e9 };
/// Program that touches only its hot pages, for longer than any test.
const HOT_ONLY: &str = "planted --share 100% --layout contiguous --seconds 300";

/// Without a TLB flush these ten pages would stay in it, and most intervals would miss some of them.
#[test]
fn pages_touched_all_the_time_are_seen_in_every_interval() {
    let program = Program::start(&format!("{HOT_ONLY} --size 4M --hot 1% --own-mapping"));
    let planted = program.planted();
    let scanner = ClearRefs::new(Resolution::default()).unwrap();
    let (mut target, mut found) = (scanner.open(program.pid()).unwrap(), Found::default());
    scanner.scan(&mut target, &mut found).unwrap();
    for interval in 0..100 {
        program.run_for(Duration::from_millis(4));
        found.clear();
        scanner.scan(&mut target, &mut found).unwrap();
        let seen = bytes_within(&found.pages, &planted.hot);
        assert_eq!(seen, planted.hot.end - planted.hot.start, "interval {interval}: {found:?}");
        assert_eq!(bytes_within(&found.pages, &planted.range), seen, "cold pages are not seen");
    }
}

#[test]
fn a_mapping_accessed_in_part_is_undecided() {
    let program = Program::start(&format!("{HOT_ONLY} --size 4M --hot 25%"));
    let planted = program.planted();
    let scan = |resolution| {
        let scanner = ClearRefs::new(resolution).unwrap();
        let (mut target, mut found) = (scanner.open(program.pid()).unwrap(), Found::default());
        scanner.scan(&mut target, &mut found).unwrap();
        program.run_for(Duration::from_millis(100));
        found.clear();
        scanner.scan(&mut target, &mut found).unwrap();
        found
    };
    let found = scan(Resolution::default());
    assert_eq!(bytes_within(&found.pages, &planted.range), 0);
    assert_eq!(bytes_within(&found.accessed, &planted.range), 0);
    assert!(found.undecided >= 256, "{found:?}");

    let found = scan(Resolution { accessed: 0.2, sampled: 0.2, ..Resolution::default() });
    assert_eq!(bytes_within(&found.pages, &planted.range), 4 << 20, "all of it, as requested");
    assert_eq!(bytes_within(&found.accessed, &planted.range), 4 << 20);
}

#[test]
fn a_mapping_within_one_huge_page_is_exact() {
    let program = Program::start(&format!("{HOT_ONLY} --size 4M --hot 1% --own-mapping"));
    let planted = program.planted();
    let scanner = ClearRefs::new(Resolution { page_size: PageSize::Huge, ..Resolution::default() }).unwrap();
    let (mut target, mut found) = (scanner.open(program.pid()).unwrap(), Found::default());
    scanner.scan(&mut target, &mut found).unwrap();
    program.run_for(Duration::from_millis(50));
    found.clear();
    scanner.scan(&mut target, &mut found).unwrap();
    assert_eq!(bytes_within(&found.pages, &planted.hot), planted.hot.end - planted.hot.start);
}

#[test]
fn the_source_delivers_hot_pages_and_answers_for_ranges() {
    let program = Program::start(&format!("{HOT_ONLY} --size 16M --own-mapping"));
    let planted = program.planted();
    let mut source = BitSource::new(ClearRefs::new(Resolution::default()).unwrap(), EAGER);
    source.follow(program.pid()).unwrap();
    source.follow(program.pid()).unwrap();
    let mut accesses = Vec::new();
    let hot_pages = (planted.hot.end - planted.hot.start) / 4096;
    let mut seen = std::collections::HashSet::new();
    until("all hot pages", || {
        accesses.clear();
        source.drain(&mut accesses).unwrap();
        for access in accesses.iter().filter(|access| planted.range.contains(&access.address)) {
            assert!(planted.hot.contains(&access.address), "a cold page was delivered");
            assert_eq!((access.process, access.address % 4096), (program.pid(), 0));
            seen.insert(access.address);
        }
        seen.len() as u64 == hot_pages
    });

    let page = planted.hot.start..planted.hot.start + 4096;
    let cold = planted.range.start..planted.hot.start;
    let mut answers = Vec::new();
    until("the page to be marked", || {
        answers.clear();
        source.accessed(program.pid(), &[page.clone(), page.clone(), cold.clone()], &mut answers).unwrap();
        answers[0]
    });
    assert_eq!(answers, [true, false, false], "queries clear the mark; cold pages have none");

    let (sums, statistics) = (source.scans(), source.statistics());
    assert!(sums.scans >= 2 && sums.walked >= 4096 && sums.referenced >= hot_pages, "{sums:?}");
    assert!(sums.cpu.0 > 0 && sums.locked.0 > 0, "{sums:?}");
    assert!(statistics.delivered >= hot_pages && statistics.program_time.0 > 0, "{statistics:?}");
    assert_eq!(statistics.agent_cpu, source.scans().cpu.min(statistics.agent_cpu));
    source.forget(program.pid());
    assert!(!source.follows(program.pid()));
    accesses.clear();
    source.drain(&mut accesses).unwrap();
    source.accessed(program.pid(), &[page], &mut answers).unwrap();
    assert_eq!(answers.last(), Some(&false));
}

#[test]
fn the_first_scan_delivers_nothing() {
    let program = Program::start(&format!("{HOT_ONLY} --size 4M --own-mapping"));
    program.planted();
    let hour = Pace { interval: Nanos(3_600 * Nanos::SECOND.0), ..EAGER };
    let mut source = BitSource::new(ClearRefs::new(Resolution::default()).unwrap(), hour);
    source.follow(program.pid()).unwrap();
    until("the first scan", || source.scans().scans == 1);
    let mut accesses = Vec::new();
    source.drain(&mut accesses).unwrap();
    assert!(accesses.is_empty());
    assert_eq!(source.scans().scans, 1, "the next one is not due");
}
