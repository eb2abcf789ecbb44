//! Defines what exists: the registries.

/// What is missing for a run, in words; nothing if it can be made.
pub(crate) fn missing(workload: &str, policy: &str) -> Option<String> {
    let workload = isotherm_workloads::find(workload).is_err().then(|| format!("workload {workload}"));
    let policy = isotherm_policies::find(policy).is_err().then(|| format!("policy {policy}"));
    match (workload, policy) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one),
        (Some(one), Some(other)) => Some(format!("{one}, {other}")),
    }
}
