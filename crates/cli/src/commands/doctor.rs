//! `isotherm doctor`: what this machine offers for tiering, what it lacks, and how to get that.

use std::path::Path;

use isotherm_core::{Nanos, Signal, Signals};
use isotherm_doctor::{Findings, Offered, SelfTest, State, known_loop, self_test};
use isotherm_linux::LinuxError;
use isotherm_linux::accessed_bits::Pace;
use isotherm_linux::source::AccessSource;
use isotherm_live::host::{counter_origin, offers};
use isotherm_live::policy_run::PolicyRun;
use isotherm_live::session::{
    Candidate, Environment, Reach, SourceRequest, TierPlan, TierRequest, candidates,
};
use isotherm_policies::ALL;

use crate::args::DoctorArgs;
use crate::failure::Failure;
use crate::output::print;
use crate::{libraries, program};

/// Scans accessed bits several times within the second that a self-test takes.
const PACE: Pace = Pace { interval: Nanos(50 * Nanos::MILLISECOND.0), budget: 0.1, program_budget: 0.1 };

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

/// A source that works, with its name for `--source`.
type Working = (&'static str, Box<dyn AccessSource>);

/// Returns the sources that work, of those that `isotherm run` chooses from.
fn examine_sources(findings: &mut Findings, with_tests: bool) -> Vec<Working> {
    let agent = libraries::find(libraries::AGENT);
    // Includes latencies, for the policies that need them.
    let needs = Signals::NONE.with(Signal::SampleLatency);
    let request =
        SourceRequest { pace: PACE, ..SourceRequest::new(Reach::Launch { agent: agent.as_deref() }, needs) };
    let (mut working, mut tests) = (Vec::new(), Vec::new());
    for candidate in candidates(request) {
        let name = candidate.name;
        let finding = findings.find(&format!("source-{name}"));
        if finding.is_some_and(|finding| finding.state == State::Missing) {
            continue;
        }
        let (source, test) = examine_source(candidate, with_tests);
        working.extend(source.map(|source| (name, source)));
        tests.extend(test);
    }
    findings.add_self_tests(&tests);
    working
}

fn examine_source(
    candidate: Candidate<'_>,
    with_test: bool,
) -> (Option<Box<dyn AccessSource>>, Option<SelfTest>) {
    let name = candidate.name;
    let opened = match (candidate.open)() {
        Ok(opened) => opened,
        Err(error) => return (None, Some(refused(name, &error))),
    };
    let mut source = [opened.source];
    let test = with_test.then(|| test(name, &mut source, &opened.environment));
    let works = test.as_ref().is_none_or(|test| test.problem.is_none() && test.samples > 0);
    let [source] = source;
    (works.then_some(source), test)
}

fn test(name: &str, source: &mut [Box<dyn AccessSource>; 1], environment: &Environment) -> SelfTest {
    let mut command = program::command();
    command.args(["doctor", "--known-loop"]);
    command.envs(environment.variables.iter().map(|(name, value)| (name, value)));
    let tested = self_test(source, &mut command).into_iter().next().unwrap_or_default();
    // Uses the name for `--source`: a PMU's own name is its kind.
    SelfTest { source: name.to_owned(), ..tested }
}

fn refused(name: &str, error: &LinuxError) -> SelfTest {
    SelfTest { source: name.to_owned(), problem: Some(error.into()), ..SelfTest::default() }
}

fn offered(working: Vec<Working>) -> Offered {
    // Tiers that cannot be read are a finding of their own: only shadow mode remains then.
    let plan = TierPlan::read(Path::new("/"), &TierRequest::default());
    let (shadow, reclaims) = plan.map_or((true, true), |plan| (plan.shadow, plan.reclaims(None)));
    let (names, sources): (Vec<_>, Vec<_>) = working.into_iter().unzip();
    let origin = counter_origin(&sources, shadow, false);
    let signals = offers(&sources, origin, shadow, reclaims);
    let own = sources.iter().map(|source| source.offers());
    Offered { signals, shadow, sources: names.into_iter().zip(own).collect() }
}

/// Returns the policies with their needs; bounds need no machine.
fn policies() -> impl Iterator<Item = (&'static str, Signals)> {
    ALL.iter().filter_map(|entry| Some((entry.name, PolicyRun::new(entry).needs().ok()?)))
}
