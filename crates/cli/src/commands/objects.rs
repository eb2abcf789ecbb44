//! `isotherm objects`: whose memory a trace's misses are in.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use isotherm_core::cache::LINE_SHIFT;
use isotherm_core::manifest::Manifest;
use isotherm_core::{Bytes, PageSize, Pages};
use isotherm_sim::{FastSize, RowsHash};
use isotherm_trace::{
    ALLOCATED, Change, Mapping, MappingEvent, ProcessName, Provenance, Rows, Spaces, TraceReader,
    mappings_memory, process_names, read_mappings, select_processes,
};
use serde_json::{Value, json};

use crate::args::{ObjectsArgs, Order};
use crate::failure::Failure;
use crate::memory::Memory;
use crate::output::{listing, print};
use crate::symbols::{Symbol, Symbols};
use crate::{fingerprint, progress};

const PAGE: PageSize = PageSize::Base;
/// Name of memory whose mapping was not noted.
const UNKNOWN: &str = "[unknown]";
/// Bytes that a page takes: its misses by mapping and in all, twice while a table grows, and its rank.
const PAGE_MEMORY: u64 = 256;
/// Name of memory that allocation sites share: those that allocate little, and what came after the last
/// range of its own was given.
const SHARED: &str = "[other allocation sites]";
/// Columns of the table, blanks beside a cell, and columns for a process's name and at least for an object's.
const WIDTH: usize = 80;
const GAP: usize = 2;
const PROCESS: usize = 12;
const SHORTEST: usize = 16;

/// Prints the objects of a trace.
pub(crate) fn run(args: &ObjectsArgs) -> Result<(), Failure> {
    let size = FastSize::parse(&args.fast).map_err(Failure::usage)?;
    if size.tiers() > 2 {
        return Err(Failure::Usage(format!(
            "--fast {}: expected a fast:slow ratio, of two parts",
            args.fast
        )));
    }
    let mut reader = TraceReader::open(&args.trace).map_err(Failure::usage)?;
    let (memory, mappings) = (Memory::new(&args.memory, args.quiet), mappings_memory(&args.trace));
    memory.say("the trace's mappings", mappings, "fewer mappings, or more memory")?;
    let room = memory.room(mappings, PAGE_MEMORY);
    let Some(events) = read_mappings(&args.trace).map_err(Failure::usage)? else {
        let lacks = "has no mappings; expected a recording of this version: record the program again";
        return Err(Failure::usage_at(&args.trace, lacks));
    };
    let names = process_names(&reader.provenance().processes, &events);
    let selected = args.process.as_deref().map(|name| select_processes(&names, name));
    let selected = selected.transpose().map_err(Failure::usage)?;
    let counts = count(&mut reader, &events, selected.as_deref(), room, args)?;
    if counts.pages.is_empty() {
        return Err(Failure::usage_at(&args.trace, "has no misses; expected at least one"));
    }
    let footprint = Pages(counts.misses_of_pages().len() as u64);
    let fast = size.pages_of(footprint, PAGE).map_err(Failure::usage)?;
    let labels = Labels::new(counts.spaces.mappings());
    let mut found = Found::new(&counts, &names, &labels, fast);
    found.sort(args.by);
    if args.json {
        let value = found.json(args, &counts, &names, &labels, &events, reader.provenance());
        return print(&format!("{value:#}\n"));
    }
    print(&found.table(&args.trace, &args.fast, args.top))
}

/// Misses of each page of each mapping.
#[derive(Default)]
struct Counts {
    spaces: Spaces,
    /// By mapping, which is `None` where none was noted, process and page.
    pages: HashMap<(Option<usize>, u32, u64), u64>,
    /// First and last row of each mapping.
    rows: HashMap<usize, (u64, u64)>,
    input: RowsHash,
}

impl Counts {
    fn misses_of_pages(&self) -> HashMap<(u32, u64), u64> {
        let mut pages = HashMap::new();
        for (&(_, process, page), misses) in &self.pages {
            *pages.entry((process, page)).or_default() += misses;
        }
        pages
    }
}

