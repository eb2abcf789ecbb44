//! Finds how much fast memory an input needs: slowdown against size, and the smallest size within a budget.
//!
//! Replaying a recording at a dozen sizes, with several seeds, under each policy would take too long. So:
//!
//! 1. Sub-samples of the pages ([`sample`]) are replayed at sizes from 1/64 of the footprint to all of it.
//!    The overlap between misses that they lose is corrected by their slowdown with all memory slow.
//! 2. Around the crossing with the budget, sizes are halved a few times more.
//! 3. The whole input is simulated at the size found. Its error shifts the curve, and the search repeats
//!    until a full simulation meets the budget where expected ([`estimate`]).
//!
//! `docs/guide/sizing.md` lists the measured errors.

mod curve;
mod estimate;
mod result;
mod runs;
mod sample;
mod search;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use isotherm_core::parameters::{Parameters, Scale};
use isotherm_machine::Profile;
use isotherm_policies::Entry;
use rayon::prelude::*;

use crate::long::Length;
use crate::stop::stoppable;
use crate::stream::Stream;
use crate::{Input, SimulateError};

pub use result::{
    FullRun, Knee, Outcome, Point, PolicySize, Recommended, RunLength, Sampling, SizeReport, SizedInput,
};
use runs::Runs;
use sample::Groups;
use search::Search;

/// Minimum pages of a sub-sample: at 1/64, an eighth of this still leaves a tier with pages to choose from.
const MIN_PAGES: usize = 512;
/// Accesses that may be replayed in full, over all policies: about a minute and a half of two cores.
const FULL_ACCESSES: u64 = 4_000_000_000;
/// Rounds of a long run that are simulated at most, and accesses that a short input may have in more of
/// them: a hundred replays have them.
const ROUNDS: u64 = 12;
const ROUND_ACCESSES: u64 = 6_000_000;
/// Maximum and usual number of full simulations per policy.
const FULL_RUNS: usize = 5;
const USUAL_FULL_RUNS: usize = 3;

/// Policies and machine to size.
#[derive(Debug)]
pub struct SizeExperiment<'a> {
    /// Policies and bounds with their parameters, unscaled.
    pub policies: Vec<(&'static Entry, Parameters)>,
    /// The machine.
    pub profile: &'a Profile,
    /// Allowed slowdown as a share: 0.05 for 5 %.
    pub budget: f64,
    /// The random generator's seed.
    pub seed: u64,
    /// Number of sub-samples, or of seeds if the input is small enough to be replayed whole; at least 2.
    pub seeds: u32,
    /// Maximum number of accesses that a sub-sample should have.
    pub sample_accesses: u64,
    /// Divisors of scaled parameters.
    pub scale: Scale,
    /// The run's length: the slowdown is that of its last rounds. `None` for a single replay.
    pub length: Option<Length>,
    /// Isotherm's version.
    pub version: &'a str,
    /// Ends the work early once it is set: [`SimulateError::Stopped`].
    pub stop: Option<&'a AtomicBool>,
}

impl SizeExperiment<'_> {
    /// Returns the approximate number of replays, of sub-samples and of the whole, for a progress bar.
    pub fn replays(&self) -> u64 {
        let policies = self.policies.len() as u64;
        policies * u64::from(self.seeds) * search::SIZES as u64 + policies * FULL_RUNS as u64
    }

    /// Returns the number of pages of which a sub-sample has one.
    fn one_in(&self, stream: &Stream) -> u32 {
        let wanted = (stream.accesses.len() as u64).div_ceil(self.sample_accesses.max(1));
        let most = (stream.pages.len() / MIN_PAGES).max(1) as u64;
        u32::try_from(wanted.min(most)).unwrap_or(u32::MAX).max(1)
    }
}

/// Finds how much fast memory the input needs. Calls `done` after each replay, from any thread.
///
/// # Errors
/// A machine or policy that cannot be simulated, or work that was stopped.
pub fn size(
    input: &Input,
    experiment: &SizeExperiment<'_>,
    done: &(dyn Fn() + Sync),
) -> Result<SizeReport, SimulateError> {
    stoppable(|| search(input, experiment, done))
}

fn search(
    input: &Input,
    experiment: &SizeExperiment<'_>,
    done: &(dyn Fn() + Sync),
) -> Result<SizeReport, SimulateError> {
    let start = Instant::now();
    let whole = Runs::whole(input, experiment)?;
    // What is too short is found before the work.
    experiment.policies.iter().try_for_each(|(_, parameters)| whole.scaled(parameters).map(drop))?;
    let one_in = experiment.one_in(&input.stream);
    let streams = sub_samples(&input.stream, experiment, one_in);
    // Sub-samples of a small input are the whole, which is not copied for each seed.
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
            whole.sample(stream, one_in, seed)
        })
        .collect::<Result<_, _>>()?;
    let search = Search { experiment, samples: &samples, whole: &whole, stream: &input.stream, done };
    let policies = search.policies(full_policies(input, experiment, &whole))?;
    Ok(SizeReport {
        version: experiment.version.into(),
        manifest: input.manifest(experiment.profile),
        input: describe(input, experiment),
        machine: experiment.profile.summary(),
        budget: experiment.budget,
        length: whole.rounds().map(|(rounds, simulated)| RunLength { rounds, simulated }),
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

fn full_policies(input: &Input, experiment: &SizeExperiment<'_>, whole: &Runs<'_>) -> usize {
    let rounds = whole.rounds().map_or(1, |(_, simulated)| simulated);
    let accesses = input.stream.accesses.len() as u64 * rounds;
    let runs = FULL_ACCESSES / accesses.max(1);
    (runs as usize / USUAL_FULL_RUNS).clamp(1, experiment.policies.len().max(1))
}

/// Returns one sub-sample per seed; none if they would be the whole. Groups of one dealing share no page;
/// when they are used up, pages are dealt again.
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

/// Returns the confirmed policy that needs least; the first among equals.
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
