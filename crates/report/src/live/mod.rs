//! A live run as a summary for the terminal, as JSON, and as one self-contained HTML file.

mod lines;
mod page;
mod timeline;
pub(crate) mod words;

use isotherm_core::live_result::LiveResult;

use crate::format::wrapped;
use crate::{Answered, verdict};

pub use page::live_html;

/// Columns of a usual terminal.
const WIDTH: usize = 80;
/// Columns of a line's name.
const NAME: usize = 13;

/// Returns the summary at the program's end: the verdict, what happened, then a line per fact.
///
/// It is at most 80 columns wide, without colours. A warning is one line of any length, so that its fix can
/// be copied.
pub fn live_text(result: &LiveResult) -> String {
    let mut text =
        wrapped("", &verdict::live(result).text(), WIDTH) + &wrapped("", &words::answer(result), WIDTH);
    if let Some(books) = words::books(result) {
        text += &wrapped("", &books, WIDTH);
    }
    let lines = lines::lines(result);
    text.extend(lines.iter().map(|(name, value)| wrapped(&format!("{name:<NAME$}"), value, WIDTH)));
    text.extend(lines::warnings(result).iter().map(|warning| format!("{:<NAME$}{warning}\n", "warning")));
    text
}

/// Returns the run as one indented JSON object with a line break at its end, as
/// `docs/reference/live-schema.json` describes it.
pub fn live_json(result: &LiveResult) -> String {
    let answered = Answered { verdict: Some(verdict::live(result)), result };
    let json = serde_json::to_string_pretty(&answered)
        .unwrap_or_else(|error| unreachable!("the result is plain data: {error}"));
    json + "\n"
}
