//! Cost of each workload at its defaults: the generator alone with the cache that filters its accesses, the
//! replay of its misses under HybridTier at 1:8, and all replays of a run of one policy as `simulate` makes
//! them: all memory fast, the bounds and the policy, one after another on one thread.
//!
//! A run takes seconds and is measured once, the generator before and after the replays (the mean counts,
//! because other work on the machine comes and goes), so this is a table and not one of criterion's
//! benchmarks. The last columns matter: the generator's time over that of a run's replays, which should be at
//! most half, and over the one replay.
//!
//! Time is this thread's processor time, as Linux counts it.
//!
//! `cargo bench -p isotherm-sim --bench workloads -- [NAME...]`

use std::ops::ControlFlow;
use std::time::Instant;

use isotherm_core::PageSize;
use isotherm_machine::Profile;
use isotherm_sim::{Experiment, FastSize, INTERVALS, Testbed, load_workload, simulate};
use isotherm_workloads::{ALL, CountingMemory, Workload};

/// As in `isotherm`: generators and replays both wait for memory.
#[global_allocator]
static ALLOCATOR: isotherm_linux::HugePages = isotherm_linux::HugePages;

const SEED: u64 = 42;
const POLICY: &str = "hybridtier";
const FAST: &str = "1:8";

/// Returns this thread's processor time in seconds, where Linux tells it: on a busy machine the clock
/// measures other work too.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

/// Returns the seconds that `work` takes on this thread, and its result.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let (clock, processor) = (Instant::now(), processor_seconds());
    let result = work();
    let seconds = processor_seconds().zip(processor).map(|(end, start)| end - start);
    (seconds.unwrap_or_else(|| clock.elapsed().as_secs_f64()), result)
}

/// Returns the seconds that the generator alone takes, and its accesses.
fn generate(workload: &Workload) -> Result<(f64, u64), Box<dyn std::error::Error>> {
    let program = workload.build(&workload.parameters(), SEED)?;
    let mut counting = CountingMemory::default();
    let (seconds, ()) = timed(|| program.run(&mut counting));
    Ok((seconds, counting.loads + counting.stores))
}

/// Measures a workload and prints its line; returns whether the generator takes at most half of a run's
/// replays.
fn line(workload: &Workload, profile: &Profile) -> Result<bool, Box<dyn std::error::Error>> {
    let (before, accesses) = generate(workload)?;
    let accesses = accesses as f64;
    let mut progress = |_| ControlFlow::Continue(());
    let (cached, loaded) = timed(|| {
        load_workload(workload, workload.parameters(), PageSize::Base, SEED, u64::MAX, &mut progress)
    });
    let loaded = loaded?;
    let misses = loaded.input.stream.accesses.len() as f64;
    let entry = isotherm_policies::find(POLICY)?;
    let size = FastSize::parse(FAST)?;
    let experiment = Experiment {
        policies: vec![(entry, entry.parameters())],
        sizes: vec![size.clone()],
        profile,
        seed: SEED,
        scale: loaded.scale,
        intervals: INTERVALS,
        version: env!("CARGO_PKG_VERSION"),
        stop: None,
    };
    let bench = Testbed::new(&loaded.input, &experiment)?;
    let fast = size.pages(&loaded.input.stream)?;
    let (replay, result) = timed(|| bench.run(entry, &entry.parameters(), fast));
    result?;
    drop(bench);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let (run, report) = one.install(|| timed(|| simulate(&loaded.input, &experiment, &|| ())));
    report?;
    drop(loaded);
    let generator = f64::midpoint(before, generate(workload)?.0);
    println!(
        "{:<18} {:>7.0} M accesses {:>7.1} M/s   {:>6.1} M misses {:>6.1} M/s with the cache   replay \
            {:>5.1} M/s   \
         generator / run's replays {:>5.2}, / one replay {:>5.2}",
        workload.name,
        accesses / 1e6,
        accesses / 1e6 / generator,
        misses / 1e6,
        misses / 1e6 / cached,
        misses / 1e6 / replay,
        generator / run,
        generator / replay,
    );
    Ok(generator <= run / 2.0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo passes `--bench`.
    let names: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let profile = Profile::builtin("freqtier-cxl1")?;
    let (mut kept, mut all) = (0, 0);
    for workload in
        ALL.iter().filter(|workload| names.is_empty() || names.iter().any(|name| name == workload.name))
    {
        kept += u32::from(line(workload, &profile)?);
        all += 1;
    }
    println!("{kept} of {all} generators take at most half of the time of a run's replays");
    Ok(())
}
