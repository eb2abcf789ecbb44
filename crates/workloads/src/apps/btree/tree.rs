//! The B+ tree: nodes with separate key and pointer arrays, on a heap.
//!
//! A full node splits in the middle; the separator goes to its parent. Searches compare keys in order.

use super::slab::Slab;
use crate::{Heap, Memory, NULL, Token, WORD};

/// Pointers of a node (the default order). A leaf holds one key less; its last pointer is the next leaf.
pub(super) const ORDER: u64 = 6;
/// Bytes of a node: pointers to its arrays and parent, leaf flag, number of keys, a counter, a queue link.
pub(super) const NODE: u64 = 56;
/// Bytes of a key or pointer array: the benchmark aligns them to lines.
pub(super) const ARRAY: u64 = 64;
/// Instructions for a node on the way down, beside the loads.
const DESCENT: u32 = 20;

const POINTERS: u64 = 0;
const KEYS: u64 = 8;
const PARENT: u64 = 16;
const LEAF: u64 = 24;
const COUNT: u64 = 32;

pub(super) const AHEAD: usize = 16;

/// Returns how many of a node's keys, a prefix of them, are `below`.
#[inline]
fn rank(node: u64, heap: &Heap, below: impl Fn(u64) -> bool) -> u64 {
    let count = heap.word(node + COUNT);
    let keys = heap.words(heap.word(node + KEYS), ORDER - 1);
    (0..).zip(keys).map(|(place, &key)| u64::from((place < count) & below(key))).sum()
}

/// The keys and pointers of a node under change, one more of each than it can hold.
struct Entries {
    keys: [u64; ORDER as usize],
    pointers: [u64; ORDER as usize + 1],
}

pub(super) struct Tree {
    root: u64,
    nodes: Slab,
}

impl Tree {
    pub(super) fn new() -> Self {
        Self { root: NULL, nodes: Slab::new(NODE, "btree node slab") }
    }

    fn make_node(&mut self, leaf: bool, heap: &mut Heap, memory: &mut dyn Memory) -> u64 {
        let (keys, pointers) = if leaf {
            ("btree leaf keys", "btree leaf pointers")
        } else {
            ("btree inner keys", "btree inner pointers")
        };
        let node = self.nodes.allocate(heap, memory);
        for (field, site) in [(KEYS, keys), (POINTERS, pointers)] {
            let array = heap.allocate(memory, ARRAY, site);
            memory.store(array, Token::NONE);
            heap.set_word(node + field, array);
        }
        heap.set_word(node + LEAF, u64::from(leaf));
        memory.store_range(node, NODE, Token::NONE);
        node
    }

    /// Returns the leaf that `key` belongs to, and the name of the pointer to it.
    fn find_leaf(&self, key: u64, heap: &Heap, memory: &mut dyn Memory) -> (u64, Token) {
        let (mut node, mut token) = (self.root, Token::NONE);
        loop {
            token = memory.load_range(node, COUNT + WORD, token);
            memory.compute(DESCENT);
            if heap.word(node + LEAF) == 1 {
                return (node, token);
            }
            let (keys, count) = (heap.word(node + KEYS), heap.word(node + COUNT));
            memory.load(keys, token);
            let child = heap.words(keys, count).iter().take_while(|&&other| key >= other).count() as u64;
            (node, token) = heap.load(memory, heap.word(node + POINTERS) + child * WORD, token);
        }
    }

    /// Reads natively what looking these keys up reads, level by level.
    pub(super) fn read_ahead(&self, keys: &[u64], heap: &Heap, memory: &dyn Memory) {
        if self.root == NULL || !memory.reads_ahead() {
            return;
        }
        let mut nodes = [self.root; AHEAD];
        // All leaves are on one level.
        while heap.word(nodes[0] + LEAF) == 0 {
            // Short loops, so that the processor sees the loads of many nodes at once.
            let arrays = nodes.map(|node| [KEYS, POINTERS].map(|field| heap.word(node + field)));
            std::hint::black_box(arrays.as_flattened().iter().fold(0, |sum, &array| sum ^ heap.word(array)));
            for (node, &key) in nodes.iter_mut().zip(keys) {
                let child = rank(*node, heap, |other| key >= other);
                *node = heap.word(heap.word(*node + POINTERS) + child * WORD);
            }
        }
        for (node, &key) in nodes.iter_mut().zip(keys) {
            let place = rank(*node, heap, |other| key > other).min(ORDER - 2);
            let found = heap.word(heap.word(*node + KEYS) + place * WORD) == key;
            let record = heap.word(heap.word(*node + POINTERS) + place * WORD);
            // A missing record is replaced by the leaf, whose first word is a pointer too.
            *node = [*node, record][usize::from(found)];
        }
        let elements = nodes.iter().take(keys.len()).map(|&record| heap.word(heap.word(record)));
        std::hint::black_box(elements.fold(0, |sum, word| sum ^ word));
    }

