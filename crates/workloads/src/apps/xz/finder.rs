//! LZMA's match finder bt4: hash tables of 2, 3 and 4 bytes and, for each 4-byte hash, a tree of positions.
//!
//! A tree is ordered by the bytes that follow a position; nodes' two 4-byte links lie in an array that wraps
//! around. A search descends from the newest position and rebuilds the tree, the new one as root.

use crate::{Array, Memory, Token};

/// The longest match that is looked for (level 8), and the shortest that the trees find.
pub(super) const LONGEST: usize = 64;
pub(super) const SHORTEST: usize = 4;
/// Nodes that a search visits at most: 16 + LONGEST / 2.
const DEPTH: usize = 48;
const HASH_2: usize = 1 << 10;
const HASH_3: usize = 1 << 16;
/// Instructions of a node's visit and of a position's hashes.
const NODE_INSTRUCTIONS: u32 = 12;
const HASH_INSTRUCTIONS: u32 = 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) length: usize,
    pub(super) distance: usize,
}

pub(super) const AHEAD: usize = 16;

/// A search ahead of its turn; `common` are the bytes shared with the next smaller and larger node.
#[derive(Debug, Clone, Copy, Default)]
struct Walk {
    ahead: usize,
    own: usize,
    node: usize,
    place: usize,
    distance: usize,
    common: [usize; 2],
}

pub(super) struct Finder {
    dictionary: usize,
    window: Array<u8>,
    /// Bytes in the window, and the place of the next one to be searched.
    filled: usize,
    at: usize,
    /// Running number of the position, over the window's moves; 0 means none.
    position: u32,
    hashes: Array<u32>,
    links: Array<[u32; 2]>,
}

/// Entries of the 4-byte hash for a dictionary: half of the next power of two.
fn hash_4(dictionary: usize) -> usize {
    (dictionary.next_power_of_two() / 2).max(1 << 10)
}

/// Returns bytes of a window: the dictionary, room so that it moves rarely, and what a match may look ahead.
fn window_bytes(dictionary: usize) -> usize {
    dictionary + dictionary / 2 + 2 * LONGEST
}

impl Finder {
    pub(super) fn bytes(dictionary: usize) -> usize {
        4 * (HASH_2 + HASH_3 + hash_4(dictionary)) + 8 * (dictionary + 1) + window_bytes(dictionary)
    }

    pub(super) fn new(dictionary: usize, memory: &mut dyn Memory) -> Self {
        let window = Array::new(memory, window_bytes(dictionary), 0, "xz window");
        let hashes = Array::new(memory, HASH_2 + HASH_3 + hash_4(dictionary), 0, "xz hashes");
        let links = Array::new(memory, dictionary + 1, [0; 2], "xz trees");
        Self { dictionary, window, filled: 0, at: 0, position: 0, hashes, links }
    }

    pub(super) fn reset(&mut self, memory: &mut dyn Memory) {
        (self.filled, self.at) = (0, 0);
        self.position = self.dictionary as u32 + 1;
        self.hashes.fill(0);
        self.hashes.store_run(memory, 0..self.hashes.len(), Token::NONE);
    }

    pub(super) fn ahead(&self) -> usize {
        self.filled - self.at
    }

    pub(super) fn fill(&mut self, input: &[u8], memory: &mut dyn Memory) -> usize {
        if self.at > self.dictionary && self.filled + LONGEST > self.window.len() {
            let from = self.at - self.dictionary;
            self.window.load_run(memory, from..self.filled, Token::NONE);
            self.window.copy_within(from..self.filled, 0);
            (self.at, self.filled) = (self.dictionary, self.filled - from);
            self.window.store_run(memory, 0..self.filled, Token::NONE);
        }
        let bytes = input.len().min(self.window.len() - self.filled);
        let place = self.filled..self.filled + bytes;
        self.window[place.clone()].copy_from_slice(&input[..bytes]);
        self.window.store_run(memory, place, Token::NONE);
        self.filled += bytes;
        bytes
    }

    pub(super) fn byte(&self) -> u8 {
        self.window[self.at]
    }

    /// Enters the next byte's position; returns the longest match there.
    pub(super) fn advance(&mut self, memory: &mut dyn Memory) -> Option<Match> {
        memory.compute(HASH_INSTRUCTIONS);
        let limit = self.ahead().min(LONGEST);
        let found = if limit < SHORTEST { None } else { self.search(limit, memory) };
        self.at += 1;
        self.position += 1;
        found
    }

