//! The index: a B+ tree of wide nodes as in Masstree, for keys of one slice (8 bytes).
//!
//! A key above all others opens a new node and leaves the last one full, so that ascending insertion packs
//! the tree. A node's first word is its version: the leaf bit, a counter of changes, the number of keys.

use std::cell::RefCell;

use crate::{Heap, Memory, NULL, Token, WORD};

/// Keys of a node.
pub(crate) const WIDTH: u64 = 15;
/// Bytes of a node of either kind: five lines.
pub(crate) const NODE: u64 = 320;
/// Bytes that Masstree prefetches of a node.
const PREFETCHED: u64 = 256;
pub(super) const AHEAD: usize = 32;
/// Instructions for a node on the way down, beside the loads.
const DESCENT: u32 = 40;

const LEAF_BIT: u64 = 1;
const CHANGE: u64 = 2;
const COUNT_SHIFT: u32 = 32;
const NEXT: u64 = 280;

/// Offsets of keys, values (a leaf's tuples, an inner node's children) and parent in a kind of node.
struct Layout {
    keys: u64,
    values: u64,
    parent: u64,
}

const LEAF: Layout = Layout { keys: 32, values: 152, parent: 296 };
const INNER: Layout = Layout { keys: 8, values: 128, parent: 256 };

pub(crate) struct Tree {
    root: u64,
    /// Keys looked up ahead, and the nodes on their ways; forgotten when the tree changes.
    ahead: RefCell<Paths>,
}

#[derive(Debug, Default)]
struct Paths {
    keys: Vec<u64>,
    /// First of the keys not used since.
    next: usize,
    levels: Vec<[u64; AHEAD]>,
}

