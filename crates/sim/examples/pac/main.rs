//! Measures PACT's two claims about stalls on the modelled machine; writes tables and pictures into a folder:
//!
//! ```sh
//! cargo run --release -p isotherm-sim --example pac -- docs/papers/pact [test|full] [equation|pages|windows]
//! ```
//!
//! - Equation 1, over all workloads, with all memory at 90, 140 and 190 ns: stalls predicted by misses / MLP,
//!   and by misses alone, against those of the core model (the paper's Fig. 2).
//! - PAC, for each page of three workloads in slow memory, against the page's stall (the paper's Fig. 1).
//! - Windows: how much stalls and parallelism differ from one to the next (the paper's Fig. 3).

mod picture;
mod windows;

use std::error::Error;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use isotherm_core::parameters::Parameters;
use isotherm_core::{PageSize, TierId};
use isotherm_machine::Profile;
use isotherm_sim::{
    Criticality, Loaded, PageStall, TierStall, load_workload, pearson, spearman, stall_window,
};
use isotherm_workloads::Workload;
use picture::{Panel, Series};

type Result<T> = std::result::Result<T, Box<dyn Error>>;
/// Names and values.
type Settings = &'static [(&'static str, &'static str)];

/// The machines: a name, the tier that holds everything, settings of the profile.
const MACHINES: [(&str, u8, Settings); 3] = [
    ("90 ns", 0, &[]),
    (
        "140 ns",
        1,
        &[
            ("tier.1.latency", "140ns"),
            ("tier.1.read_bandwidth", "32GB/s"),
            ("tier.1.write_bandwidth", "32GB/s"),
        ],
    ),
    ("190 ns", 1, &[]),
];
/// The workloads of Fig. 1: name in the table, workload, its settings, and whether its threads run at their
/// own pace.
const PAGES: [(&str, &str, Settings, bool); 4] = [
    ("masim, in turns", "masim", MASIM, false),
    ("masim, own pace", "masim", MASIM, true),
    ("gups", "gups", &[("preset", "pact"), ("footprint", "64M"), ("operations", "16M")], false),
    ("gapbs-tc-kron", "gapbs-tc-kron", &[("threads", "8")], false),
];
const MASIM: Settings = &[("footprint", "64M"), ("operations", "8M")];
/// Settings of PACT for measuring pages.
const SETTINGS: [(&str, Settings); 8] = [
    ("1 in 400, the default", &[]),
    ("1 in 100, as Fig. 1", &[("sampling_period", "100")]),
    ("1 in 10", &[("sampling_period", "10")]),
    ("1 in 10, frequency alone", &[("sampling_period", "10"), ("score", "frequency")]),
    ("every load", &[("sampling_period", "1")]),
    ("1 in 100, exposed latency", &[("sampling_period", "100"), ("attribution", "exposed")]),
    ("1 in 10, exposed latency", &[("sampling_period", "10"), ("attribution", "exposed")]),
    ("every load, exposed latency", &[("sampling_period", "1"), ("attribution", "exposed")]),
];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder =
        Path::new(arguments.first().ok_or("usage: pac FOLDER [test|full] [equation|pages|windows]")?);
    let full = arguments.get(1).is_some_and(|size| size == "full");
    let only = arguments.get(2).map(String::as_str);
    std::fs::create_dir_all(folder)?;
    let wanted = |part| only.is_none_or(|only| only == part);
    if wanted("equation") {
        let (text, picture) = equation(full)?;
        std::fs::write(folder.join("equation.md"), text)?;
        std::fs::write(folder.join("equation.svg"), picture)?;
    }
    if wanted("windows") {
        std::fs::write(folder.join("windows.md"), windows::windows()?)?;
    }
    if wanted("pages") {
        let (text, picture) = pages()?;
        std::fs::write(folder.join("pages.md"), text)?;
        std::fs::write(folder.join("pages.svg"), picture)?;
    }
    Ok(())
}

fn profile(settings: &[(&str, &str)]) -> Result<Profile> {
    let mut profile = Profile::builtin("pact")?;
    settings.iter().try_for_each(|(path, value)| profile.set(path, value))?;
    profile.check()?;
    Ok(profile)
}

