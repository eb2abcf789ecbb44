//! Answers how much fast memory an input needs: slowdown against size, and the smallest size within a budget.
//!
//! Problem: the answer takes a curve for each policy, of a dozen sizes and several seeds, and a recording has tens of
//! millions of accesses. Approach, for each policy:
//!
//! 1. Sub-samples of the pages ([`sample`]) are replayed at sizes from 1/64 of the footprint to all of it. They are
//!    smaller programs of the same density, so their slowdown is an estimate of the whole's; their spread tells how far
//!    chance alone moves it. What they lose of the overlap between misses shows in their slowdown with all memory slow,
//!    which is known of the whole too; the difference is made up for in proportion to the stall that is left.
//! 2. Around the crossing with the budget, sizes are halved a few times more.
//! 3. The whole input is simulated at the size found. What it is off by shifts the curve, the size is found anew, and so
//!    on until a full simulation meets the budget where it was expected to ([`estimate`]). So the size that is recommended
//!    has been simulated in full, and every estimate stands beside the simulation that judged it.
//!
//! `docs/sizing.md` holds the errors measured.

mod curve;
mod estimate;
mod result;
mod runs;
mod sample;
mod search;

use std::time::Instant;

use isotherm_core::parameters::{Parameters, Scale};
use isotherm_policies::{Entry, Kind};
use rayon::prelude::*;

use crate::stream::Stream;
use isotherm_machine::MachineSummary;

use crate::{Input, SimulateError, replay};
use isotherm_machine::Profile;

pub use result::{FullRun, Knee, Outcome, Point, PolicySize, Recommended, Sampling, SizeReport, SizedInput};
use runs::Runs;
use sample::Groups;
use search::Search;

/// Pages that a sub-sample has at least: an eighth of this at 1/64 is still a tier with pages to choose from.
const MIN_PAGES: usize = 512;
/// Accesses that may be replayed in full, over all policies: about half a minute of two cores.
const FULL_ACCESSES: u64 = 1_200_000_000;
/// Full simulations of one policy at most, and how many most policies take.
const FULL_RUNS: usize = 5;
const USUAL_FULL_RUNS: usize = 3;

/// What to size.
#[derive(Debug)]
pub struct SizeExperiment<'a> {
    /// Policies and bounds with their parameters, unscaled.
    pub policies: Vec<(&'static Entry, Parameters)>,
    /// The machine.
    pub profile: &'a Profile,
    /// The machine for the report.
    pub machine: MachineSummary,
    /// The slowdown allowed, as a share: 0.05 for 5 %.
    pub budget: f64,
    /// The random generator's seed.
    pub seed: u64,
    /// How many sub-samples, or seeds where the input is small enough to be replayed whole; at least 2.
    pub seeds: u32,
    /// Accesses that a sub-sample should have at most.
    pub sample_accesses: u64,
    /// By what to divide scaled parameters.
    pub scale: Scale,
    /// Isotherm's version.
    pub version: &'a str,
}

impl SizeExperiment<'_> {
    /// About how many replays the answer takes, of sub-samples and of the whole, for a progress bar.
    pub fn replays(&self) -> u64 {
        let policies = self.policies.len() as u64;
        policies * u64::from(self.seeds) * search::SIZES as u64 + policies * FULL_RUNS as u64
    }

    fn limit(&self) -> f64 {
        1.0 + self.budget
    }

    fn has_bounds(&self) -> bool {
        self.policies.iter().any(|(entry, _)| matches!(entry.kind, Kind::Bound(_)))
    }

    /// One page in how many a sub-sample has.
    fn one_in(&self, stream: &Stream) -> u32 {
        let wanted = (stream.accesses.len() as u64).div_ceil(self.sample_accesses.max(1));
        let most = (stream.pages.len() / MIN_PAGES).max(1) as u64;
        u32::try_from(wanted.min(most)).unwrap_or(u32::MAX).max(1)
    }
}

