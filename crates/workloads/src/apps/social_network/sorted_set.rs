//! Redis' sorted set: up to 128 members in one packed list, more in a skip list beside a hash table.
//!
//! Members are numbers ordered by score. The skip list has up to 32 levels, each for one node in four.

use crate::apps::redis::dict::{Dict, Space};
use crate::{Memory, NULL, Random, Token, WORD};

/// Members that the packed list holds at most (Redis' default).
const PACKED_MEMBERS: u64 = 128;
/// Words of a member in the packed list: its number, its score, their lengths.
const PACKED_WORDS: u64 = 3;
const MIN_PACKED: u64 = 8;
/// Levels of a skip list (Redis: 32).
const LEVELS: usize = 32;
const STRING: u64 = 32;

// The set: the packed list, or else the hash table and the skip list; their objects' fields in one.
const SET: u64 = 56;
const PACKED: u64 = 0;
const CAPACITY: u64 = 8;
const LENGTH: u64 = 16;
const DICT: u64 = 24;
const HEAD: u64 = 32;
const HEIGHT: u64 = 40;
const TAIL: u64 = 48;

// A node of the skip list; on each level it has a pointer and a span.
const STRING_OF: u64 = 0;
const SCORE: u64 = 8;
const BACKWARD: u64 = 16;
const FORWARD: u64 = 24;
const LEVEL: u64 = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SortedSet(pub u64);

impl SortedSet {
    pub(super) fn new(space: &mut Space, memory: &mut dyn Memory) -> Self {
        let set = Self(space.heap.allocate(memory, SET, "redis sorted set"));
        let list = space.block(MIN_PACKED, "redis packed list", memory);
        space.heap.set_word(set.0 + PACKED, list);
        space.heap.set_word(set.0 + CAPACITY, MIN_PACKED);
        memory.store_range(set.0, SET, Token::NONE);
        set
    }

    /// Reads ahead, natively, what adding this member to each of these sets reads, all searches side by side.
    pub(super) fn read_ahead(sets: &[Self], member: u64, score: u64, space: &Space) {
        let heap = &space.heap;
        sets.iter().for_each(|set| heap.prefetch(set.0, SET));
        let lists: Vec<u64> =
            sets.iter().map(|set| set.0).filter(|set| heap.word(set + PACKED) == NULL).collect();
        let dicts: Vec<Dict> = lists.iter().map(|set| Dict(heap.word(set + DICT))).collect();
        dicts.iter().for_each(|dict| heap.prefetch(dict.0, WORD));
        Dict::read_ahead(&dicts, member, heap);
        let start = |set: &u64| (heap.word(set + HEAD), heap.word(set + HEIGHT));
        let mut searches: Vec<(u64, u64)> = lists.iter().map(start).collect();
        while !searches.is_empty() {
            searches.retain_mut(|(node, levels)| {
                let next = heap.word(*node + FORWARD + (*levels - 1) * LEVEL);
                match next != NULL && heap.word(next + SCORE) < score {
                    true => *node = next,
                    false => *levels -= 1,
                }
                *levels > 0
            });
        }
    }

    /// Adds a member that may be there already: then nothing changes.
    pub(super) fn add(
        self,
        member: u64,
        score: u64,
        space: &mut Space,
        levels: &mut Random,
        memory: &mut dyn Memory,
        after: Token,
    ) {
        let token = memory.load_range(self.0, SET, after);
        let list = space.heap.word(self.0 + PACKED);
        if list == NULL {
            let dict = Dict(space.heap.word(self.0 + DICT));
            if dict.find(member, space, memory, token).is_none() {
                self.insert(member, score, space, levels, memory);
            }
            return;
        }
        let length = space.heap.word(self.0 + LENGTH);
        memory.load_range(list, (length * PACKED_WORDS).max(1) * WORD, token);
        let entries = space.heap.words(list, length * PACKED_WORDS).chunks(PACKED_WORDS as usize);
        if entries.clone().any(|entry| entry[0] == member) {
            return;
        }
        if length == PACKED_MEMBERS {
            self.convert(space, levels, memory);
            self.insert(member, score, space, levels, memory);
            return;
        }
        let place = entries.take_while(|entry| (entry[1], entry[0]) < (score, member)).count() as u64;
        self.insert_packed(place, member, score, space, memory);
    }

    fn insert_packed(self, place: u64, member: u64, score: u64, space: &mut Space, memory: &mut dyn Memory) {
        let length = space.heap.word(self.0 + LENGTH);
        self.make_room((length + 1) * PACKED_WORDS, space, memory);
        let list = space.heap.word(self.0 + PACKED);
        let from = list + place * PACKED_WORDS * WORD;
        let moved = (length + 1 - place) * PACKED_WORDS;
        let words = space.heap.words_mut(from, moved);
        words.rotate_right(PACKED_WORDS as usize);
        words[..2].copy_from_slice(&[member, score]);
        memory.store_range(from, moved * WORD, Token::NONE);
        space.heap.store(memory, self.0 + LENGTH, length + 1, Token::NONE);
    }

    fn make_room(self, words: u64, space: &mut Space, memory: &mut dyn Memory) {
        let (list, capacity) = (space.heap.word(self.0 + PACKED), space.heap.word(self.0 + CAPACITY));
        if words <= capacity {
            return;
        }
        let larger = space.block(2 * capacity, "redis packed list", memory);
        let old = space.heap.words(list, capacity).to_vec();
        space.heap.words_mut(larger, capacity).copy_from_slice(&old);
        space.free(list, capacity);
        space.heap.set_word(self.0 + PACKED, larger);
        space.heap.set_word(self.0 + CAPACITY, 2 * capacity);
    }

