//! Check of the kernel's version.

use isotherm_linux::files::decimal;

use super::facts::Facts;
use super::finding::{Area, Checked, Remedy};

const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// Kernel features that Isotherm uses, by the version that brought them, newest first.
const FEATURES: [((u32, u32), &str); 5] = [
    ((6, 17), "reclaim of one node"),
    ((6, 8), "hint faults (UFFDIO_MOVE)"),
    ((6, 7), "scans of page tables in one call (PAGEMAP_SCAN)"),
    ((6, 1), "memory tiers"),
    ((5, 15), "demotion"),
];

pub(super) fn examine(facts: &Facts<'_>) -> Checked {
    let topic = Area::Memory.topic("kernel");
    let release = topic.known(facts.tree.text(RELEASE))?;
    let version = version(&release).ok_or_else(|| format!("'{release}' is not a version of Linux"));
    let version = topic.known(version)?;
    let lacks: Vec<&str> =
        FEATURES.iter().filter(|&&(since, _)| version < since).map(|&(_, feature)| feature).collect();
    if lacks.is_empty() {
        return Ok(topic.ok(format!("Linux {release} has every feature that Isotherm uses")));
    }
    let (major, minor) = FEATURES[0].0;
    let remedy = Remedy::advice(format!("Linux {major}.{minor} or later"));
    Ok(topic.warning(format!("Linux {release} lacks features that Isotherm uses"), lacks.join(", "), remedy))
}

/// Returns major and minor version of a release such as `6.18.4-amd64`.
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
