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

/// Hands a call to the formatter of the current level.
macro_rules! delegate {
    ($formatter:ident . $method:ident ( $($argument:ident),* )) => {
        if $formatter.depth > INDENTED {
            CompactFormatter.$method($($argument),*)
        } else {
            $formatter.outer.$method($($argument),*)
        }
    };
}

impl Formatter for Shallow {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> Result<()> {
        self.depth += 1;
        delegate!(self.begin_array(writer))
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> Result<()> {
        let written = delegate!(self.end_array(writer));
        self.depth -= 1;
        written
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> Result<()> {
        delegate!(self.begin_array_value(writer, first))
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> Result<()> {
        delegate!(self.end_array_value(writer))
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> Result<()> {
        self.depth += 1;
        delegate!(self.begin_object(writer))
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> Result<()> {
        let written = delegate!(self.end_object(writer));
        self.depth -= 1;
        written
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> Result<()> {
        delegate!(self.begin_object_key(writer, first))
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> Result<()> {
        delegate!(self.begin_object_value(writer))
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> Result<()> {
        delegate!(self.end_object_value(writer))
    }
}
