//! `isotherm doctor`: what this machine offers, what it lacks, and what mends that.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;

use isotherm_core::{Nanos, Signal, Signals};
use isotherm_doctor::{Findings, Offered, SelfTest, State, known_loop, self_test};
use isotherm_linux::LinuxError;
use isotherm_linux::accessed_bits::Pace;
use isotherm_linux::perf::data_source::TierMap;
use isotherm_linux::source::AccessSource;
use isotherm_live::engine::PolicyRun;
use isotherm_live::host::{self, Candidate, CounterOrigin};
use isotherm_policies::{ALL, Kind};

use super::live::sources::{Environment, Way, candidates};
use super::live::tiers::memory;
use super::print;
use crate::args::{DoctorArgs, LiveArgs};
use crate::failure::Failure;

/// Accessed bits are looked at several times within the second that a self-test takes.
const PACE: Pace = Pace { interval: Nanos(50 * Nanos::MILLISECOND.0), budget: 0.1, program_budget: 0.1 };

/// Runs the verb.
pub(crate) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    if args.known_loop {
        return known_loop().map_err(Failure::failed);
    }
    let mut findings = Findings::live();
    let sources = examine_sources(&mut findings, args.tests());
    findings.judge(policies(), &offered(sources));
    let text = if args.json {
        serde_json::to_string_pretty(&findings).map_err(Failure::failed)? + "\n"
    } else {
        findings.to_string()
    };
    print(&text)
}

/// A source that works, with the name that `--source` has for it.
type Working = (&'static str, Box<dyn AccessSource>);

/// The sources that work, among those that `isotherm run` would choose from.
fn examine_sources(findings: &mut Findings, with_tests: bool) -> Vec<Working> {
    let (args, environment) = (LiveArgs::default(), RefCell::default());
    // Latencies too, for the policies that need them.
    let needs = Signals::NONE.with(Signal::SampleLatency);
    let (mut working, mut tests) = (Vec::new(), Vec::new());
    for candidate in
        candidates(&args, needs, (Way::Started, TierMap::default(), Vec::new()), PACE, &environment)
    {
        let name = candidate.name;
        let finding = findings.find(&format!("source-{name}"));
        if finding.is_some_and(|finding| finding.state == State::Missing) {
            continue;
        }
        let (source, test) = examine_source(candidate, &environment, with_tests);
        working.extend(source.map(|source| (name, source)));
        tests.extend(test);
    }
    findings.add_self_tests(&tests);
    working
}

/// Opens a source and tests it: the source if it works, and what the test showed or why it could not be opened.
fn examine_source(
    candidate: Candidate<'_>,
    environment: &RefCell<Environment>,
    with_test: bool,
) -> (Option<Box<dyn AccessSource>>, Option<SelfTest>) {
    let name = candidate.name;
    let mut opened = match (candidate.open)() {
        Ok(source) => [source],
        Err(error) => return (None, Some(refused(name, &error))),
    };
    let test = with_test.then(|| test(name, &mut opened, &environment.take()));
    let works = test.as_ref().is_none_or(|test| test.problem.is_none() && test.samples > 0);
    let [source] = opened;
    (works.then_some(source), test)
}

fn test(name: &str, source: &mut [Box<dyn AccessSource>; 1], environment: &Environment) -> SelfTest {
    // Where /proc is hidden, the program is found as the shell found it.
    let own =
        std::env::current_exe().unwrap_or_else(|_| std::env::args_os().next().unwrap_or_default().into());
    let mut command = Command::new(own);
    command.args(["doctor", "--known-loop"]);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let tested = self_test(source, &mut command).into_iter().next().unwrap_or_default();
    // What `--source` calls it: a PMU calls itself by its kind.
    SelfTest { source: name.to_owned(), ..tested }
}

fn refused(name: &str, error: &LinuxError) -> SelfTest {
    SelfTest { source: name.to_owned(), problem: Some(error.into()), ..SelfTest::default() }
}

/// What `isotherm run` would offer with these sources, on the tiers that it would find.
fn offered(working: Vec<Working>) -> Offered {
    // Where the tiers cannot be read, which is a finding, there are no more than shadows.
    let memory = memory(&LiveArgs::default(), Path::new("/"));
    let (shadow, reclaims) =
        memory.as_ref().map_or((true, true), |memory| (memory.shadow, memory.reclaims()));
    let (names, sources): (Vec<_>, Vec<_>) = working.into_iter().unzip();
    let origin = CounterOrigin::of(&sources, shadow, false);
    let signals = host::offers(&sources, origin, shadow, reclaims);
    let tells = sources.iter().map(|source| source.offers());
    Offered { signals, sources: names.into_iter().zip(tells).collect() }
}

/// The policies, each with what it needs; bounds need no machine.
fn policies() -> impl Iterator<Item = (&'static str, Signals)> {
    ALL.iter().filter(|entry| matches!(entry.kind, Kind::Policy(_))).filter_map(|entry| {
        let tiering =
            PolicyRun { entry, parameters: entry.parameters(), seed: 1, scale: None, fastest: None };
        Some((entry.name, tiering.needs().ok()?))
    })
}
