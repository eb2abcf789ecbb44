//! `isotherm lab compare`: runs a program under policies and kernel tierings, guest after guest.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use isotherm_lab::LabError;
use isotherm_lab::cache::Cache;
use isotherm_lab::job::{Job, PolicyRun};
use isotherm_lab::kernel_tiering::KernelTiering;
use isotherm_lab::machine::Machine;
use isotherm_lab::result::LabResult;
use isotherm_lab::run_directory::RunDirectory;
use isotherm_lab::session::Output;

use super::guest::{boot, failure, measure_share, report, session_options};
use super::plan::{check_settings, engine, job, load_machine};
use crate::args::lab::LabCompareArgs;
use crate::failure::Failure;
use crate::output::{self, say};
use crate::policies;

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
    let mut results = Vec::new();
    for (name, job) in &jobs {
        if !args.guest.quiet {
            say(&format!("isotherm: {name} ({} of {})\n", results.len() + 1, jobs.len()));
        }
        let run = RunDirectory::create(&cache.runs()).map_err(|error| failure(&error))?;
        results.push(boot(&machine, job, (name, &cache, &run), &options)?);
    }
    report(&args.guest, summary, &results, || isotherm_report::lab_table(&results))?;
    agree(&results)
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
