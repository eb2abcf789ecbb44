//! The input of a simulation, and what runs on it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use isotherm_core::manifest::Manifest;
use isotherm_core::parameters::{Parameters, Scale};
use isotherm_machine::Profile;
use isotherm_policies::Entry;

use crate::fast_size::FastSize;
use crate::result::InputSummary;
use crate::stream::Stream;
use crate::summary::{NamedRange, heatmap, held, objects, page_cdf, page_counts, regions};

/// Usual number of intervals in a run's timeline, of equally many accesses.
pub const INTERVALS: usize = 100;

/// The accesses to replay, and what is known about them.
#[derive(Debug)]
pub struct Input {
    /// Workload's name or trace's path.
    pub name: String,
    /// Whether it is a workload rather than a trace.
    pub workload: bool,
    /// The workload's parameters.
    pub parameters: Option<Parameters>,
    /// Origin, as key and value.
    pub provenance: BTreeMap<String, String>,
    /// The accesses.
    pub stream: Stream,
    /// Allocations, where known.
    pub ranges: Vec<NamedRange>,
    /// Mappings, where known: what each address held last.
    pub mappings: Vec<NamedRange>,
}

/// Policies and machine to run.
#[derive(Debug)]
pub struct Experiment<'a> {
    /// Policies and bounds with their parameters, unscaled.
    pub policies: Vec<(&'static Entry, Parameters)>,
    /// Sizes of the fast tier.
    pub sizes: Vec<FastSize>,
    /// The machine.
    pub profile: &'a Profile,
    /// The random generator's seed.
    pub seed: u64,
    /// Divisors of scaled parameters.
    pub scale: Scale,
    /// Intervals of the timeline, usually [`INTERVALS`].
    pub intervals: usize,
    /// Isotherm's version.
    pub version: &'a str,
    /// Ends the work early once it is set: [`crate::SimulateError::Stopped`].
    pub stop: Option<&'a AtomicBool>,
}

impl<'a> Experiment<'a> {
    /// Returns it on another machine, without policies and sizes.
    pub(crate) fn on(&self, profile: &'a Profile) -> Self {
        Self { policies: Vec::new(), sizes: Vec::new(), profile, ..*self }
    }
}

impl Input {
    /// Returns the origin of a result on this machine; the caller knows its own binary.
    pub(crate) fn manifest(&self, profile: &Profile) -> Manifest {
        let input = self.stream.fingerprint.clone();
        Manifest { input, machine: profile.name.clone(), ..Manifest::default() }
    }

    /// Summarises the input for people: footprint, heatmap, skew over pages, allocation sites.
    pub fn summary(&self, seed: u64, scale: Scale) -> InputSummary {
        let stream = &self.stream;
        let counts = page_counts(stream);
        let allocated = !self.ranges.is_empty();
        let named = if allocated { &self.ranges } else { &self.mappings };
        let objects = objects(stream, &counts, named);
        InputSummary {
            name: self.name.clone(),
            kind: if self.workload { "workload" } else { "trace" },
            parameters: self.parameters.clone(),
            provenance: self.provenance.clone(),
            seed,
            scale: scale.footprint,
            time_scale: scale.time,
            accesses: stream.accesses.len() as u64,
            instructions: stream.instructions(),
            threads: stream.threads,
            footprint_bytes: stream.footprint(),
            page_cdf: page_cdf(&counts),
            regions: if allocated { regions(stream, &counts, &self.ranges) } else { held(stream, &objects) },
            heatmap: heatmap(stream, objects),
        }
    }
}
