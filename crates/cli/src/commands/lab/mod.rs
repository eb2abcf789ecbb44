//! `isotherm lab`: programs in a virtual machine with two tiers of memory.

mod compare;
mod guest;
mod machines;
mod measure;
mod plan;
mod single;

use crate::args::lab::{LabArgs, LabVerb};
use crate::failure::Failure;

pub(crate) fn run(args: LabArgs) -> Result<(), Failure> {
    match args.verb {
        LabVerb::Run(args) => single::run(args),
        LabVerb::Compare(args) => compare::run(args),
        LabVerb::Shell(args) => single::shell(&args),
        LabVerb::Measure(args) => measure::run(&args),
        LabVerb::Machines(args) => machines::run(&args),
    }
}
