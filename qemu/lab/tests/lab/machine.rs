//! The plugin in a virtual machine: its counts and samples of programs whose accesses are known.

use crate::support::{CACHE, NODE, Run, cache, run};
use serde_json::Value;

const MEGABYTE: u64 = 1 << 20;
const LINE: u64 = 64;
/// Lines that a program touches besides its buffer: stack, libraries, messages.
const OWN: u64 = 400;

fn near(found: u64, expected: u64) -> bool {
    (expected..expected + OWN).contains(&found)
}

fn process(phase: &Value, tgid: u64) -> &Value {
    let processes = phase["processes"].as_array().expect("a list");
    processes.iter().find(|process| process["tgid"] == tgid).expect("the process")
}

#[test]
fn misses_of_each_tier_are_those_of_the_closed_form() {
    let Some(cache) = cache() else { return };
    let run = run(&cache, "sequential,fits,stores,random", false);
    // Twice the cache or more, over and over in the same order: under LRU every line misses each time.
    let (loads, stores) = run.misses("sequential", 0);
    assert!(near(loads, 4 * 16 * MEGABYTE / LINE) && stores < OWN, "{loads} {stores}");
    assert_eq!(run.misses("sequential", 1), (0, 0));
    // Half the cache: once.
    let (loads, _) = run.misses("fits", 0);
    assert!(near(loads, MEGABYTE / LINE), "{loads}");
    // Stores to the other node: exactly these, as nothing else of the program lies there.
    assert_eq!(run.misses("stores", 1), (0, 3 * 8 * MEGABYTE / LINE));
    assert!(run.misses("stores", 0).0 < OWN && run.misses("stores", 0).1 < OWN);
    // Each line once before any comes again, 32 times the cache.
    assert_eq!(run.misses("random", 1), (2 * 64 * MEGABYTE / LINE, 0));
    check_totals(&run);
}

/// Checks that the plugin's results agree with the guest's readings, and with themselves.
fn check_totals(run: &Run) {
    for scenario in ["sequential", "fits", "stores", "random"] {
        let phase = run.phase(scenario);
        let counters = run.numbers(&format!("counters {scenario} "));
        assert_eq!(
            (&phase["accesses"], &phase["modelled_ns"]),
            (&counters["accesses"].into(), &counters["time"].into())
        );
        for tier in 0..2 {
            let (loads, stores) = run.misses(scenario, tier);
            let counted = &phase["tiers"][tier];
            assert_eq!((&counted["load_misses"], &counted["store_misses"]), (&loads.into(), &stores.into()));
            // The fast tier also gives the lines of page tables: at most one for the 64 lines of a page.
            let lines = counted["bytes_read"].as_u64().expect("bytes") / LINE - (loads + stores);
            let all = [0, 1].map(|tier| run.misses(scenario, tier)).map(|(loads, stores)| loads + stores);
            let tables = if tier == 0 { all.iter().sum::<u64>() / 64 + OWN } else { 0 };
            assert!(lines <= tables, "{scenario}: {lines}");
            let processes = phase["processes"].as_array().expect("a list");
            assert_eq!(processes.len(), 1);
            assert_eq!(processes[0]["misses"][tier], serde_json::json!([loads, stores]));
        }
        assert_eq!(phase["elsewhere"], 0, "every address lies in a tier");
        let points = phase["history"]["points"].as_array().expect("points");
        let last = points.last().expect("a point");
        assert_eq!(last[0], phase["modelled_ns"]);
        let all = |tier| run.misses(scenario, tier).0 + run.misses(scenario, tier).1;
        assert_eq!(last[1], serde_json::json!([all(0), all(1)]));
    }
    assert_eq!(run.phase("stores")["hit_ratio"].as_f64().map(|ratio| ratio < 0.01), Some(true));
}

