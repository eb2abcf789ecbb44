//! `isotherm calibrate`: measures this machine for a machine profile.

use std::path::Path;

use isotherm_core::{Bytes, Signal, Signals};
use isotherm_doctor::calibrate::{Calibration, Fit, STEADY, Tools, measure, usual_size};
use isotherm_linux::perf::counters::PmuCounters;
use isotherm_linux::perf::data_source::TierMap;
use isotherm_linux::perf::source::PmuSource;
use isotherm_linux::source::AccessSource;
use isotherm_linux::topology::{Tiers, Topology};
use isotherm_machine::{Profile, is_path};

use crate::args::CalibrateArgs;
use crate::commands::machines::load_profile;
use crate::date::today;
use crate::failure::Failure;
use crate::output::{self, listing, print, say};
use crate::progress;

/// Runs the verb. Prints what was measured in any case, and stores what was measured steadily; fails if that
/// is not all that could be measured.
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
    let name = base_name(&args.machine)?;
    let nodes: Vec<Vec<u32>> = tiers.all().iter().map(|tier| tier.nodes.clone()).collect();
    let map = TierMap::of(&topology, &nodes);
    let mut counters = open(map);
    let samples = PmuSource::detect(false, map).map(|source| Box::new(source) as Box<dyn AccessSource>);
    let tools = Tools {
        counters: counters.as_mut().map_err(|why| why.clone()),
        samples: samples.map_err(|error| error.to_string()),
    };
    let cache = usual_size(Path::new("/"), Bytes(0)).0;
    let size = |free| args.size.unwrap_or_else(|| usual_size(Path::new("/"), free).1);
    let memory: Vec<_> = tiers.all().iter().map(|tier| (tier.nodes.clone(), size(tier.free))).collect();
    let least = memory.iter().map(|&(_, size)| size).min().unwrap_or_default();
    let line = progress::line(false);
    let measured = measure(&memory, tools, &mut |round, rounds| {
        line.set_message(format!("measuring: round {round} of {rounds}"));
        line.tick();
    });
    line.finish_and_clear();
    let measured = measured.map_err(Failure::failed)?;
    let judged = judge(&measured);
    print(&table(&judged, &measured))?;
    if let Some(cache) = cache.filter(|cache| least.0 < 2 * cache.0) {
        say(&format!(
            "isotherm: {least} measured with a last-level cache of {cache}: some links hit it, so \
             latencies are too low\n"
        ));
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if let Some(why) = measured.disturbed(processors) {
        let kept = if file.is_some() { "nothing is written" } else { "do not use it" };
        return Err(Failure::failed(format!(
            "not measured alone, {kept}: {why}; try again on a quiet machine"
        )));
    }
    let steady = judged.iter().any(|number| number.value.is_ok());
    if let (Some(file), Some(path)) = (file.filter(|_| steady), &args.output) {
        file.write(stored(&name, &base, &judged, &path.display().to_string())?)?;
    }
    let doubts: Vec<String> = judged
        .iter()
        .filter_map(|number| Some(format!("{}: {}", number.path, number.value.as_ref().err()?)))
        .collect();
    if doubts.is_empty() {
        return Ok(());
    }
    let kept = match (args.output.is_some(), steady) {
        (true, true) => "left to the base",
        (true, false) => "nothing is written",
        (false, _) => "do not use it",
    };
    let doubts = doubts.join("; ");
    Err(Failure::failed(format!("not measured steadily, {kept}: {doubts}; try again on a quiet machine")))
}

/// A number as it would be written, or why it is not.
#[derive(Debug, Clone, PartialEq)]
struct Judged {
    path: String,
    value: Result<String, String>,
    /// How it was measured, and how the repetitions agree.
    how: String,
    agreement: String,
}

