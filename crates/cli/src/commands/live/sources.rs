//! Defines which access sources a live run opens.

use std::ffi::OsString;

use isotherm_core::{Signal, Signals};
use isotherm_linux::LinuxError;
use isotherm_linux::accessed_bits::{BitSource, ClearRefs, IdlePages, Pace, Resolution};
use isotherm_linux::host::{self, Candidate};
use isotherm_linux::source::AccessSource;

use crate::args::LiveArgs;
use crate::failure::Failure;

/// The sources of a run.
pub(super) struct Sources {
    /// Opened, following nothing yet.
    pub(super) chosen: Vec<Box<dyn AccessSource>>,
    /// What the program's environment must hold for them.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// The samples a second that they deliver at most, if there is such a bound.
    pub(super) fastest: Option<u64>,
    /// What the user should know.
    pub(super) notes: Vec<String>,
}

/// Opens the best sources that offer what the policy needs, or the one that the user names.
pub(super) fn choose(args: &LiveArgs, needs: Signals) -> Result<Sources, Failure> {
    let mut refused = Vec::new();
    let chosen = host::choose(needs, candidates(args), args.source.as_deref(), &mut refused);
    let chosen = chosen.map_err(Failure::usage)?;
    let names: Vec<&str> = chosen.iter().map(|source| source.name()).collect();
    let because = |(name, error): &(&'static str, LinuxError)| format!("not used: {name}: {error}");
    let mut notes: Vec<String> = refused.iter().map(because).collect();
    if !names.is_empty() {
        notes.push(format!("accesses are learned from {}", names.join(" and ")));
    }
    Ok(Sources { chosen, environment: Vec::new(), fastest: None, notes })
}

/// What may be used, the best first.
fn candidates(args: &LiveArgs) -> Vec<Candidate<'_>> {
    let bits = Signals::NONE.with(Signal::LoadSamples).with(Signal::AccessedBits);
    let page_size = args.page_size.into();
    let idle = || Ok(Box::new(BitSource::new(IdlePages::new()?, Pace::default())) as Box<dyn AccessSource>);
    let clear = move || {
        let scanner = ClearRefs::new(Resolution { page_size, ..Resolution::default() })?;
        Ok(Box::new(BitSource::new(scanner, Pace::default())) as Box<dyn AccessSource>)
    };
    vec![
        Candidate { name: "idle-pages", offers: bits, open: Box::new(idle) },
        Candidate { name: "accessed-bits", offers: bits, open: Box::new(clear) },
    ]
}
