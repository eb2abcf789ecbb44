//! Defines what people and programs read of the scoreboard: a page in Markdown, one in HTML, JSON, and a summary.

mod html;
mod markdown;
mod words;

use isotherm_score::Scoreboard;

use crate::table::aligned;

pub use html::score_html;
pub use markdown::score_markdown;

/// The scoreboard as JSON, indented so that two versions can be compared line by line.
pub fn score_json(board: &Scoreboard) -> String {
    let json = serde_json::to_string_pretty(board);
    json.unwrap_or_else(|error| unreachable!("the scoreboard is plain data: {error}"))
}

/// A scoreboard from its JSON.
///
/// # Errors
/// In words, where and why it is none.
pub fn score_from_json(text: &str) -> Result<Scoreboard, String> {
    let mut board: Scoreboard = serde_json::from_str(text).map_err(|error| error.to_string())?;
    board.restore_infinities();
    Ok(board)
}

/// A row a paper, for the terminal.
pub fn score_summary(board: &Scoreboard) -> String {
    format!("{}{}\n", aligned(&words::SUMMARY, words::summary(board).into_iter(), 1), words::verdict(board))
}
