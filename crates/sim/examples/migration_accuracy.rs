//! Migration decisions of HybridTier's filters against exact counts, over filter sizes (HybridTier, Table 5).
//!
//! `cargo run --release -p isotherm-sim --example migration_accuracy [WORKLOAD]`. One run for each size of
//! Table 5, at the paper's 1:16 (32 GB of fast memory, 12 % of its 267 GB) and in the same proportion to the
//! fast tier: the paper's 128 MB are 16 bytes per page of its 32 GB. In each run the policy counts the same
//! samples in its filters and in exact tables, and compares every decision (`hybridtier.audit`).

use std::error::Error;
use std::ops::ControlFlow;

use isotherm_core::PageSize;
use isotherm_machine::Profile;
use isotherm_sim::{Experiment, FastSize, INTERVALS, Loaded, RunResult, load_workload, simulate};

/// Table 5: filter bytes per page of the fast tier, and megabytes and agreement as printed.
const TABLE_5: [(u64, &str, &str); 5] = [
    (32, "256", "99.72 %"),
    (16, "128", "99.65 %"),
    (8, "64", "99.62 %"),
    (4, "32", "99.42 %"),
    (1, "8", "96.92 %"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "cachelib-cdn".into());
    let Loaded { input, scale } = load(&name)?;
    let size = FastSize::parse("12%")?;
    let fast = size.pages(&input.stream)?.0;
    let profile = Profile::builtin("hybridtier")?;
    let hybridtier = isotherm_policies::find("hybridtier")?;
    let with_filter = |bytes_per_page: u64| {
        let mut parameters = hybridtier.parameters();
        parameters.set("audit", "true")?;
        parameters.set("filter_bytes", &(bytes_per_page * fast).to_string())?;
        Ok((hybridtier, parameters))
    };
    let policies = TABLE_5.iter().map(|row| with_filter(row.0)).collect::<Result<_, Box<dyn Error>>>()?;
    let experiment = Experiment {
        policies,
        sizes: vec![size],
        profile: &profile,
        seed: 1,
        scale,
        intervals: INTERVALS,
        version: "example",
        stop: None,
    };
    let report = simulate(&input, &experiment, &|| ())?;
    println!("{name}, {fast} fast pages of {}, scale {:.0}", input.stream.pages.len(), scale.footprint);
    println!(
        "| filter, bytes a fast page | the paper's (MB) | decisions | agree | agree where either moves | \
            paper |"
    );
    println!("|---|---|---|---|---|---|");
    for ((bytes, megabytes, paper), run) in TABLE_5.iter().zip(&report.runs) {
        println!("| {bytes} | {megabytes} | {} | {paper} |", agreement(run));
    }
    Ok(())
}

/// Returns the decisions, the share agreed on, and that share among decisions in which either side moves or
/// marks the page.
fn agreement(run: &RunResult) -> String {
    let gauges = run.timeline.iter().rev().map(|interval| &interval.gauges).find(|gauges| !gauges.is_empty());
    let gauge = |name| gauges.and_then(|gauges| gauges.get(name)).copied().unwrap_or(0.0);
    let (decisions, disagreements) = (gauge("audited-decisions"), gauge("audited-disagreements"));
    let share = |of: f64| 100.0 * (1.0 - disagreements / of.max(1.0));
    format!("{decisions} | {:.2} % | {:.2} %", share(decisions), share(gauge("audited-moves")))
}

/// Loads the workload's misses, with their scale.
fn load(name: &str) -> Result<Loaded, Box<dyn Error>> {
    let workload = isotherm_workloads::find(name)?;
    let mut go_on = |_| ControlFlow::Continue(());
    Ok(load_workload(workload, workload.parameters(), PageSize::Base, 1, u64::MAX, &mut go_on)?)
}
