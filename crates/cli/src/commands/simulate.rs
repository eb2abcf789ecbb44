//! `isotherm simulate`: replays a trace or a workload under policies.

use isotherm_core::parameters::{Parameters, Scale};
use isotherm_machine::Profile;
use isotherm_policies::Entry;
use isotherm_sim::{Experiment, FastSize, Input, Loaded, Report, SimulateError, simulate, simulate_long};

use crate::args::{ReplayArgs, SimulateArgs};
use crate::commands::machines::load_profile;
use crate::failure::Failure;
use crate::input::{self, Demand};
use crate::memory::Memory;
use crate::progress::Watch;
use crate::settings::{self, Setting};
use crate::{fingerprint, output, policies};

pub(crate) fn run(args: &SimulateArgs) -> Result<(), Failure> {
    let (report, _) = compute(args, &Watch::new(args.replay.quiet))?;
    if args.replay.json {
        return output::print(&format!("{}\n", isotherm_report::json(&report)));
    }
    output::print(&isotherm_report::table(&report))?;
    output::name_report(args.replay.report.as_deref(), args.replay.quiet);
    Ok(())
}

/// Loads the input alone.
pub(crate) fn load_only(args: &SimulateArgs, watch: &Watch) -> Result<Loaded, Failure> {
    load(&args.replay, &mut settings::parse(&args.replay.set)?, (1, (0, 0)), watch)
}

/// Does the work and writes the page; returns the result, and the input that was replayed.
pub(crate) fn compute(args: &SimulateArgs, watch: &Watch) -> Result<(Report, Loaded), Failure> {
    let length = args.length.length()?;
    let mut settings = settings::parse(&args.replay.set)?;
    let policies = select_policies(&args.policy, &mut settings)?;
    let sizes = args.fast.iter().map(|text| FastSize::parse(text)).collect::<Result<Vec<_>, _>>();
    let sizes = sizes.map_err(Failure::usage)?;
    let mut profile = load_profile(&args.replay.machine)?;
    set_machine(&mut profile, &mut settings)?;
    sizes.iter().try_for_each(|size| size.check(&profile)).map_err(Failure::usage)?;
    let page = output::open(args.replay.report.as_ref())?;
    let runs = (policies.len() * sizes.len()) as u64;
    let loaded = load(&args.replay, &mut settings, (runs, (0, 0)), watch)?;
    let scale = parse_scale(&args.replay.scale, loaded.scale)?;
    let bar = watch.bar(runs, "simulating");
    let experiment = Experiment {
        policies,
        sizes,
        profile: &profile,
        seed: args.replay.seed,
        scale,
        intervals: args.intervals as usize,
        version: env!("CARGO_PKG_VERSION"),
        stop: Some(watch.flag()),
    };
    let done = || bar.inc(1);
    let report = match length {
        Some(length) => simulate_long(&loaded.input, &experiment, length, &done),
        None => simulate(&loaded.input, &experiment, &done),
    };
    let mut report = report.map_err(|error| of_input(&loaded.input, &error))?;
    report.manifest.binary = fingerprint::own();
    report.manifest.policy_libraries = policies::libraries(report.runs.iter().map(|run| &run.policy));
    bar.finish_and_clear();
    output::write(page, || isotherm_report::html(&report))?;
    Ok((report, loaded))
}

/// Returns the failure with the input's name where the input is at fault.
pub(crate) fn of_input(input: &Input, error: &SimulateError) -> Failure {
    match error {
        SimulateError::ShortRound(..) | SimulateError::ShortTime(..) | SimulateError::ShortRun { .. } => {
            Failure::Usage(format!("{}: {error}", input.name))
        }
        _ => Failure::usage(error),
    }
}

pub(crate) fn select_policies(
    names: &[String],
    settings: &mut Vec<Setting<'_>>,
) -> Result<Vec<(&'static Entry, Parameters)>, Failure> {
    let mut selected: Vec<&'static Entry> = Vec::new();
    for name in names {
        let found: Vec<&'static Entry> = match name.trim() {
            "all" => isotherm_policies::ALL.iter().collect(),
            name => vec![policies::find(name)?],
        };
        for entry in found {
            if !selected.iter().any(|other| other.name == entry.name) {
                selected.push(entry);
            }
        }
    }
    let with_settings = |entry: &'static Entry| {
        let mut parameters = entry.parameters();
        settings::apply(settings, &mut parameters)?;
        Ok((entry, parameters))
    };
    selected.into_iter().map(with_settings).collect()
}

pub(crate) fn set_machine(profile: &mut Profile, settings: &mut Vec<Setting<'_>>) -> Result<(), Failure> {
    let name = profile.name.clone();
    let ours = |setting: &Setting<'_>| setting.group == "machine" || setting.group == name;
    for setting in settings.iter().filter(|setting| ours(setting)) {
        profile.set(setting.key, setting.value).map_err(Failure::usage)?;
    }
    settings.retain(|setting| !ours(setting));
    profile.check().map_err(Failure::usage)
}

/// Loads the input for so many runs over it and so many sub-samples, each of so many accesses; fails if a
/// setting belongs to no group, or memory is too small.
pub(crate) fn load(
    args: &ReplayArgs,
    settings: &mut Vec<Setting<'_>>,
    (runs, samples): (u64, (u64, u64)),
    watch: &Watch,
) -> Result<Loaded, Failure> {
    // A scale that is no number is found before the work.
    parse_scale(&args.scale, Scale::NONE)?;
    let page_size = args.page_size.into();
    let limit = args.max_accesses.unwrap_or(u64::MAX);
    let demand = Demand { memory: Memory::new(&args.memory, args.quiet), runs, samples, limit };
    match (&args.workload, &args.trace) {
        (Some(name), _) => {
            let workload = isotherm_workloads::find(name).map_err(Failure::usage)?;
            let mut parameters = workload.parameters();
            settings::apply(settings, &mut parameters)?;
            settings::finish(settings)?;
            input::load_workload(workload, parameters, page_size, args.seed, &demand, watch)
        }
        (None, Some(path)) => {
            settings::finish(settings)?;
            input::load_trace(path, args.process.as_deref(), page_size, &demand, watch)
        }
        (None, None) => Err(Failure::usage("expected a trace or --workload NAME")),
    }
}

pub(crate) fn parse_scale(text: &str, automatic: Scale) -> Result<Scale, Failure> {
    if text == "auto" {
        return Ok(automatic);
    }
    let factor = isotherm_core::parse_number(text).ok().filter(|factor| (1.0..=1e9).contains(factor));
    let scale = factor.map(|factor| Scale { footprint: factor, time: factor });
    scale.ok_or_else(|| Failure::Usage(format!("--scale {text}: expected auto or a number from 1 to 1e9")))
}
