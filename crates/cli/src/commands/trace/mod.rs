//! `isotherm trace info|head|convert|export`.

use std::fmt::Write;
use std::path::Path;

use isotherm_trace::{Row, Rows, TraceReader};

use crate::args::TraceVerb;
use crate::failure::Failure;
use crate::input::describe;
use crate::output::{one_line, print};

mod convert;
mod export;

pub(crate) fn run(verb: &TraceVerb) -> Result<(), Failure> {
    match verb {
        TraceVerb::Info { trace, json } => info(trace, *json),
        TraceVerb::Head { trace, rows } => head(trace, *rows),
        TraceVerb::Convert(args) => convert::run(args),
        TraceVerb::Export(args) => export::run(args),
    }
}

#[derive(Default)]
struct Contents {
    rows: u64,
    instructions: u64,
    stores: u64,
    dependent: u64,
    threads: u64,
    processes: u64,
}

fn count(reader: &mut TraceReader) -> Result<Contents, Failure> {
    let mut contents = Contents::default();
    let mut rows = Rows::default();
    while reader.next(&mut rows).map_err(Failure::usage)? {
        contents.rows += rows.len() as u64;
        contents.instructions += rows.instructions.iter().map(|&count| u64::from(count)).sum::<u64>();
        contents.stores += rows.store.iter().filter(|&&store| store != 0).count() as u64;
        contents.dependent += rows.dependence.iter().filter(|&&distance| distance != 0).count() as u64;
        let highest = |column: &[u32], before| {
            column.iter().map(|&number| u64::from(number) + 1).fold(before, u64::max)
        };
        contents.threads = highest(&rows.thread, contents.threads);
        contents.processes = highest(&rows.process, contents.processes);
    }
    Ok(contents)
}

fn info(path: &Path, json: bool) -> Result<(), Failure> {
    let mut reader = TraceReader::open(path).map_err(Failure::usage)?;
    let contents = count(&mut reader)?;
    let bytes = reader.bytes_on_disk();
    if json {
        let value = serde_json::json!({
            "trace": path.display().to_string(),
            "rows": contents.rows,
            "parts": reader.parts(),
            "bytes": bytes,
            "instructions": contents.instructions,
            "stores": contents.stores,
            "dependent": contents.dependent,
            "threads": contents.threads,
            "processes": contents.processes,
            "provenance": reader.provenance(),
        });
        return print(&format!("{value:#}\n"));
    }
    let share = |part: u64| 100.0 * part as f64 / contents.rows.max(1) as f64;
    let mut text = format!(
        "{}: {} misses in {} parts, {bytes} bytes ({:.2} a row)\n",
        path.display(),
        contents.rows,
        reader.parts(),
        bytes as f64 / contents.rows.max(1) as f64
    );
    let _ = writeln!(text, "instructions: {}", contents.instructions);
    let _ = writeln!(text, "stores: {:.1} %", share(contents.stores));
    let _ = writeln!(text, "addresses that depend on an earlier miss: {:.1} %", share(contents.dependent));
    let _ = writeln!(text, "threads: {}, processes: {}", contents.threads, contents.processes);
    for (key, value) in describe(reader.provenance()) {
        let _ = writeln!(text, "{key}: {}", one_line(&value));
    }
    for (number, command) in reader.provenance().processes.iter().enumerate() {
        let _ = writeln!(text, "process {number}: {}", one_line(command));
    }
    print(&text)
}

fn head(path: &Path, count: u64) -> Result<(), Failure> {
    let mut reader = TraceReader::open(path).map_err(Failure::usage)?;
    let mut text = String::from("process\tthread\tinstructions\tline\tstore\tdependence\n");
    let mut rows = Rows::default();
    let mut left = usize::try_from(count).unwrap_or(usize::MAX);
    while left > 0 && reader.next(&mut rows).map_err(Failure::usage)? {
        for row in rows.iter().take(left) {
            let Row { process, thread, instructions, line, store, dependence } = row;
            let _ = writeln!(text, "{process}\t{thread}\t{instructions}\t{line}\t{store}\t{dependence}");
        }
        left = left.saturating_sub(rows.len());
        print(&text)?;
        text.clear();
    }
    Ok(())
}