    pub(super) fn find(&self, key: u64, heap: &Heap, memory: &mut dyn Memory) -> Option<(u64, Token)> {
        if self.root == NULL {
            return None;
        }
        let (leaf, token) = self.find_leaf(key, heap, memory);
        let keys = heap.word(leaf + KEYS);
        memory.load(keys, token);
        let place = heap.words(keys, heap.word(leaf + COUNT)).iter().position(|&other| other == key)?;
        Some(heap.load(memory, heap.word(leaf + POINTERS) + place as u64 * WORD, token))
    }

    /// Adds a record. The benchmark's second descent, which hits the cache throughout, is left out.
    pub(super) fn insert(&mut self, key: u64, record: u64, heap: &mut Heap, memory: &mut dyn Memory) {
        if self.root == NULL {
            self.root = self.make_node(true, heap, memory);
        }
        let (leaf, token) = self.find_leaf(key, heap, memory);
        let keys = heap.word(leaf + KEYS);
        memory.load(keys, token);
        let place =
            heap.words(keys, heap.word(leaf + COUNT)).iter().take_while(|&&other| other < key).count();
        self.insert_at(leaf, (place, place), key, record, heap, memory);
    }

    /// Adds `key` and `pointer` to a node at these places of its arrays; splits a full node.
    fn insert_at(
        &mut self,
        node: u64,
        (key_place, pointer_place): (usize, usize),
        key: u64,
        pointer: u64,
        heap: &mut Heap,
        memory: &mut dyn Memory,
    ) {
        let leaf = heap.word(node + LEAF) == 1;
        let count = heap.word(node + COUNT) as usize;
        let pointers = count + usize::from(!leaf);
        let mut entries = Entries { keys: [0; ORDER as usize], pointers: [NULL; ORDER as usize + 1] };
        entries.keys[..count].copy_from_slice(heap.words(heap.word(node + KEYS), count as u64));
        let old = heap.words(heap.word(node + POINTERS), pointers as u64);
        entries.pointers[..pointers].copy_from_slice(old);
        entries.keys[key_place..=count].rotate_right(1);
        entries.keys[key_place] = key;
        entries.pointers[pointer_place..=pointers].rotate_right(1);
        entries.pointers[pointer_place] = pointer;
        memory.load(heap.word(node + POINTERS), Token::NONE);
        if count + 1 < ORDER as usize {
            fill(node, &entries.keys[..=count], &entries.pointers[..=pointers], heap, memory);
        } else if leaf {
            self.split_leaf(node, &entries, heap, memory);
        } else {
            self.split_inner(node, &entries, heap, memory);
        }
    }

    fn split_leaf(&mut self, leaf: u64, all: &Entries, heap: &mut Heap, memory: &mut dyn Memory) {
        let right = self.make_node(true, heap, memory);
        let cut = (ORDER as usize - 1).div_ceil(2);
        let link = (ORDER - 1) * WORD;
        let next = heap.word(heap.word(leaf + POINTERS) + link);
        fill(leaf, &all.keys[..cut], &all.pointers[..cut], heap, memory);
        fill(right, &all.keys[cut..], &all.pointers[cut..ORDER as usize], heap, memory);
        heap.set_word(heap.word(right + POINTERS) + link, next);
        heap.set_word(heap.word(leaf + POINTERS) + link, right);
        self.insert_into_parent(leaf, all.keys[cut], right, heap, memory);
    }

