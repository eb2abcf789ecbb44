//! `isotherm run` and `isotherm attach`: tier the memory of real programs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use isotherm_core::Bytes;
use isotherm_core::live_result::LiveResult;
use isotherm_core::manifest::Fingerprint;
use isotherm_core::parameters::Scale;
use isotherm_daemon::join::{Joined, Others};
use isotherm_linux::process::Pid;
use isotherm_live::host::Share;
use isotherm_live::policy_run::PolicyRun;
use isotherm_live::session::{Ended, Session, SessionConfig, SessionError, Target, TierPlan, TierRequest};

use crate::args::{AllocatorArg, AttachArgs, LiveArgs, RunArgs};
use crate::commands::machines::load_profile;
use crate::commands::simulate::parse_scale;
use crate::failure::Failure;
use crate::output::{self, say};
use crate::{fingerprint, libraries, policies, settings};

/// Runs a program with its memory tiered. The exit status is the program's.
pub(crate) fn run(args: RunArgs) -> Result<(), Failure> {
    let mut command = args.command.into_iter();
    let target = Target::Launch {
        program: command.next().ok_or_else(|| Failure::usage("expected a command"))?,
        arguments: command.collect(),
        agent: libraries::find(libraries::AGENT),
        library: allocator(args.alloc)?,
        cgroup: args.cgroup,
        descendants: args.descendants,
    };
    tier(&args.live, target)
}

pub(crate) fn attach(args: &AttachArgs) -> Result<(), Failure> {
    let time = args.time.map(|time| Duration::from_nanos(time.0));
    tier(&args.live, Target::Attach { pid: Pid(args.pid), time })
}

fn allocator(allocator: AllocatorArg) -> Result<Option<PathBuf>, Failure> {
    match allocator {
        AllocatorArg::Own => Ok(None),
        AllocatorArg::Context => libraries::require(libraries::ALLOCATOR, "--alloc context").map(Some),
    }
}

fn tier(args: &LiveArgs, target: Target) -> Result<(), Failure> {
    let mut config = config(args)?;
    let [summary, page] = [&args.summary, &args.report].map(|path| output::open(path.as_ref()));
    let (summary, page) = (summary?, page?);
    let program = fingerprint_of(&target);
    let joined = join(args, &mut config);
    let session = Session::open(config, target).map_err(failure)?;
    if let Some((fast, joined)) = joined.as_ref().filter(|_| !args.quiet) {
        match joined.others {
            Others::Daemon => say(&format!(
                "isotherm: joined the daemon at {}: it grants {fast} for now\n",
                args.daemon.display()
            )),
            Others::Engines(0) => {}
            Others::Engines(others) => say(&format!(
                "isotherm: {others} more engines tier programs here without a daemon: this run uses an equal part \
                 of the fast tier, {fast} for now (--fast sets it)\n"
            )),
        }
    }
    if !args.quiet {
        session.notes().for_each(|note| say(&format!("isotherm: {note}\n")));
    }
    let Ended { exit, result } = session.start().map_err(failure)?.run();
    let told = result.map_err(Failure::failed).and_then(|mut result| {
        (result.manifest.binary, result.manifest.input) = (fingerprint::own(), program);
        result.manifest.policy_libraries = policies::libraries([&result.policy]);
        let told = tell(args, &result, exit.is_some());
        let json = output::write(summary, || isotherm_report::live_json(&result));
        let html = output::write(page, || isotherm_report::live_html(&result));
        told.and(json).and(html)
    });
    let Some(exit) = exit else { return told };
    // The program's status is never replaced.
    told.unwrap_or_else(|failure| say(&format!("isotherm: {failure}\n")));
    Failure::exit(Some(exit.status().into()))
}

/// Joins the others that tier programs here, unless the user sets the fast memory.
fn join(args: &LiveArgs, config: &mut SessionConfig) -> Option<(Bytes, Joined)> {
    if args.fast.is_some() {
        return None;
    }
    // A machine that cannot be read is reported when the session opens.
    let plan = TierPlan::read(Path::new("/"), &config.tiers).ok()?;
    let fast = plan.tiers.first().filter(|_| !plan.shadow).map(|tier| tier.size);
    let share = Share::new(Bytes(0));
    let joined = isotherm_daemon::join::join(&args.daemon, &args.policy, fast, &share)?;
    config.share = Some(share.clone());
    Some((share.fast(), joined))
}

/// Returns the fingerprint of the program's file, which must be read while the program is there.
fn fingerprint_of(target: &Target) -> Option<Fingerprint> {
    match target {
        Target::Launch { program, .. } => fingerprint::of_program(program),
        Target::Attach { pid, .. } => fingerprint::of(Path::new(&format!("/proc/{}/exe", pid.0))),
        Target::Group { .. } | Target::Inside { .. } => None,
    }
}

/// Prints the summary: JSON on standard output, unless that is the program's own.
fn tell(args: &LiveArgs, result: &LiveResult, launched: bool) -> Result<(), Failure> {
    match (args.json, args.quiet) {
        (true, _) if !launched => return output::print(&isotherm_report::live_json(result)),
        (true, _) => say(&isotherm_report::live_json(result)),
        (false, true) => {}
        (false, false) => say(&isotherm_report::live_text(result)),
    }
    Ok(())
}

fn failure(error: SessionError) -> Failure {
    Failure::Command(error.exit_status(), error.to_string())
}

fn config(args: &LiveArgs) -> Result<SessionConfig, Failure> {
    let profile = load_profile(&args.machine)?;
    let mut policy = PolicyRun::new(policies::find(&args.policy)?);
    let mut settings = settings::parse(&args.set)?;
    // `isotherm calibrate` has measured this cost of the second tier.
    let k = profile.tiers.get(1).and_then(|tier| tier.k);
    if let (Some(parameter), Some(k)) = (policy.entry.calibrated, k) {
        policy.parameters.set(parameter, &format!("{}ns", k.0)).map_err(Failure::usage)?;
    }
    settings::apply(&mut settings, &mut policy.parameters)?;
    settings::finish(&settings)?;
    policy.seed = args.seed;
    policy.scale = match args.scale.as_str() {
        "auto" => None,
        text => Some(parse_scale(text, Scale::NONE)?),
    };
    let nodes = || profile.tiers.iter().filter(|tier| !tier.is_compressed());
    Ok(SessionConfig {
        policy,
        tiers: TierRequest {
            nodes: args.tiers.clone(),
            fast: args.fast.clone(),
            shadow: args.shadow,
            latencies: nodes().map(|tier| tier.latency).collect(),
            bandwidths: nodes().map(|tier| tier.read_bandwidth).collect(),
        },
        source: args.source.clone(),
        overhead: args.overhead,
        model_counters: args.model_counters,
        rate: args.rate,
        page_size: args.page_size.into(),
        control: args.control.clone(),
        requests: None,
        share: None,
    })
}
