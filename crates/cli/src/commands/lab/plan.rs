//! Turns a command line into a guest's job, checked before anything boots.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use isotherm_core::{FastLimit, PageSize, Signal, TierId};
use isotherm_lab::job::{Counting, Job, PolicyRun, Task};
use isotherm_lab::machine::Machine;
use isotherm_policies::Entry;

use super::guest::failure;
use crate::args::lab::GuestArgs;
use crate::failure::Failure;
use crate::input::load_named;
use crate::settings::{self, Setting};
use crate::{fingerprint, libraries, program};

/// Loads a machine by its name, or from a file if the name ends in `.toml` or contains a `/`.
pub(super) fn load_machine(name: &str) -> Result<Machine, Failure> {
    load_named(name, Machine::builtin, Machine::parse)
}

pub(super) fn job(
    args: &GuestArgs,
    machine: &Machine,
    tiering: PolicyRun,
    command: &[OsString],
) -> Result<Job, Failure> {
    let name = command.first().ok_or_else(|| Failure::usage("expected a command"))?;
    check_command(name)?;
    if machine.deterministic && program::embedding().is_some() {
        let expected =
            "expected a machine that reads all of this one's files, as Python needs, such as two-tier";
        return Err(Failure::Usage(format!("--machine {}: {expected}", machine.name)));
    }
    check_limit(args, machine)?;
    Ok(Job {
        task: Task::Program(command.to_vec()),
        tiering,
        start: args.start.into(),
        clock_ratio: args.clock_ratio,
        room: args.room(),
        counting: Some(counting()?),
        environment: environment(),
        directory: std::env::current_dir().map_err(Failure::failed)?,
    })
}

/// Checks that the limit fits the machine's nodes, and that shares leave the program fast memory and other.
fn check_limit(args: &GuestArgs, machine: &Machine) -> Result<(), Failure> {
    let Some(limit) = &args.fast else { return Ok(()) };
    limit
        .check(&format!("machine {}", machine.name), machine.nodes.len())
        .map_err(|error| Failure::Usage(format!("--fast: {error}")))?;
    let size = machine.nodes[0].size;
    let expected = match limit {
        FastLimit::Bytes(fast) if *fast >= size => format!("less than the fast node's {size}"),
        limit if limit.share(TierId::FAST).is_some_and(|share| share <= 0.0 || share >= 1.0) => {
            "more than none and less than all memory".into()
        }
        _ => return Ok(()),
    };
    Err(Failure::Usage(format!("--fast {limit}: expected {expected}")))
}

/// Returns this process's environment, sorted: a guest that goes by instructions must not learn in which
/// order the variables were set.
pub(super) fn environment() -> Vec<(OsString, OsString)> {
    let mut variables: Vec<_> = std::env::vars_os().collect();
    variables.sort();
    variables
}

/// Returns the counters of accesses: this program in the guest, and the plugin beside it.
pub(super) fn counting() -> Result<Counting, Failure> {
    let file = program::file().map_err(Failure::failed)?;
    let plugin = isotherm_lab::plugin::find(&file).map_err(|error| failure(&error))?;
    Ok(Counting { plugin, isotherm: program::words() })
}

/// Options of `isotherm run` and the library's variables for them.
const INSIDE: [(&str, &str); 8] = [
    ("--policy", "ISOTHERM_POLICY"),
    ("--set", "ISOTHERM_SET"),
    ("--seed", "ISOTHERM_SEED"),
    ("--page-size", "ISOTHERM_PAGE_SIZE"),
    ("--fast", "ISOTHERM_FAST"),
    ("--rate", "ISOTHERM_RATE"),
    ("--source", "ISOTHERM_SOURCE"),
    ("--overhead", "ISOTHERM_OVERHEAD"),
];

