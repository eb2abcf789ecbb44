//! Defines the finding about the kernel's version.

use super::facts::Facts;
use super::finding::{Area, Finding, Remedy};
use isotherm_linux::topology::files::decimal;

const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// What came with which kernel and is used here, newest first.
const FEATURES: [((u32, u32), &str); 5] = [
    ((6, 17), "reclaim of one node"),
    ((6, 8), "hint faults (UFFDIO_MOVE)"),
    ((6, 7), "scans of page tables in one call (PAGEMAP_SCAN)"),
    ((6, 1), "memory tiers"),
    ((5, 15), "demotion"),
];

pub(super) fn examine(facts: &Facts<'_>) -> Finding {
    let name = "kernel";
    let release = match facts.tree.text(RELEASE) {
        Ok(release) => release,
        Err(error) => return Finding::unknown(Area::Memory, name, error),
    };
    let Some(version) = version(&release) else {
        return Finding::unknown(
            Area::Memory,
            name,
            format!("'{release}' is no version of Linux that is known here"),
        );
    };
    let lacks: Vec<&str> =
        FEATURES.iter().filter(|&&(since, _)| version < since).map(|&(_, feature)| feature).collect();
    if lacks.is_empty() {
        return Finding::ok(Area::Memory, name, format!("Linux {release} has all that is used here"));
    }
    let (major, minor) = FEATURES[0].0;
    Finding::warning(
        Area::Memory,
        name,
        format!("Linux {release} is older than what is used best"),
        lacks.join(", "),
        Remedy::advice(format!("Linux {major}.{minor} or later")),
    )
}

/// Major and minor version of a release such as `6.18.4-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((decimal(parts.next()?)?, decimal(parts.next()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_releases_of_distributions() {
        assert_eq!(version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(version("5.4-rc1"), Some((5, 4)));
        assert_eq!(version("6"), None);
        assert_eq!(version("linux"), None);
        assert!((6, 7) > (5, 15) && (6, 17) > (6, 7));
    }
}
