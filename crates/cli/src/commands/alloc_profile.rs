//! `isotherm alloc-profile`: prints what a program's calling contexts allocate.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use isotherm_alloc_profile::{Context, Profile};
use isotherm_core::Bytes;
use isotherm_linux::process::Exit;
use isotherm_linux::process::launch::{Launch, LaunchError};
use isotherm_linux::process::signals::Signals;
use isotherm_live::session::Environment;

use crate::args::AllocProfileArgs;
use crate::failure::Failure;
use crate::libraries;
use crate::output::{listing, print, say};
use crate::symbols::Symbols;

/// Runs the program and prints the allocations of each of its processes. The exit status is the program's.
pub(crate) fn run(args: &AllocProfileArgs) -> Result<(), Failure> {
    let signals = Signals::receive().map_err(Failure::failed)?;
    let folder = Folder::make()?;
    let mut environment = Environment::default();
    environment.variables.extend([
        ("ISOTHERM_ALLOC_PROFILE".into(), folder.0.clone().into()),
        ("ISOTHERM_ALLOC_SAMPLE".into(), args.sample.0.to_string().into()),
    ]);
    let library = libraries::require(libraries::ALLOCATOR, "--alloc context")?;
    environment.preload(&library).map_err(Failure::failed)?;
    let (name, rest) = args.command.split_first().ok_or_else(|| Failure::usage("expected a command"))?;
    let launch = Launch::start(signals, name, rest, &environment.variables, false);
    let exit = launch.and_then(wait);
    let exit = exit.map_err(|error| Failure::Command(error.exit_status(), error.to_string()))?;
    let profiles = read(&folder.0)?;
    if profiles.is_empty() {
        let failed = Failure::failed(
            "no profile was written: the program is linked statically, brings its own malloc, drops \
             LD_PRELOAD, or the temporary folder has no room",
        );
        if exit.status() == 0 {
            return Err(failed);
        }
        say(&format!("isotherm: {failed}\n"));
        return Failure::exit(Some(exit.status().into()));
    }
    let mut symbols = Symbols::default();
    let text = if args.json {
        let processes: Vec<_> =
            profiles.iter().map(|profile| json(profile, &mut symbols, args.top)).collect();
        format!("{}\n", serde_json::json!({ "processes": processes }))
    } else {
        profiles.iter().map(|profile| describe(profile, &mut symbols, args.top)).collect()
    };
    print(&text)?;
    Failure::exit(Some(exit.status().into()))
}

/// Lets the program go on and passes signals on to it until it ends.
fn wait(launch: Launch) -> Result<Exit, LaunchError> {
    const LONG: Duration = Duration::from_secs(3600);
    let mut running = launch.release()?;
    loop {
        if let Some(exit) = running.wait(LONG)? {
            return Ok(exit);
        }
    }
}

/// A folder that is removed with its value.
struct Folder(std::path::PathBuf);

impl Folder {
    fn make() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("isotherm-alloc-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| Failure::failed_at(&path, error))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Reads the profiles of a folder in order of process numbers. Skips processes that have written none yet.
fn read(folder: &Path) -> Result<Vec<Profile>, Failure> {
    let failed = |error: std::io::Error| Failure::failed_at(folder, error);
    let mut profiles = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let bytes = std::fs::read(entry.map_err(failed)?.path()).map_err(failed)?;
        profiles.extend(Profile::parse(&bytes).ok());
    }
    profiles.sort_by_key(|profile| profile.process);
    Ok(profiles)
}

/// Returns the numbers of the contexts with the most live bytes, then with the most bytes.
fn foremost(profile: &Profile, live: &[u64], most: usize) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..profile.contexts.len()).collect();
    numbers.sort_by_key(|&number| std::cmp::Reverse((live[number], profile.contexts[number].bytes)));
    numbers.truncate(most);
    numbers
}

fn describe(profile: &Profile, symbols: &mut Symbols, most: usize) -> String {
    let live = profile.live();
    let mut text = format!("process {}: {} contexts\n", profile.process, profile.contexts.len());
    let lost = [("contexts", profile.contexts_lost), ("samples", profile.samples_lost)];
    for (what, count) in lost.into_iter().filter(|&(_, count)| count > 0) {
        let _ = writeln!(text, "{count} {what} did not fit into the profile");
    }
    let mut regions = listing(&["region", "contexts", "live", "pages", "resident", "fragmentation"]);
    for (index, region) in profile.regions.iter().enumerate() {
        let contexts = profile.contexts.iter().filter(|context| context.region == index).count();
        if contexts == 0 {
            continue;
        }
        regions.add_row([
            index.to_string(),
            contexts.to_string(),
            Bytes(region.allocated).to_string(),
            Bytes(region.active).to_string(),
            Bytes(region.resident).to_string(),
            format!("{:.0} %", region.fragmentation() * 100.0),
        ]);
    }
    let _ = writeln!(text, "{regions}\n");
    for number in foremost(profile, &live, most) {
        let context = &profile.contexts[number];
        let _ = writeln!(
            text,
            "about {} live of {} in {} blocks, region {}, context {:016x}",
            Bytes(live[number]),
            Bytes(context.bytes),
            context.blocks,
            context.region,
            context.hash
        );
        for frame in stack(profile, context, symbols) {
            let _ = writeln!(text, "    {frame}");
        }
    }
    text.push('\n');
    text
}

fn stack(profile: &Profile, context: &Context, symbols: &mut Symbols) -> Vec<String> {
    let name = |frame: &isotherm_alloc_profile::Frame| match profile.modules.get(frame.module) {
        Some(module) => symbols.name(&module.path, frame.offset),
        None => format!("{:#x}", frame.offset),
    };
    context.frames.iter().map(name).collect()
}

fn json(profile: &Profile, symbols: &mut Symbols, most: usize) -> serde_json::Value {
    let live = profile.live();
    let regions = profile.regions.iter().map(|region| {
        serde_json::json!({
            "start": region.start, "end": region.end, "frontier": region.frontier,
            "live_bytes": region.allocated, "active_bytes": region.active, "resident_bytes": region.resident,
            "fragmentation": region.fragmentation(),
        })
    });
    let regions: Vec<_> = regions.collect();
    let contexts: Vec<_> = foremost(profile, &live, most)
        .into_iter()
        .map(|number| {
            let context = &profile.contexts[number];
            serde_json::json!({
                "hash": format!("{:016x}", context.hash), "region": context.region, "blocks": context.blocks,
                "bytes": context.bytes, "live_bytes": live[number],
                "frames": stack(profile, context, symbols),
            })
        })
        .collect();
    serde_json::json!({
        "process": profile.process, "regions": regions, "contexts": contexts,
        "contexts_lost": profile.contexts_lost, "samples_lost": profile.samples_lost,
    })
}
