//! `isotherm workloads [NAME] [--export NAME.trace | --report FILE.html]`.

use std::ops::ControlFlow;
use std::path::Path;

use isotherm_core::parameters::Parameters;
use isotherm_core::{Bytes, PageSize};
use isotherm_report::Pictured;
use isotherm_sim::run_workload;
use isotherm_trace::{Provenance, TraceWriter, WRITER_MEMORY};
use isotherm_workloads::{ALL, WAYS, Workload, find};

use crate::args::{WorkloadsArgs, geometry};
use crate::failure::Failure;
use crate::input::{self, Demand};
use crate::memory::Memory;
use crate::output::{Output, listing, parameter_table, preset_json, preset_lines, print, report_trace, say};
use crate::progress::Watch;
use crate::settings;

pub(crate) fn run(args: &WorkloadsArgs) -> Result<(), Failure> {
    let Some(name) = &args.name else {
        let all = ALL.iter().map(|&workload| (workload, workload.parameters()));
        return args.report.as_ref().map_or_else(|| list(args), |path| draw(all, path, args));
    };
    let workload = find(name).map_err(Failure::usage)?;
    let mut parameters = workload.parameters();
    let mut settings = settings::parse(&args.set)?;
    settings::apply(&mut settings, &mut parameters)?;
    settings::finish(&settings)?;
    match (&args.export, &args.report) {
        (Some(path), _) => export(workload, &parameters, path, args),
        (None, Some(path)) => draw(std::iter::once((workload, parameters)), path, args),
        (None, None) => explain(workload, &parameters, args),
    }
}

/// Runs the workloads one after another and writes the page with their heatmaps.
fn draw(
    workloads: impl Iterator<Item = (&'static Workload, Parameters)>,
    path: &Path,
    args: &WorkloadsArgs,
) -> Result<(), Failure> {
    let page = Output::open(path)?;
    let demand = Demand {
        memory: Memory::new(&args.memory, args.quiet),
        runs: 0,
        samples: (0, 0),
        limit: args.max_accesses.unwrap_or(u64::MAX),
    };
    let picture = |(workload, parameters): (&'static Workload, Parameters)| {
        let loaded = input::load_workload(
            workload,
            parameters,
            PageSize::Base,
            args.seed,
            &demand,
            &Watch::new(args.quiet),
        )?;
        Ok(Pictured {
            title: workload.title.into(),
            category: [
                format!("{} objects", workload.object_size.name()),
                if workload.hot_set_changes { "changes" } else { "stable" }.into(),
            ],
            input: loaded.input.summary(args.seed, loaded.scale),
        })
    };
    let pictured = workloads.map(picture).collect::<Result<Vec<_>, Failure>>()?;
    page.write(isotherm_report::gallery_html(&pictured, env!("CARGO_PKG_VERSION")))?;
    if !args.quiet {
        say(&format!("report: {}\n", path.display()));
    }
    Ok(())
}

fn json(workload: &Workload, parameters: &Parameters, seed: u64) -> Result<serde_json::Value, Failure> {
    let footprint = workload.build(parameters, seed).map_err(Failure::usage)?.footprint();
    Ok(serde_json::json!({
        "name": workload.name,
        "title": workload.title,
        "source": workload.source,
        "object_size": workload.object_size.name(),
        "objects": workload.objects,
        "hot_set_changes": workload.hot_set_changes,
        "hot_set": workload.hot_set,
        "accesses": workload.accesses,
        "footprint_bytes": footprint,
        "reference_footprint_bytes": workload.reference_footprint,
        "presets": parameters.presets().iter().map(preset_json).collect::<Vec<_>>(),
        "parameters": parameters,
    }))
}

fn accesses(workload: &Workload) -> String {
    format!("{:.0} M", workload.accesses as f64 / 1e6)
}

fn list(args: &WorkloadsArgs) -> Result<(), Failure> {
    if args.json {
        let all = ALL.iter().map(|workload| json(workload, &workload.parameters(), args.seed));
        return print(&format!("{:#}\n", serde_json::Value::from(all.collect::<Result<Vec<_>, _>>()?)));
    }
    let mut table = listing(&["workload", "footprint", "accesses", "objects", "hot set", "what it does"]);
    for workload in ALL {
        let program = workload.build(&workload.parameters(), args.seed).map_err(Failure::usage)?;
        let footprint = program.footprint().to_string();
        let hot_set = if workload.hot_set_changes { "changes" } else { "stable" };
        table.add_row([
            workload.name,
            &footprint,
            &accesses(workload),
            workload.object_size.name(),
            hot_set,
            workload.title,
        ]);
    }
    print(&format!("{table}\n"))
}

fn explain(workload: &Workload, parameters: &Parameters, args: &WorkloadsArgs) -> Result<(), Failure> {
    if args.json {
        return print(&format!("{:#}\n", json(workload, parameters, args.seed)?));
    }
    let footprint = workload.build(parameters, args.seed).map_err(Failure::usage)?.footprint();
    let head = format!(
        "{}: {}\nsource: {}\nobjects: {} ({})\nhot set: {}\nfootprint: {footprint}\n\
         accesses at defaults: {}\n",
        workload.name,
        workload.title,
        workload.source,
        workload.object_size.name(),
        workload.objects,
        workload.hot_set,
        accesses(workload),
    );
    let presets = preset_lines(workload.name, parameters);
    print(&format!("{head}\n{}{presets}", parameter_table(parameters.iter())))
}

fn export(
    workload: &Workload,
    parameters: &Parameters,
    path: &Path,
    args: &WorkloadsArgs,
) -> Result<(), Failure> {
    let program = workload.build(parameters, args.seed).map_err(Failure::usage)?;
    let chosen = args.cache.map(|size| geometry(size, WAYS)).transpose()?;
    let cache = chosen.unwrap_or_else(|| workload.cache(program.footprint()));
    let values: Vec<String> =
        parameters.iter().map(|(spec, value)| format!("{}={value}", spec.name)).collect();
    let mut provenance = Provenance::new(format!("isotherm workloads {} --export", workload.name));
    provenance.recorder = "instrumented workload".into();
    provenance.cache = Some(cache);
    provenance.dependence = true;
    provenance.processes = vec![workload.name.into(); program.processes()];
    provenance.workload = Some(format!("{} seed={} {}", workload.name, args.seed, values.join(" ")));
    let mut writer = TraceWriter::create_whole(path, provenance).map_err(Failure::usage)?;
    let need = Bytes(workload.memory(parameters, program.footprint()).0.saturating_add(WRITER_MEMORY.0));
    drop(program);
    Memory::new(&args.memory, args.quiet).say(workload.name, need, "a smaller footprint")?;
    let mut written = Ok(());
    let limit = args.max_accesses.unwrap_or(u64::MAX);
    let ran = run_workload(workload, parameters, args.seed, limit, Some(cache), |rows| {
        written = writer.append(rows);
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    ran.map_err(Failure::usage)?;
    written.map_err(Failure::failed)?;
    let summary = writer.finish().map_err(Failure::failed)?;
    report_trace(path, &summary);
    Ok(())
}
