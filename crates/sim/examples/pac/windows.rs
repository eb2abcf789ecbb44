//! Measures how much the windows of a run differ, on which attribution in proportion depends.

use std::fmt::Write as _;

use isotherm_core::{Bytes, TierId};
use isotherm_sim::{Criticality, PageStall, WindowStall, pearson, spearman, stall_window};

use crate::{Result, Settings, load, profile};

/// The workloads of PACT's Fig. 9 and 10 and its colocated pair, with settings and the paper's footprint, as
/// in the scoreboard.
const WORKLOADS: [(&str, Settings, Bytes); 7] = [
    ("gapbs-bc-kron", GRAPH, Bytes(20 << 30)),
    ("gapbs-bc-urand", GRAPH, Bytes(20 << 30)),
    ("gapbs-sssp-kron", &[("threads", "8")], Bytes(20 << 30)),
    ("silo", &[("threads", "8")], Bytes(20 << 30)),
    ("gpt2", &[], Bytes(13 << 29)),
    ("bwaves", &[("threads", "8")], Bytes(20 << 30)),
    ("masim", &[("preset", "colocated"), ("footprint", "128M"), ("operations", "20M")], Bytes(12 << 30)),
];
const GRAPH: Settings = &[("scale", "19"), ("degree", "16"), ("threads", "8")];
/// As many as the scoreboard replays.
const ACCESSES: u64 = 50_000_000;

/// Writes a table: stalls of windows, how the two estimates of parallelism follow them, and PAC beside
/// counts.
pub(crate) fn windows() -> Result<String> {
    let profile = profile(&[])?;
    let mut text = String::from(
        "| workload | windows | stall a load, ns: 10 %, median, 90 % | change to the next window, median | stalls with misses / (T1 / T2) | stalls with misses | Little's law with T1 / T2 | Little's law / (T1 / T2), median | ranks of pages: PAC with counts, where sampled | loads with stalls, exactly |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (name, settings, footprint) in WORKLOADS {
        let loaded = load(isotherm_workloads::find(name)?, settings, ACCESSES)?;
        let scale = loaded.input.scale(footprint, loaded.input.stream.threads as f64);
        let bench = Criticality::new(&loaded.input, &profile, scale, 1)?;
        let truth = bench.truth(TierId(1), stall_window(scale));
        let each: Vec<f64> = truth.windows.iter().map(|one| one.stall.0 as f64 / one.misses as f64).collect();
        let change = each.windows(2).map(|pair| 100.0 * (pair[1] / pair[0] - 1.0).abs()).collect::<Vec<_>>();
        let follows = |pair: fn(&WindowStall) -> (f64, f64)| {
            pearson(&truth.windows.iter().map(pair).collect::<Vec<_>>()).unwrap_or(f64::NAN)
        };
        let over = truth.windows.iter().map(|one| one.littles_law() / one.parallelism).collect::<Vec<_>>();
        let of = |score| -> Result<Vec<PageStall>> {
            let mut parameters = isotherm_policies::find("pact")?.parameters();
            parameters.set("score", score)?;
            let mut pages = truth.pages.clone();
            bench.measure(&parameters, &mut pages)?;
            Ok(pages)
        };
        let both: Vec<(f64, f64)> = of("pac")?
            .iter()
            .zip(&of("frequency")?)
            .filter(|(pac, counts)| pac.pac > 0.0 && counts.pac > 0.0)
            .map(|(pac, counts)| (f64::from(pac.pac), f64::from(counts.pac)))
            .collect();
        let exact: Vec<_> =
            truth.pages.iter().map(|page| (f64::from(page.loads), page.stall.0 as f64)).collect();
        let [low, middle, high] = [0.1, 0.5, 0.9].map(|share| quantile(&each, share));
        writeln!(
            text,
            "| {name} | {} | {low:.1}, {middle:.1}, {high:.1} | {:.1} % | {:.3} | {:.3} | {:.3} | {:.2} | {:.3} | {:.3} |",
            each.len(),
            quantile(&change, 0.5),
            follows(|one| (one.misses as f64 / one.parallelism, one.stall.0 as f64)),
            follows(|one| (one.misses as f64, one.stall.0 as f64)),
            follows(|one| (one.littles_law(), one.parallelism)),
            quantile(&over, 0.5),
            spearman(&both).unwrap_or(f64::NAN),
            spearman(&exact).unwrap_or(f64::NAN)
        )?;
        eprintln!("{name}: {} windows", each.len());
    }
    Ok(text)
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(((sorted.len() as f64 - 1.0) * share).round() as usize).copied().unwrap_or(f64::NAN)
}