    fn convert(self, space: &mut Space, levels: &mut Random, memory: &mut dyn Memory) {
        let (list, capacity) = (space.heap.word(self.0 + PACKED), space.heap.word(self.0 + CAPACITY));
        let entries = space.heap.words(list, PACKED_MEMBERS * PACKED_WORDS).to_vec();
        let dict = Dict::new(space, memory);
        let head = space.heap.allocate(memory, FORWARD + LEVELS as u64 * LEVEL, "redis skip list head");
        memory.store_range(head, FORWARD + LEVELS as u64 * LEVEL, Token::NONE);
        let fields = [NULL, 0, 0, dict.0, head, 1, NULL];
        space.heap.words_mut(self.0, SET / WORD).copy_from_slice(&fields);
        for entry in entries.chunks(PACKED_WORDS as usize) {
            self.insert(entry[0], entry[1], space, levels, memory);
        }
        space.free(list, capacity);
    }

    fn insert(
        self,
        member: u64,
        score: u64,
        space: &mut Space,
        levels: &mut Random,
        memory: &mut dyn Memory,
    ) {
        let path = self.search(score, member, space, memory);
        let height = (1..LEVELS).take_while(|_| levels.below(4) == 0).count() + 1;
        let string = space.heap.allocate(memory, STRING, "redis member string");
        space.heap.words_mut(string, STRING / WORD).fill(member);
        memory.store_range(string, STRING, Token::NONE);
        let bytes = FORWARD + height as u64 * LEVEL;
        let node = space.heap.allocate(memory, bytes, "redis skip list node");
        let highest = space.heap.word(self.0 + HEIGHT).max(height as u64);
        for (level, &before) in path.iter().enumerate().take(highest as usize) {
            let link = FORWARD + level as u64 * LEVEL;
            if level < height {
                let next = space.heap.word(before + link);
                space.heap.set_word(node + link, next);
                space.heap.set_word(before + link, node);
            }
            // The span counts one member more even where the pointer stays.
            memory.store(before + link, Token::NONE);
        }
        let fields = [string, score, path[0]];
        space.heap.words_mut(node, 3).copy_from_slice(&fields);
        memory.store_range(node, bytes, Token::NONE);
        let next = space.heap.word(node + FORWARD);
        match next {
            NULL => space.heap.set_word(self.0 + TAIL, node),
            next => space.heap.store(memory, next + BACKWARD, node, Token::NONE),
        }
        space.heap.set_word(self.0 + HEIGHT, highest);
        let length = space.heap.word(self.0 + LENGTH) + 1;
        space.heap.store(memory, self.0 + LENGTH, length, Token::NONE);
        let dict = Dict(space.heap.word(self.0 + DICT));
        dict.add(string, score, "redis member entry", space, memory);
    }

    /// Returns, for each level, the last node before this score and member.
    fn search(self, score: u64, member: u64, space: &Space, memory: &mut dyn Memory) -> [u64; LEVELS] {
        let heap = &space.heap;
        let (mut node, mut token) = (heap.word(self.0 + HEAD), Token::NONE);
        let mut path = [node; LEVELS];
        for level in (0..heap.word(self.0 + HEIGHT)).rev() {
            let link = FORWARD + level * LEVEL;
            loop {
                let (next, loaded) = heap.load(memory, node + link, token);
                if next == NULL {
                    break;
                }
                let (other, read) = heap.load(memory, next + SCORE, loaded);
                if (other, heap.word(heap.word(next + STRING_OF))) >= (score, member) {
                    break;
                }
                (node, token) = (next, read);
            }
            path[level as usize] = node;
        }
        path
    }

    /// Returns every member in the order of scores.
    pub(super) fn members(self, space: &Space, memory: &mut dyn Memory, after: Token) -> Vec<u64> {
        let heap = &space.heap;
        let token = memory.load_range(self.0, SET, after);
        let (list, length) = (heap.word(self.0 + PACKED), heap.word(self.0 + LENGTH));
        if list != NULL {
            memory.load_range(list, (length * PACKED_WORDS).max(1) * WORD, token);
            let entries = heap.words(list, length * PACKED_WORDS).chunks(PACKED_WORDS as usize);
            return entries.map(|entry| entry[0]).collect();
        }
        let mut members = Vec::new();
        let (mut node, mut token) = heap.load(memory, heap.word(self.0 + HEAD) + FORWARD, token);
        while node != NULL {
            let string = heap.load(memory, node + STRING_OF, token).0;
            members.push(heap.load(memory, string, token).0);
            (node, token) = heap.load(memory, node + FORWARD, token);
        }
        members
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::CountingMemory;

    proptest! {
        #[test]
        fn members_stand_in_the_order_of_scores_packed_and_not(
            pairs in prop::collection::vec((0u64..300, 0u64..50), 1..400),
        ) {
            let (mut memory, mut space, mut levels) =
                (CountingMemory::default(), Space::new(1 << 20), Random::new(1));
            let set = SortedSet::new(&mut space, &mut memory);
            let (mut seen, mut expected) = (BTreeSet::new(), BTreeSet::new());
            for (member, score) in pairs {
                set.add(member, score, &mut space, &mut levels, &mut memory, Token::NONE);
                if seen.insert(member) {
                    expected.insert((score, member));
                }
            }
            let expected: Vec<u64> = expected.into_iter().map(|(_, member)| member).collect();
            prop_assert_eq!(set.members(&space, &mut memory, Token::NONE), expected);
        }
    }
}
