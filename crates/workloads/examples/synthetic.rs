//! Writes a trace of so many misses over so much memory, of one thread: every page once, in order, then pages
//! by a power law, of which the hottest hundredth takes nearly half of the misses.
//!
//!     cargo run --release -p isotherm-workloads --example synthetic -- 10M 1G big.trace
//!
//! With `-` for the trace it makes these accesses to memory of its own, for a recorder to look at.

use std::path::PathBuf;
use std::process::ExitCode;

use isotherm_core::{Bytes, parse_count};
use isotherm_trace::{Provenance, Row, Rows, TraceWriter};

const LINES_PER_PAGE: u64 = 64;
const WORDS_PER_LINE: u64 = 8;
/// Power of a uniform number that places a miss: the hottest 1 % of the pages take 0.01^(1/6) = 46 % of them.
const POWER: i32 = 6;
/// Rows that are handed to the writer at once.
const CHUNK: u64 = 1 << 20;

/// Returns the line of each access, and the random number that it comes from.
fn lines(rows: u64, pages: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut state = 1_u64;
    (0..rows).map(move |row| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
        let place = (uniform.powi(POWER) * pages as f64) as u64;
        // Hot pages lie all over the memory: a prime factor permutes the pages.
        let page = if row < pages { row } else { place.wrapping_mul(2_654_435_761) % pages };
        (page * LINES_PER_PAGE + (state >> 54) % LINES_PER_PAGE, state)
    })
}

fn write(rows: u64, pages: u64, path: PathBuf) -> Result<(), String> {
    let mut writer =
        TraceWriter::create(path, Provenance::new("synthetic")).map_err(|error| error.to_string())?;
    let mut chunk = Rows::default();
    for (line, state) in lines(rows, pages) {
        chunk.push(Row {
            process: 0,
            thread: 0,
            instructions: 20 + (state >> 60) as u32,
            line: 0x5_5580_0000 + line,
            store: state >> 59 == 0,
            dependence: u8::from(state >> 58 & 1 == 0),
        });
        if chunk.len() as u64 == CHUNK {
            writer.append(&chunk).map_err(|error| error.to_string())?;
            chunk.clear();
        }
    }
    writer.append(&chunk).map_err(|error| error.to_string())?;
    writer.finish().map(drop).map_err(|error| error.to_string())
}

/// Adds to a word of each line, and prints the sum of the words before.
fn touch(rows: u64, pages: u64) {
    let mut words = vec![0_u64; (pages * LINES_PER_PAGE * WORDS_PER_LINE) as usize];
    let sum = lines(rows, pages).fold(0_u64, |sum, (line, state)| {
        let word = &mut words[(line * WORDS_PER_LINE) as usize];
        let before = *word;
        *word = before.wrapping_add(state);
        sum.wrapping_add(before)
    });
    println!("{sum:016x}");
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match &arguments[..] {
        [rows, memory, path] => {
            let memory = memory.parse::<Bytes>().map_err(|error| error.to_string());
            let rows = parse_count(rows).map_err(|error| error.to_string());
            rows.and_then(|rows| Ok((rows, memory?.0 >> 12, PathBuf::from(path))))
        }
        _ => Err("expected a number of misses, a size of memory and a path or -".into()),
    };
    let written = parsed.and_then(|(rows, pages, path)| match pages {
        0 => Err("expected at least a page of 4 KiB".into()),
        pages if pages > rows => Err(format!("{pages} pages are more than {rows} misses touch")),
        pages if path.as_os_str() == "-" => {
            touch(rows, pages);
            Ok(())
        }
        pages => write(rows, pages, path),
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("synthetic: {error}");
            ExitCode::from(2)
        }
    }
}
