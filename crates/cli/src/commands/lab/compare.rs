//! `isotherm lab compare`: runs a program under policies and kernel tierings, guests side by side.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use isotherm_core::Bytes;
use isotherm_lab::LabError;
use isotherm_lab::cache::Cache;
use isotherm_lab::job::{Job, PolicyRun};
use isotherm_lab::kernel_tiering::KernelTiering;
use isotherm_lab::machine::Machine;
use isotherm_lab::result::LabResult;
use isotherm_lab::run_directory::RunDirectory;
use isotherm_lab::session::{Output, SessionOptions};

use super::guest::{attempt, failure, measure_share, report, say_log, session_options};
use super::plan::{check_settings, engine, job, load_machine};
use crate::args::MemoryArgs;
use crate::args::lab::LabCompareArgs;
use crate::failure::Failure;
use crate::memory::Memory;
use crate::output::{self, say};
use crate::policies;

/// Bytes that a guest takes beside its memory: QEMU, translated code, the plugin's model.
const BESIDE: u64 = 512 << 20;

/// Runs the verb. Fails if a policy did not run, or the program's output or status differs between runs.
pub(super) fn run(mut args: LabCompareArgs) -> Result<(), Failure> {
    let machine = load_machine(&args.guest.machine)?;
    let mut jobs = planned(&args, &machine)?;
    let summary = output::open(args.guest.summary.as_ref())?;
    let cache = Cache::find().map_err(|error| failure(&error))?;
    let options = session_options(Some(args.guest.time_limit), Output::Files)?;
    if measure_share(&mut args.guest, &machine, &args.command, (&cache, &options))? {
        jobs = planned(&args, &machine)?;
    }
    let width = args.jobs.map_or_else(|| side_by_side(&machine), NonZero::get);
    let results = run_all(&machine, &jobs, (&cache, width, args.guest.quiet), &options)?;
    report(&args.guest, summary, &results, || isotherm_report::lab_table(&results))?;
    agree(&results)
}

/// Returns the number of guests that processors and memory are there for: each has one thread of QEMU.
fn side_by_side(machine: &Machine) -> usize {
    let guest = machine.nodes.iter().map(|node| node.size.0).sum::<u64>() + BESIDE;
    let fit = Memory::new(&MemoryArgs { max_memory: None }, true).room(Bytes(0), guest);
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    processors.min(usize::try_from(fit).unwrap_or(usize::MAX)).max(1)
}

/// Runs the jobs, so many side by side; returns their results in the order of the jobs. The first that fails
/// stops all others.
fn run_all(
    machine: &Machine,
    jobs: &[(String, Job)],
    (cache, width, quiet): (&Cache, usize, bool),
    options: &SessionOptions,
) -> Result<Vec<LabResult>, Failure> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let all: Vec<_> = jobs.iter().map(|_| Mutex::new(None)).collect();
    // QEMU ends with the thread that started it, which waits for it.
    thread::scope(|scope| {
        for _ in 0..width.min(jobs.len()) {
            scope.spawn(|| {
                while let Some((number, (name, job))) = take(jobs, &next) {
                    if options.stop.load(Ordering::Relaxed) {
                        return;
                    }
                    if !quiet {
                        say(&format!("isotherm: {name} ({} of {})\n", number + 1, jobs.len()));
                    }
                    let ended = RunDirectory::create(&cache.runs())
                        .and_then(|run| attempt(machine, job, (name, cache, &run), options));
                    match ended {
                        Ok(ended) => *lock(&all[number]) = Some(ended),
                        Err(error) => {
                            lock(&failed).get_or_insert(error);
                            options.stop.store(true, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = lock(&failed).take() {
        return Err(failure(&error));
    }
    let mut results = Vec::new();
    for ended in all {
        let (result, log) = lock(&ended).take().ok_or_else(|| failure(&LabError::Interrupted))?;
        say_log(log);
        results.push(result);
    }
    Ok(results)
}

/// Takes the next job that nobody has taken.
fn take<'a, T>(jobs: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(number).map(|job| (number, job))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn planned(args: &LabCompareArgs, machine: &Machine) -> Result<Vec<(String, Job)>, Failure> {
    let job = |(name, tiering)| Ok((name, job(&args.guest, machine, tiering, &args.command)?));
    tierings(args)?.into_iter().map(job).collect()
}

fn tierings(args: &LabCompareArgs) -> Result<Vec<(String, PolicyRun)>, Failure> {
    let mut all = Vec::new();
    for name in args.kernel.iter().filter(|name| !name.is_empty()) {
        let kernel: KernelTiering = name.parse().map_err(|error: LabError| Failure::usage(error))?;
        all.push((kernel.to_string(), PolicyRun::Kernel(kernel)));
    }
    let named = args.policies.iter().filter(|name| !name.is_empty());
    let entries = named.map(|name| policies::find(name)).collect::<Result<Vec<_>, _>>()?;
    for entry in &entries {
        all.push((entry.name.into(), engine(&args.guest, entry)?));
    }
    let names: Vec<_> = entries.iter().map(|entry| entry.name).collect();
    check_settings(&args.guest, &names)?;
    if all.is_empty() {
        return Err(Failure::usage("nothing to compare: expected --policies or --kernel"));
    }
    Ok(all)
}

/// Fails if a policy did not run, or if the program behaved differently under those that did.
fn agree(results: &[LabResult]) -> Result<(), Failure> {
    if let Some((name, why)) =
        results.iter().find_map(|result| Some((&result.tiering, result.refusal.as_ref()?)))
    {
        return Err(Failure::Failed(format!("{name} did not run: {why}")));
    }
    let Some(first) = results.first() else { return Ok(()) };
    for other in results {
        if other.exit_status != first.exit_status || output(other) != output(first) {
            return Err(Failure::Failed(format!(
                "the program's output or status under {} differs from that under {}: compare the files \
                 stdout in {} and {}",
                other.tiering,
                first.tiering,
                other.folder.display(),
                first.folder.display()
            )));
        }
    }
    Ok(())
}

fn output(result: &LabResult) -> Option<u64> {
    let bytes = std::fs::read(result.folder.join("stdout")).ok()?;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    Some(hasher.finish())
}
