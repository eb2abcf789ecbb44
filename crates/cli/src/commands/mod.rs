//! The verbs, one module each.

pub(crate) mod alloc_profile;
pub(crate) mod calibrate;
pub(crate) mod doctor;
pub(crate) mod generate;
pub(crate) mod lab;
pub(crate) mod live;
pub(crate) mod machines;
pub(crate) mod policies;
pub(crate) mod record;
pub(crate) mod score;
pub(crate) mod simulate;
pub(crate) mod size;
pub(crate) mod trace;
pub(crate) mod workloads;

use std::io::Write;

use comfy_table::presets::NOTHING;
use comfy_table::{ColumnConstraint, ContentArrangement, Table};
use isotherm_core::parameters::{Parameters, Preset, Spec, Value};

use crate::args::ReplayArgs;
use crate::failure::Failure;

/// Prints to standard output; a closed pipe (`| head`) ends quietly.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes the HTML report where one is asked for.
pub(crate) fn write_report(args: &ReplayArgs, html: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(path) = &args.report else { return Ok(()) };
    std::fs::write(path, html()).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

/// Says where the HTML report is.
pub(crate) fn name_report(args: &ReplayArgs) {
    if let (Some(path), false) = (&args.report, args.quiet) {
        eprintln!("report: {}", path.display());
    }
}

/// A table without lines, as listings use it; on a terminal it fits the width.
pub(crate) fn listing(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(header);
    table
}

/// A table of parameters with their values.
pub(crate) fn parameter_table<'a>(parameters: impl Iterator<Item = (&'a Spec, Value)>) -> String {
    let mut table = listing(&["parameter", "value", "valid", "source", "meaning"]);
    for (spec, value) in parameters {
        let bare = matches!(value, Value::Count(_) | Value::Number(_)) && !spec.unit.is_empty();
        let value = if bare { format!("{value} {}", spec.unit) } else { value.to_string() };
        let scaled = if spec.scaled { " Divided by the run's scale." } else { "" };
        table.add_row([spec.name, &value, &spec.expected(), spec.source, &format!("{}{scaled}", spec.help)]);
    }
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    format!("{table}\n")
}

/// A preset, for JSON.
pub(crate) fn preset_json(preset: &Preset) -> serde_json::Value {
    let values: serde_json::Map<_, _> =
        preset.values.iter().map(|&(key, text)| (key.to_owned(), text.into())).collect();
    serde_json::json!({
        "name": preset.name,
        "source": preset.source,
        "help": preset.help,
        "values": values,
    })
}

/// The preset in force, and what the others would change; nothing where there are none.
pub(crate) fn preset_lines(name: &str, parameters: &Parameters) -> String {
    let Some(chosen) = parameters.preset() else { return String::new() };
    let line = |preset: &Preset| {
        let values: Vec<_> = preset.values.iter().map(|(key, text)| format!("{key}={text}")).collect();
        let Preset { name: preset, help, source, .. } = preset;
        format!(
            "--set {name}.preset={preset}: {help} Source: {source}. It has {} for the defaults above.\n",
            values.join(", ")
        )
    };
    let others: String = parameters.presets().iter().map(line).collect();
    format!("\npreset in force: {chosen}\n{others}")
}
