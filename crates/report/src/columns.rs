//! Tables as lists of columns: a heading, and the function that writes an item's cell.

/// A column's heading, and its cell for an item.
pub(crate) type Column<T> = (&'static str, fn(&T) -> String);

/// Returns the headings.
pub(crate) fn headings<T>(columns: &[Column<T>]) -> Vec<&'static str> {
    columns.iter().map(|&(heading, _)| heading).collect()
}

/// Returns an item's row.
pub(crate) fn cells<T>(columns: &[Column<T>], item: &T) -> Vec<String> {
    columns.iter().map(|(_, cell)| cell(item)).collect()
}

/// Returns the columns of these headings, in the order of all.
pub(crate) fn narrow<T>(columns: &[Column<T>], kept: &[&str]) -> Vec<Column<T>> {
    columns.iter().filter(|(heading, _)| kept.contains(heading)).copied().collect()
}