/// Judges every number on its own. Without a steady latency, a tier's curve would begin anywhere.
fn judge(measured: &Calibration) -> Vec<Judged> {
    let mut judged = Vec::new();
    for (tier, curve) in measured.curves.iter().enumerate() {
        let latency = measured.numbers.iter().find(|number| number.path == format!("tier.{tier}.latency"));
        let doubt = latency.and_then(|number| number.series.doubt(number.unit.name()));
        judged.push(Judged {
            path: format!("tier.{tier}.curve"),
            value: doubt.map_or_else(|| curve.text(), |why| Err(format!("idle, {why}"))),
            how: format!("a chase beside {} threads that load and store at a pace", curve.threads),
            agreement: curve.agreement(),
        });
    }
    for number in &measured.numbers {
        judged.push(Judged {
            path: number.path.clone(),
            value: number.series.doubt(number.unit.name()).map_or_else(|| Ok(number.text()), Err),
            how: number.how.into(),
            agreement: number.series.agreement(),
        });
    }
    for (tier, fit) in measured.fits.iter().enumerate() {
        let Some(Fit { k, error, runs }) = fit else { continue };
        let percent = 100.0 * error;
        let unsteady = *error > STEADY;
        judged.push(Judged {
            path: format!("tier.{tier}.k"),
            value: if unsteady { Err(format!("error +-{percent:.0} %")) } else { Ok(format!("{k:.0}ns")) },
            how: "chases and streams".into(),
            agreement: format!("{runs} runs, error +-{percent:.0} %"),
        });
    }
    judged
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

fn table(judged: &[Judged], measured: &Calibration) -> String {
    let mut table = listing(&["number", "value", "repetitions"]);
    for Judged { path, value, agreement, .. } in judged {
        let value = match value {
            // A curve is too long for a table.
            Ok(value) if value.contains(';') => format!("{} points", value.split(';').count()),
            Ok(value) => value.clone(),
            Err(_) => "not steady".into(),
        };
        table.add_row([path, &value, agreement]);
    }
    for (path, why) in &measured.lacking {
        table.add_row([path.as_str(), "not measured", why]);
    }
    format!("{table}\nOthers kept {:.1} processors busy.\n", measured.others)
}

/// Returns a profile over the base with what was steady, each number's source being its measurement.
fn stored(name: &str, base: &Profile, judged: &[Judged], file: &str) -> Result<String, Failure> {
    let date = today();
    let mut profile = base.clone();
    for Judged { path, value, how, agreement } in judged {
        let Ok(value) = value else { continue };
        let source = format!("measured: isotherm calibrate, {date}, {how}; {agreement}");
        profile.set_from(path, value, &source).map_err(Failure::failed)?;
    }
    profile.name = file.into();
    profile.check().map_err(Failure::failed)?;
    Ok(profile.to_toml_over(name, base))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(path: &str, value: Result<&str, &str>) -> Judged {
        Judged {
            path: path.into(),
            value: value.map(str::to_owned).map_err(str::to_owned),
            how: "a chase".into(),
            agreement: "18 repetitions in 6 rounds".into(),
        }
    }

    #[test]
    fn a_stored_profile_holds_what_was_steady_with_date_and_repetitions() {
        let base = Profile::builtin("pact").expect("builtin");
        let curve = "50,0.5,81; 50,9,120; 100,0.5,81; 100,12,110";
        let judged = [
            number("tier.0.curve", Ok(curve)),
            number("tier.0.latency", Ok("81ns")),
            number("tier.1.latency", Ok("188ns")),
            number("tier.1.k", Ok("166ns")),
            number("costs.fault", Ok("880ns")),
            number("costs.arm_page", Err("70 to 140 ns")),
        ];
        let text = stored("pact", &base, &judged, "mine.toml").expect("in order");
        assert!(text.starts_with("base = \"pact\"\n"), "{text}");
        let again = Profile::parse(&text, "mine.toml").expect("a profile");
        assert_eq!((again.tiers[1].latency.0, again.tiers[1].k.map(|k| k.0)), (188, Some(166)));
        assert_eq!(again.tiers[0].curve.as_ref().map(|curve| curve.points().len()), Some(4));
        assert_eq!((again.tiers[0].latency.0, again.tiers[0].read_bandwidth), (81, 12_000_000_000));
        assert_eq!((again.costs.fault.0, again.costs.arm_page), (880, base.costs.arm_page));
        let source = |path: &str| {
            let numbers = again.summary().numbers;
            numbers.into_iter().find(|number| number.path == path).map(|number| number.source)
        };
        let text = source("tier.1.k").expect("stored");
        assert!(text.contains(", 20") && text.ends_with("; 18 repetitions in 6 rounds"), "{text}");
        // Tiers that do not stand nearest first make no profile.
        let judged = [number("tier.0.latency", Ok("200ns")), number("tier.1.latency", Ok("50ns"))];
        let error = stored("pact", &base, &judged, "mine.toml");
        assert!(error.is_err_and(|error| error.to_string().contains("tier")));
    }

    #[test]
    fn an_error_of_the_fit_is_a_doubt() {
        let of = |error| {
            let fits = vec![Some(Fit { k: 70.0, error, runs: 15 })];
            let (numbers, curves, lacking) = (Vec::new(), Vec::new(), Vec::new());
            judge(&Calibration { numbers, curves, fits, lacking, others: 0.0 })[0].value.clone()
        };
        assert_eq!(of(0.05), Ok("70ns".into()));
        assert_eq!(of(0.3), Err("error +-30 %".into()));
    }
}