#[test]
fn samples_are_the_known_accesses_and_what_does_not_fit_is_counted() {
    let Some(cache) = cache() else { return };
    let run = run(&cache, "samples,overflow", false);
    let samples = run.numbers("samples ");
    let misses = 2 * 16 * MEGABYTE / LINE;
    assert!(near(samples["all"], misses / 100), "{samples:?}");
    assert!(samples["all"] - samples["inside"] <= OWN / 100, "{samples:?}");
    assert_eq!(samples["right"], samples["inside"], "process, tier, load, weight");
    // One of the program's own misses between two samples shifts the next by a line.
    assert!(samples["apart"] + OWN / 100 >= samples["inside"] - 1, "{samples:?}");
    assert_eq!(samples["ordered"], 1);
    assert_eq!(run.phase("samples")["samples"]["unresolved"], 0);

    let (overflow, phase) = (run.numbers("overflow "), run.phase("overflow"));
    assert_eq!(overflow["kept"], 1 << 18);
    assert_eq!(phase["samples"]["lost"], overflow["lost"]);
    assert_eq!(phase["samples"]["taken"], overflow["kept"] + overflow["lost"]);
    let all: u64 = (0..2).map(|tier| run.misses("overflow", tier).0 + run.misses("overflow", tier).1).sum();
    assert_eq!(phase["samples"]["taken"], all, "every miss was sampled");
}

#[test]
fn processes_are_told_apart_at_the_same_addresses() {
    let Some(cache) = cache() else { return };
    let run = run(&cache, "pair,children,twins", false);
    let (pair, phase) = (run.numbers("pair "), run.phase("pair"));
    let (fast, slow) = (4 * 8 * MEGABYTE / LINE, 6 * 4 * MEGABYTE / LINE);
    let of = |tgid: u64, tier: usize, store: usize| {
        process(&phase, tgid)["misses"][tier][store].as_u64().expect("a number")
    };
    assert!(
        near(of(pair["fast"], 0, 0), fast) && of(pair["fast"], 1, 0) + of(pair["fast"], 1, 1) == 0,
        "{phase}"
    );
    assert!(of(pair["slow"], 1, 1) == slow && of(pair["slow"], 0, 0) < OWN, "{phase}");
    assert_eq!(phase["processes"].as_array().map(Vec::len), Some(2), "the third is not followed");
    // Every fiftieth of all, and only of these two kinds.
    assert_eq!(pair["kinds"], 2);
    assert!(pair["a"].abs_diff(fast / 50) <= 20 && pair["b"].abs_diff(slow / 50) <= 20, "{pair:?}");

    // A line that one process has brought into the cache is not a hit of the other.
    let (loads, _) = run.misses("twins", 0);
    assert!((2 * MEGABYTE / LINE..2 * MEGABYTE / LINE + 2 * OWN).contains(&loads), "{loads}");

    // A child's accesses are counted though only its parent was named: two rounds, less the lines still
    // cached of the stores, one per page, that filled the memory.
    let (loads, stores) = run.misses("children", 1);
    assert_eq!(stores, 8 * MEGABYTE / 4096);
    let (rounds, pages) = (2 * 8 * MEGABYTE / LINE, 8 * MEGABYTE / 4096);
    assert!((rounds - pages..=rounds).contains(&loads), "{loads}");
    assert_eq!(run.phase("children")["processes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn with_counted_instructions_two_runs_give_the_same_bytes() {
    let Some(cache) = cache() else { return };
    let runs = [(); 2].map(|()| run(&cache, "fits,pair", true).result);
    assert!(runs[0].len() > 1000);
    assert!(runs[0] == runs[1], "the results differ");
}

#[test]
fn tiers_lie_where_the_nodes_are() {
    // The other tests rely on this: each scenario's buffer is bound to a node, and no miss was at another's
    // address.
    let Some(cache) = cache() else { return };
    let run = run(&cache, "sequential,stores", false);
    let result: Value = serde_json::from_slice(&run.result).expect("JSON");
    assert_eq!(result["tiers"][0]["ranges"], serde_json::json!([[0, NODE]]));
    assert_eq!(result["tiers"][1]["ranges"], serde_json::json!([[NODE, 2 * NODE]]));
    assert_eq!(
        (result["cache"]["bytes"].as_u64(), result["tiers"][1]["latency_ns"].as_u64()),
        (Some(CACHE), Some(190))
    );
    assert_eq!(run.misses("sequential", 1), (0, 0));
}
