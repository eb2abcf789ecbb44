//! The scoreboard for people and programs: a page in Markdown, one in HTML, JSON, and a summary.

mod html;
mod json;
mod markdown;
mod words;

use isotherm_score::Scoreboard;

use crate::table::aligned;

pub use html::score_html;
pub use json::{score_from_json, score_json};
pub use markdown::score_markdown;

/// Returns a row per paper, for the terminal.
pub fn score_summary(board: &Scoreboard) -> String {
    format!("{}{}\n", aligned(&words::SUMMARY, words::summary(board).into_iter(), 1), words::verdict(board))
}
