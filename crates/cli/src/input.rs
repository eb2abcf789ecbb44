//! Loads the input of a simulation: a trace or a workload.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

use isotherm_core::parameters::Parameters;
use isotherm_core::{Bytes, PageSize};
use isotherm_machine::is_path;
use isotherm_sim::{
    ACCESS_MEMORY, CompressedShares, Input, Loaded, MAX_ACCESSES, NamedRange, StreamBuilder, replay_memory,
};
use isotherm_trace::{
    Change, Mapping, Provenance, Rows, Spaces, TraceReader, open_regular, process_names, read_contents,
    read_mappings, select_processes, shares,
};
use isotherm_workloads::Workload;

use crate::failure::Failure;
use crate::memory::Memory;
use crate::progress::Watch;

/// Maximum bytes of a text file: a scoreboard has one, a machine a hundredth.
const TEXT: u64 = 16 << 20;

/// Runs over an input, and the memory for them.
#[derive(Debug)]
pub(crate) struct Demand {
    pub(crate) memory: Memory,
    /// Runs over the input.
    pub(crate) runs: u64,
    /// Number of sub-samples of a longer input, and the accesses of each.
    pub(crate) samples: (u64, u64),
    /// Maximum number of accesses.
    pub(crate) limit: u64,
}

impl Demand {
    /// Returns the memory of a replay, whose runs go in parallel.
    fn replay(&self, accesses: u64, pages: u64) -> Bytes {
        let copied = if accesses > self.samples.1 { self.copied() } else { 0 };
        let at_once = self.runs.min(rayon::current_num_threads() as u64);
        replay_memory(accesses.saturating_add(copied), pages, at_once)
    }

    /// Returns the accesses of all sub-samples.
    fn copied(&self) -> u64 {
        self.samples.0.saturating_mul(self.samples.1)
    }

    /// Returns how many accesses fit beside a program, its pages and the sub-samples.
    fn max_accesses(&self, program: Bytes, pages: u64) -> u64 {
        let beside = self.replay(0, pages).0.saturating_add(program.0);
        let room = self.memory.room(Bytes(beside), ACCESS_MEMORY);
        if room > self.samples.1 { room.saturating_sub(self.copied()).min(MAX_ACCESSES) } else { room }
    }

    /// Checks a loaded input, whose pages are known only now.
    fn check(&self, loaded: Loaded) -> Result<Loaded, Failure> {
        let stream = &loaded.input.stream;
        let need = self.replay(stream.accesses.len() as u64, stream.pages.len() as u64);
        self.memory.check(&loaded.input.name, need, "fewer policies, fewer accesses or larger pages")?;
        Ok(loaded)
    }
}

fn too_many(name: &str, max: u64) -> Failure {
    let remedy = match max {
        0 => "no access fits beside its pages: expected more free memory or a higher --max-memory".into(),
        _ => format!("expected at most {max}: try --max-accesses {max}"),
    };
    Failure::Usage(format!("{name}: more accesses than fit into free memory; {remedy}"))
}

/// Reads a text file that the user named.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    read_text_up_to(path, TEXT)
}

/// Reads a text file of at most `limit` bytes that the user named.
pub(crate) fn read_text_up_to(path: &Path, limit: u64) -> Result<String, Failure> {
    let failed = |error: io::Error| Failure::usage_at(path, error);
    let mut text = String::new();
    open_regular(path).and_then(|file| file.take(limit + 1).read_to_string(&mut text)).map_err(failed)?;
    if text.len() as u64 > limit {
        return Err(Failure::usage_at(path, format!("larger than {}", Bytes(limit))));
    }
    Ok(text)
}

/// Loads an entry by its name, or from a file if the name ends in `.toml` or contains a `/`.
pub(crate) fn load_named<T, E: Display>(
    name: &str,
    builtin: impl FnOnce(&str) -> Result<T, E>,
    parse: impl FnOnce(&str, &str) -> Result<T, E>,
) -> Result<T, Failure> {
    if !is_path(name) {
        return builtin(name).map_err(Failure::usage);
    }
    parse(&read_text(Path::new(name))?, name).map_err(Failure::usage)
}

/// Returns which processes of a trace have a name, by their numbers.
pub(crate) fn select(path: &Path, provenance: &Provenance, name: &str) -> Result<Vec<bool>, Failure> {
    let events = read_mappings(path).map_err(Failure::usage)?.unwrap_or_default();
    let names = process_names(&provenance.processes, &events);
    select_processes(&names, name).map_err(Failure::usage)
}

