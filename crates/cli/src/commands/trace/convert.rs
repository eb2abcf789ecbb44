//! `isotherm trace convert`: converts other tools' output to a trace.

use std::fs::File;
use std::io::{BufRead, BufReader};

use isotherm_core::cache::Geometry;
use isotherm_trace::import::{
    HeatOptions, ImportError, ImportSummary, PerfOptions, TraceFile, champsim, damon, drmemtrace,
    drmemtrace_files, lackey, memtierd, oracle_general, perf,
};
use isotherm_trace::{Provenance, Rows, TraceReader, TraceSummary, TraceWriter, copy_mappings};

use crate::args::{ConvertArgs, Format};
use crate::failure::Failure;
use crate::output::report_trace;

/// Runs the verb. If the input turns out bad, there is no trace, so that the next attempt has its name.
pub(super) fn run(args: &ConvertArgs) -> Result<(), Failure> {
    let summary = if matches!(args.from, Format::Trace) { copy(args)? } else { import(args)? };
    report_trace(&args.output, &summary);
    Ok(())
}

fn copy(args: &ConvertArgs) -> Result<TraceSummary, Failure> {
    let mut reader = TraceReader::open(&args.input).map_err(Failure::usage)?;
    let mut writer =
        TraceWriter::create_whole(&args.output, reader.provenance().clone()).map_err(Failure::usage)?;
    let mut rows = Rows::default();
    while reader.next(&mut rows).map_err(Failure::usage)? {
        writer.append(&rows).map_err(Failure::failed)?;
    }
    copy_mappings(&args.input, writer.path()).map_err(Failure::failed)?;
    writer.finish().map_err(Failure::failed)
}

fn import(args: &ConvertArgs) -> Result<TraceSummary, Failure> {
    let geometry = args.cache.geometry()?;
    let import = importer(args, geometry)?;
    let mut provenance = Provenance::new(format!("isotherm trace convert {}", args.input.display()));
    provenance.recorder = match args.from {
        Format::Lackey => "valgrind lackey",
        Format::Damon => "DAMON",
        Format::Memtierd => "memtierd",
        Format::Drmemtrace => "DynamoRIO drmemtrace",
        Format::Champsim => "ChampSim",
        Format::OracleGeneral => "oracleGeneral",
        Format::Perf | Format::Trace => "perf",
    }
    .into();
    let is_filtered = matches!(args.from, Format::Lackey | Format::Drmemtrace | Format::Champsim);
    provenance.cache = is_filtered.then_some(geometry);
    provenance.dependence = matches!(args.from, Format::Champsim);
    let mut writer = TraceWriter::create_whole(&args.output, provenance).map_err(Failure::usage)?;
    let mut written = Ok(());
    let result = import(&mut |rows| {
        if written.is_ok() {
            written = writer.append(rows);
        }
    });
    written.map_err(Failure::failed)?;
    let summary = result.map_err(|error| Failure::usage_at(&args.input, error))?;
    let provenance = writer.provenance_mut();
    provenance.processes = summary.processes;
    provenance.accesses = summary.accesses;
    writer.finish().map_err(Failure::failed)
}

fn open(args: &ConvertArgs) -> Result<Box<dyn BufRead>, Failure> {
    if args.input.as_os_str() == "-" {
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    }
    let file = File::open(&args.input).map_err(|error| Failure::usage_at(&args.input, error))?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
}

type Importer = Box<dyn FnOnce(&mut dyn FnMut(&Rows)) -> Result<ImportSummary, ImportError>>;

/// Opens the input and returns its importer.
fn importer(args: &ConvertArgs, geometry: Geometry) -> Result<Importer, Failure> {
    if matches!(args.from, Format::Drmemtrace) && args.input.is_dir() {
        let files = drmemtrace_files(&args.input).map_err(|error| Failure::usage_at(&args.input, error))?;
        return Ok(Box::new(move |sink| drmemtrace(files, geometry, sink)));
    }
    let input = open(args)?;
    Ok(match args.from {
        Format::Lackey => Box::new(move |sink| lackey(input, geometry, sink)),
        Format::Damon => Box::new(move |sink| damon(input, &HeatOptions::default(), sink)),
        Format::Memtierd => Box::new(move |sink| memtierd(input, &HeatOptions::default(), sink)),
        Format::Drmemtrace => {
            let file = TraceFile { name: None, reader: Box::new(input) };
            Box::new(move |sink| drmemtrace(vec![file], geometry, sink))
        }
        Format::Champsim => Box::new(move |sink| champsim(input, geometry, sink)),
        Format::OracleGeneral => Box::new(move |sink| oracle_general(input, sink)),
        Format::Perf | Format::Trace => Box::new(move |sink| perf(input, &PerfOptions::default(), sink)),
    })
}
