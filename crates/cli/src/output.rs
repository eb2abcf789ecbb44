//! Output of the verbs: text, tables and reports.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use comfy_table::presets::NOTHING;
use comfy_table::{ColumnConstraint, ContentArrangement, Table};
use isotherm_core::parameters::{Parameters, Preset, Spec, Value};
use isotherm_trace::TraceSummary;

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

/// Writes to standard error. A closed stream is no reason to end.
pub(crate) fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// A file that a verb writes at its end, opened at its start so that a bad path is refused then.
pub(crate) struct Output {
    path: PathBuf,
    file: File,
    /// Whether this made the file, which is removed again if nothing is written.
    made: bool,
}

impl Output {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let made = !path.exists();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| Failure::usage_at(path, error))?;
        Ok(Self { path: path.to_owned(), file, made })
    }

    pub(crate) fn write(mut self, text: impl AsRef<[u8]>) -> Result<(), Failure> {
        let failed = |error| Failure::failed_at(&self.path, error);
        if self.file.metadata().map_err(failed)?.is_file() {
            self.file.set_len(0).map_err(failed)?;
        }
        self.made = false;
        self.file.write_all(text.as_ref()).map_err(failed)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.made {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::failed_at(path, error))
}

pub(crate) fn write_report(args: &ReplayArgs, html: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(path) = &args.report else { return Ok(()) };
    write(path, html())
}

pub(crate) fn report_trace(path: &Path, trace: &TraceSummary) {
    let TraceSummary { rows, bytes, parts, .. } = trace;
    eprintln!("{}: {rows} rows, {bytes} bytes in {parts} parts", path.display());
}

pub(crate) fn name_report(args: &ReplayArgs) {
    if let (Some(path), false) = (&args.report, args.quiet) {
        eprintln!("report: {}", path.display());
    }
}

/// Returns a table without lines that fits the terminal's width.
pub(crate) fn listing(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(header);
    table
}

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

/// Describes the preset in force and the changes of the others; empty without presets.
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
