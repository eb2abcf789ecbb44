//! The sources of one session, and the refusal of a policy that they cannot serve.

use std::path::Path;

use isotherm_core::{Signal, Signals};
use isotherm_linux::LinuxError;
use isotherm_linux::accessed_bits::Pace;
use isotherm_linux::devices;
use isotherm_linux::hint_faults::HintFaultOptions;
use isotherm_linux::source::AccessSource;
use isotherm_linux::virtual_pmu::{self, VirtualPmuSource};

use super::candidates::{SourceRequest, candidates, open_beside_hint_faults};
use super::choice::choose;
use super::config::SessionConfig;
use super::environment::Environment;
use super::error::SessionError;
use super::measured;
use super::target::Target;
use super::tiers::TierPlan;
use crate::host::{counter_origin, offers, remedy};
use crate::policy_run::PolicyRun;

pub(super) struct Sources {
    pub(super) opened: Vec<Box<dyn AccessSource>>,
    pub(super) environment: Environment,
    /// Maximum rate of samples a second, if the source has one.
    pub(super) fastest: Option<u64>,
    pub(super) notes: Vec<String>,
    /// Why the first source was chosen, where figures decided.
    pub(super) why: Option<String>,
}

impl Sources {
    /// Opens the best sources for what the policy `needs`, or the one that the user names.
    ///
    /// # Errors
    /// If they do not offer all of them: the policy cannot run.
    pub(super) fn open(
        config: &SessionConfig,
        target: &Target,
        needs: Signals,
        plan: &TierPlan,
    ) -> Result<Self, SessionError> {
        let slow_nodes: Vec<u32> = plan.nodes.iter().skip(1).flatten().copied().collect();
        let mut notes = Vec::new();
        let figures = measured::read(Path::new("/")).unwrap_or_else(|error| {
            notes.push(format!("not used: figures of sources: {error}"));
            Vec::new()
        });
        let request = SourceRequest {
            reach: target.reach(),
            source: config.source.as_deref(),
            needs,
            tiers: plan.map,
            slow_nodes: &slow_nodes,
            page_size: config.page_size,
            seed: config.policy.seed,
            overhead: config.overhead,
            pace: Pace {
                budget: config.overhead / 2.0,
                program_budget: config.overhead / 2.0,
                ..Pace::default()
            },
            measured: &figures,
        };
        let mut refused = Vec::new();
        let ordered = measured::order(candidates(request), needs, &figures, config.overhead);
        let chosen = choose(needs, ordered, request.source, &mut refused)?;
        let (mut opened, mut environment) = (Vec::new(), Environment::default());
        for source in chosen {
            environment.append(source.environment);
            opened.push(source.source);
        }
        // A unit that counts accesses helps samples; its absence is nothing to tell.
        let device = config.source.is_none() && config.policy.uses()?.has(Signal::DeviceHotPages);
        if device
            && !matches!(target, Target::Inside { .. })
            && let Ok(unit) = devices::find::open(Path::new("/"), &slow_nodes, &mut Vec::new())
            && unit.counts()
        {
            notes.push("accesses to slower memory are counted by a hotness monitoring unit".to_owned());
            opened.push(Box::new(unit.beside_others()));
        }
        if is_device_alone(&opened) && virtual_pmu::is_present(Path::new("/")) {
            // Brings the modelled machine's clock and its counters.
            let source = VirtualPmuSource::open(Path::new("/"))?;
            opened.push(Box::new(source));
        }
        let origin = counter_origin(&opened, plan.shadow, config.model_counters);
        let offered = offers(&opened, origin, plan.shadow, plan.reclaims(target.cgroup()));
        let because = |(name, error): &(&'static str, LinuxError)| format!("not used: {name}: {error}");
        notes.extend(refused.iter().map(because));
        if let Some(missing) = needs.missing(offered).next() {
            let fix = fix(missing, needs, offered, &notes, target, plan.shadow);
            return Err(SessionError::Missing { policy: config.policy.entry.name, missing, fix });
        }
        let names: Vec<&str> = opened.iter().map(|source| source.name()).collect();
        let first = names.first().filter(|_| config.source.is_none());
        let why = first.and_then(|name| measured::why(name, &figures));
        if !names.is_empty() {
            let why = why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            notes.push(format!("accesses are learned from {}{why}", names.join(" and ")));
        }
        // The first source delivers the samples.
        let limited = names.first() == Some(&"hint-faults");
        let fastest = limited.then(|| HintFaultOptions::fastest(config.overhead));
        if limited && config.source.is_none() && !matches!(target, Target::Inside { .. }) {
            match open_beside_hint_faults(config.overhead) {
                Ok(source) => {
                    notes.push(format!("memory that nobody uses is found by {}", source.name()));
                    opened.push(source);
                }
                Err(error) => notes.push(format!("not used: accessed-bits: {error}")),
            }
        }
        Ok(Self { opened, environment, fastest, notes, why })
    }
}

fn is_device_alone(opened: &[Box<dyn AccessSource>]) -> bool {
    matches!(opened, [source] if source.offers().has(Signal::DeviceHotPages))
}

/// Says what would provide a missing signal, why sources were `refused`, and which policy can run instead.
fn fix(
    missing: Signal,
    needs: Signals,
    offered: Signals,
    refused: &[String],
    target: &Target,
    shadow: bool,
) -> String {
    let inside = matches!(target, Target::Inside { .. });
    let mut fix = remedy(missing).to_owned();
    if missing == Signal::TierStalls && shadow && !inside {
        fix += ", or --model-counters for a shadow run by a model";
    }
    refused.iter().for_each(|note| fix += &format!(" ({note})"));
    if let Some(name) = nearest(needs, offered) {
        let option = if inside { "ISOTHERM_POLICY=" } else { "--policy " };
        fix += &format!("; the nearest policy that can run here: {option}{name}");
    }
    fix
}

/// Finds the policy that runs on the `offered` signals and uses most of those in `needs`, then fewest others.
fn nearest(needs: Signals, offered: Signals) -> Option<&'static str> {
    let fitting = isotherm_policies::ALL.iter().filter_map(|entry| {
        let own = PolicyRun::new(entry).needs().ok()?;
        let runs = own.missing(offered).next().is_none();
        let (unused, other) = (needs.missing(own).count(), own.missing(needs).count());
        runs.then_some((unused, other, entry.name))
    });
    // `min_by_key` returns the first of equals: the registry's order decides.
    fitting.min_by_key(|&(unused, other, _)| (unused, other)).map(|(.., name)| name)
}
