//! Measures a workload's pace beside its original's: `make pace` prints it, a test holds it.

use std::ops::ControlFlow;

use isotherm_core::cache::Geometry;
use isotherm_core::parameters::Parameters;
use isotherm_core::{Nanos, PageSize};
use isotherm_machine::Profile;
use isotherm_sim::{Experiment, Testbed, load_workload, run_workload};
use isotherm_workloads::{Original, Source, WAYS, Workload};

use crate::run::Failure;

const SEED: u64 = 1;

/// Our figure of one source, in the original's unit.
///
/// # Errors
/// Settings or a machine that do not exist.
pub fn measure(
    workload: &'static Workload,
    source: &Source,
    instructions: Option<f64>,
) -> Result<f64, Failure> {
    let (units, short, long) = source.units;
    let parameters = |count: u64| -> Result<Parameters, Failure> {
        let mut parameters = workload.parameters();
        for (key, value) in source.set {
            parameters.set(key, value)?;
        }
        parameters.set(units, &count.to_string())?;
        if let Some(value) = instructions {
            parameters.set(parameter(workload), &value.to_string())?;
        }
        Ok(parameters)
    };
    let (short_run, long_run) = (parameters(short)?, parameters(long)?);
    match source.original {
        Original::Recorded { cache, .. } => {
            let cache = Geometry::new(cache, WAYS).ok_or("a cache without a set")?;
            let (fewer, more) = (count(workload, &short_run, cache)?, count(workload, &long_run, cache)?);
            Ok((more.0 - fewer.0) as f64 / (more.1 - fewer.1) as f64)
        }
        Original::Printed { machines, .. } => {
            let profile = Profile::builtin(machines[0])?;
            let time = all_fast(workload, long_run, &profile)?.0 - all_fast(workload, short_run, &profile)?.0;
            Ok((long - short) as f64 / time as f64 * 1e9)
        }
    }
}

/// Returns our speed over the original's, from our figure.
pub fn ratio(source: &Source, ours: f64) -> f64 {
    match source.original {
        Original::Recorded { instructions_a_miss, .. } => instructions_a_miss / ours,
        Original::Printed { units_a_second, .. } => ours / units_a_second,
    }
}

/// Returns the parameter that sets a workload's instructions.
pub fn parameter(workload: &Workload) -> &'static str {
    let own = workload.specs.iter().any(|spec| spec.name == "instructions");
    if own { "instructions" } else { "instruction_factor" }
}

/// Returns the instructions and the misses of a run.
fn count(workload: &Workload, parameters: &Parameters, cache: Geometry) -> Result<(u64, u64), Failure> {
    let (mut instructions, mut misses) = (0, 0);
    run_workload(workload, parameters, SEED, u64::MAX, Some(cache), |rows| {
        instructions += rows.instructions.iter().map(|&count| u64::from(count)).sum::<u64>();
        misses += rows.len() as u64;
        ControlFlow::Continue(())
    })?;
    Ok((instructions, misses))
}

/// Returns a run's time with all memory fast.
fn all_fast(
    workload: &'static Workload,
    parameters: Parameters,
    profile: &Profile,
) -> Result<Nanos, Failure> {
    let mut go_on = |_| ControlFlow::Continue(());
    let loaded = load_workload(workload, parameters, PageSize::Base, SEED, u64::MAX, &mut go_on)?;
    let experiment = Experiment {
        policies: Vec::new(),
        sizes: Vec::new(),
        profile,
        seed: SEED,
        scale: loaded.scale,
        intervals: 1,
        version: "",
        stop: None,
    };
    let testbed = Testbed::new(&loaded.input, &experiment)?;
    Ok(testbed.all_fast_ends().last().copied().unwrap_or_default())
}
