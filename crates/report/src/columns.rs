//! Tables as lists of columns: a heading, and the function that makes an item's cell.

use std::fmt;

use isotherm_core::{Bytes, Nanos};

use crate::format;

/// A cell: its text, and its exact value where it has one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// The number behind the text, by which a page sorts.
    pub(crate) value: Option<f64>,
    /// Unit of the value: empty for counts and ratios.
    pub(crate) unit: &'static str,
}

impl Cell {
    fn number(text: String, value: f64, unit: &'static str) -> Self {
        Self { text, value: value.is_finite().then_some(value), unit }
    }

    /// Shows a count with a suffix.
    pub(crate) fn count(value: u64) -> Self {
        Self::number(format::count(value), value as f64, "")
    }

    /// Shows a number in digits.
    pub(crate) fn digits(value: u64) -> Self {
        Self::number(value.to_string(), value as f64, "")
    }

    /// Shows a ratio as a percentage.
    pub(crate) fn percent(ratio: f64) -> Self {
        Self::number(format::percent(ratio), ratio, "")
    }

    /// Shows a factor.
    pub(crate) fn factor(value: f64) -> Self {
        Self::number(format::factor(value), value, "")
    }

    /// Shows a time; 0 without a unit, which is easier to skip.
    pub(crate) fn time(time: Nanos) -> Self {
        Self::number(quantity(time.0, time), time.0 as f64, "ns")
    }

    /// Shows a size, likewise.
    pub(crate) fn size(bytes: Bytes) -> Self {
        Self::number(quantity(bytes.0, bytes), bytes.0 as f64, "bytes")
    }

    /// Stands for what is not known.
    pub(crate) fn unknown() -> Self {
        "-".into()
    }

    /// Shows another text for the same value.
    pub(crate) fn shown_as(self, text: String) -> Self {
        Self { text, ..self }
    }
}

fn quantity(value: u64, shown: impl ToString) -> String {
    if value == 0 { "0".into() } else { shown.to_string() }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), value: None, unit: "" }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A column's heading, and its cell for an item.
pub(crate) type Column<T> = (&'static str, fn(&T) -> Cell);

/// Returns the headings.
pub(crate) fn headings<T>(columns: &[Column<T>]) -> Vec<&'static str> {
    columns.iter().map(|&(heading, _)| heading).collect()
}

/// Returns an item's row.
pub(crate) fn cells<T>(columns: &[Column<T>], item: &T) -> Vec<Cell> {
    columns.iter().map(|(_, cell)| cell(item)).collect()
}

/// Returns an item's row in text.
pub(crate) fn texts<T>(columns: &[Column<T>], item: &T) -> Vec<String> {
    columns.iter().map(|(_, cell)| cell(item).text).collect()
}

/// Returns the columns of these headings, in the order of all.
pub(crate) fn narrow<T>(columns: &[Column<T>], kept: &[&str]) -> Vec<Column<T>> {
    columns.iter().filter(|(heading, _)| kept.contains(heading)).copied().collect()
}
