//! Loads the input of a simulation: a trace or a workload.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::ControlFlow;
use std::path::Path;

use isotherm_core::PageSize;
use isotherm_core::parameters::Parameters;
use isotherm_sim::{Input, Loaded, MAX_ACCESSES, StreamBuilder};
use isotherm_trace::{Provenance, Rows, TraceReader};
use isotherm_workloads::Workload;

use crate::failure::Failure;
use crate::progress;

/// Bytes per access while it is loaded and replayed: the access, the growth of its vector, its next use.
const BYTES_PER_ACCESS: u64 = 32;

/// Returns how many accesses fit into free memory, or the simulator's maximum if that is unknown.
fn max_accesses() -> u64 {
    let available = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    available.map_or(MAX_ACCESSES, |kibibytes| kibibytes * 1024 / BYTES_PER_ACCESS).min(MAX_ACCESSES)
}

fn too_many(name: &str, max: u64) -> Failure {
    Failure::Usage(format!(
        "{name}: more accesses than fit into free memory; expected at most {max}: try --max-accesses {max}"
    ))
}

/// Loads an entry by its name, or from a file if the name ends in `.toml` or contains a `/`.
pub(crate) fn load_named<T, E: Display>(
    name: &str,
    builtin: impl FnOnce(&str) -> Result<T, E>,
    parse: impl FnOnce(&str, &str) -> Result<T, E>,
) -> Result<T, Failure> {
    let path = Path::new(name);
    if path.extension().is_none_or(|ending| ending != "toml") && !name.contains('/') {
        return builtin(name).map_err(Failure::usage);
    }
    let text = std::fs::read_to_string(path).map_err(|error| Failure::usage_at(path, error))?;
    parse(&text, name).map_err(Failure::usage)
}

pub(crate) fn load_trace(
    path: &Path,
    page_size: PageSize,
    limit: u64,
    quiet: bool,
) -> Result<Loaded, Failure> {
    let mut reader = TraceReader::open(path).map_err(Failure::usage)?;
    let name = path.display().to_string();
    let max = max_accesses();
    if reader.rows().min(limit) > max {
        return Err(too_many(&name, max));
    }
    let bar = progress::bar(reader.rows().min(limit), "reading", quiet);
    let mut builder = StreamBuilder::new(page_size);
    let mut rows = Rows::default();
    while (builder.len() as u64) < limit && reader.next(&mut rows).map_err(Failure::usage)? {
        rows.truncate(usize::try_from(limit - builder.len() as u64).unwrap_or(usize::MAX));
        builder.append(&rows);
        bar.set_position(builder.len() as u64);
    }
    bar.finish_and_clear();
    let stream = builder.finish(&name).map_err(Failure::usage)?;
    let provenance = describe(reader.provenance());
    let input = Input { name, workload: false, parameters: None, provenance, stream, ranges: Vec::new() };
    Ok(Loaded::new(input, None))
}

/// Returns a trace's provenance as keys and values without empty ones.
pub(crate) fn describe(provenance: &Provenance) -> BTreeMap<String, String> {
    let before = provenance.filter.map(|filter| format!(", behind {} of each thread", filter.size()));
    let cache = provenance
        .cache
        .map(|cache| format!("{} in {} ways{}", cache.size(), cache.ways, before.unwrap_or_default()));
    let count = |value: u64| if value > 0 { value.to_string() } else { String::new() };
    [
        ("command", provenance.command.clone()),
        ("recorder", provenance.recorder.clone()),
        ("machine", provenance.machine.clone()),
        ("cache", cache.unwrap_or_default()),
        ("dependences", if provenance.dependence { "recorded" } else { "not recorded" }.into()),
        ("accesses before the cache", count(provenance.accesses)),
        ("rows lost", count(provenance.lost)),
        ("programs untraced", count(provenance.untraced)),
        ("workload", provenance.workload.clone().unwrap_or_default()),
        ("note", provenance.note.clone()),
        ("isotherm", provenance.version.clone()),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(key, value)| (key.to_owned(), value))
    .collect()
}

/// Generates at most `limit` misses of a workload.
pub(crate) fn load_workload(
    workload: &Workload,
    parameters: Parameters,
    page_size: PageSize,
    seed: u64,
    limit: u64,
    quiet: bool,
) -> Result<Loaded, Failure> {
    let bar = progress::line(quiet);
    let max = max_accesses();
    let mut full = false;
    let mut progress = |misses: u64| {
        full = misses > max;
        bar.set_message(format!("{}: {} M misses", workload.name, misses / 1_000_000));
        bar.tick();
        if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let loaded = isotherm_sim::load_workload(workload, parameters, page_size, seed, limit, &mut progress);
    bar.finish_and_clear();
    if full {
        return Err(too_many(workload.name, max));
    }
    loaded.map_err(Failure::usage)
}
