//! Defines what exists: the registries, and the names that are planned and may therefore stand in a figure already.

/// Policies that the papers compare and that are still to be written.
pub const PLANNED_POLICIES: [&str; 5] = ["soar", "alto", "jenga", "neomem", "pact"];

/// Workloads that the papers use and that are still to be written.
pub const PLANNED_WORKLOADS: [&str; 26] = [
    "gapbs-bfs-kron",
    "gapbs-cc-kron",
    "gapbs-pr-kron",
    "gapbs-bc-kron",
    "gapbs-sssp-kron",
    "gapbs-tc-kron",
    "gapbs-bfs-urand",
    "gapbs-cc-urand",
    "gapbs-pr-urand",
    "gapbs-bc-urand",
    "gapbs-sssp-urand",
    "gapbs-tc-urand",
    "graph500",
    "xsbench",
    "btree",
    "silo",
    "flexkvs",
    "redis",
    "xgboost",
    "liblinear",
    "bwaves",
    "roms",
    "gpt2",
    "deepsjeng",
    "xz",
    "social-network",
];

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
