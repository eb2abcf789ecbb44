//! `redis`: Redis' data structures under YCSB-C.
//!
//! A lookup writes the access clock; the request comes from the query buffer and the reply is copied to the
//! client's. **Left out.** The short-lived objects of a command's arguments, the sorted set of all keys that
//! YCSB's binding keeps for scans, the millisecond of rehashing that Redis' timer adds, sockets, and
//! jemalloc's size classes (objects follow each other in time, at multiples of 16 bytes).

pub(super) mod dict;

use isotherm_core::{Bytes, parameters};

use self::dict::{Dict, Space};
use crate::{Built, Memory, ObjectSize, Program, Random, Token, WORD, Workload, Zipf, mix, paper, test};

/// Fields of a record (YCSB).
const FIELDS: u64 = 10;
/// Bytes of a key's string: "user" and nineteen digits with header and end.
const KEY: u64 = 32;
/// Bytes of a field name's string: "field0" with header and end.
const FIELD: u64 = 8;
/// Bytes of a value's string: 100 with header and end.
const VALUE: u64 = 104;
/// Bytes of an object: type, encoding, access clock, references, pointer.
const OBJECT: u64 = 16;
const POINTER: u64 = 8;
/// Bytes of a client's query buffer and of its reply buffer.
const BUFFER: u64 = 16 << 10;
/// Bytes of a request: "HGETALL" and a key, in Redis' protocol.
const REQUEST: u64 = 48;
/// Bytes of a record on the heap at 16-byte alignment, with its tables and its share of the main table.
const RECORD: u64 = KEY + 2 * 16 + OBJECT + 64 + 64 + 128 + FIELDS * (2 * 16 + 16 + 112) + 3 * WORD;
/// Bytes of a record's objects from the hash' object on, when nothing else is allocated between them.
const OBJECTS: u64 = OBJECT + KEY + 32 + FIELDS * (16 + 112 + 32) + 128;
const AHEAD: u64 = 8;
/// Instructions of a command beside the loads: event loop, system calls' user side, parsing, reply.
const COMMAND_INSTRUCTIONS: u32 = 4000;

parameters! {
    struct Settings {
        /// Memory of the records; sets their number.
        footprint: Bytes = size(1 << 20, 1 << 42, "64M").source("ours: 34,000 records of 35 objects"),
        /// Reads of a record.
        operations: u64 = count(1, 1 << 40, "2M").unit("commands").source("ours: a run of seconds"),
        /// Connections that send commands in turn; the server has one thread.
        clients: u64 = count(1, 10_000, "1").source("YCSB's default; PACT does not say"),
    }
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "redis",
    title: "Redis' hash tables under YCSB-C",
    source: "Redis 7 and YCSB's binding for it, as run in PACT 5.10",
    object_size: ObjectSize::Small,
    objects: "8 to 128 bytes, 35 a record",
    hot_set_changes: false,
    hot_set: "stable: popular records, scattered",
    accesses: 165_341_200,
    specs: Settings::SPECS,
    presets: &[
        test(&[("footprint", "4M"), ("operations", "10k")]),
        paper(
            "PACT 5.10: 19 GB resident",
            "The footprint of the paper.",
            &[("footprint", "18G"), ("operations", "500M")],
        ),
    ],
    reference_footprint: Some(Bytes(18 << 30)),
    reference_cache: Some(Bytes((55 << 20) / 4)),
    peak: 1.8,
    builder: |parameters, seed| build(Settings::read(parameters), seed),
};

struct Redis {
    records: u64,
    commands: u64,
    clients: u64,
    seed: u64,
}

fn build(settings: Settings, seed: u64) -> Built {
    let Settings { footprint, operations: commands, clients } = settings;
    Ok(Box::new(Redis { records: footprint.0 / RECORD, commands, clients, seed }))
}

#[derive(Debug, Clone, Copy)]
struct Client {
    query: u64,
    reply: u64,
}

struct Server {
    space: Space,
    keys: Dict,
    clients: Vec<Client>,
    clock: u64,
    /// The reply under way, in registers and on the stack of the original.
    reply: Vec<u64>,
}

fn content(record: u64, field: u64) -> u64 {
    mix(record * FIELDS + field)
}

impl Server {
    fn new(redis: &Redis, memory: &mut dyn Memory) -> Self {
        let mut space =
            Space::new(redis.footprint().0 + redis.footprint().0 / 8 + redis.clients * 2 * BUFFER);
        let keys = Dict::new(&mut space, memory);
        let client = |_| Client {
            query: space.heap.allocate(memory, BUFFER, "redis query buffer"),
            reply: space.heap.allocate(memory, BUFFER, "redis reply buffer"),
        };
        let clients = (0..redis.clients).map(client).collect();
        Self { space, keys, clients, clock: 0, reply: Vec::new() }
    }

    fn string(&mut self, bytes: u64, id: u64, context: &'static str, memory: &mut dyn Memory) -> u64 {
        let string = self.space.heap.allocate(memory, bytes, context);
        self.space.heap.words_mut(string, bytes / WORD).fill(id);
        memory.store_range(string, bytes, Token::NONE);
        string
    }