/// Finds out how much fast memory the input needs under each policy. `done` is called after each replay, from any thread.
pub fn size(
    input: &Input,
    experiment: &SizeExperiment<'_>,
    done: &(dyn Fn() + Sync),
) -> Result<SizeReport, SimulateError> {
    let start = Instant::now();
    replay::check(experiment.profile)?;
    let one_in = experiment.one_in(&input.stream);
    let streams = sub_samples(&input.stream, experiment, one_in);
    // Of a small input every sub-sample is the whole: it is not copied for each seed.
    let parts: Vec<&Stream> = if one_in == 1 {
        vec![&input.stream; experiment.seeds.max(1) as usize]
    } else {
        streams.iter().collect()
    };
    let samples: Vec<Runs<'_>> = parts
        .par_iter()
        .enumerate()
        .map(|(number, stream)| {
            let seed = experiment.seed.wrapping_add(number as u64);
            Runs::new(stream, &input.ranges, experiment, one_in, seed, experiment.has_bounds())
        })
        .collect();
    let whole = Runs::new(&input.stream, &input.ranges, experiment, 1, experiment.seed, false);
    let search = Search { experiment, samples: &samples, whole: &whole, stream: &input.stream, done };
    let policies = search.policies(full_policies(input, experiment))?;
    Ok(SizeReport {
        version: experiment.version.into(),
        input: describe(input, experiment),
        machine: experiment.machine.clone(),
        budget: experiment.budget,
        sampling: Sampling {
            one_in,
            accesses: parts.iter().map(|stream| stream.accesses.len() as u64).collect(),
            pages: parts.iter().map(|stream| stream.pages.len() as u64).collect(),
        },
        all_fast_ns: whole.all_fast,
        all_slow: whole.all_slow,
        best: best(&policies),
        policies,
        wall_s: start.elapsed().as_secs_f64(),
    })
}

/// How many policies can be simulated in full; at least one.
fn full_policies(input: &Input, experiment: &SizeExperiment<'_>) -> usize {
    let accesses = input.stream.accesses.len() as u64;
    let runs = FULL_ACCESSES / accesses.max(1);
    (runs as usize / USUAL_FULL_RUNS).clamp(1, experiment.policies.len().max(1))
}

/// One sub-sample for each seed; none where they would be the whole. Groups of one dealing share no page; when they are
/// used up, pages are dealt anew.
fn sub_samples(stream: &Stream, experiment: &SizeExperiment<'_>, one_in: u32) -> Vec<Stream> {
    if one_in == 1 {
        return Vec::new();
    }
    let numbers: Vec<u32> = (0..experiment.seeds.max(1)).collect();
    let dealings: Vec<(Groups, &[u32])> = numbers
        .chunks(one_in as usize)
        .map(|numbers| {
            let seed = experiment.seed.wrapping_add(u64::from(numbers[0]));
            (Groups::new(stream, one_in, seed), numbers)
        })
        .collect();
    let sample = |(groups, numbers): &(Groups, &[u32])| -> Vec<Stream> {
        (0..numbers.len() as u32).into_par_iter().map(|group| groups.sample(stream, group)).collect()
    };
    dealings.iter().flat_map(sample).collect()
}

/// The confirmed policy that needs least; of equal ones the first.
fn best(policies: &[PolicySize]) -> Option<String> {
    let confirmed = policies.iter().filter(|policy| !policy.bound && policy.outcome == Outcome::Confirmed);
    let size = |policy: &&PolicySize| policy.recommended.as_ref().map(|size| size.fast_bytes);
    confirmed.min_by_key(size).map(|policy| policy.policy.clone())
}

fn describe(input: &Input, experiment: &SizeExperiment<'_>) -> SizedInput {
    let stream = &input.stream;
    SizedInput {
        name: input.name.clone(),
        kind: if input.workload { "workload" } else { "trace" },
        parameters: input.parameters.clone(),
        provenance: input.provenance.clone(),
        seed: experiment.seed,
        scale: experiment.scale.footprint,
        time_scale: experiment.scale.time,
        accesses: stream.accesses.len() as u64,
        instructions: stream.instructions(),
        threads: stream.threads,
        page_size: stream.page_size,
        footprint_bytes: stream.footprint(),
    }
}
