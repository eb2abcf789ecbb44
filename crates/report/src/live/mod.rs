//! Defines what people and programs read of a live run: a summary for the terminal, JSON, and one self-contained HTML file.

mod lines;
mod page;
mod timeline;
mod words;

use isotherm_core::live_result::LiveResult;

use crate::format::wrapped;

pub use page::live_html;

/// Columns of a usual terminal.
const WIDTH: usize = 80;
/// Columns of a line's name.
const NAME: usize = 13;

/// What `isotherm run` tells at the program's end: the answer in a sentence, then a line for each thing to know.
///
/// At most 80 columns wide without colours; a warning is one line of any length, so that its remedy can be copied.
pub fn live_text(result: &LiveResult) -> String {
    let mut text = wrapped("", &words::answer(result), WIDTH);
    for (name, value) in lines::lines(result) {
        text.push_str(&wrapped(&label(&name), &value, WIDTH));
    }
    lines::warnings(result).iter().for_each(|warning| {
        text.push_str(&format!("{}{warning}\n", label("warning")));
    });
    text
}

fn label(name: &str) -> String {
    format!("{name:<NAME$}")
}

/// The run as one indented JSON object, as `docs/reference/live-schema.json` describes it, with a line break at its end.
pub fn live_json(result: &LiveResult) -> String {
    let json = serde_json::to_string_pretty(result)
        .unwrap_or_else(|error| unreachable!("the result is plain data: {error}"));
    json + "\n"
}
