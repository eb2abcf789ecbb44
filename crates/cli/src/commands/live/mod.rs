//! `isotherm run` and `isotherm attach`: tier the memory of real programs.

pub(super) mod allocator;
pub(super) mod sources;
pub(super) mod tiers;

use std::path::Path;
use std::time::Duration;

use isotherm_core::parameters::{Parameters, Scale};
use isotherm_linux::memory::mover::MoverOptions;
use isotherm_linux::process::launch::Launch;
use isotherm_linux::process::lock::EngineLock;
use isotherm_linux::process::signals::Signals;
use isotherm_linux::process::tree::Tree;
use isotherm_linux::process::{Pid, ProcRoot};
use isotherm_linux::source::AccessSource;
use isotherm_live::control::Control;
use isotherm_live::engine::{LiveResult, PolicyRun};
use isotherm_live::host::kernel::{KernelSpaces, TierReclaim};
use isotherm_live::host::program::{ExitCell, Program};
use isotherm_live::host::{LiveHost, Options};
use isotherm_live::inside::{PATIENCE, SCAN_BUDGET, SCAN_INTERVAL};

use crate::args::{AttachArgs, LiveArgs, RunArgs};
use crate::failure::Failure;
use crate::settings;
use isotherm_live::host::tiers::TierPlan;
use sources::{Sources, Way};

/// `isotherm run`. The exit status is the program's.
pub(crate) fn run(args: RunArgs) -> Result<(), Failure> {
    let Prepared { mut tiering, memory, mut sources, control } =
        prepare(&args.live, Way::Started, args.cgroup.as_deref())?;
    allocator::preload(args.alloc, &mut sources.environment)?;
    let signals = Signals::receive().map_err(Failure::failed)?;
    let (name, rest) = args.command.split_first().ok_or_else(|| Failure::usage("expected a command"))?;
    let launch = Launch::start(signals, name, rest, &sources.environment, true)
        .map_err(|error| Failure::Command(error.exit_status(), error.to_string()))?;
    let (root, pid) = (ProcRoot::default(), launch.pid());
    let _lock = EngineLock::take(&root, pid).map_err(Failure::failed)?;
    args.cgroup.as_deref().map_or(Ok(()), |cgroup| enter(cgroup, pid))?;
    let tree = Tree::follow(root, pid, Some(Pid(std::process::id()))).map_err(Failure::failed)?;
    let running =
        launch.release().map_err(|error| Failure::Command(error.exit_status(), error.to_string()))?;
    let (program, exit) = Program::started(tree, running, args.descendants);
    let command = args.command.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    tiering.fastest = sources.fastest;
    tier(&args.live, (tiering, control), &memory, sources.chosen, (program, pid), (command, Some(exit)))
}

/// `isotherm attach`.
pub(crate) fn attach(args: &AttachArgs) -> Result<(), Failure> {
    let Prepared { mut tiering, memory, sources, control } = prepare(&args.live, Way::Attached, None)?;
    let signals = Signals::receive().map_err(Failure::failed)?;
    let (root, pid) = (ProcRoot::default(), Pid(args.pid));
    let _lock = EngineLock::take(&root, pid).map_err(Failure::failed)?;
    let tree = Tree::follow(root, pid, None).map_err(Failure::failed)?;
    let time = args.time.map(|time| Duration::from_nanos(time.0));
    let program = Program::attached(tree, signals, time);
    tiering.fastest = sources.fastest;
    tier(
        &args.live,
        (tiering, control),
        &memory,
        sources.chosen,
        (program, pid),
        (vec![pid.0.to_string()], None),
    )
}

/// What is decided before a program runs.
struct Prepared {
    tiering: PolicyRun,
    memory: TierPlan,
    sources: Sources,
    control: Option<Control>,
}

/// Puts a process that has not begun into a cgroup.
fn enter(cgroup: &Path, pid: Pid) -> Result<(), Failure> {
    let file = cgroup.join("cgroup.procs");
    std::fs::write(&file, pid.0.to_string())
        .map_err(|error| Failure::usage(format!("--cgroup: {}: {error}", file.display())))
}

