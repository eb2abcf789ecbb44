//! Requests that a running engine answers at its control socket ([`crate::control`]).

use std::fmt::Write as _;

use isotherm_core::machine_status::{GroupStatus, MachineStatus};
use isotherm_core::parameters::Parameters;
use isotherm_core::{FastLimit, FastLimitError, Gauge, Host, Policy, View};
use isotherm_linux::clock;
use isotherm_linux::process::Pid;

use crate::host::LiveHost;

const HELP: &str = "expected status, status json, mappings, fast, limit SIZE, parameters, set KEY=VALUE, \
                    policy NAME [KEY=VALUE ...], pause or resume";

#[derive(Debug, PartialEq)]
pub(super) enum Order<'a> {
    Status,
    /// The state as that of a machine with one group.
    Machine,
    /// The memory by address.
    Mappings,
    /// The most fast memory.
    Limit(FastLimit),
    /// Which memory is on the fast tier.
    Fast,
    Parameters,
    Set(&'a str, &'a str),
    Policy(&'a str, Vec<(&'a str, &'a str)>),
    /// Whether to sample and move nothing, or to go on.
    Suspend(bool),
}

fn setting(word: &str) -> Result<(&str, &str), String> {
    word.split_once('=').ok_or_else(|| format!("'{word}' is not KEY=VALUE"))
}

/// Returns a key without the policy's name, which may precede it, as on the command line.
///
/// # Errors
/// If another name precedes it.
pub(super) fn own_key<'a>(policy: &str, key: &'a str) -> Result<&'a str, String> {
    match key.split_once('.') {
        Some((group, _)) if group != policy => {
            Err(format!("'{key}': '{group}' is not the policy of this run, {policy}"))
        }
        Some((_, key)) => Ok(key),
        None => Ok(key),
    }
}

/// # Errors
/// If the line is not a request.
pub(super) fn parse(line: &str) -> Result<Order<'_>, String> {
    let mut words = line.split_whitespace();
    let order = match (words.next(), words.next()) {
        (Some("status"), None) => Order::Status,
        (Some("status"), Some("json")) => Order::Machine,
        (Some("mappings"), None) => Order::Mappings,
        (Some("limit"), Some(size)) => {
            Order::Limit(size.parse().map_err(|error: FastLimitError| error.to_string())?)
        }
        (Some("fast"), None) => Order::Fast,
        (Some("parameters"), None) => Order::Parameters,
        (Some("set"), Some(word)) => {
            let (key, value) = setting(word)?;
            Order::Set(key, value)
        }
        (Some("policy"), Some(name)) => {
            Order::Policy(name, words.by_ref().map(setting).collect::<Result<_, _>>()?)
        }
        (Some("pause"), None) => Order::Suspend(true),
        (Some("resume"), None) => Order::Suspend(false),
        _ => return Err(HELP.into()),
    };
    if words.next().is_some() { Err(HELP.into()) } else { Ok(order) }
}

/// Describes the state; a policy that is not built yet has no gauges.
pub(super) fn status<P: Policy + ?Sized>(name: &str, host: &LiveHost, policy: Option<&P>) -> String {
    let state = if host.suspended() { "paused" } else { "running" };
    let mut text = format!("policy = {}\nstate = {state}\ntime = {}\n", name, host.now());
    let mut gauges: Vec<Gauge> = Vec::new();
    if let Some(policy) = policy {
        policy.gauges(&mut gauges);
    }
    for gauge in gauges {
        let _ = writeln!(text, "{} = {}", gauge.name, gauge.value);
    }
    let known = host.known();
    match (known.hit_ratio, known.missing) {
        (Some(hits), _) => {
            let _ = writeln!(
                text,
                "hits = {:.3}\nhits.low = {:.3}\nhits.high = {:.3}",
                hits.value, hits.low, hits.high
            );
        }
        (None, Some(missing)) => {
            let longer = missing.run_ns.map_or_else(|| "unknown".to_owned(), |time| time.to_string());
            let _ = writeln!(text, "hits = unknown\nhits.known-after = {longer}");
        }
        (None, None) => {}
    }
    for tier in (0..View::tiers(host) as u8).map(isotherm_core::TierId) {
        let (capacity, free) = (host.capacity(tier), host.free(tier));
        let _ = writeln!(text, "tier.{}.pages = {}\ntier.{}.free = {}", tier.0, capacity.0, tier.0, free.0);
    }
    text
}

