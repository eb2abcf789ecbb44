//! `isotherm machines [NAME]`.

use std::path::Path;

use isotherm_machine::Profile;

use crate::args::NameArgs;
use crate::failure::Failure;
use crate::input::{load_named, read_text};
use crate::output::{listing, print};

pub(crate) fn run(args: &NameArgs) -> Result<(), Failure> {
    match &args.name {
        Some(name) => explain(&load_profile(name)?, args.json),
        None => list(args.json),
    }
}

/// Loads a profile by its name, or from a file if the name ends in `.toml` or contains a `/`.
pub(crate) fn load_profile(name: &str) -> Result<Profile, Failure> {
    let read = |path: &str| read_text(Path::new(path)).map_err(|error| error.to_string());
    load_named(name, Profile::builtin, |text, file| Profile::parse_with(text, file, &read))
}

fn list(as_json: bool) -> Result<(), Failure> {
    let profiles = Profile::builtin_names().map(Profile::builtin).collect::<Result<Vec<_>, _>>();
    let profiles = profiles.map_err(Failure::failed)?;
    if as_json {
        let all: Vec<_> = profiles.iter().map(Profile::summary).collect();
        return print(&format!("{:#}\n", serde_json::json!(all)));
    }
    let mut table = listing(&["machine", "tiers", "what it is"]);
    for profile in &profiles {
        let tiers = profile.tiers.iter().map(|tier| format!("{} {}", tier.name, tier.latency));
        table.add_row([profile.name.as_str(), &tiers.collect::<Vec<_>>().join(", "), &profile.title]);
    }
    print(&format!("{table}\n"))
}

fn explain(profile: &Profile, as_json: bool) -> Result<(), Failure> {
    let summary = profile.summary();
    if as_json {
        return print(&format!("{:#}\n", serde_json::json!(summary)));
    }
    let mut table = listing(&["number", "value", "source"]);
    for number in &summary.numbers {
        table.add_row([&number.path, &number.value, &number.source]);
    }
    print(&format!("{}: {}\n\n{table}\n", summary.name, summary.title))
}
