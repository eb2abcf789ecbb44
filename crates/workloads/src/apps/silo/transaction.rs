//! Optimistic transactions over the index: reads note versions, a commit locks, validates and writes.
//!
//! As in Silo (Tu et al., SOSP 2013, section 4), it writes in place, with a version above all that it saw.

use super::tree::{AHEAD, Tree, Visit};
use crate::{Heap, Memory, Token, WORD};

/// Bytes of a tuple: header, version, sizes, link and a value of 100 bytes, rounded up.
pub(super) const TUPLE: u64 = 128;
/// Bytes of it that are in use.
const USED: u64 = 124;
const VERSION: u64 = 8;
const VALUE: u64 = 24;
const LOCKED: u64 = 1;
/// Instructions of a commit, beside loads and stores.
const COMMIT: u32 = 150;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Read(u64),
    /// Writes a value without reading it.
    Update(u64),
    Insert(u64),
    /// Adds one to the value.
    ReadModifyWrite(u64),
    /// Reads this many tuples from a key on.
    Scan(u64, u64),
}

#[derive(Debug, Default)]
pub(super) struct Transaction {
    /// Tuples and their versions, then leaves and theirs.
    reads: Vec<(u64, u64)>,
    leaves: Vec<(u64, u64)>,
    write: Option<Write>,
    /// The sum of the values read.
    pub sum: u64,
}

#[derive(Debug, Clone, Copy)]
struct Write {
    tuple: u64,
    value: u64,
    after: Token,
    /// A new tuple, locked since it was put into the index.
    inserted: bool,
}

pub(super) struct Store {
    pub heap: Heap,
    tree: Tree,
    spare: Vec<Transaction>,
}

impl Store {
    pub(super) fn new(bytes: u64, memory: &mut dyn Memory) -> Self {
        let mut heap = Heap::new(bytes);
        let tree = Tree::new(&mut heap, memory);
        Self { heap, tree, spare: Vec::new() }
    }

    pub(super) fn read_ahead(&self, operations: &[Operation], memory: &dyn Memory) {
        let key = |operation: &Operation| match *operation {
            Operation::Read(key) | Operation::Update(key) | Operation::Insert(key) => key,
            Operation::ReadModifyWrite(key) | Operation::Scan(key, _) => key,
        };
        for operations in operations.chunks(AHEAD) {
            let mut keys = [0; AHEAD];
            keys.iter_mut().zip(operations).for_each(|(place, operation)| *place = key(operation));
            self.tree.read_ahead(&keys[..operations.len()], USED, &self.heap, memory);
        }
    }

    /// Does everything but the commit; `value` is what an update or insertion will write.
    pub(super) fn execute(
        &mut self,
        operation: Operation,
        value: u64,
        memory: &mut dyn Memory,
    ) -> Transaction {
        let mut transaction = self.spare.pop().unwrap_or_default();
        match operation {
            Operation::Read(key) => _ = self.read(key, &mut transaction, memory),
            Operation::Update(key) => {
                let found = self.tree.find(key, &self.heap, memory);
                transaction.write =
                    found.map(|(tuple, after)| Write { tuple, value, after, inserted: false });
            }
            Operation::ReadModifyWrite(key) => {
                let found = self.read(key, &mut transaction, memory);
                let value = transaction.sum + 1;
                transaction.write =
                    found.map(|(tuple, after)| Write { tuple, value, after, inserted: false });
            }
            Operation::Insert(key) => {
                let tuple = self.insert(key, memory);
                transaction.write = Some(Write { tuple, value, after: Token::NONE, inserted: true });
            }
            Operation::Scan(key, limit) => self.scan(key, limit, &mut transaction, memory),
        }
        transaction
    }

    pub(super) fn recycle(&mut self, mut transaction: Transaction) {
        transaction.reads.clear();
        transaction.leaves.clear();
        (transaction.write, transaction.sum) = (None, 0);
        self.spare.push(transaction);
    }

    fn read(&self, key: u64, transaction: &mut Transaction, memory: &mut dyn Memory) -> Option<(u64, Token)> {
        let (tuple, token) = self.tree.find(key, &self.heap, memory)?;
        transaction.read_tuple(tuple, token, &self.heap, memory);
        Some((tuple, token))
    }

    fn scan(&self, key: u64, limit: u64, transaction: &mut Transaction, memory: &mut dyn Memory) {
        self.tree.scan(key, limit, &self.heap, memory, |visit, memory| match visit {
            Visit::Leaf(leaf, version) => transaction.leaves.push((leaf, version)),
            Visit::Tuple(tuple, token) => transaction.read_tuple(tuple, token, &self.heap, memory),
        });
    }