fn load(workload: &Workload, settings: &[(&str, &str)], accesses: u64) -> Result<Loaded> {
    let mut parameters = workload.parameters();
    settings.iter().try_for_each(|(key, value)| parameters.set(key, value))?;
    Ok(load_workload(workload, parameters, PageSize::Base, 1, accesses, &mut |_| ControlFlow::Continue(()))?)
}

/// Fig. 2: writes a table, and a picture with a panel for each machine.
fn equation(full: bool) -> Result<(String, String)> {
    let profiles = MACHINES.iter().map(|machine| profile(machine.2)).collect::<Result<Vec<_>>>()?;
    let mut rows = Vec::new();
    for workload in isotherm_workloads::ALL {
        let loaded = load(workload, if full { &[] } else { &[("preset", "test")] }, u64::MAX)?;
        let measure = |(&(_, tier, _), profile): (&(&str, u8, _), &Profile)| {
            let bench = Criticality::new(&loaded.input, profile, loaded.scale, 1)?;
            Ok(bench.truth(TierId(tier), stall_window(loaded.scale)).tier)
        };
        let found = MACHINES.iter().zip(&profiles).map(measure).collect::<Result<Vec<TierStall>>>()?;
        eprintln!("{}: {} misses", workload.name, found[2].misses);
        // A working set that fits the cache says nothing.
        if found[2].misses > 0 {
            rows.push((workload.name, found));
        }
    }
    let mut text = format!(
        "{} workloads, `{}`.\n\n| all memory at | Pearson, Equation 1 | with waits for prefetched lines | \
            Pearson, misses alone | Pearson, stall a miss and 1 / MLP | k, fitted | latency, mean | within \
            10 % of the fit |\n|---|---|---|---|---|---|---|---|\n",
        rows.len(),
        if full { "full" } else { "test" }
    );
    let mut panels = Vec::new();
    for (index, machine) in MACHINES.iter().enumerate() {
        let of = |pick: fn(&TierStall) -> f64| -> Vec<(f64, f64)> {
            rows.iter().map(|(_, found)| (pick(&found[index]), found[index].stall.0 as f64)).collect()
        };
        let (predicted, misses) = (of(|tier| tier.serial_misses), of(|tier| tier.misses as f64));
        let whole = of_all(&rows, index);
        let each: Vec<(f64, f64)> =
            predicted.iter().zip(&misses).map(|(one, all)| (one.0 / all.0, one.1 / all.0)).collect();
        // Least squares through the origin.
        let k = predicted.iter().map(|(x, y)| x * y).sum::<f64>()
            / predicted.iter().map(|(x, _)| x * x).sum::<f64>();
        let near = predicted.iter().filter(|(x, y)| (x * k / y - 1.0).abs() < 0.1).count();
        let latency = rows.iter().map(|(_, found)| found[index].latency).sum::<f64>() / rows.len() as f64;
        let correlation = |pairs: &[(f64, f64)]| pearson(pairs).unwrap_or(f64::NAN);
        writeln!(
            text,
            "| {} | {:.4} | {:.4} | {:.4} | {:.4} | {k:.1} ns | {latency:.1} ns | {near} of {} |",
            machine.0,
            correlation(&predicted),
            correlation(&whole),
            correlation(&misses),
            correlation(&each),
            rows.len()
        )?;
        panels.push(Panel {
            title: format!("all memory at {}", machine.0),
            x: "k x misses / MLP, and misses x latency (grey); ms".into(),
            y: "stalls of loads, ms".into(),
            log: true,
            series: vec![
                Series {
                    name: "misses alone",
                    colour: "#999999",
                    points: scaled(&misses, latency / 1e6, 1e-6),
                },
                Series { name: "Equation 1", colour: "#1f5fbf", points: scaled(&predicted, k / 1e6, 1e-6) },
            ],
        });
    }
    text.push_str(
        "\nAt 190 ns:\n\n| workload | misses | MLP | stalls of misses | waits for prefetched \
        lines | Equation 1 / stalls of misses |\n|---|---|---|---|---|---|\n",
    );
    let k = |tier: &TierStall| tier.serial_misses * tier.latency;
    for (name, found) in &rows {
        let tier = &found[2];
        writeln!(
            text,
            "| {name} | {} | {:.2} | {:.3} ms | {:.3} ms | {:.2} |",
            tier.misses,
            tier.parallelism,
            tier.stall.0 as f64 / 1e6,
            tier.late.0 as f64 / 1e6,
            k(tier) / tier.stall.0 as f64
        )?;
    }
    text.push_str(
        "\nHere k is each workload's own mean latency, so that 1 means that requests in flight \
        and stalls are the same time.\n",
    );
    Ok((text, picture::draw(&panels)))
}

