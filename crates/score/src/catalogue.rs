//! Defines what exists: the registries.

/// Every workload of the registry, where a figure is of all of them.
pub(crate) const EVERY: &str = "*";

/// What is missing for a run, in words; nothing if it can be made.
pub(crate) fn missing(workload: &str, policy: &str) -> Option<String> {
    let exists = workload == EVERY || isotherm_workloads::find(workload).is_ok();
    let workload = (!exists).then(|| format!("workload {workload}"));
    let policy = isotherm_policies::find(policy).is_err().then(|| format!("policy {policy}"));
    match (workload, policy) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one),
        (Some(one), Some(other)) => Some(format!("{one}, {other}")),
    }
}
