//! Prints the pages and structures that a workload's misses go to: `cargo run --release --example profile --
//! NAME [KEY=VALUE]...`

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Instant;

use isotherm_trace::Rows;
use isotherm_workloads::{AddressSpace, Limits, MissRecorder, PageProfile, find};

/// Loads and stores that missed, of one structure.
type Misses = [u64; 2];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let workload = find(&arguments.next().unwrap_or_default())?;
    let mut parameters = workload.parameters();
    for argument in arguments {
        let (key, value) = argument.split_once('=').ok_or("expected KEY=VALUE")?;
        parameters.set(key, value)?;
    }
    let program = workload.build(&parameters, 1)?;
    let footprint = program.footprint();
    let cache = workload.cache(footprint);
    let mut pages: Vec<Misses> = Vec::new();
    let mut first = u64::MAX;
    let mut recorder = MissRecorder::new(cache, Limits::NONE, |rows: &mut Rows| {
        for row in rows.iter() {
            // Programs touch what they allocate from the bottom up, so the first row is the lowest but for a
            // few pages.
            first = first.min((row.line >> 6).saturating_sub(1024));
            let page = ((row.line >> 6) - first) as usize;
            pages.resize(pages.len().max(page + 1), [0; 2]);
            pages[page][usize::from(row.store)] += 1;
        }
        ControlFlow::Continue(())
    });
    let start = Instant::now();
    program.run(&mut recorder);
    let seconds = start.elapsed().as_secs_f64();
    let (accesses, misses) = (recorder.accesses(), recorder.misses());
    let space = recorder.finish();
    let lines: BTreeMap<u64, Misses> = (first..).zip(pages).filter(|(_, misses)| *misses != [0; 2]).collect();
    println!(
        "{}: footprint {footprint}, cache {}, {accesses} accesses, {misses} misses, {seconds:.1} s",
        workload.name,
        cache.size()
    );
    print_pages("loads", &lines, |misses| misses[0]);
    print_pages("loads and stores", &lines, |misses| misses[0] + misses[1]);
    print_structures(&space, &lines);
    Ok(())
}

fn print_pages(what: &str, pages: &BTreeMap<u64, Misses>, count: impl Fn(&Misses) -> u64) {
    let mut profile = PageProfile::default();
    pages.iter().for_each(|(page, misses)| profile.count(page << 6, count(misses)));
    let shares = [0.01, 0.03, 0.06, 0.12, 0.24, 0.5];
    let parts = profile.shares_of_hottest(&shares);
    print!("{} pages, {} {what}; the hottest", profile.pages(), profile.misses());
    shares
        .iter()
        .zip(parts)
        .for_each(|(share, part)| print!("  {:.0} % take {:.1} %", share * 100.0, part * 100.0));
    println!();
}

fn print_structures(space: &AddressSpace, pages: &BTreeMap<u64, Misses>) {
    let mut structures: BTreeMap<&str, (u64, Misses)> = BTreeMap::new();
    for (page, misses) in pages {
        // A page that small allocations share counts for the first.
        let context =
            (0..64).find_map(|line| space.find(page << 12 | line << 6)).map_or("none", |found| found.context);
        let entry = structures.entry(context).or_default();
        entry.0 += 1;
        (0..2).for_each(|kind| entry.1[kind] += misses[kind]);
    }
    for (context, (pages, [loads, stores])) in structures {
        println!("  {context:24} {pages:8} pages {loads:12} load misses {stores:12} store misses");
    }
}