    fn split_inner(&mut self, node: u64, all: &Entries, heap: &mut Heap, memory: &mut dyn Memory) {
        let right = self.make_node(false, heap, memory);
        let cut = (ORDER as usize).div_ceil(2);
        fill(node, &all.keys[..cut - 1], &all.pointers[..cut], heap, memory);
        fill(right, &all.keys[cut..], &all.pointers[cut..], heap, memory);
        for &child in &all.pointers[cut..] {
            heap.store(memory, child + PARENT, right, Token::NONE);
        }
        self.insert_into_parent(node, all.keys[cut - 1], right, heap, memory);
    }

    fn insert_into_parent(
        &mut self,
        left: u64,
        key: u64,
        right: u64,
        heap: &mut Heap,
        memory: &mut dyn Memory,
    ) {
        let mut parent = heap.word(left + PARENT);
        if parent == NULL {
            parent = self.make_node(false, heap, memory);
            fill(parent, &[], &[left], heap, memory);
            heap.store(memory, left + PARENT, parent, Token::NONE);
            self.root = parent;
        }
        heap.store(memory, right + PARENT, parent, Token::NONE);
        let token = memory.load_range(parent, COUNT + WORD, Token::NONE);
        memory.load(heap.word(parent + POINTERS), token);
        let children = heap.words(heap.word(parent + POINTERS), heap.word(parent + COUNT) + 1);
        let place = children.iter().take_while(|&&child| child != left).count();
        self.insert_at(parent, (place, place + 1), key, right, heap, memory);
    }

    #[cfg(test)]
    fn first_leaf(&self, heap: &Heap) -> u64 {
        let mut node = self.root;
        while heap.word(node + LEAF) == 0 {
            node = heap.word(heap.word(node + POINTERS));
        }
        node
    }
}

/// Writes a node's keys and pointers, and clears the places behind; a leaf's link to the next one stays.
fn fill(node: u64, keys: &[u64], pointers: &[u64], heap: &mut Heap, memory: &mut dyn Memory) {
    let leaf = heap.word(node + LEAF) == 1;
    let (to_keys, to_pointers) = (heap.word(node + KEYS), heap.word(node + POINTERS));
    heap.words_mut(to_keys, keys.len() as u64).copy_from_slice(keys);
    let places = heap.words_mut(to_pointers, if leaf { ORDER - 1 } else { ORDER });
    places.fill(NULL);
    places[..pointers.len()].copy_from_slice(pointers);
    memory.store(to_keys, Token::NONE);
    memory.store(to_pointers, Token::NONE);
    heap.store(memory, node + COUNT, keys.len() as u64, Token::NONE);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::CountingMemory;

    fn keys_in_order(tree: &Tree, heap: &Heap) -> Vec<u64> {
        let (mut leaf, mut keys) = (tree.first_leaf(heap), Vec::new());
        while leaf != NULL {
            keys.extend_from_slice(heap.words(heap.word(leaf + KEYS), heap.word(leaf + COUNT)));
            leaf = heap.word(heap.word(leaf + POINTERS) + (ORDER - 1) * WORD);
        }
        keys
    }

    proptest! {
        #[test]
        fn it_is_the_map_of_what_was_inserted(keys in prop::collection::hash_set(0u64..5000, 1..600)) {
            let (mut memory, mut heap, mut tree) = (CountingMemory::default(), Heap::new(1 << 20), Tree::new());
            let map: BTreeMap<u64, u64> = keys.iter().map(|&key| (key, key + 1_000_000)).collect();
            keys.iter().for_each(|&key| tree.insert(key, map[&key], &mut heap, &mut memory));
            for key in 0..5000 {
                let found = tree.find(key, &heap, &mut memory).map(|(record, _)| record);
                prop_assert_eq!(found, map.get(&key).copied());
            }
            prop_assert_eq!(keys_in_order(&tree, &heap), map.into_keys().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_lookup_walks_from_the_root_each_step_after_the_one_before() {
        let (mut memory, mut heap, mut tree) = (CountingMemory::default(), Heap::new(1 << 20), Tree::new());
        (0..10_000).for_each(|key| tree.insert(key, key + 1, &mut heap, &mut memory));
        memory = CountingMemory::default();
        assert_eq!(tree.find(4711, &heap, &mut memory).expect("inserted").0, 4712);
        // Ascending insertion leaves nodes half full: 3 keys a leaf, 8 or 9 levels of 3 to 4 lines.
        assert!((8 * 3..=10 * 4).contains(&memory.loads), "{}", memory.loads);
    }
}
