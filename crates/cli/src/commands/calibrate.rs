//! `isotherm calibrate`: measures this machine's memory for a machine profile.

use std::path::Path;

use isotherm_core::{Bytes, Signal, Signals};
use isotherm_doctor::calibrate::{Arena, Fit, Latency, fit, latency, runs, usual_size};
use isotherm_linux::perf::counters::PmuCounters;
use isotherm_linux::perf::data_source::TierMap;
use isotherm_linux::topology::{Tiers, Topology};
use isotherm_machine::Profile;

use crate::args::CalibrateArgs;
use crate::commands::machines::load_profile;
use crate::date::today;
use crate::failure::Failure;
use crate::output::{self, listing, print, say};

struct Measured {
    nodes: Vec<u32>,
    latency: Latency,
    k: Option<Fit>,
}

/// Runs the verb. Prints and stores latencies in any case; fails if `k` cannot be measured.
pub(crate) fn run(args: &CalibrateArgs) -> Result<(), Failure> {
    let mut profile = load_profile(&args.machine)?;
    let topology = Topology::read(Path::new("/")).map_err(Failure::failed)?;
    let tiers = match &args.tiers {
        Some(text) => Tiers::parse(text, &topology).map_err(Failure::usage)?,
        None => Tiers::derive(&topology),
    };
    if args.output.is_some() && profile.tiers.len() < tiers.count() {
        return Err(Failure::usage(format!(
            "--machine {}: expected a profile of at least {} tiers",
            args.machine,
            tiers.count()
        )));
    }
    let file = output::open(args.output.as_ref())?;
    let nodes: Vec<Vec<u32>> = tiers.all().iter().map(|tier| tier.nodes.clone()).collect();
    let mut counters = open(TierMap::of(&topology, &nodes));
    let mut measured = Vec::new();
    let (cache, mut least) = (usual_size(Path::new("/"), Bytes(0)).0, Bytes(u64::MAX));
    for (index, tier) in tiers.all().iter().enumerate() {
        let size = args.size.unwrap_or_else(|| usual_size(Path::new("/"), tier.free).1);
        least = least.min(size);
        let mut arena = Arena::new(size, Some(&tier.nodes)).map_err(Failure::failed)?;
        let latency = latency(&mut arena);
        let runs = counters.as_mut().ok().map(|counters| runs(&mut arena, index, counters)).transpose();
        let k = runs.map_err(Failure::failed)?.and_then(|runs| fit(&runs));
        measured.push(Measured { nodes: tier.nodes.clone(), latency, k });
    }
    print(&table(&measured))?;
    if let Some(cache) = cache.filter(|cache| least.0 < 2 * cache.0) {
        say(&format!(
            "isotherm: {least} measured with a last-level cache of {cache}: some links hit it, so \
             latencies are too low\n"
        ));
    }
    if let Some(file) = file {
        store(&mut profile, &measured)?;
        file.write(profile.to_toml())?;
    }
    match counters {
        Err(why) => Err(Failure::usage(format!("k is not calibrated, only latency: {why}"))),
        Ok(_) if measured.iter().any(|tier| tier.k.is_none()) => Err(Failure::failed(
            "k is not calibrated for every tier: the counters stopped or were multiplexed; is \
             another profiler running?",
        )),
        Ok(_) => Ok(()),
    }
}

/// Opens counters of this thread, or says why there are none.
fn open(tiers: TierMap) -> Result<PmuCounters, String> {
    let counters = PmuCounters::here(tiers).map_err(|error| error.to_string())?;
    match (counters.offers(Signals::NONE).has(Signal::TierStalls), counters.sockets_refused()) {
        (true, _) => Ok(counters),
        (false, Some(refused)) => Err(refused.to_string()),
        (false, None) => Err(format!("this machine has no {}; see `isotherm doctor`", Signal::TierStalls)),
    }
}

fn table(measured: &[Measured]) -> String {
    let mut table = listing(&["tier", "nodes", "latency", "k", "runs"]);
    for (index, tier) in measured.iter().enumerate() {
        let nodes: Vec<_> = tier.nodes.iter().map(u32::to_string).collect();
        let latency =
            format!("{:.1} ns, spread {:.0} %", tier.latency.nanoseconds, 100.0 * tier.latency.spread);
        let (k, runs) = tier.k.map_or_else(
            || ("not measured".into(), "0".into()),
            |fit| (format!("{:.1} ns +-{:.0} %", fit.k, 100.0 * fit.error), fit.runs.to_string()),
        );
        table.add_row([index.to_string(), nodes.join("+"), latency, k, runs]);
    }
    format!("{table}\n")
}

/// Stores the measurements in the profile, with date and error as their source.
fn store(profile: &mut Profile, measured: &[Measured]) -> Result<(), Failure> {
    let date = today();
    for (index, tier) in measured.iter().enumerate() {
        let mut set = |name: &str, value: f64, source: String| {
            let (path, value) = (format!("tier.{index}.{name}"), format!("{}ns", value.round().max(1.0)));
            profile.set_from(&path, &value, &source).map_err(Failure::failed)
        };
        let spread = 100.0 * tier.latency.spread;
        let source =
            format!("measured: isotherm calibrate, {date}, pointer chase, repetitions within {spread:.0} %");
        set("latency", tier.latency.nanoseconds, source)?;
        if let Some(Fit { k, error, runs }) = tier.k {
            let error = 100.0 * error;
            let source = format!(
                "measured: isotherm calibrate, {date}, chases and streams, {runs} runs, error +-{error:.0} %"
            );
            set("k", k, source)?;
        }
    }
    profile.check().map_err(Failure::failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_profile_carries_date_and_error() {
        let mut profile = Profile::builtin("pact").expect("builtin");
        let tier = |nanoseconds, k| Measured {
            nodes: vec![0],
            latency: Latency { nanoseconds, spread: 0.02 },
            k: Some(Fit { k, error: 0.051, runs: 15 }),
        };
        store(&mut profile, &[tier(81.4, 70.2), tier(187.9, 165.6)]).expect("in order");
        let again = Profile::parse(&profile.to_toml(), "mine.toml").expect("a profile");
        assert_eq!((again.tiers[1].latency.0, again.tiers[1].k.map(|k| k.0)), (188, Some(166)));
        let source = |path: &str| {
            let numbers = again.summary().numbers;
            numbers.into_iter().find(|number| number.path == path).map(|number| number.source)
        };
        let text = source("tier.1.k").expect("stored");
        assert!(text.contains("15 runs, error +-5 %") && text.contains(", 20"), "{text}");
        // Tiers that are not slower one by one make no profile.
        let error = store(&mut profile, &[tier(200.0, 1.0), tier(100.0, 1.0)]);
        assert!(error.is_err_and(|error| error.to_string().contains("tier")));
    }
}
