//! `isotherm calibrate`: measures this machine's memory for a machine profile.

use std::path::Path;

use isotherm_core::{Bytes, Signal, Signals};
use isotherm_doctor::calibrate::{Arena, Fit, Latency, STEADY, fit, latency, runs, usual_size};
use isotherm_linux::perf::counters::PmuCounters;
use isotherm_linux::perf::data_source::TierMap;
use isotherm_linux::topology::{Tiers, Topology};
use isotherm_machine::{Profile, is_path};

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

/// Runs the verb. Prints latencies in any case and stores what was measured steadily; fails if that is not
/// all that was asked for.
pub(crate) fn run(args: &CalibrateArgs) -> Result<(), Failure> {
    let base = load_profile(&args.machine)?;
    let topology = Topology::read(Path::new("/")).map_err(Failure::failed)?;
    let tiers = match &args.tiers {
        Some(text) => Tiers::parse(text, &topology).map_err(Failure::usage)?,
        None => Tiers::derive(&topology),
    };
    if args.output.is_some() && base.tiers.len() < tiers.count() {
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
        let latency = latency(&mut arena).map_err(Failure::failed)?;
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
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let doubts: Vec<String> =
        measured.iter().enumerate().flat_map(|(tier, measured)| measured.doubts(tier, processors)).collect();
    if !doubts.is_empty() {
        let kept = if file.is_some() { "nothing is written" } else { "do not use it" };
        return Err(Failure::failed(format!(
            "not measured steadily, {kept}: {}; try again on a quiet machine",
            doubts.join("; ")
        )));
    }
    if let (Some(file), Some(path)) = (file, &args.output) {
        let name = base_name(&args.machine)?;
        file.write(stored(&name, &base, &measured, &path.display().to_string())?)?;
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

impl Measured {
    /// Returns what was not measured steadily, each with the reason.
    fn doubts(&self, tier: usize, processors: usize) -> impl Iterator<Item = String> {
        let latency = self.latency.doubt(processors).map(|why| format!("latency of tier {tier}: {why}"));
        let unsteady = self.k.filter(|fit| fit.error > STEADY);
        let k = unsteady.map(|fit| format!("k of tier {tier}: error +-{:.0} %", 100.0 * fit.error));
        latency.into_iter().chain(k)
    }
}

/// Returns the base's name as the written profile has it, wherever that lies.
fn base_name(machine: &str) -> Result<String, Failure> {
    if !is_path(machine) {
        return Ok(machine.into());
    }
    let path = Path::new(machine);
    let whole = path.canonicalize().map_err(|error| Failure::usage_at(path, error))?;
    Ok(whole.display().to_string())
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
    let mut table = listing(&["tier", "nodes", "latency", "busy with others", "k", "runs"]);
    for (index, tier) in measured.iter().enumerate() {
        let nodes: Vec<_> = tier.nodes.iter().map(u32::to_string).collect();
        let Latency { nanoseconds, others, .. } = tier.latency;
        let spread = 100.0 * tier.latency.spread();
        let latency = format!("{nanoseconds:.1} ns, spread {spread:.0} %");
        let (k, runs) = tier.k.map_or_else(
            || ("not measured".into(), "0".into()),
            |fit| (format!("{:.1} ns +-{:.0} %", fit.k, 100.0 * fit.error), fit.runs.to_string()),
        );
        let others = format!("{others:.1} processors");
        table.add_row([index.to_string(), nodes.join("+"), latency, others, k, runs]);
    }
    format!("{table}\n")
}

/// Returns a profile over the base with the measurements, date and error as their source.
fn stored(name: &str, base: &Profile, measured: &[Measured], file: &str) -> Result<String, Failure> {
    let date = today();
    let mut profile = base.clone();
    for (index, tier) in measured.iter().enumerate() {
        let mut set = |name: &str, value: f64, source: String| {
            let (path, value) = (format!("tier.{index}.{name}"), format!("{}ns", value.round().max(1.0)));
            profile.set_from(&path, &value, &source).map_err(Failure::failed)
        };
        let spread = 100.0 * tier.latency.spread();
        let source = format!(
            "measured: isotherm calibrate, {date}, pointer chase, repetitions over seconds within {spread:.0} %"
        );
        set("latency", tier.latency.nanoseconds, source)?;
        if let Some(Fit { k, error, runs }) = tier.k {
            let error = 100.0 * error;
            let source = format!(
                "measured: isotherm calibrate, {date}, chases and streams, {runs} runs, error +-{error:.0} %"
            );
            set("k", k, source)?;
        }
    }
    profile.name = file.into();
    profile.check().map_err(Failure::failed)?;
    Ok(profile.to_toml_over(name, base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_profile_holds_what_was_measured_with_date_and_error() {
        let base = Profile::builtin("pact").expect("builtin");
        let tier = |nanoseconds: f64, k| Measured {
            nodes: vec![0],
            latency: Latency { nanoseconds, least: nanoseconds, largest: 1.02 * nanoseconds, others: 0.0 },
            k: Some(Fit { k, error: 0.051, runs: 15 }),
        };
        let text =
            stored("pact", &base, &[tier(81.4, 70.2), tier(187.9, 165.6)], "mine.toml").expect("in order");
        assert!(text.starts_with("base = \"pact\"\n") && text.lines().count() < 12, "{text}");
        let again = Profile::parse(&text, "mine.toml").expect("a profile");
        assert_eq!((again.tiers[1].latency.0, again.tiers[1].k.map(|k| k.0)), (188, Some(166)));
        assert_eq!(again.costs, base.costs);
        let source = |path: &str| {
            let numbers = again.summary().numbers;
            numbers.into_iter().find(|number| number.path == path).map(|number| number.source)
        };
        let text = source("tier.1.k").expect("stored");
        assert!(text.contains("15 runs, error +-5 %") && text.contains(", 20"), "{text}");
        // Tiers that are not slower one by one make no profile.
        let error = stored("pact", &base, &[tier(200.0, 1.0), tier(100.0, 1.0)], "mine.toml");
        assert!(error.is_err_and(|error| error.to_string().contains("tier")));
    }

    #[test]
    fn an_error_of_the_fit_is_a_doubt() {
        let latency = Latency { nanoseconds: 80.0, least: 80.0, largest: 81.0, others: 0.0 };
        let measured =
            |error| Measured { nodes: vec![0], latency, k: Some(Fit { k: 70.0, error, runs: 15 }) };
        assert_eq!(measured(0.05).doubts(0, 2).count(), 0);
        assert_eq!(measured(0.3).doubts(1, 2).collect::<Vec<_>>(), ["k of tier 1: error +-30 %"]);
    }
}
