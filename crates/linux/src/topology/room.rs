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
    /// Each node with the sum of its zones' low watermarks.
    nodes: Vec<(u32, Bytes)>,
}

impl Room {
    /// # Errors
    /// If `/proc/zoneinfo` below `root` cannot be read.
    pub fn on(root: &Path, nodes: &[u32]) -> Result<Self, LinuxError> {
        let low = |&node: &u32| {
            let expected = "zones with low watermarks in pages";
            Ok((node, Tree::new(root).parsed(ZONEINFO, expected, |text| low_watermark(text, node))?))
        };
        Ok(Self { root: root.into(), nodes: nodes.iter().map(low).collect::<Result<_, LinuxError>>()? })
    }

    /// Returns how much programs can get without swapping, node by node, by the kernel's formula of
    /// `MemAvailable` (`si_mem_available`): free memory and at least half of the files' pages, above the
    /// watermarks. Files that are mapped, such as running programs, do not count.
    ///
    /// # Errors
    /// If a node has gone offline.
    pub fn read(&self) -> Result<Bytes, LinuxError> {
        self.nodes.iter().map(|&(node, low)| Ok(available(memory(Tree::new(&self.root), node)?, low))).sum()
    }
}

fn available(node: Meminfo, low: Bytes) -> Bytes {
    let kept = Bytes(node.files.0 / 2).min(low);
    Bytes(node.free.0.saturating_add(node.files.0).saturating_sub(kept.0).saturating_sub(low.0))
}

/// Sums the low watermarks of a node's zones, in lines such as `Node 0, zone Normal` and `low 83`.
fn low_watermark(text: &str, node: u32) -> Option<Bytes> {
    let (mut inside, mut zones, mut pages) = (false, 0, 0_u64);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Node ") {
            inside = rest.split_once(',').and_then(|(id, _)| decimal(id)) == Some(node);
        } else if let Some(low) = line.trim_start().strip_prefix("low ").filter(|_| inside) {
            pages = pages.checked_add(decimal(low.trim())?)?;
            zones += 1;
        }
    }
    (zones > 0).then_some(Bytes(pages.checked_mul(BASE)?))
}

#[cfg(fuzzing)]
pub fn fuzz(text: &str) {
    let _ = low_watermark(text, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watermarks_of_a_node_are_the_sum_of_its_zones() {
        let text = "Node 0, zone      DMA\n  pages free     3840\n        boost    0\n        min      67\n        \
                    low      83\n        high     99\nNode 0, zone    DMA32\n        low      17\n\
                    Node 1, zone   Normal\n        low      1000\n";
        assert_eq!(low_watermark(text, 0), Some(Bytes(100 * BASE)));
        assert_eq!(low_watermark(text, 1), Some(Bytes(1000 * BASE)));
        assert_eq!(low_watermark(text, 2), None);
        assert_eq!(low_watermark("Node 0, zone DMA\n low many\n", 0), None);
    }

    #[test]
    fn half_of_the_files_pages_count_and_more_where_the_watermark_is_low() {
        let node = |free, files| Meminfo { total: Bytes(10_000), free: Bytes(free), files: Bytes(files) };
        assert_eq!(available(node(1000, 0), Bytes(100)), Bytes(900));
        assert_eq!(available(node(1000, 500), Bytes(100)), Bytes(1300));
        assert_eq!(available(node(1000, 100), Bytes(100)), Bytes(950));
        assert_eq!(available(node(50, 0), Bytes(100)), Bytes(0));
    }

    #[test]
    fn this_machine_has_room_on_its_first_node() {
        let room = Room::on(Path::new("/"), &[0]).expect("zones").read().expect("a node");
        let total = memory(Tree::new(Path::new("/")), 0).expect("a node").total;
        assert!(room > Bytes(0) && room <= total, "{room:?} of {total:?}");
        assert!(Room::on(Path::new("/"), &[900]).is_err());
    }
}