impl Paths {
    /// Returns the place of a key if it is the next.
    #[inline]
    fn take(&mut self, key: u64) -> Option<usize> {
        (self.keys.get(self.next) == Some(&key)).then(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

fn is_leaf(node: u64, heap: &Heap) -> bool {
    heap.word(node) & LEAF_BIT != 0
}

fn count(node: u64, heap: &Heap) -> u64 {
    heap.word(node) >> COUNT_SHIFT
}

fn layout(node: u64, heap: &Heap) -> &'static Layout {
    if is_leaf(node, heap) { &LEAF } else { &INNER }
}

fn keys(node: u64, heap: &Heap) -> &[u64] {
    heap.words(node + layout(node, heap).keys, count(node, heap))
}

/// Returns how many of a node's keys, a prefix of them, are `below`.
#[inline]
fn rank(node: u64, layout: &Layout, heap: &Heap, below: impl Fn(u64) -> bool) -> u64 {
    let count = count(node, heap);
    let keys = heap.words(node + layout.keys, WIDTH);
    (0..).zip(keys).map(|(place, &key)| u64::from((place < count) & below(key))).sum()
}

impl Tree {
    pub(crate) fn new(heap: &mut Heap, memory: &mut dyn Memory) -> Self {
        Self { root: make_node(true, heap, memory), ahead: RefCell::default() }
    }

    /// Returns the leaf that `key` belongs to, and the name of the pointer to it.
    fn find_leaf(&self, key: u64, heap: &Heap, memory: &mut dyn Memory) -> (u64, Token) {
        let (mut node, mut token) = (self.root, Token::NONE);
        let mut ahead = self.ahead.borrow_mut();
        if let Some(place) = ahead.take(key) {
            for level in &ahead.levels {
                node = level[place];
                token = heap.load_lines(memory, node, PREFETCHED, token);
                memory.compute(DESCENT);
            }
            return (node, token);
        }
        loop {
            token = heap.load_lines(memory, node, PREFETCHED, token);
            memory.compute(DESCENT);
            if is_leaf(node, heap) {
                return (node, token);
            }
            let child = rank(node, &INNER, heap, |other| key >= other);
            node = heap.word(node + INNER.values + child * WORD);
        }
    }

    /// Reads natively what looking these keys up reads, and `bytes` of each tuple, level by level.
    pub(crate) fn read_ahead(&self, keys: &[u64], bytes: u64, heap: &Heap, memory: &dyn Memory) {
        if !memory.reads_ahead() {
            return;
        }
        let mut ahead = self.ahead.borrow_mut();
        for keys in keys.chunks(AHEAD) {
            ahead.keys.clear();
            ahead.keys.extend_from_slice(keys);
            ahead.levels.clear();
            ahead.next = 0;
            let mut nodes = [self.root; AHEAD];
            // All leaves are on one level.
            while !is_leaf(nodes[0], heap) {
                ahead.levels.push(nodes);
                nodes.iter().take(keys.len()).for_each(|&node| heap.prefetch(node, PREFETCHED));
                for (node, &key) in nodes.iter_mut().zip(keys) {
                    let child = rank(*node, &INNER, heap, |other| key >= other);
                    *node = heap.word(*node + INNER.values + child * WORD);
                }
            }
            ahead.levels.push(nodes);
            nodes.iter().take(keys.len()).for_each(|&node| heap.prefetch(node, PREFETCHED));
            for (&node, &key) in nodes.iter().zip(keys) {
                let place = rank(node, &LEAF, heap, |other| key > other).min(WIDTH - 1);
                let found = heap.word(node + LEAF.keys + place * WORD) == key;
                let tuple = heap.word(node + LEAF.values + place * WORD);
                heap.prefetch([node, tuple][usize::from(found)], bytes);
            }
        }
    }

    /// Returns the tuple of `key`, and the name of the pointer to it.
    pub(crate) fn find(&self, key: u64, heap: &Heap, memory: &mut dyn Memory) -> Option<(u64, Token)> {
        let (leaf, token) = self.find_leaf(key, heap, memory);
        let place = keys(leaf, heap).iter().position(|&other| other == key)? as u64;
        Some(heap.load(memory, leaf + LEAF.values + place * WORD, token))
    }

    /// Visits up to `limit` tuples from `key` on in order, and each leaf with its version before its tuples.
    pub(crate) fn scan(
        &self,
        key: u64,
        limit: u64,
        heap: &Heap,
        memory: &mut dyn Memory,
        mut visit: impl FnMut(Visit, &mut dyn Memory),
    ) {
        let (mut leaf, mut token) = self.find_leaf(key, heap, memory);
        let mut left = limit;
        while left > 0 && leaf != NULL {
            visit(Visit::Leaf(leaf, heap.word(leaf)), memory);
            for (place, &other) in keys(leaf, heap).iter().enumerate() {
                if other >= key && left > 0 {
                    let (tuple, token) = heap.load(memory, leaf + LEAF.values + place as u64 * WORD, token);
                    visit(Visit::Tuple(tuple, token), memory);
                    left -= 1;
                }
            }
            (leaf, token) = heap.load(memory, leaf + NEXT, token);
            if leaf != NULL && left > 0 {
                token = heap.load_lines(memory, leaf, PREFETCHED, token);
            }
        }
    }

    pub(crate) fn insert(&mut self, key: u64, tuple: u64, heap: &mut Heap, memory: &mut dyn Memory) {
        let (leaf, _) = self.find_leaf(key, heap, memory);
        *self.ahead.get_mut() = Paths::default();
        let place = keys(leaf, heap).iter().take_while(|&&other| other < key).count() as u64;
        let (mut target, mut at) = (leaf, place);
        if count(leaf, heap) == WIDTH {
            let cut = if place == WIDTH && heap.word(leaf + NEXT) == NULL { WIDTH } else { WIDTH / 2 + 1 };
            let right = split_leaf(leaf, cut, heap, memory);
            if place >= cut {
                (target, at) = (right, place - cut);
            }
            put(target, at, at, key, tuple, heap, memory);
            let separator = keys(right, heap)[0];
            self.insert_into_parent(leaf, separator, right, heap, memory);
        } else {
            put(target, at, at, key, tuple, heap, memory);
        }
    }

    fn insert_into_parent(
        &mut self,
        left: u64,
        key: u64,
        right: u64,
        heap: &mut Heap,
        memory: &mut dyn Memory,
    ) {
        let parent_field = layout(left, heap).parent;
        let mut parent = heap.load(memory, left + parent_field, Token::NONE).0;
        if parent == NULL {
            parent = make_node(false, heap, memory);
            heap.set_word(parent + INNER.values, left);
            heap.store(memory, left + parent_field, parent, Token::NONE);
            self.root = parent;
        }
        heap.load_lines(memory, parent, PREFETCHED, Token::NONE);
        let children = heap.words(parent + INNER.values, count(parent, heap) + 1);
        let place = children.iter().take_while(|&&child| child != left).count() as u64;
        if count(parent, heap) == WIDTH {
            return self.split_inner(parent, place, key, right, heap, memory);
        }
        heap.store(memory, right + parent_field, parent, Token::NONE);
        put(parent, place, place + 1, key, right, heap, memory);
    }

    fn split_inner(
        &mut self,
        node: u64,
        place: u64,
        key: u64,
        right: u64,
        heap: &mut Heap,
        memory: &mut dyn Memory,
    ) {
        let mut all_keys = heap.words(node + INNER.keys, WIDTH).to_vec();
        let mut all_children = heap.words(node + INNER.values, WIDTH + 1).to_vec();
        all_keys.insert(place as usize, key);
        all_children.insert(place as usize + 1, right);
        let cut = if place == WIDTH { WIDTH as usize } else { WIDTH as usize / 2 + 1 };
        let other = make_node(false, heap, memory);
        for (target, keys, children) in [
            (node, &all_keys[..cut], &all_children[..=cut]),
            (other, &all_keys[cut + 1..], &all_children[cut + 1..]),
        ] {
            heap.words_mut(target + INNER.keys, keys.len() as u64).copy_from_slice(keys);
            heap.words_mut(target + INNER.values, children.len() as u64).copy_from_slice(children);
            set_count(target, keys.len() as u64, heap);
            memory.store_range(target, NODE, Token::NONE);
            for &child in children {
                let field = child + layout(child, heap).parent;
                if heap.word(field) != target {
                    heap.store(memory, field, target, Token::NONE);
                }
            }
        }
        self.insert_into_parent(node, all_keys[cut], other, heap, memory);
    }
}

pub(crate) enum Visit {
    /// A leaf and its version.
    Leaf(u64, u64),
    /// A tuple and the name of the pointer to it.
    Tuple(u64, Token),
}

fn make_node(leaf: bool, heap: &mut Heap, memory: &mut dyn Memory) -> u64 {
    let node = heap.allocate(memory, NODE, if leaf { "silo leaf" } else { "silo inner node" });
    memory.store_range(node, NODE, Token::NONE);
    heap.set_word(node, if leaf { LEAF_BIT } else { 0 });
    node
}

fn set_count(node: u64, count: u64, heap: &mut Heap) {
    let version = heap.word(node) & ((1 << COUNT_SHIFT) - 1);
    heap.set_word(node, (version.wrapping_add(CHANGE) & ((1 << COUNT_SHIFT) - 1)) | count << COUNT_SHIFT);
}

/// Adds a key and a value to a node that has room, at these places.
fn put(
    node: u64,
    key_place: u64,
    value_place: u64,
    key: u64,
    value: u64,
    heap: &mut Heap,
    memory: &mut dyn Memory,
) {
    let (layout, count) = (layout(node, heap), count(node, heap));
    let values = count + u64::from(!is_leaf(node, heap));
    for (field, place, count, value) in
        [(layout.keys, key_place, count, key), (layout.values, value_place, values, value)]
    {
        let words = heap.words_mut(node + field + place * WORD, count + 1 - place);
        words.rotate_right(1);
        words[0] = value;
        memory.store_range(node + field + place * WORD, (count + 1 - place) * WORD, Token::NONE);
    }
    set_count(node, count + 1, heap);
    memory.store(node, Token::NONE);
}

fn split_leaf(leaf: u64, cut: u64, heap: &mut Heap, memory: &mut dyn Memory) -> u64 {
    let right = make_node(true, heap, memory);
    let moved = WIDTH - cut;
    for field in [LEAF.keys, LEAF.values] {
        let words = heap.words(leaf + field + cut * WORD, moved).to_vec();
        heap.words_mut(right + field, moved).copy_from_slice(&words);
    }
    set_count(right, moved, heap);
    set_count(leaf, cut, heap);
    let next = heap.word(leaf + NEXT);
    heap.set_word(right + NEXT, next);
    heap.store(memory, leaf + NEXT, right, Token::NONE);
    memory.store(leaf, Token::NONE);
    right
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::CountingMemory;

    fn tree_of(keys: impl IntoIterator<Item = u64>) -> (Tree, Heap, CountingMemory) {
        let (mut heap, mut memory) = (Heap::new(1 << 20), CountingMemory::default());
        let mut tree = Tree::new(&mut heap, &mut memory);
        keys.into_iter().for_each(|key| tree.insert(key, key + 7, &mut heap, &mut memory));
        (tree, heap, memory)
    }

    fn scanned(tree: &Tree, from: u64, limit: u64, heap: &Heap, memory: &mut CountingMemory) -> Vec<u64> {
        let mut tuples = Vec::new();
        tree.scan(from, limit, heap, memory, |visit, _| {
            if let Visit::Tuple(tuple, _) = visit {
                tuples.push(tuple);
            }
        });
        tuples
    }

    proptest! {
        #[test]
        fn it_is_an_ordered_map(keys in prop::collection::hash_set(0u64..20_000, 1..2000), from in 0u64..20_000) {
            let (tree, heap, mut memory) = tree_of(keys.iter().copied());
            let map: BTreeMap<u64, u64> = keys.iter().map(|&key| (key, key + 7)).collect();
            for key in (0..20_000).step_by(7) {
                let found = tree.find(key, &heap, &mut memory).map(|(tuple, _)| tuple);
                prop_assert_eq!(found, map.get(&key).copied());
            }
            let expected: Vec<u64> = map.range(from..).map(|(_, &tuple)| tuple).take(100).collect();
            prop_assert_eq!(scanned(&tree, from, 100, &heap, &mut memory), expected);
        }
    }

    #[test]
    fn ascending_keys_fill_the_leaves() {
        let (tree, heap, mut memory) = tree_of(0..15_000);
        let sites = memory.allocations().iter().filter(|found| found.context == "silo leaf").count();
        assert_eq!(sites, 1000);
        assert_eq!(scanned(&tree, 0, 20_000, &heap, &mut memory).len(), 15_000);
    }
}
