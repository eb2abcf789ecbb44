//! Measures the numbers of each workload in the registry and `docs/reference/workloads.md`, at its defaults
//! and seed 42:
//!
//! `cargo run --release -p isotherm-workloads --example catalogue -- [NAME...]`
//!
//! A workload's line has its footprint, pages touched, accesses (loads and stores), misses of its cache, the
//! share of load misses that the hottest 1, 10 and 50 % of pages take, and seconds of the generator alone and
//! with the cache.

use std::ops::ControlFlow;
use std::time::Instant;

use isotherm_workloads::{ALL, CountingMemory, Limits, MissRecorder, PageProfile, Workload, find};

const SEED: u64 = 42;

fn line(workload: &Workload) -> Result<(), Box<dyn std::error::Error>> {
    let build = || workload.build(&workload.parameters(), SEED);
    let footprint = build()?.footprint();
    let start = Instant::now();
    let mut counting = CountingMemory::default();
    build()?.run(&mut counting);
    let alone = start.elapsed();
    let start = Instant::now();
    let mut profile = PageProfile::default();
    let mut recorder = MissRecorder::new(workload.cache(footprint), Limits::NONE, |rows| {
        let lines = rows.line.iter().zip(&rows.store);
        lines.for_each(|(&line, &store)| profile.count(line, u64::from(!store)));
        ControlFlow::Continue(())
    });
    build()?.run(&mut recorder);
    let misses = recorder.misses();
    recorder.finish();
    let shares: Vec<_> = profile.shares_of_hottest(&[0.01, 0.1, 0.5]);
    let shares: Vec<_> = shares.iter().map(|share| format!("{:.1}", share * 100.0)).collect();
    println!(
        "{:<20} {footprint:>9} {:>8} pages {:>12} accesses {misses:>12} misses  hottest 1/10/50 %: {:<17} {:.1} s alone, {:.1} s with the cache",
        workload.name,
        profile.pages(),
        counting.loads + counting.stores,
        shares.join(" / "),
        alone.as_secs_f64(),
        start.elapsed().as_secs_f64(),
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        return ALL.iter().try_for_each(|workload| line(workload));
    }
    names.iter().try_for_each(|name| line(find(name)?))
}