    fn insert(&mut self, key: u64, memory: &mut dyn Memory) -> u64 {
        let tuple = self.heap.allocate(memory, TUPLE, "silo tuple");
        self.heap.store(memory, tuple, LOCKED, Token::NONE);
        self.tree.insert(key, tuple, &mut self.heap, memory);
        tuple
    }

    /// Returns whether what the transaction read still holds; then its write is done.
    pub(super) fn commit(&mut self, transaction: &Transaction, memory: &mut dyn Memory) -> bool {
        memory.compute(COMMIT);
        if let Some(write) = transaction.write.filter(|write| !write.inserted) {
            memory.load(write.tuple, write.after);
            self.heap.store(memory, write.tuple, LOCKED, write.after);
        }
        let tuples = transaction.reads.iter().map(|(tuple, version)| (tuple + VERSION, version));
        let leaves = transaction.leaves.iter().map(|(leaf, version)| (*leaf, version));
        let valid = tuples.chain(leaves).all(|(address, &version)| {
            memory.load(address, Token::NONE);
            self.heap.word(address) == version
        });
        if let Some(write) = transaction.write {
            if valid {
                self.write(write, transaction.newest(), memory);
            }
            self.heap.set_word(write.tuple, 0);
        }
        valid
    }

    /// Writes a locked tuple, with a version above `newest`.
    fn write(&mut self, write: Write, newest: u64, memory: &mut dyn Memory) {
        let version = newest.max(self.heap.word(write.tuple + VERSION)) + 1;
        self.heap.set_word(write.tuple + VERSION, version);
        let words = self.heap.words_mut(write.tuple + VALUE, (TUPLE - VALUE) / WORD);
        words.fill(write.value);
        memory.store_range(write.tuple, USED, write.after);
    }
}

impl Transaction {
    fn read_tuple(&mut self, tuple: u64, after: Token, heap: &Heap, memory: &mut dyn Memory) {
        heap.load_lines(memory, tuple, USED, after);
        self.reads.push((tuple, heap.word(tuple + VERSION)));
        self.sum = self.sum.wrapping_add(heap.word(tuple + VALUE));
    }

    fn newest(&self) -> u64 {
        self.reads.iter().map(|&(_, version)| version).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;
    use crate::random::Random;

    fn store_of(keys: u64) -> (Store, CountingMemory) {
        let mut memory = CountingMemory::default();
        let mut store = Store::new(1 << 20, &mut memory);
        for key in 0..keys {
            let transaction = store.execute(Operation::Insert(key), 0, &mut memory);
            assert!(store.commit(&transaction, &mut memory));
        }
        (store, memory)
    }

    #[test]
    fn increments_of_many_threads_are_neither_lost_nor_done_twice() {
        let (mut store, mut memory) = store_of(10);
        let mut random = Random::new(1);
        let mut pending: Vec<Option<Transaction>> = (0..8).map(|_| None).collect();
        let (mut committed, mut aborted) = (0, 0);
        for step in 0..8000 {
            if let Some(transaction) = pending[step % 8].take() {
                if store.commit(&transaction, &mut memory) { committed += 1 } else { aborted += 1 }
            }
            let operation = Operation::ReadModifyWrite(random.below(10));
            pending[step % 8] = Some(store.execute(operation, 0, &mut memory));
        }
        let sum = store.execute(Operation::Scan(0, 10), 0, &mut memory).sum;
        assert_eq!(sum, committed);
        assert!(aborted > 1000, "eight threads on ten keys conflict: {aborted}");
    }

    #[test]
    fn a_reader_of_a_changed_tuple_and_a_scan_past_a_new_key_abort() {
        let (mut store, mut memory) = store_of(20);
        let reader = store.execute(Operation::Read(3), 0, &mut memory);
        let other = store.execute(Operation::Read(4), 0, &mut memory);
        let writer = store.execute(Operation::Update(3), 9, &mut memory);
        assert!(store.commit(&writer, &mut memory));
        assert!(!store.commit(&reader, &mut memory));
        assert!(store.commit(&other, &mut memory));
        assert_eq!(store.execute(Operation::Read(3), 0, &mut memory).sum, 9);
        let scan = store.execute(Operation::Scan(0, 100), 0, &mut memory);
        let insertion = store.execute(Operation::Insert(20), 5, &mut memory);
        assert!(store.commit(&insertion, &mut memory));
        assert!(!store.commit(&scan, &mut memory));
    }
}
