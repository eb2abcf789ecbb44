//! The B-tree: look-ups of keys, most of them in a range of hot keys.
//!
//! A node is a page: 256 keys, and behind them as many values (of a leaf) or pages (of an inner node). Three
//! levels hold up to 65,536 leaves, which lie in memory in a random order. A look-up searches each node by
//! bisection and checks the value found, which follows from its key; the checksum depends only on the seed
//! and the number of look-ups.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crate::arguments::Arguments;
use crate::memory::{Mapping, PAGE, WORDS};
use crate::planted::say_started;
use crate::random::{Random, mix};
use crate::{Failure, ensure};

/// Keys per node.
const KEYS: usize = WORDS / 2;
/// Distance between neighbouring keys.
const STEP: u64 = 3;

struct Tree {
    memory: Mapping,
    /// The page of each leaf, in the order of keys.
    leaves: Vec<u32>,
    root: u32,
}

pub(crate) fn run(arguments: &mut Arguments) -> Result<(), Failure> {
    let leaves = arguments.size("size", 16 << 20)? / PAGE;
    let hot = ((leaves as f64 * arguments.share("hot", 0.125)?).round() as usize).clamp(1, leaves);
    let share = (arguments.share("share", 0.9)? * 4_294_967_296.0) as u64;
    let (limit, seed) = (arguments.limit()?, arguments.number("seed", 1)?);
    let turn = arguments.number("move-after", u64::MAX)?;
    arguments.finish()?;
    if leaves > KEYS * KEYS {
        return Err(Failure::Usage(format!("--size: a tree has at most {} leaves", KEYS * KEYS)));
    }
    let mut random = Random::new(seed);
    let tree = Tree::build(leaves, &mut random)?;
    say_started()?;
    let (start, quarter) = (Instant::now(), (leaves - hot) / 4);
    let (mut done, mut checksum) = (0, 0u64);
    while limit.goes_on(start, done) {
        let first = if done < turn { quarter } else { 3 * quarter };
        let is_hot = random.next() >> 32 < share;
        let (first, leaves) = if is_hot { (first, hot) } else { (0, leaves) };
        let key = (first * KEYS + random.below(leaves * KEYS)) as u64 * STEP;
        checksum = checksum.rotate_left(5).wrapping_add(tree.look_up(key)?);
        done += 1;
    }
    tree.check()?;
    println!("btree: operations {done} checksum {checksum:016x}");
    Ok(())
}

impl Tree {
    fn build(leaves: usize, random: &mut Random) -> Result<Self, Failure> {
        let inner = leaves.div_ceil(KEYS);
        let memory = Mapping::new((leaves + inner + 1) * PAGE)?;
        let mut order: Vec<u32> = (0..memory.pages() as u32).collect();
        random.shuffle(&mut order);
        let tree = Self { memory, leaves: order[..leaves].to_vec(), root: order[leaves + inner] };
        for (leaf, &page) in tree.leaves.iter().enumerate() {
            let first = (leaf * KEYS) as u64;
            tree.fill(page, (first..first + KEYS as u64).map(|at| (at * STEP, value(at * STEP))));
        }
        let child =
            |stride: usize| move |(at, &page): (usize, &u32)| ((at * stride) as u64 * STEP, u64::from(page));
        for (number, children) in tree.leaves.chunks(KEYS).enumerate() {
            let first = (number * KEYS * KEYS) as u64 * STEP;
            let entries = children.iter().enumerate().map(child(KEYS));
            tree.fill(order[leaves + number], entries.map(|(key, page)| (key + first, page)));
        }
        tree.fill(tree.root, order[leaves..leaves + inner].iter().enumerate().map(child(KEYS * KEYS)));
        Ok(tree)
    }

    /// Fills a node; unused entries have keys that no look-up reaches.
    fn fill(&self, page: u32, entries: impl Iterator<Item = (u64, u64)>) {
        let words = &self.memory.words()[page as usize * WORDS..][..WORDS];
        let mut filled = 0;
        for (at, (key, value)) in entries.enumerate() {
            words[at].store(key, Relaxed);
            words[KEYS + at].store(value, Relaxed);
            filled = at + 1;
        }
        words[filled..KEYS].iter().for_each(|word| word.store(u64::MAX, Relaxed));
    }

    /// Returns the word beside the last key of a node that is not above `key`.
    fn search(&self, page: u64, key: u64) -> u64 {
        let words = &self.memory.words()[page as usize * WORDS..][..WORDS];
        let (mut low, mut high) = (0, KEYS);
        while low < high {
            let middle = (low + high) / 2;
            if words[middle].load(Relaxed) <= key { low = middle + 1 } else { high = middle }
        }
        words[KEYS + low.saturating_sub(1)].load(Relaxed)
    }

    fn look_up(&self, key: u64) -> Result<u64, Failure> {
        let mut page = u64::from(self.root);
        for _ in 0..2 {
            page = self.search(page, key);
            ensure(page < self.memory.pages() as u64, || format!("btree: key {key} leads to page {page}"))?;
        }
        let found = self.search(page, key);
        ensure(found == value(key), || format!("btree: key {key} has {found:#x}"))?;
        Ok(found)
    }

    /// Fails unless every leaf holds what it was filled with.
    fn check(&self) -> Result<(), Failure> {
        for (leaf, &page) in self.leaves.iter().enumerate() {
            let words = &self.memory.words()[page as usize * WORDS..][..WORDS];
            let (keys, values) = words.split_at(KEYS);
            for (at, (key_word, value_word)) in keys.iter().zip(values).enumerate() {
                let key = (leaf * KEYS + at) as u64 * STEP;
                let found = (key_word.load(Relaxed), value_word.load(Relaxed));
                ensure(found == (key, value(key)), || {
                    format!("btree: at the end, leaf {leaf} holds {found:x?} at {at}")
                })?;
            }
        }
        Ok(())
    }
}

fn value(key: u64) -> u64 {
    mix(key + 1)
}