    fn add(&mut self, record: u64, client: Client, memory: &mut dyn Memory) {
        memory.compute(COMMAND_INSTRUCTIONS);
        memory.load_range(client.query, REQUEST + FIELDS * (FIELD + VALUE), Token::NONE);
        let hash = Dict::new(&mut self.space, memory);
        let object = self.space.heap.allocate(memory, OBJECT, "redis object");
        self.space.heap.set_word(object + POINTER, hash.0);
        memory.store(object, Token::NONE);
        let key = self.string(KEY, record, "redis key string", memory);
        self.keys.add(key, object, "redis key entry", &mut self.space, memory);
        for field in 0..FIELDS {
            let name = self.string(FIELD, field, "redis field string", memory);
            let value = self.string(VALUE, content(record, field), "redis value string", memory);
            hash.add(name, value, "redis field entry", &mut self.space, memory);
        }
    }

    /// Reads ahead, natively, what HGETALL of these records reads: each record's objects lie together.
    fn read_ahead(&self, records: &[u64], memory: &dyn Memory) {
        if !memory.reads_ahead() {
            return;
        }
        let heap = &self.space.heap;
        let found: Vec<u64> = records.iter().filter_map(|&record| self.keys.peek(record, heap)).collect();
        found.iter().for_each(|&object| heap.read_ahead(object, OBJECTS));
    }

    /// Runs HGETALL: copies every field and value to the reply; returns the values' sum.
    fn get_all(&mut self, record: u64, client: Client, memory: &mut dyn Memory) -> Option<u64> {
        memory.compute(COMMAND_INSTRUCTIONS);
        let request = memory.load_range(client.query, REQUEST, Token::NONE);
        let (object, token) = self.keys.find(record, &mut self.space, memory, request)?;
        let (hash, token) = self.space.heap.load(memory, object + POINTER, token);
        self.clock += 1;
        self.space.heap.store(memory, object, self.clock, token);
        let (heap, reply) = (&self.space.heap, &mut self.reply);
        reply.clear();
        Dict(hash).for_each(heap, memory, token, |name, value, token, memory| {
            reply.push(heap.load(memory, name, token).0);
            memory.load_range(value, VALUE, token);
            reply.extend_from_slice(heap.words(value, VALUE / WORD));
        });
        memory.store_range(client.reply, reply.len() as u64 * WORD, Token::NONE);
        self.space.heap.words_mut(client.reply, reply.len() as u64).copy_from_slice(reply);
        let values = reply.chunks(1 + (VALUE / WORD) as usize).map(|field| field[1]);
        Some(values.fold(0, u64::wrapping_add))
    }
}

impl Program for Redis {
    fn footprint(&self) -> Bytes {
        Bytes(self.records * RECORD)
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        memory.thread(0);
        let mut server = Server::new(&self, memory);
        for record in 0..self.records {
            if record % 256 == 0 && memory.finished() {
                return;
            }
            let client = server.clients[(record % self.clients) as usize];
            server.add(record, client, memory);
        }
        let (mut random, zipf, mut sum) = (Random::new(self.seed), Zipf::scrambled(), 0u64);
        for first in (0..self.commands).step_by(AHEAD as usize) {
            if first % 256 == 0 && memory.finished() {
                return;
            }
            let batch = first..self.commands.min(first + AHEAD);
            let records: Vec<u64> = batch.clone().map(|_| zipf.key(self.records, &mut random)).collect();
            server.read_ahead(&records, memory);
            for (command, record) in batch.zip(records) {
                let client = server.clients[(command % self.clients) as usize];
                sum = sum.wrapping_add(server.get_all(record, client, memory).unwrap_or(0));
            }
        }
        std::hint::black_box(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::dict::ENTRY;
    use super::*;
    use crate::CountingMemory;

    #[test]
    fn a_record_is_read_as_it_was_written_and_only_if_it_is_there() {
        let (mut memory, redis) =
            (CountingMemory::default(), Redis { records: 500, commands: 1, clients: 2, seed: 1 });
        let mut server = Server::new(&redis, &mut memory);
        let client = server.clients[1];
        for record in 0..500 {
            server.add(record, client, &mut memory);
            let expected = (0..FIELDS).fold(0u64, |sum, field| sum.wrapping_add(content(record / 2, field)));
            assert_eq!(server.get_all(record / 2, client, &mut memory), Some(expected));
            assert_eq!(server.get_all(record + 1, client, &mut memory), None);
        }
        assert_eq!(server.keys.len(&server.space.heap), 500);
    }

    #[test]
    fn a_record_is_thirty_five_objects_and_takes_what_the_footprint_counts() {
        let mut memory = CountingMemory::default();
        Box::new(Redis { records: 4096, commands: 1, clients: 1, seed: 1 }).run(&mut memory);
        let all = memory.allocations();
        assert!((all.len() as f64 / 4096.0 - 35.0).abs() < 2.0, "{}", all.len());
        let entries = all.iter().filter(|found| found.context == "redis field entry");
        assert!(
            entries.clone().count() == 4096 * FIELDS as usize
                && entries.clone().all(|found| found.bytes == ENTRY)
        );
        let end = all.last().map_or(0, |last| last.start + last.bytes) - all[0].start;
        assert!((end as f64 / (4096 * RECORD) as f64 - 1.0).abs() < 0.03, "{end}");
    }
}