/// Returns the state as that of a machine with one group.
pub(super) fn machine(policy: &str, host: &mut LiveHost) -> MachineStatus {
    let report = host.report();
    let capacity = report.tiers.first().map(|tier| tier.capacity).unwrap_or_default();
    let mut group = report.group(policy);
    for program in &mut group.programs {
        program.command = host.name(Pid(program.pid)).unwrap_or_default();
    }
    if host.suspended() {
        group.warnings.push("paused: nothing is sampled or moved until resume".into());
    }
    MachineStatus {
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_s: clock::unix_seconds().saturating_sub(report.time.as_seconds() as u64),
        time_ns: report.time,
        shadow: report.shadow,
        fast_bytes: capacity,
        cpu_ns: report.engine,
        groups: vec![GroupStatus {
            name: "run".into(),
            mode: "alone".into(),
            share_bytes: capacity,
            limit_bytes: Some(capacity),
            ..group
        }],
        ..MachineStatus::default()
    }
}

/// Lists the memory on the fast tier: process, first address and end, a line for each range.
pub(super) fn fast(host: &LiveHost) -> String {
    host.fast_memory().into_iter().fold(String::new(), |mut text, (process, range)| {
        let _ = writeln!(text, "{} {:x} {:x}", process.0, range.start, range.end);
        text
    })
}

pub(super) fn parameters(parameters: &Parameters) -> String {
    parameters.iter().fold(String::new(), |mut text, (spec, value)| {
        let _ = writeln!(text, "{}.{} = {value}", parameters.group(), spec.name);
        text
    })
}

#[cfg(fuzzing)]
pub fn fuzz(line: &str) {
    let Ok(Order::Policy(name, settings)) = parse(line) else { return };
    let Ok(entry) = isotherm_policies::find(name) else { return };
    let mut run = super::PolicyRun::new(entry);
    let mut taken = |key: &str, value: &str| run.parameters.set(own_key(name, key).ok()?, value).ok();
    if settings.iter().all(|(key, value)| taken(key, value).is_some()) {
        let _ = run.needs();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_orders_or_get_help() {
        assert_eq!(parse("status"), Ok(Order::Status));
        assert_eq!(parse("  parameters "), Ok(Order::Parameters));
        assert_eq!(parse("set neomem.threshold=200"), Ok(Order::Set("neomem.threshold", "200")));
        assert_eq!(parse("set p_min=0.1%"), Ok(Order::Set("p_min", "0.1%")));
        assert_eq!(parse("fast"), Ok(Order::Fast));
        assert_eq!((parse("status json"), parse("mappings")), (Ok(Order::Machine), Ok(Order::Mappings)));
        assert_eq!(parse("limit 25%"), Ok(Order::Limit(FastLimit::Share(0.25))));
        let settings = vec![("hot_scans", "1"), ("quota", "1G")];
        assert_eq!(parse("policy pte-scan hot_scans=1 quota=1G"), Ok(Order::Policy("pte-scan", settings)));
        assert_eq!((parse("pause"), parse("resume")), (Ok(Order::Suspend(true)), Ok(Order::Suspend(false))));
        for wrong in ["", "halt", "pause now", "status now", "set", "policy", "limit"] {
            assert_eq!(parse(wrong), Err(HELP.into()), "{wrong}");
        }
        assert_eq!(parse("set threshold"), Err("'threshold' is not KEY=VALUE".into()));
    }

    #[test]
    fn keys_of_another_policy_are_refused() {
        assert_eq!(own_key("neomem", "threshold"), Ok("threshold"));
        assert_eq!(own_key("neomem", "neomem.threshold"), Ok("threshold"));
        let refused = own_key("neomem", "memtis.threshold").expect_err("another policy's");
        assert!(refused.contains("'memtis' is not the policy of this run, neomem"), "{refused}");
    }
}