/// Returns what each address of a trace held last; nothing for a trace without mappings.
fn mappings(path: &Path) -> Result<Vec<NamedRange>, Failure> {
    let mut spaces = Spaces::default();
    let events = read_mappings(path).map_err(Failure::usage)?.unwrap_or_default();
    // What was unmapped keeps its name: its misses came before.
    let kept = events.iter().filter(|event| !matches!(event.change, Change::Unmap { .. }));
    kept.for_each(|event| spaces.apply(event));
    let named = |(process, start, end, mapping): (u32, u64, u64, &Mapping)| NamedRange {
        process,
        name: mapping.title(),
        address: start,
        bytes: Bytes(end - start),
    };
    Ok(spaces.ranges().map(named).collect())
}

/// Loads a trace, or only its processes of a name.
pub(crate) fn load_trace(
    path: &Path,
    process: Option<&str>,
    page_size: PageSize,
    demand: &Demand,
    watch: &Watch,
) -> Result<Loaded, Failure> {
    let mut reader = TraceReader::open(path).map_err(Failure::usage)?;
    let name = path.display().to_string();
    let selected = process.map(|process| select(path, reader.provenance(), process)).transpose()?;
    let (limit, max) = (demand.limit, demand.max_accesses(Bytes(0), 0));
    // How many rows a process has is known only when they are read.
    let rows = reader.rows().min(limit).min(if selected.is_some() { max } else { u64::MAX });
    if rows > max {
        return Err(too_many(&name, max));
    }
    demand.memory.say(&format!("{rows} accesses"), demand.replay(rows, 0), "fewer accesses")?;
    let bar = watch.bar(rows, "reading");
    let mut builder = StreamBuilder::new(page_size);
    let mut rows = Rows::default();
    while (builder.len() as u64) < limit && reader.next(&mut rows).map_err(Failure::usage)? {
        if let Some(selected) = &selected {
            rows.retain_processes(|process| selected.get(process as usize) == Some(&true));
        }
        rows.truncate(usize::try_from(limit - builder.len() as u64).unwrap_or(usize::MAX));
        if (builder.len() + rows.len()) as u64 > max {
            return Err(too_many(&name, max));
        }
        builder.append(&rows);
        bar.set_position(builder.len() as u64);
        watch.check()?;
    }
    bar.finish_and_clear();
    let mut stream = builder.finish(&name).map_err(Failure::usage)?;
    if let Some(contents) = read_contents(path).map_err(Failure::usage)? {
        let of = |known| shares(known, &stream.pages, page_size);
        stream.compressed_shares = CompressedShares { zstd: of(&contents.zstd), lz4: of(&contents.lz4) };
    }
    let mut provenance = describe(reader.provenance());
    provenance.extend(process.map(|process| ("process".to_owned(), process.to_owned())));
    let ranges = Vec::new();
    let mappings = mappings(path)?;
    let input = Input { name, workload: false, parameters: None, provenance, stream, ranges, mappings };
    demand.check(Loaded::new(input, None))
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
        ("allocator", provenance.allocator.clone()),
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
    demand: &Demand,
    watch: &Watch,
) -> Result<Loaded, Failure> {
    let footprint = workload.build(&parameters, seed).map_err(Failure::usage)?.footprint();
    let program = workload.memory(&parameters, footprint);
    let pages = footprint.0 >> page_size.shift();
    let max = demand.max_accesses(program, pages);
    // How many accesses other parameters make is not known before: as many as are allowed, or fit.
    let values = |parameters: &Parameters| parameters.iter().map(|(_, value)| value).collect::<Vec<_>>();
    let usual = values(&parameters) == values(&workload.parameters());
    let accesses = demand.limit.min(max).min(if usual { workload.accesses } else { u64::MAX });
    let need = Bytes(program.0.saturating_add(demand.replay(accesses, pages).0));
    let what = format!("{} and at most {accesses} accesses", workload.name);
    demand.memory.say(&what, need, "a smaller footprint or fewer accesses")?;
    let bar = watch.line();
    let mut full = false;
    let mut progress = |misses: u64| {
        full = misses > max;
        bar.set_message(format!("{}: {} M misses", workload.name, misses / 1_000_000));
        bar.tick();
        if full || watch.check().is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let loaded =
        isotherm_sim::load_workload(workload, parameters, page_size, seed, demand.limit, &mut progress);
    bar.finish_and_clear();
    watch.check()?;
    if full {
        return Err(too_many(workload.name, max));
    }
    demand.check(loaded.map_err(Failure::usage)?)
}
