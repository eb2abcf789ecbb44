//! `isotherm lab measure`: starts counting in the guest and becomes the program.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use isotherm_linux::virtual_pmu::VirtualPmu;

use crate::args::lab::LabMeasureArgs;
use crate::failure::Failure;

/// Runs the verb; returns only if the program cannot be executed. Counts its process and all descendants.
pub(super) fn run(args: &LabMeasureArgs) -> Result<(), Failure> {
    VirtualPmu::measure(Path::new("/"), std::process::id()).map_err(Failure::failed)?;
    let Some((name, words)) = args.command.split_first() else {
        return Err(Failure::usage("expected a command"));
    };
    let error = Command::new(name).args(words).exec();
    let status = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    Err(Failure::Command(status, format!("{}: {error}", name.display())))
}
