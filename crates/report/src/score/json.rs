//! Writes and reads the scoreboard as JSON with one line for each row, ordering and system.

use std::io::{Result, Write};

use isotherm_score::Scoreboard;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// Levels of brackets that are indented: down to the lists of a comparison.
const INDENTED: usize = 6;

/// Returns the scoreboard as JSON, laid out so that two versions can be compared line by line.
pub fn score_json(board: &Scoreboard) -> String {
    let mut json = Vec::new();
    let written = board.serialize(&mut Serializer::with_formatter(&mut json, Shallow::default()));
    written.unwrap_or_else(|error| unreachable!("the scoreboard is plain data: {error}"));
    String::from_utf8(json).unwrap_or_else(|error| unreachable!("JSON is UTF-8: {error}"))
}

/// Reads a scoreboard from its JSON.
///
/// # Errors
/// One line with the place and what was expected there.
pub fn score_from_json(text: &str) -> std::result::Result<Scoreboard, String> {
    let mut board: Scoreboard = serde_json::from_str(text).map_err(|error| error.to_string())?;
    board.restore_infinities();
    Ok(board)
}

/// Indents the outer levels and writes each value below them on one line.
#[derive(Default)]
struct Shallow {
    outer: PrettyFormatter<'static>,
    depth: usize,
}

/// Writes methods that hand their call to the formatter of the current level. `before` is the level that the
/// call enters, `after` the one that it leaves.
macro_rules! delegate {
    ($($method:ident($($first:ident)?) before $before:literal after $after:literal;)*) => {$(
        fn $method<W: ?Sized + Write>(&mut self, writer: &mut W $(, $first: bool)?) -> Result<()> {
            self.depth += $before;
            let written = if self.depth > INDENTED {
                CompactFormatter.$method(writer $(, $first)?)
            } else {
                self.outer.$method(writer $(, $first)?)
            };
            self.depth -= $after;
            written
        }
    )*};
}

impl Formatter for Shallow {
    delegate! {
        begin_array() before 1 after 0;
        end_array() before 0 after 1;
        begin_array_value(first) before 0 after 0;
        end_array_value() before 0 after 0;
        begin_object() before 1 after 0;
        end_object() before 0 after 1;
        begin_object_key(first) before 0 after 0;
        begin_object_value() before 0 after 0;
        end_object_value() before 0 after 0;
    }
}