/// Pairs Equation 1's prediction with all stalls of loads: misses, and prefetched lines still in flight.
fn of_all(rows: &[(&str, Vec<TierStall>)], machine: usize) -> Vec<(f64, f64)> {
    let pair = |tier: &TierStall| (tier.serial_misses, (tier.stall.0 + tier.late.0) as f64);
    rows.iter().map(|(_, found)| pair(&found[machine])).collect()
}

fn scaled(points: &[(f64, f64)], x: f64, y: f64) -> Vec<(f64, f64)> {
    points.iter().map(|point| (point.0 * x, point.1 * y)).collect()
}

/// Fig. 1: writes a table of rank correlations, and a picture of stalls per load.
fn pages() -> Result<(String, String)> {
    // Samples shall be complete at any rate: PACT's thread costs nothing here.
    let profile = profile(&[
        ("costs.sample", "0ns"),
        ("costs.ring_samples", "1000000000"),
        ("costs.drain_sample", "0ns"),
        ("costs.cached_touch", "0ns"),
        ("costs.operation", "0ns"),
    ])?;
    let mut text = String::from(
        "| workload | sampled | pages seen, of all | rank correlation, all pages | of the pages seen | \
            stall a load: rank correlation |\n|---|---|---|---|---|---|\n",
    );
    let mut panels = Vec::new();
    for (name, workload, settings, own_pace) in PAGES {
        let mut loaded = load(isotherm_workloads::find(workload)?, settings, u64::MAX)?;
        if own_pace {
            loaded.input.stream = loaded.input.stream.at_own_pace(&profile, TierId(1));
        }
        let bench = Criticality::new(&loaded.input, &profile, loaded.scale, 1)?;
        let mut pages = bench.truth(TierId(1), stall_window(loaded.scale)).pages;
        let mut counted = pages.clone();
        counted.iter_mut().for_each(|page| page.pac = page.loads as f32);
        text.push_str(&row(name, "nothing: its loads, counted exactly", &counted));
        for (label, settings) in SETTINGS {
            let mut parameters: Parameters = isotherm_policies::find("pact")?.parameters();
            settings.iter().try_for_each(|(key, value)| parameters.set(key, value))?;
            bench.measure(&parameters, &mut pages)?;
            text.push_str(&row(name, label, &pages));
            if ["1 in 10", "1 in 10, exposed latency"].contains(&label) {
                panels.push(panel(name, label, &pages));
            }
        }
        eprintln!("{name}: {} pages", pages.len());
    }
    Ok((text, picture::draw(&panels)))
}

fn row(name: &str, label: &str, pages: &[PageStall]) -> String {
    let seen: Vec<PageStall> = pages.iter().copied().filter(|page| page.pac > 0.0).collect();
    let ranks = |pages| PageStall::rank_correlation(pages).unwrap_or(f64::NAN);
    let a_load = |page: &PageStall| {
        (f64::from(page.pac) / f64::from(page.loads), page.stall.0 as f64 / f64::from(page.loads))
    };
    format!(
        "| {name} | {label} | {} of {} | {:.3} | {:.3} | {:.3} |\n",
        seen.len(),
        pages.len(),
        ranks(pages),
        ranks(&seen),
        spearman(&seen.iter().map(a_load).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    )
}

fn panel(name: &str, label: &str, pages: &[PageStall]) -> Panel {
    let step = (pages.len() / 1500).max(1);
    let some = || pages.iter().step_by(step);
    let truth = some().map(|page| (f64::from(page.loads), page.stall.0 as f64 / f64::from(page.loads)));
    let pac = some().map(|page| (f64::from(page.loads), f64::from(page.pac) / f64::from(page.loads)));
    Panel {
        title: format!("{name}, {label}"),
        x: "loads of the page".into(),
        y: "stall a load, ns".into(),
        log: false,
        series: vec![
            Series { name: "PAC", colour: "#1f5fbf", points: pac.collect() },
            Series { name: "true stall", colour: "#c8501e", points: truth.collect() },
        ],
    }
}
