//! Looks names up in the registries of workloads and policies.

/// Stands for every workload of the registry.
pub(crate) const EVERY: &str = "*";

/// Returns the names that a run lacks; `None` if it can be made.
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
