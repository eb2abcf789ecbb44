//! The `isotherm` command.

#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Uses huge pages: samples and replays look pages up at random in large arrays. Where memory is refused, the
/// process ends with one line.
#[global_allocator]
static ALLOCATOR: isotherm_linux::HugePagesOrEnd = isotherm_linux::HugePagesOrEnd;

fn main() -> ExitCode {
    ExitCode::from(isotherm_cli::main(std::env::args_os()))
}
