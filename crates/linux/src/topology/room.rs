//! Memory that programs can still get on nodes.

use std::path::{Path, PathBuf};

use isotherm_core::Bytes;

use super::node::{Meminfo, memory};
use crate::LinuxError;
use crate::files::{Tree, decimal};
use crate::memory::BASE;

const ZONEINFO: &str = "/proc/zoneinfo";

/// Nodes whose free memory is read again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    root: PathBuf,
    nodes: Vec<(u32, Kept)>,
}

/// Memory of a node that the kernel keeps from programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Kept {
    /// Free memory: each zone's high watermark, and what it protects from allocations that another zone could
    /// serve (the kernel's `totalreserve_pages`).
    free: Bytes,
    /// Files' memory: the zones' low watermarks.
    files: Bytes,
}

impl Room {
    /// # Errors
    /// If `/proc/zoneinfo` below `root` cannot be read.
    pub fn on(root: &Path, nodes: &[u32]) -> Result<Self, LinuxError> {
        let kept = |&node: &u32| {
            let expected = "zones with watermarks in pages";
            Ok((node, Tree::new(root).parsed(ZONEINFO, expected, |text| kept(text, node))?))
        };
        Ok(Self { root: root.into(), nodes: nodes.iter().map(kept).collect::<Result<_, LinuxError>>()? })
    }

    /// Returns how much programs can get without swapping, node by node, by the kernel's formula of
    /// `MemAvailable` (`si_mem_available`): free memory and at least half of the files' pages, less what the
    /// kernel keeps. Files that are mapped, such as running programs, do not count.
    ///
    /// # Errors
    /// If a node has gone offline.
    pub fn read(&self) -> Result<Bytes, LinuxError> {
        self.nodes.iter().map(|&(node, kept)| Ok(available(memory(Tree::new(&self.root), node)?, kept))).sum()
    }
}

fn available(node: Meminfo, kept: Kept) -> Bytes {
    let files = Bytes(node.files.0 / 2).min(kept.files);
    Bytes(node.free.0.saturating_add(node.files.0).saturating_sub(files.0).saturating_sub(kept.free.0))
}

/// A zone's pages: its watermarks, the most that it protects, and all that it manages.
#[derive(Default)]
struct Zone {
    low: u64,
    high: u64,
    protected: u64,
    managed: u64,
}

/// Reads what the kernel keeps of a node, in lines such as `Node 0, zone Normal`, `low 83`, `managed 3840`
/// and `protection: (0, 1942, 3886, 3886, 3886)`.
fn kept(text: &str, node: u32) -> Option<Kept> {
    let (mut inside, mut zones) = (false, Vec::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Node ") {
            inside = rest.split_once(',').and_then(|(id, _)| decimal(id)) == Some(node);
            if inside {
                zones.push(Zone::default());
            }
            continue;
        }
        let Some(zone) = zones.last_mut().filter(|_| inside) else { continue };
        match line.trim().split_once(' ') {
            Some(("low", pages)) => zone.low = decimal(pages.trim())?,
            Some(("high", pages)) => zone.high = decimal(pages.trim())?,
            Some(("managed", pages)) => zone.managed = decimal(pages.trim())?,
            Some(("protection:", pages)) => {
                let pages = pages.trim().strip_prefix('(')?.strip_suffix(')')?;
                for pages in pages.split(',') {
                    zone.protected = zone.protected.max(decimal(pages.trim())?);
                }
            }
            _ => {}
        }
    }
    let bytes = |pages: u64| Some(Bytes(pages.checked_mul(BASE)?));
    let (mut free, mut files) = (0_u64, 0_u64);
    for zone in zones.iter().filter(|zone| zone.managed > 0) {
        free = free.checked_add(zone.high.saturating_add(zone.protected).min(zone.managed))?;
        files = files.checked_add(zone.low)?;
    }
    if zones.is_empty() { None } else { Some(Kept { free: bytes(free)?, files: bytes(files)? }) }
}

#[cfg(fuzzing)]
pub fn fuzz(text: &str) {
    let _ = kept(text, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_keeps_a_zones_high_watermark_and_what_it_protects_from_others() {
        let text = "Node 0, zone      DMA\n  pages free     3840\n        boost    0\n        min      67\n        \
                    low      83\n        high     99\n        managed  3840\n        \
                    protection: (0, 1942, 3886, 3886, 3886)\nNode 0, zone    DMA32\n        low      17\n        \
                    high     20\n        managed  5000\n        protection: (0, 0, 1944, 1900, 1900)\n    pagesets\n      \
                    cpu: 0\n              count:    31\n              high:     14\nNode 0, zone  Movable\n        \
                    low      50\n        high     60\n        managed  0\nNode 1, zone   Normal\n        \
                    low      1000\n        high     1200\n        managed  9000\n        protection: (0, 0)\n";
        let pages = |free, files| Some(Kept { free: Bytes(free * BASE), files: Bytes(files * BASE) });
        assert_eq!(
            kept(text, 0),
            pages(3840 + 20 + 1944, 100),
            "no more than a zone has, nothing of an empty one"
        );
        assert_eq!(kept(text, 1), pages(1200, 1000));
        assert_eq!(kept(text, 2), None);
        assert_eq!(kept("Node 0, zone DMA\n low many\n", 0), None);
        assert_eq!(kept("Node 0, zone DMA\n protection: 0, 1\n", 0), None);
    }

    #[test]
    fn half_of_the_files_pages_count_and_more_where_the_watermark_is_low() {
        let node = |free, files| Meminfo { total: Bytes(10_000), free: Bytes(free), files: Bytes(files) };
        let kept = Kept { free: Bytes(120), files: Bytes(100) };
        assert_eq!(available(node(1000, 0), kept), Bytes(880));
        assert_eq!(available(node(1000, 500), kept), Bytes(1280));
        assert_eq!(available(node(1000, 100), kept), Bytes(930));
        assert_eq!(available(node(50, 0), kept), Bytes(0));
    }

    #[test]
    fn this_machine_has_room_on_its_first_node() {
        let room = Room::on(Path::new("/"), &[0]).expect("zones").read().expect("a node");
        let total = memory(Tree::new(Path::new("/")), 0).expect("a node").total;
        assert!(room > Bytes(0) && room <= total, "{room:?} of {total:?}");
        assert!(Room::on(Path::new("/"), &[900]).is_err());
    }
}
