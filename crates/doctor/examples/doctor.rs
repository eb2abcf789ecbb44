//! Prints the findings on this machine, as text or with `--json`; `--known-loop` runs the self-tests' loop.
//!
//! The tests run it in namespaces and as other users.

use std::process::ExitCode;

use isotherm_doctor::{Findings, known_loop};

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some("--known-loop") => known_loop().map_err(|error| error.to_string()),
        Some("--json") => serde_json::to_string_pretty(&Findings::live())
            .map(|json| println!("{json}"))
            .map_err(|error| error.to_string()),
        Some(other) => Err(format!("unknown argument '{other}': expected --json or --known-loop")),
        None => {
            print!("{}", Findings::live());
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("doctor: {message}");
            ExitCode::from(2)
        }
    }
}