fn prepare(args: &LiveArgs, way: Way, cgroup: Option<&Path>) -> Result<Prepared, Failure> {
    let entry = isotherm_policies::find(&args.policy).map_err(Failure::usage)?;
    let mut settings = settings::parse(&args.set)?;
    let mut parameters = entry.parameters();
    calibrated(args, &mut parameters)?;
    settings::apply(&mut settings, &mut parameters)?;
    settings::finish(&settings)?;
    let tiering =
        PolicyRun { entry, parameters, seed: args.seed, scale: parse_scale(&args.scale)?, fastest: None };
    let needs = tiering.needs().map_err(Failure::usage)?;
    let memory = TierPlan { cgroup: cgroup.map(Path::to_owned), ..tiers::memory(args, Path::new("/"))? };
    if args.model_counters && !memory.shadow {
        return Err(Failure::usage(
            "--model-counters: expected --shadow too: nothing is moved by counters that are modelled",
        ));
    }
    let control = args.control.as_deref().map(Control::open).transpose().map_err(Failure::failed)?;
    let sources = sources::choose(args, needs, &memory, way)?;
    if !args.quiet {
        memory.notes.iter().chain(&sources.notes).for_each(|note| eprintln!("isotherm: {note}"));
    }
    Ok(Prepared { tiering, memory, sources, control })
}

/// Gives PACT what `isotherm calibrate` measured of the second tier, where the machine's profile has it.
fn calibrated(args: &LiveArgs, parameters: &mut Parameters) -> Result<(), Failure> {
    let profile = super::machines::load_profile(&args.machine)?;
    let k = profile.tiers.get(1).and_then(|tier| tier.k);
    match k.filter(|_| parameters.group() == "pact") {
        Some(k) => parameters.set("k", &format!("{}ns", k.0)).map_err(Failure::usage),
        None => Ok(()),
    }
}

fn parse_scale(text: &str) -> Result<Option<Scale>, Failure> {
    if text == "auto" {
        return Ok(None);
    }
    super::simulate::parse_scale(text, Scale::NONE).map(Some)
}

/// Runs the engine until the program ends, and tells what came of it.
fn tier(
    args: &LiveArgs,
    (mut tiering, mut control): (PolicyRun, Option<Control>),
    memory: &TierPlan,
    sources: Vec<Box<dyn AccessSource>>,
    (program, pid): (Program, Pid),
    (command, exit): (Vec<String>, Option<ExitCell>),
) -> Result<(), Failure> {
    let page_size = args.page_size.into();
    // What it lacks, the choice of sources has said.
    let reclaim = TierReclaim::find(Path::new("/"), &memory.nodes, pid, &mut Vec::new());
    let mover = MoverOptions { rate: args.rate, ..MoverOptions::default() };
    let spaces = KernelSpaces::new(ProcRoot::default(), page_size, memory.nodes.clone(), mover, reclaim);
    let options = Options {
        page_size,
        tiers: memory.tiers.clone(),
        fast: memory.fast,
        shadow: memory.shadow,
        nodes: memory.nodes.clone(),
        inside: None,
        model_counters: args.model_counters,
        scan_interval: SCAN_INTERVAL,
        scan_budget: SCAN_BUDGET,
    };
    let mut host = LiveHost::new(options, sources, Box::new(spaces), Box::new(program));
    host.settle(PATIENCE);
    let ran = tiering.run_under(&mut host, control.as_mut());
    let status = exit.as_ref().and_then(|exit| exit.get()).map(|exit| exit.status());
    let ran = ran.map_err(Failure::failed)?;
    let result = tiering.result(command, &ran, host.summary(), status.map(i32::from));
    drop(host);
    report(args, &result)?;
    match status {
        None | Some(0) => Ok(()),
        Some(status) => Err(Failure::Exit(status)),
    }
}

fn report(args: &LiveArgs, result: &LiveResult) -> Result<(), Failure> {
    let write = |path: &Path, text: String| {
        std::fs::write(path, text).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
    };
    if let Some(path) = &args.summary {
        write(path, isotherm_report::live_json(result))?;
    }
    if let Some(path) = &args.report {
        write(path, isotherm_report::live_html(result))?;
    }
    if !args.quiet {
        let text =
            if args.json { isotherm_report::live_json(result) } else { isotherm_report::live_text(result) };
        eprint!("{text}");
    }
    Ok(())
}
