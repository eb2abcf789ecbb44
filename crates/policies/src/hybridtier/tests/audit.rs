//! Decisions compared with those of exact counts (section 6.4.2).

use super::*;

/// Returns the decisions compared, disagreements and moves after samples of all pages, unevenly.
fn audited(changes: &[(&str, &str)]) -> (u64, u64, u64) {
    let changes =
        [&[("audit", "true"), ("threshold_warmup", "0"), ("momentum_cooling", "700")], changes].concat();
    let (mut policy, mut view) = (policy(&changes), machine());
    for round in 0..300u64 {
        let pages: Vec<u32> = (0..500u32).map(|i| (i * i * 31 + round as u32 * 7) % PAGES as u32).collect();
        act_at(&mut policy, &mut view, &pages, round * SECOND);
    }
    let audit = policy.hotness.audit.expect("it was asked for");
    (audit.decisions, audit.disagreements, audit.moves)
}

#[test]
fn a_filter_without_collisions_agrees_always() {
    let (decisions, disagreements, moves) = audited(&[("counter_bits", "16"), ("filter_bytes", "4M")]);
    assert!(decisions > 10_000 && moves > 100, "{decisions} {moves}");
    assert_eq!(disagreements, 0);
}

#[test]
fn smaller_filters_agree_less() {
    // Where all counters are full, scans find nothing cold, and monitor mode decides on less.
    let disagreements = |bytes| {
        let (decisions, disagreements, _) = audited(&[("counter_bits", "16"), ("filter_bytes", bytes)]);
        disagreements as f64 / decisions as f64
    };
    let [large, middle, small] = ["64K", "4K", "512"].map(disagreements);
    assert!(large < middle && middle < small, "{large} {middle} {small}");
}

#[test]
fn it_changes_no_decision_and_counts_in_no_metadata() {
    let run = |audit| {
        let (mut policy, mut view) = (policy(&[("audit", audit)]), machine());
        let plan = act(&mut policy, &mut view, &samples(500..560, 3)).0;
        (plan.moves, plan.work, policy.metadata())
    };
    assert_eq!(run("true"), run("false"));
}