/// Returns a policy's run in the guest; ignores the settings of other policies.
pub(super) fn engine(args: &GuestArgs, entry: &'static Entry) -> Result<PolicyRun, Failure> {
    let all = settings::parse(&args.set)?;
    let mut left = all.clone();
    let mut run = isotherm_live::policy_run::PolicyRun::new(entry);
    settings::apply(&mut left, &mut run.parameters)?;
    let needs = run.needs().map_err(Failure::usage)?;
    let demotion = needs.has(Signal::KernelReclaim);
    let options =
        options(args, policy_option(args, entry)?, all.iter().filter(|setting| !left.contains(setting)));
    if args.inside {
        return inside(&options, demotion);
    }
    let options = options.into_iter().flat_map(|(name, value)| [name.into(), value.into()]).collect();
    Ok(PolicyRun::Engine { isotherm: program::words(), options, demotion })
}

/// Returns the policy as the guest is to name it. It reads a library, or Python's source, from the host's
/// files.
fn policy_option(args: &GuestArgs, entry: &Entry) -> Result<String, Failure> {
    let Some(library) = &entry.library else { return Ok(entry.name.into()) };
    if args.inside {
        let why = "not supported with --inside: the program would have to load it";
        return Err(Failure::usage_at(&library.path, why));
    }
    let path =
        library.path.to_str().ok_or_else(|| Failure::usage_at(&library.path, "expected a path in UTF-8"));
    // The title of a policy in Python is its class.
    let is_python = library.path.extension() == Some(OsStr::new("py"));
    path.map(|path| if is_python { format!("{path}:{}", entry.title) } else { path.into() })
}

fn options<'a>(
    args: &GuestArgs,
    policy: String,
    own: impl Iterator<Item = &'a Setting<'a>>,
) -> Vec<(&'static str, String)> {
    let mut options = vec![("--policy", policy)];
    let mut add = |name, value: String| options.push((name, value));
    for setting in own {
        add("--set", format!("{}.{}={}", setting.group, setting.key, setting.value));
    }
    add("--seed", args.seed.to_string());
    add("--scale", args.scale.clone());
    if PageSize::from(args.page_size) == PageSize::Huge {
        add("--page-size", "huge".into());
    }
    let given = [
        ("--fast", args.room().first().map(|size| size.0.to_string())),
        ("--rate", args.rate.map(|size| size.0.to_string())),
        ("--source", args.source.clone()),
        ("--overhead", args.overhead.clone()),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            add(name, value);
        }
    }
    options
}

fn inside(options: &[(&str, String)], demotion: bool) -> Result<PolicyRun, Failure> {
    let library = libraries::require(libraries::AGENT, "--inside")?;
    let mut settings: Vec<(OsString, OsString)> = Vec::new();
    for (option, value) in options {
        let Some(&(_, variable)) = INSIDE.iter().find(|(name, _)| name == option) else {
            if *option == "--scale" && value == "auto" {
                continue;
            }
            return Err(Failure::usage(format!("{option} {value}: not supported with --inside")));
        };
        match settings.iter_mut().find(|(name, _)| name == variable) {
            // Only parameters may be repeated.
            Some((_, before)) => before.push(format!(" {value}")),
            None => settings.push((variable.into(), value.into())),
        }
    }
    Ok(PolicyRun::Inside { library, settings, demotion })
}

pub(super) fn check_settings(args: &GuestArgs, policies: &[&str]) -> Result<(), Failure> {
    let mut settings = settings::parse(&args.set)?;
    settings.retain(|setting| !policies.contains(&setting.group));
    settings::finish(&settings)
}

/// Checks that a command exists and can be executed; fails with a shell's codes, 127 and 126.
fn check_command(name: &OsStr) -> Result<(), Failure> {
    let shown = name.to_string_lossy();
    let executable = |path: &Path| {
        path.metadata().ok().map(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let missing = || Failure::Command(127, format!("{shown}: command not found"));
    let files = fingerprint::files_of(name);
    if files.iter().any(|file| executable(file) == Some(true)) {
        return Ok(());
    }
    if shown.contains('/') && executable(Path::new(name)).is_some() {
        return Err(Failure::Command(126, format!("{shown}: not an executable file")));
    }
    Err(missing())
}