fn count(
    reader: &mut TraceReader,
    events: &[MappingEvent],
    selected: Option<&[bool]>,
    room: u64,
    args: &ObjectsArgs,
) -> Result<Counts, Failure> {
    let bar = progress::bar(reader.rows(), "reading", args.quiet);
    let (mut counts, mut rows, mut number) = (Counts::default(), Rows::default(), 0);
    let mut events = events.iter().peekable();
    // The range that the last row lies in often holds the next one, too.
    let mut last: Option<(u32, u64, u64, usize)> = None;
    while reader.next(&mut rows).map_err(Failure::usage)? {
        for index in 0..rows.len() {
            while let Some(event) = events.next_if(|event| event.row <= number) {
                counts.spaces.apply(event);
                last = None;
            }
            let (process, address) = (rows.process[index], rows.line[index] << LINE_SHIFT);
            if selected.is_none_or(|selected| selected.get(process as usize) == Some(&true)) {
                counts.input.add(&rows, index);
                if !last.is_some_and(|(of, start, end, _)| of == process && (start..end).contains(&address)) {
                    let found = counts.spaces.find(process, address);
                    last = found.map(|(start, end, mapping)| (process, start, end, mapping));
                }
                let mapping = last.map(|(.., mapping)| mapping);
                *counts.pages.entry((mapping, process, address >> PAGE.shift())).or_default() += 1;
                if let Some(mapping) = mapping {
                    counts.rows.entry(mapping).or_insert((number, number)).1 = number;
                }
            }
            number += 1;
        }
        if counts.pages.len() as u64 > room {
            let expected = format!("more than {room} pages do not fit into memory; expected --process NAME");
            return Err(Failure::usage_at(&args.trace, format!("{expected}, or a larger --max-memory")));
        }
        bar.set_position(number);
    }
    bar.finish_and_clear();
    Ok(counts)
}

/// Memory and the misses in it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Share {
    misses: u64,
    pages: u64,
    fast_misses: u64,
    fast_pages: u64,
}

impl Share {
    fn add(&mut self, misses: u64, fast: bool) {
        self.misses += misses;
        self.pages += 1;
        if fast {
            self.fast_misses += misses;
            self.fast_pages += 1;
        }
    }

    fn bytes(&self) -> Bytes {
        Bytes(self.pages << PAGE.shift())
    }

    fn density(&self) -> f64 {
        self.misses as f64 / (self.bytes().0 as f64 / f64::from(1 << 20)).max(f64::MIN_POSITIVE)
    }

    fn json(&self) -> Value {
        json!({
            "misses": self.misses,
            "memory_bytes": self.bytes(),
            "misses_per_mib": self.density(),
            "fast_misses": self.fast_misses,
            "fast_bytes": Bytes(self.fast_pages << PAGE.shift()),
        })
    }
}

/// Name of a process and of an object in it. Mappings of no file are told apart by their size.
type Key = (String, String, Option<Bytes>);

#[derive(Default)]
struct Found {
    objects: Vec<(Key, Share, u64)>,
    mappings: BTreeMap<usize, Share>,
    total: Share,
}

impl Found {
    fn new(counts: &Counts, names: &[ProcessName], labels: &Labels, fast: Pages) -> Self {
        let totals = counts.misses_of_pages();
        let mut order: Vec<_> = totals.iter().map(|(&page, &misses)| (Reverse(misses), page)).collect();
        order.sort_unstable();
        let fast: HashSet<_> = order.iter().take(fast.0 as usize).map(|&(_, page)| page).collect();
        let mut found = Self::default();
        for (page, misses) in totals {
            found.total.add(misses, fast.contains(&page));
        }
        let (mut objects, mut mapped) =
            (BTreeMap::<Key, Share>::new(), BTreeMap::<Key, HashSet<usize>>::new());
        for (&(mapping, process, page), &misses) in &counts.pages {
            let is_fast = fast.contains(&(process, page));
            let key = key(counts.spaces.mappings(), mapping, process, names, labels);
            if let Some(mapping) = mapping {
                found.mappings.entry(mapping).or_default().add(misses, is_fast);
                mapped.entry(key.clone()).or_default().insert(mapping);
            }
            objects.entry(key).or_default().add(misses, is_fast);
        }
        let mappings = |key: &Key| mapped.get(key).map_or(0, |mapped| mapped.len() as u64);
        found.objects =
            objects.into_iter().map(|(key, share)| (key.clone(), share, mappings(&key))).collect();
        found
    }

    fn sort(&mut self, by: Order) {
        self.objects.sort_by(|(_, a, _), (_, b, _)| match by {
            Order::Misses => b.misses.cmp(&a.misses),
            Order::Memory => b.pages.cmp(&a.pages),
            Order::Density => b.density().total_cmp(&a.density()),
        });
    }

