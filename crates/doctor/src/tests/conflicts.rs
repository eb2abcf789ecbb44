//! Findings about conflicts, and judgements of policies.

use isotherm_core::{Signal, Signals};

use super::case::check_all;
use super::machine::{WORKING, findings};
use crate::{Findings, Offered, PolicySupport, State};

#[test]
fn conflicts() {
    use State::{Ok, Warning};
    let damon = |state: &str, action: &str| {
        let thread = "sys/kernel/mm/damon/admin/kdamonds/0";
        format!("file {thread}/state {state}\nfile {thread}/contexts/0/schemes/0/action stat\nfile {thread}/contexts/0/schemes/1/action {action}").leak()
    };
    let owner = "ask its owner to stop it; Isotherm never stops a running DAMON";
    check_all(
        &WORKING,
        &[
            (
                "file proc/sys/kernel/numa_balancing 2",
                "numa-balancing",
                Warning,
                "is 2",
                "sysctl -w kernel.numa_balancing=0",
            ),
            ("without proc/sys/kernel/numa_balancing", "numa-balancing", Ok, "not in this kernel", ""),
            (damon("on", "migrate_hot"), "damon kdamond0", Warning, "the scheme migrate_hot", owner),
            (damon("on", "stat"), "damon kdamond0", Ok, "moves nothing", ""),
            (damon("off", "migrate_hot"), "damon", Ok, "no kdamond runs", ""),
            ("without sys/kernel/mm/damon", "damon", Ok, "not in this kernel", ""),
            (
                "file sys/module/damon_reclaim/parameters/enabled Y",
                "damon-module damon_reclaim",
                Warning,
                "switched on",
                "echo N > /sys/module/damon_reclaim/parameters/enabled",
            ),
            (
                "file proc/77/comm memtierd",
                "conflict-process 77",
                Warning,
                "process 77, memtierd, tiers memory too",
                "kill 77",
            ),
            (
                "file proc/78/comm python3\nfile proc/78/cmdline /usr/bin/python3\0-u\0/opt/damo/damo.py\0start",
                "conflict-process 78",
                Warning,
                "damo.py",
                "kill 78",
            ),
            (
                "file proc/79/comm vi\nfile proc/79/cmdline vi\0/etc/memtierd",
                "conflict-process",
                Ok,
                "none among",
                "",
            ),
        ],
    );
}

#[test]
fn policies_say_what_they_lack_and_which_finding_mends_it() {
    let changes = "file proc/sys/kernel/perf_event_paranoid 4\nwithout sys/bus/event_source/devices/cpu\nfile sys/bus/event_source/devices/software/type 1";
    let mut found = findings(changes, &WORKING);
    let needs = Signals::NONE.with(Signal::LoadSamples).with(Signal::TierStalls);
    let loads = Signals::NONE.with(Signal::LoadSamples);
    let faults = loads.with(Signal::HintFaults);
    // Both offer loads; the first one is taken.
    let offered =
        Offered { signals: faults, sources: vec![("pmu", loads), ("hint-faults", faults)], shadow: true };
    let transactional = Signals::NONE.with(Signal::TransactionalMoves);
    found.judge([("stalls", needs), ("faults", faults), ("transactional", transactional)], &offered);
    let verdict = |found: &Findings| found.to_string().lines().last().map(str::to_owned);
    let only = "verdict: shadow mode only: 1 of 3 policies can run";
    assert_eq!(verdict(&found).as_deref(), Some(only));
    let usable: Vec<(&str, bool)> =
        found.policies.iter().map(|policy| (policy.policy.as_str(), policy.usable)).collect();
    assert_eq!(usable, [("stalls", false), ("faults", true), ("transactional", false)]);
    let lack = &found.policies[0].lacks[0];
    assert_eq!(found.policies[0].lacks.len(), 1);
    assert_eq!(
        (lack.signal.as_str(), lack.mended_by.as_slice()),
        ("stall and occupancy counters of each tier", &["source-pmu".to_owned()][..])
    );
    assert!(found.policies[2].lacks[0].mended_by.is_empty());
    let every = Signal::ALL.into_iter().fold(Signals::NONE, Signals::with);
    let everything = Offered { signals: every, ..Offered::default() };
    assert!(PolicySupport::judge("any", every, &everything, &[]).usable);
    assert_eq!(found.policies[1].sources, ["pmu", "hint-faults"]);
    assert_eq!(found.policies[0].sources, ["pmu"]);
    assert_eq!(found.policies[0].needs.len(), 2);
    let text = found.to_string();
    assert!(
        text.contains("policies\n  missing  stalls: lacks stall and occupancy counters of each tier (see\n"),
        "{text}"
    );
    assert!(
        text.contains("  ok       faults: usable, by pmu and hint-faults\n") && text.contains("(unavailable"),
        "{text}"
    );
}
