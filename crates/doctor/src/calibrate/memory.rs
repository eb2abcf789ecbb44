//! Memory on the nodes of one tier.

use std::path::Path;

use isotherm_core::Bytes;
use isotherm_linux::LinuxError;
use isotherm_linux::files::{Tree, decimal};
use isotherm_linux::sys::mmap::BoundMemory as Mapping;

/// Words of a cache line.
pub(super) const LINE: usize = 8;
/// Size of a chase as a multiple of the last-level cache, so that three of four links miss it.
const CACHES: u64 = 4;
const MIN: Bytes = Bytes(256 << 20);

/// Memory of this process, all of it populated.
#[derive(Debug)]
pub struct Arena {
    mapping: Mapping,
    lines: usize,
}

impl Arena {
    /// Maps `size` bytes on `nodes`, or anywhere.
    pub fn new(size: Bytes, nodes: Option<&[u32]>) -> Result<Self, LinuxError> {
        let call = |call| move |error| LinuxError::Call { call, error };
        let mut mapping = Mapping::new(size.0 as usize).map_err(call("mmap"))?;
        if let Some(nodes) = nodes {
            mapping.bind(nodes).map_err(call("mbind"))?;
        }
        mapping.words().iter_mut().step_by(LINE).for_each(|word| *word = 1);
        // A mapping consists of whole huge pages; only the requested size is used.
        let lines = (size.0 as usize / LINE / size_of::<u64>()).max(1);
        Ok(Self { mapping, lines })
    }

    pub fn lines(&self) -> usize {
        self.lines
    }

    pub(super) fn words(&mut self) -> &mut [u64] {
        self.mapping.words()
    }

    /// Returns the words of the requested size.
    pub(super) fn used_words(&mut self) -> &mut [u64] {
        let used = self.lines * LINE;
        &mut self.mapping.words()[..used]
    }
}

/// Returns the last-level cache's size in sysfs, and a much larger size, twice of which is at most half of
/// `free`.
pub fn usual_size(root: &Path, free: Bytes) -> (Option<Bytes>, Bytes) {
    let tree = Tree::new(root);
    let kibibytes = |index: u32| {
        let file = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        decimal::<u64>(tree.text(&file).ok()?.strip_suffix('K')?)
    };
    let cache = (0..8).filter_map(kibibytes).max().map(|kibibytes| Bytes(kibibytes << 10));
    let wanted = cache.map_or(MIN, |cache| MIN.max(Bytes(cache.0 * CACHES)));
    (cache, wanted.min(Bytes(free.0 / 4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_large_beside_the_cache_and_small_beside_what_is_free() {
        let root = tempfile::tempdir().expect("a directory");
        let write = |index: u32, text: &str| {
            let folder = root.path().join(format!("sys/devices/system/cpu/cpu0/cache/index{index}"));
            std::fs::create_dir_all(&folder).expect("a directory");
            std::fs::write(folder.join("size"), text).expect("a file");
        };
        let much = Bytes(1 << 40);
        assert_eq!(usual_size(root.path(), much), (None, MIN));
        write(0, "32K\n");
        write(3, "491520K\n");
        assert_eq!(usual_size(root.path(), much), (Some(Bytes(480 << 20)), Bytes(1920 << 20)));
        assert_eq!(usual_size(root.path(), Bytes(1 << 30)).1, Bytes(256 << 20));
    }

    #[test]
    fn memory_on_a_node_that_there_is_not_is_refused() {
        let error = Arena::new(Bytes(1 << 20), Some(&[1000])).expect_err("no such node").to_string();
        assert!(error.contains("mbind"), "{error}");
        assert_eq!(Arena::new(Bytes(1 << 20), None).expect("memory").lines(), 16_384);
    }
}
