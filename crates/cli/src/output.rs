//! Output of the verbs: text, tables and reports.

use std::borrow::Cow;
use std::fmt;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use comfy_table::presets::NOTHING;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width};
use isotherm_core::parameters::{Parameters, Preset, Spec, Value};
use isotherm_trace::TraceSummary;
use tempfile::NamedTempFile;

use crate::failure::Failure;

/// Prints to standard output, without the terminal codes that a trace or a program may have brought; a closed
/// pipe (`| head`) ends quietly.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(printable(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes to standard error, likewise. A closed stream is no reason to end.
pub(crate) fn say(text: &str) {
    let _ = io::stderr().write_all(printable(text).as_bytes());
}

fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\n' || c == '\t')
}

/// Returns text of others as one line without terminal codes.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// Escapes control characters, as JSON does, except those that may stay.
fn escaped(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let harmful = |c: char| c.is_control() && !stays(c);
    if !text.contains(harmful) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if harmful(c) {
            safe.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            safe.push(c);
        }
    }
    safe.into()
}

/// A file that the user named, opened before the work that fills it. It appears under its name when it is
/// whole; a device or a pipe is written in place.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    to: Destination,
}

#[derive(Debug)]
enum Destination {
    /// A file beside the place that it takes when it is whole.
    Beside(NamedTempFile, PathBuf),
    Here(File),
}

impl Output {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let to = Destination::open(path).map_err(|error| Failure::usage_at(path, error))?;
        Ok(Self { path: path.to_owned(), to })
    }

    pub(crate) fn write(self, text: impl AsRef<[u8]>) -> Result<(), Failure> {
        self.to.write(text.as_ref()).map_err(|error| Failure::failed_at(&self.path, error))
    }
}

impl Destination {
    fn open(path: &Path) -> io::Result<Self> {
        // Through a link its target is replaced, not the link.
        let place = match fs::metadata(path) {
            Ok(about) => {
                let there = File::options().write(true).open(path)?;
                if !about.is_file() || path.starts_with("/dev") {
                    return Ok(Self::Here(there));
                }
                path.canonicalize()?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(error),
        };
        let name = place.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = tempfile::Builder::new()
            .prefix(&format!(".{}.", name.to_string_lossy()))
            .suffix(".tmp")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            // The library's error names its own file.
            .map_err(|error| io::Error::from(error.kind()))?;
        Ok(Self::Beside(file, place))
    }

    fn write(self, text: &[u8]) -> io::Result<()> {
        match self {
            Self::Here(mut file) => file.write_all(text),
            Self::Beside(mut file, place) => {
                file.write_all(text)?;
                file.as_file().sync_all()?;
                file.persist(place).map_err(|error| error.error)?;
                Ok(())
            }
        }
    }
}

/// Opens the file of an option that may be absent.
pub(crate) fn open(path: Option<&PathBuf>) -> Result<Option<Output>, Failure> {
    path.map(|path| Output::open(path)).transpose()
}

pub(crate) fn write(output: Option<Output>, text: impl FnOnce() -> String) -> Result<(), Failure> {
    output.map_or(Ok(()), |output| output.write(text()))
}

pub(crate) fn report_trace(path: &Path, trace: &TraceSummary) {
    let TraceSummary { rows, bytes, parts, .. } = trace;
    say(&format!("{}: {rows} rows, {bytes} bytes in {parts} parts\n", path.display()));
}

pub(crate) fn name_report(report: Option<&Path>, quiet: bool) {
    if let (Some(path), false) = (report, quiet) {
        say(&format!("report: {}\n", path.display()));
    }
}

/// Columns of a usual terminal.
const WIDTH: u16 = 80;
/// Blanks beside a cell.
const PADDING: usize = 2;

/// A table without lines that fits the terminal, or [`WIDTH`] where none reads, and breaks no word.
pub(crate) struct Listing {
    table: Table,
    columns: Vec<Extent>,
}

/// Characters of a column's longest word and of its longest cell.
#[derive(Clone, Default)]
struct Extent {
    word: usize,
    cell: usize,
}

/// Returns a table of these columns.
pub(crate) fn listing(header: &[&str]) -> Listing {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    let mut listing = Listing { table, columns: vec![Extent::default(); header.len()] };
    listing.measure(header);
    listing.table.set_header(header);
    listing
}

impl Listing {
    pub(crate) fn add_row<T: AsRef<str>>(&mut self, row: impl AsRef<[T]>) {
        let row: Vec<&str> = row.as_ref().iter().map(AsRef::as_ref).collect();
        self.measure(&row);
        self.table.add_row(row);
    }

    fn measure(&mut self, row: &[&str]) {
        let length = |text: &str| text.chars().count();
        for (column, cell) in self.columns.iter_mut().zip(row) {
            column.cell = column.cell.max(length(cell));
            column.word = cell.split(' ').map(length).fold(column.word, usize::max);
        }
    }

    /// Returns the columns' widths: of their longest words, and what is left of `width` where it is wanted.
    fn widths(&self, width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| column.word).collect();
        let used: usize = widths.iter().map(|width| width + PADDING).sum();
        let mut left = width.saturating_sub(used);
        let wanted = |index: usize| self.columns[index].cell - self.columns[index].word;
        let mut order: Vec<usize> = (0..widths.len()).collect();
        order.sort_by_key(|&index| wanted(index));
        for (place, &index) in order.iter().enumerate() {
            let share = wanted(index).min(left / (order.len() - place));
            widths[index] += share;
            left -= share;
        }
        widths
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = self.table.clone();
        let widths = self.widths(table.width().unwrap_or(WIDTH).into());
        for (column, width) in table.column_iter_mut().zip(widths) {
            let width = u16::try_from(width + PADDING).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
        }
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        f.write_str(&lines.join("\n"))
    }
}

pub(crate) fn parameter_table<'a>(parameters: impl Iterator<Item = (&'a Spec, Value)>) -> String {
    let mut table = listing(&["parameter", "value", "source", "meaning"]);
    for (spec, value) in parameters {
        let bare = matches!(value, Value::Count(_) | Value::Number(_)) && !spec.unit.is_empty();
        let value = if bare { format!("{value} {}", spec.unit) } else { value.to_string() };
        let scaled = if spec.scaled { " Divided by the run's scale." } else { "" };
        let meaning = format!("{}{scaled} Valid: {}.", spec.help, spec.expected());
        table.add_row([spec.name, &value, spec.source, &meaning]);
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
