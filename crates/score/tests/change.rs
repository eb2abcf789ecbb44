//! Compares the papers' files, which say when a run's hot set changes, with the streams themselves.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;

use isotherm_score::{Paper, papers};
use isotherm_sim::run_workload;

/// Settings of a workload.
type Settings = BTreeMap<String, String>;

/// Accesses compared at once.
const AT_ONCE: usize = 1000;

/// How far behind the change its share may be: a search that starts before it finds the old hot set, and
/// proceeds in thousandths of the run.
const BEHIND: std::ops::Range<f64> = 0.0..0.001;

/// Returns the settings with the change put off for good, which leaves everything before it as it is.
fn unchanging(set: &Settings) -> Settings {
    let ways = [("change_at", "1"), ("shift", "1"), ("moves", "0")];
    let (key, value) = ways.into_iter().find(|(key, _)| set.contains_key(*key)).unwrap_or(("moves", "0"));
    let mut still = set.clone();
    still.insert(key.into(), value.into());
    still
}

/// Hands a stream's digests to `sink`, one per [`AT_ONCE`] accesses.
fn digests(name: &str, set: &Settings, limit: u64, mut sink: impl FnMut(u64) -> ControlFlow<()>) {
    let workload = isotherm_workloads::find(name).expect("a workload");
    let mut parameters = workload.parameters();
    set.iter().for_each(|(key, value)| parameters.set(key, value).expect("a valid setting"));
    run_workload(workload, &parameters, 1, limit, None, |rows| {
        rows.line.chunks(AT_ONCE).try_for_each(|lines| {
            let mut digest = DefaultHasher::new();
            lines.hash(&mut digest);
            sink(digest.finish())
        })
    })
    .expect("it runs");
}

/// Returns the share of a run's accesses before the first one that the change of the hot set alters.
fn change(name: &str, set: &Settings, limit: u64) -> f64 {
    let mut changed = Vec::new();
    digests(name, set, limit, |digest| {
        changed.push(digest);
        ControlFlow::Continue(())
    });
    let mut same = 0;
    digests(name, &unchanging(set), limit, |digest| {
        if changed.get(same) != Some(&digest) {
            return ControlFlow::Break(());
        }
        same += 1;
        ControlFlow::Continue(())
    });
    assert!(same < changed.len(), "{name}: the hot set does not change");
    same as f64 / changed.len() as f64
}

/// Compares a file's statement about one mode with its stream.
fn check(id: &str, name: &str, set: &Settings, limit: Option<u64>, said: Option<f64>) {
    let is = change(name, set, limit.expect("a limit of its own"));
    let said = said.expect("where it changes");
    assert!(BEHIND.contains(&(said - is)), "{id}: {said} is said, {is} is so");
}

/// Checks both modes of a workload, which are often the same.
fn check_both(id: &str, paper: &Paper) {
    let ours = &paper.workload[id];
    check(id, &ours.name, &ours.set, ours.accesses, ours.change_at);
    let quick = ours.set.iter().chain(&ours.quick).map(|(key, value)| (key.clone(), value.clone())).collect();
    if (&quick, ours.quick_accesses) != (&ours.set, ours.accesses) {
        check(id, &ours.name, &quick, ours.quick_accesses, ours.quick_change_at.or(ours.change_at));
    }
}

#[test]
fn hot_sets_change_where_the_files_say() {
    let papers = papers();
    std::thread::scope(|scope| {
        for paper in &papers {
            for (id, _) in paper.workload.iter().filter(|(_, ours)| ours.change_at.is_some()) {
                scope.spawn(|| check_both(id, paper));
            }
        }
    });
}
