//! A set-associative cache with LRU replacement inside each set, as a last-level cache filters accesses.
//!
//! The set operation is a plain function on a slice of tags, so that the recorder's plugin can guard sets
//! with its own locks while the simulator owns them.

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// Bytes of a cache line, as a power of two.
pub const LINE_SHIFT: u32 = 6;

/// The shape of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// The number of sets; a power of two.
    pub sets: u32,
    /// Lines a set holds; at least 1.
    pub ways: u32,
}

impl Geometry {
    /// Rounds the sets to a power of two. `None` if the size holds no set or needs more than 2^31 sets.
    pub fn new(size: Bytes, ways: u32) -> Option<Self> {
        let sets = (size.0 >> LINE_SHIFT).checked_div(u64::from(ways))?;
        Some(Self { sets: u32::try_from(1u64 << sets.checked_ilog2()?).ok()?, ways })
    }

    /// Returns the size in bytes.
    pub fn size(self) -> Bytes {
        Bytes((u64::from(self.sets) * u64::from(self.ways)) << LINE_SHIFT)
    }

    /// Returns a line's set. Upper address bits are folded in, as real last-level caches hash.
    #[inline]
    pub fn set_of(self, line: u64) -> usize {
        let folded = line ^ (line >> 13) ^ (line >> 27);
        (folded & u64::from(self.sets - 1)) as usize
    }
}

/// Looks `line` up in one set, most recent first, and moves it to the front; a missing line replaces the
/// least recent one. Returns whether it was there. Tags are `line + 1`; 0 is an empty way.
#[inline]
pub fn touch(set: &mut [u64], line: u64) -> bool {
    let tag = line + 1;
    let mut carried = tag;
    // Looks and shifts in one pass: each way takes the tag before it, until the tag is found.
    for way in set {
        let found = std::mem::replace(way, carried);
        if found == tag {
            return true;
        }
        carried = found;
    }
    false
}

/// A cache that one thread owns.
#[derive(Debug, Clone)]
pub struct Cache {
    geometry: Geometry,
    tags: Vec<u64>,
}

impl Cache {
    /// Returns an empty cache.
    pub fn new(geometry: Geometry) -> Self {
        Self { geometry, tags: vec![0; geometry.sets as usize * geometry.ways as usize] }
    }

    /// Touches a line (address >> 6) and returns whether it hit.
    #[inline]
    pub fn touch(&mut self, line: u64) -> bool {
        let ways = self.geometry.ways as usize;
        let start = self.geometry.set_of(line) * ways;
        touch(&mut self.tags[start..start + ways], line)
    }

    /// Returns the cache's shape.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// A list of lines, most recent first, of which the last leaves when it grows too long.
        #[test]
        fn a_set_is_a_list_in_order_of_use(
            ways in 1usize..20,
            lines in proptest::collection::vec(0u64..24, 0..400),
        ) {
            let (mut set, mut model) = (vec![0; ways], Vec::new());
            for line in lines {
                let hit = model.contains(&line);
                model.retain(|&other| other != line);
                model.insert(0, line);
                model.truncate(ways);
                proptest::prop_assert_eq!(touch(&mut set, line), hit);
                let kept: Vec<u64> = set.iter().filter(|&&tag| tag != 0).map(|tag| tag - 1).collect();
                proptest::prop_assert_eq!(&kept, &model);
            }
        }
    }

    #[test]
    fn the_least_recent_line_of_a_full_set_leaves() {
        let mut set = [0; 2];
        assert!(!touch(&mut set, 1));
        assert!(!touch(&mut set, 2));
        assert!(touch(&mut set, 1));
        assert!(!touch(&mut set, 3), "3 replaces 2");
        assert!(touch(&mut set, 1));
        assert!(!touch(&mut set, 2));
    }

    #[test]
    fn a_working_set_that_fits_hits_on_the_second_pass_and_one_twice_as_large_does_not() {
        let geometry = Geometry::new(Bytes(64 << 10), 16).expect("a valid geometry");
        assert_eq!(geometry.size(), Bytes(64 << 10));
        let lines = geometry.size().0 >> LINE_SHIFT;
        let hits = |count: u64| {
            let mut cache = Cache::new(geometry);
            (0..count).for_each(|line| assert!(!cache.touch(line)));
            (0..count).filter(|&line| cache.touch(line)).count() as u64
        };
        assert_eq!(hits(lines), lines);
        assert_eq!(hits(lines * 2), 0);
    }

    #[test]
    fn absurd_geometries_are_refused() {
        assert_eq!(Geometry::new(Bytes(0), 16), None);
        assert_eq!(Geometry::new(Bytes(1 << 20), 0), None);
        assert_eq!(Geometry::new(Bytes(u64::MAX), 1), None);
    }
}