    /// Returns the places in the hash tables of the two, three and four bytes at `at`.
    #[inline]
    fn hashes_of(&self, at: usize) -> [usize; 3] {
        let bytes = &self.window[at..at + 4];
        let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let hash = |bits: u32, size: usize| (bits.wrapping_mul(0x9e37_79b1) as usize >> 4) & (size - 1);
        let three = HASH_2 + hash(word & 0xff_ffff, HASH_3);
        let four = HASH_2 + HASH_3 + hash(word, self.hashes.len() - HASH_2 - HASH_3);
        [hash(word & 0xffff, HASH_2), three, four]
    }

    fn search(&mut self, limit: usize, memory: &mut dyn Memory) -> Option<Match> {
        let [two, three, four] = self.hashes_of(self.at);
        // The table of two bytes is 4 KB and stays in the core's cache.
        self.hashes[two] = self.position;
        let (near, _) = self.hashes.load(memory, three, Token::NONE);
        self.hashes.store(memory, three, self.position, Token::NONE);
        let (root, token) = self.hashes.load(memory, four, Token::NONE);
        self.hashes.store(memory, four, self.position, Token::NONE);
        let short = self.compare(near, limit, memory);
        let long = self.descend(root, limit, token, memory);
        [short, long]
            .into_iter()
            .flatten()
            .filter(|found| found.length >= SHORTEST)
            .max_by_key(|found| found.length)
    }

    fn compare(&self, other: u32, limit: usize, memory: &mut dyn Memory) -> Option<Match> {
        let distance = (self.position - other) as usize;
        if distance > self.dictionary || distance > self.at {
            return None;
        }
        memory.load(self.window.address(self.at - distance), Token::NONE);
        Some(Match { length: self.common(self.at, distance, 0, limit), distance })
    }

    /// Returns how many bytes from `at` agree with those `distance` back, from `from` on.
    #[inline]
    fn common(&self, at: usize, distance: usize, from: usize, limit: usize) -> usize {
        let values = &self.window;
        let (here, there) = (&values[at..], &values[at - distance..]);
        let (here, there) = (&here[from..limit], &there[from..limit]);
        let (words, others) = (here.as_chunks().0, there.as_chunks().0);
        for (place, (&word, &other)) in words.iter().zip(others).enumerate() {
            let different = u64::from_le_bytes(word) ^ u64::from_le_bytes(other);
            if different != 0 {
                return from + place * size_of::<u64>() + different.trailing_zeros() as usize / 8;
            }
        }
        let rest = words.len() * size_of::<u64>();
        let (here, there) = (&here[rest..], &there[rest..]);
        from + rest + here.iter().zip(there).take_while(|(one, other)| one == other).count()
    }

    /// Searches the trees for the next positions natively, side by side, and prefetches each node's lines a
    /// step ahead; alone, a search would wait for every node.
    pub(super) fn read_ahead(&self, positions: usize) {
        let mut walks = [Walk::default(); AHEAD];
        let mut count = 0;
        for ahead in 0..positions.min(AHEAD) {
            let at = self.at + ahead;
            if self.filled - at >= SHORTEST {
                let [_, three, four] = self.hashes_of(at);
                self.hashes.prefetch(three);
                self.hashes.prefetch(four);
                let own = (self.position as usize + ahead) % self.links.len();
                walks[count] = Walk { ahead, own, node: four, common: [0; 2], place: 0, distance: 0 };
                count += 1;
            }
        }
        let mut left = 0;
        for place in 0..count {
            let root = self.hashes[walks[place].node];
            if self.go_to(root, &mut walks[place]) {
                walks[left] = walks[place];
                left += 1;
            }
        }
        for _ in 0..DEPTH {
            (count, left) = (left, 0);
            for place in 0..count {
                let mut walk = walks[place];
                if self.step(&mut walk) {
                    walks[left] = walk;
                    left += 1;
                }
            }
        }
    }

    /// Asks for a node's lines; false where the tree ends.
    #[inline]
    fn go_to(&self, node: u32, walk: &mut Walk) -> bool {
        let at = self.at + walk.ahead;
        let distance = (self.position + walk.ahead as u32 - node) as usize;
        if node == 0 || distance > self.dictionary || distance > at {
            return false;
        }
        (walk.distance, walk.place) = (distance, self.place(walk.own, distance));
        self.links.prefetch(walk.place);
        self.window.prefetch(at - distance + walk.common[0].min(walk.common[1]));
        true
    }

