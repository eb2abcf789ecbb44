//! Turns a workload into an input, and relates its size to its paper's.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use isotherm_core::cache::Geometry;
use isotherm_core::parameters::{Parameters, REFERENCE_FOOTPRINT, REFERENCE_THREADS, Scale};
use isotherm_core::{Bytes, PageSize};
use isotherm_trace::Rows;
use isotherm_workloads::{Layout, Limits, MissRecorder, Workload, WorkloadError};

use crate::experiment::Input;
use crate::stream::{StreamBuilder, StreamError};
use crate::summary::NamedRange;

/// Why a workload cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The workload refuses its parameters.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Its accesses do not fit the simulator.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// An input and its scale.
#[derive(Debug)]
pub struct Loaded {
    /// The input.
    pub input: Input,
    /// Divisors of scaled parameters.
    pub scale: Scale,
}

impl Loaded {
    /// Scales an input against the footprint of its paper's program, or FreqTier's if `reference` is `None`.
    pub fn new(input: Input, reference: Option<Bytes>) -> Self {
        let scale = input.scale(reference.unwrap_or(REFERENCE_FOOTPRINT), REFERENCE_THREADS);
        Self { input, scale }
    }
}

impl Input {
    /// Returns how much smaller it is than a program of that footprint and number of threads.
    pub fn scale(&self, footprint: Bytes, threads: f64) -> Scale {
        Scale::of(self.stream.footprint(), footprint, self.stream.busy_threads() as f64 / threads)
    }
}

/// Runs a workload and hands at most `limit` of its misses to `sink` in chunks; returns its allocations.
/// Accesses are filtered by `cache`, or else by the one that its source's machine scales to.
///
/// # Errors
/// Parameters that the workload refuses.
pub fn run_workload(
    workload: &Workload,
    parameters: &Parameters,
    seed: u64,
    limit: u64,
    cache: Option<Geometry>,
    sink: impl FnMut(&mut Rows) -> ControlFlow<()>,
) -> Result<Vec<NamedRange>, WorkloadError> {
    let footprint = workload.build(parameters, seed)?.footprint();
    let cache = cache.unwrap_or_else(|| workload.cache(footprint));
    let limits = Limits { misses: limit, accesses: u64::MAX };
    let mut recorder =
        MissRecorder::new(cache, limits, sink).with_factor(workload.instruction_factor(parameters));
    let moved = Layout::of(parameters).run(&mut recorder, cache, || workload.build(parameters, seed))?;
    let space = recorder.finish();
    let named = |allocation: &isotherm_workloads::Allocation| NamedRange {
        process: 0,
        name: allocation.context.into(),
        address: allocation.start,
        bytes: Bytes(allocation.bytes),
    };
    Ok(moved.as_deref().unwrap_or(space.allocations()).iter().map(named).collect())
}

/// Generates at most `limit` of a workload's misses. `progress` gets their number and may end the generation.
///
/// # Errors
/// Parameters that the workload refuses, or misses that do not fit the simulator.
pub fn load_workload(
    workload: &Workload,
    parameters: Parameters,
    page_size: PageSize,
    seed: u64,
    limit: u64,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Loaded, LoadError> {
    let mut builder = StreamBuilder::new(page_size);
    let ranges = run_workload(workload, &parameters, seed, limit, None, |rows| {
        progress(builder.len() as u64)?;
        builder.append(rows);
        ControlFlow::Continue(())
    })?;
    let stream = builder.finish(workload.name)?;
    let provenance = BTreeMap::from([("source".to_owned(), workload.source.to_owned())]);
    let name = workload.name.to_owned();
    let input = Input {
        name,
        workload: true,
        parameters: Some(parameters),
        provenance,
        stream,
        ranges,
        mappings: Vec::new(),
    };
    Ok(Loaded::new(input, workload.reference_footprint))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many pages take half of the B-tree's misses under an allocator, and the misses.
    fn pages_of_half(allocator: &str) -> (usize, usize) {
        let workload = isotherm_workloads::find("btree").expect("it exists");
        let mut parameters = workload.parameters();
        for (key, value) in [("footprint", "8M"), ("operations", "400k"), ("allocator", allocator)] {
            parameters.set(key, value).expect("in range");
        }
        let mut go_on = |_| ControlFlow::Continue(());
        let loaded = load_workload(workload, parameters, PageSize::Base, 1, u64::MAX, &mut go_on);
        let stream = loaded.expect("it fits").input.stream;
        let mut counts = vec![0usize; stream.pages.len()];
        stream.accesses.iter().for_each(|access| counts[access.page as usize] += 1);
        counts.sort_unstable_by(|one, other| other.cmp(one));
        let half = stream.accesses.len() / 2;
        let mut taken = 0;
        let pages = counts.iter().take_while(|&&count| {
            let more = taken < half;
            taken += count;
            more
        });
        (pages.count(), stream.accesses.len())
    }

    /// Jenga's Fig. 2: objects in the order of allocation spread hot ones over the most pages, objects
    /// grouped by context over fewer, and an allocator that knows how often each object will miss is the
    /// limit.
    #[test]
    fn grouping_objects_by_context_takes_fewer_pages_for_half_of_the_misses() {
        let [time, context, popularity] = ["glibc", "context", "popularity"].map(pages_of_half);
        assert!(popularity.0 < context.0 && context.0 < time.0, "{popularity:?} {context:?} {time:?}");
        let work = time.1 as f64;
        assert!([context, popularity].iter().all(|found| (found.1 as f64 / work - 1.0).abs() < 0.2));
    }
}