    fn table(&self, trace: &Path, fast: &str, top: usize) -> String {
        let percent = |part: u64, whole: u64| format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64);
        let total = &self.total;
        let mut text = format!(
            "{}: {} misses in {} of memory\nfast: the densest {} ({fast}) have {} of the misses\n\n",
            trace.display(),
            total.misses,
            total.bytes(),
            Bytes(total.fast_pages << PAGE.shift()),
            percent(total.fast_misses, total.misses)
        );
        // No blank stands in a cell that must not be broken.
        let shown = &self.objects[..self.objects.len().min(top)];
        let several = shown.iter().any(|((process, ..), ..)| *process != shown[0].0.0);
        let mut header = vec!["misses", "share", "memory", "per MiB", "fast"];
        let mut rows: Vec<Vec<String>> = Vec::new();
        for ((process, ..), share, _) in shown {
            rows.push(vec![
                share.misses.to_string(),
                percent(share.misses, total.misses),
                share.bytes().to_string(),
                format!("{:.0}", share.density()),
                percent(share.fast_pages, share.pages),
            ]);
            rows.last_mut().filter(|_| several).into_iter().for_each(|row| row.push(tail(process, PROCESS)));
        }
        header.extend(several.then_some("process"));
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([header[column].len()]).max().unwrap_or_default() + GAP
        };
        let room = WIDTH.saturating_sub((0..header.len()).map(width).sum::<usize>() + GAP).max(SHORTEST);
        for (row, ((_, name, size), _, mappings)) in rows.iter_mut().zip(shown) {
            row.push(match size {
                Some(size) if *mappings > 1 => format!("{name} {mappings} of {size}"),
                Some(size) => format!("{name} {size}"),
                None => tail(name, room),
            });
        }
        header.push("object");
        let mut table = listing(&header);
        rows.into_iter().for_each(|row| table.add_row(row));
        text.push_str(&table.to_string());
        text.push('\n');
        if self.objects.len() > top {
            text.push_str(&format!("{} more: --top N\n", self.objects.len() - top));
        }
        text
    }

    fn json(
        &self,
        args: &ObjectsArgs,
        counts: &Counts,
        names: &[ProcessName],
        labels: &Labels,
        events: &[MappingEvent],
        recorded: &Provenance,
    ) -> Value {
        let by = format!("{:?}", args.by).to_lowercase();
        let mut options = BTreeMap::from([("by", by), ("fast", args.fast.clone())]);
        options.extend(args.process.clone().map(|process| ("process", process)));
        let binary = fingerprint::own();
        let input = Some(counts.input.finish());
        // Its addresses are not the program's own.
        let allocator = Some(recorded.allocator.clone()).filter(|allocator| !allocator.is_empty());
        options.extend(allocator.map(|allocator| ("allocator", allocator)));
        let machine = recorded.machine.clone();
        let manifest = Manifest { binary, input, machine, options, ..Manifest::default() };
        let join = |share: &Share, mut value: Value| {
            if let (Value::Object(value), Value::Object(share)) = (&mut value, share.json()) {
                value.extend(share);
            }
            value
        };
        let objects = self.objects.iter().map(|((process, name, size), share, mappings)| {
            let object =
                json!({ "name": name, "process": process, "mappings": mappings, "size_bytes": size });
            join(share, object)
        });
        let mappings = self.mappings.iter().map(|(&number, share)| {
            let Mapping { process, start, end, name, .. } = &counts.spaces.mappings()[number];
            let (first, last) = counts.rows.get(&number).copied().unwrap_or_default();
            let mut range = json!({ "process": process, "name": name, "start": start, "end": end });
            if let Some(label) = labels.sites.get(&number) {
                (range["name"], range["frames"]) = (label.short.clone().into(), label.frames.clone().into());
            }
            let mut value = join(share, range);
            (value["first_row"], value["last_row"]) = (first.into(), last.into());
            value
        });
        let threads = events.iter().filter_map(|event| match &event.change {
            Change::Thread { thread, name } => {
                Some(json!({ "thread": thread, "process": event.process, "name": name }))
            }
            _ => None,
        });
        json!({
            "manifest": manifest,
            "trace": args.trace.display().to_string(),
            "total": self.total.json(),
            "objects": objects.collect::<Vec<_>>(),
            "mappings": mappings.collect::<Vec<_>>(),
            "processes": names.iter().map(ProcessName::as_str).collect::<Vec<_>>(),
            "threads": threads.collect::<Vec<_>>(),
        })
    }
}