    /// Goes from a node to the next; false where the search ends.
    #[inline]
    fn step(&self, walk: &mut Walk) -> bool {
        let at = self.at + walk.ahead;
        let (limit, known) = ((self.filled - at).min(LONGEST), walk.common[0].min(walk.common[1]));
        let length = self.common(at, walk.distance, known, limit);
        if length == limit {
            return false;
        }
        let values = &self.window;
        let larger = usize::from(values[at - walk.distance + length] < values[at + length]);
        walk.common[larger] = length;
        self.go_to(self.links[walk.place][larger], walk)
    }

    /// Returns the place of the node `distance` before the one at `own`. The distance is below the array's
    /// length, so one subtraction replaces the remainder.
    #[inline]
    fn place(&self, own: usize, distance: usize) -> usize {
        if own >= distance { own - distance } else { own + self.links.len() - distance }
    }

    /// Searches the tree of `node` and puts the new position above it.
    fn descend(
        &mut self,
        mut node: u32,
        limit: usize,
        mut token: Token,
        memory: &mut dyn Memory,
    ) -> Option<Match> {
        let length = self.links.len();
        let own = self.position as usize % length;
        if self.links.starts_line(own) {
            memory.store(self.links.address(own), Token::NONE);
        }
        // Where the next node that is smaller, and larger, than the new one will hang.
        let (mut smaller, mut larger) = ((own, 0), (own, 1));
        let (mut common_smaller, mut common_larger) = (0, 0);
        let mut best: Option<Match> = None;
        for _ in 0..DEPTH {
            let distance = (self.position - node) as usize;
            if node == 0 || distance > self.dictionary || distance > self.at {
                break;
            }
            let here = self.place(own, distance);
            memory.compute(NODE_INSTRUCTIONS);
            let (pair, next_token) = self.links.load(memory, here, token);
            let known = common_smaller.min(common_larger);
            memory.load(self.window.address(self.at - distance + known), token);
            token = next_token;
            let length = self.common(self.at, distance, known, limit);
            if best.is_none_or(|best| length > best.length) {
                best = Some(Match { length, distance });
            }
            if length == limit {
                // Equal bytes: the new node takes the old one's place.
                self.links[smaller.0][smaller.1] = pair[0];
                self.links[larger.0][larger.1] = pair[1];
                return best;
            }
            let values = &self.window;
            if values[self.at - distance + length] < values[self.at + length] {
                self.links[smaller.0][smaller.1] = node;
                (smaller, common_smaller, node) = ((here, 1), length, pair[1]);
            } else {
                self.links[larger.0][larger.1] = node;
                (larger, common_larger, node) = ((here, 0), length, pair[0]);
            }
        }
        self.links[smaller.0][smaller.1] = 0;
        self.links[larger.0][larger.1] = 0;
        best
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::text;
    use super::*;
    use crate::CountingMemory;
    use crate::random::Random;

    #[test]
    fn matches_are_real_and_mostly_the_longest_of_the_dictionary() {
        let mut memory = CountingMemory::default();
        let input = text(6000, 2000, &mut Random::new(4));
        let mut finder = Finder::new(2000, &mut memory);
        finder.reset(&mut memory);
        let (mut taken, mut found_length, mut longest_length) = (0, 0, 0);
        for at in 0..input.len() {
            if finder.ahead() <= LONGEST {
                taken += finder.fill(&input[taken..], &mut memory);
            }
            let limit = (input.len() - at).min(LONGEST);
            let length = |distance: usize| {
                (0..limit).take_while(|i| input[at + i] == input[at - distance + i]).count()
            };
            let longest = (1..=at.min(2000)).map(length).max().unwrap_or(0);
            let found = finder.advance(&mut memory);
            if let Some(found) = found {
                assert_eq!(length(found.distance), found.length, "at {at}");
            }
            found_length += found.map_or(0, |found| found.length);
            longest_length += if longest >= SHORTEST { longest } else { 0 };
        }
        assert!(longest_length > 6000, "the text repeats itself");
        assert!(found_length as f64 > 0.99 * longest_length as f64, "{found_length} of {longest_length}");
    }
}