/// Names of allocation sites, by their mappings.
#[derive(Debug, Default)]
struct Labels {
    sites: HashMap<usize, Label>,
}

#[derive(Debug)]
struct Label {
    /// Function and line that the allocation is for.
    short: String,
    /// Functions and lines of all calls, innermost first.
    frames: Vec<String>,
}

impl Labels {
    fn new(mappings: &[Mapping]) -> Self {
        let mut symbols = Symbols::default();
        let sites = mappings.iter().enumerate().filter(|(_, mapping)| mapping.name == ALLOCATED);
        let mut label = |mapping: &Mapping| {
            let calls = mapping.frames.iter();
            let calls: Vec<Symbol> =
                calls.flat_map(|call| symbols.at_return(&call.file, call.offset)).collect();
            let own = calls.iter().find(|call| !is_wrapper(call)).or(calls.first());
            Label {
                short: own.map_or_else(|| SHARED.into(), Symbol::short),
                frames: calls.iter().map(Symbol::to_string).collect(),
            }
        };
        Self { sites: sites.map(|(number, mapping)| (number, label(mapping))).collect() }
    }
}

/// Whether a function only passes allocations on, by its name: `xmalloc`, `operator new`, a container's.
fn is_wrapper(symbol: &Symbol) -> bool {
    const PREFIXES: [&str; 4] = ["operator new", "std::", "__gnu_cxx::", "void* std::"];
    const PARTS: [&str; 3] = ["alloc", "strdup", "strndup"];
    symbol.function.as_ref().is_some_and(|name| {
        let lower = name.to_lowercase();
        PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || PARTS.iter().any(|part| lower.contains(part))
    })
}

fn key(
    mappings: &[Mapping],
    number: Option<usize>,
    process: u32,
    names: &[ProcessName],
    labels: &Labels,
) -> Key {
    let process =
        names.get(process as usize).map_or_else(|| process.to_string(), |name| name.as_str().into());
    let Some(number) = number else { return (process, UNKNOWN.into(), None) };
    if let Some(label) = labels.sites.get(&number) {
        return (process, label.short.clone(), None);
    }
    let Mapping { start, end, name, .. } = &mappings[number];
    let size = (name == "[anonymous]").then_some(Bytes(end - start));
    (process, name.clone(), size)
}

/// Returns a name's end, which tells more of a path than its start.
fn tail(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.into();
    }
    let end: String = name.chars().skip(length - (width - 3)).collect();
    format!("...{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_its_end() {
        assert_eq!((tail("/a/b", 4), tail("/usr/lib/x", 6)), ("/a/b".into(), "...b/x".into()));
    }

    #[test]
    fn the_densest_pages_are_fast_whatever_they_hold() {
        let mut counts = Counts::default();
        let map = |start, end, name: &str| MappingEvent {
            row: 0,
            process: 0,
            change: Change::Map { start, end, name: name.into() },
        };
        counts.spaces.apply(&map(0x1000, 0x3000, "/a"));
        counts.spaces.apply(&map(0x5000, 0x6000, "[anonymous]"));
        counts.pages.extend([
            ((Some(0), 0, 1), 10),
            ((Some(0), 0, 2), 1),
            ((Some(1), 0, 5), 4),
            // The same page, before it was mapped.
            ((None, 0, 5), 3),
        ]);
        let names = [ProcessName::new("/bin/p x", None)];
        let mut found = Found::new(&counts, &names, &Labels::default(), Pages(2));
        found.sort(Order::Misses);
        let share = |misses, pages, fast_misses, fast_pages| Share { misses, pages, fast_misses, fast_pages };
        assert_eq!(found.total, share(18, 3, 17, 2));
        let key = |name: &str, size| ("p".to_owned(), name.to_owned(), size);
        let expected = [
            (key("/a", None), share(11, 2, 10, 1), 1),
            (key("[anonymous]", Some(Bytes(0x1000))), share(4, 1, 4, 1), 1),
            (key(UNKNOWN, None), share(3, 1, 3, 1), 0),
        ];
        assert_eq!(found.objects, expected);
        found.sort(Order::Memory);
        assert_eq!(found.objects[0].0.1, "/a");
        found.sort(Order::Density);
        assert_eq!(found.objects[0].1.density(), 11.0 * 128.0);
    }
}
