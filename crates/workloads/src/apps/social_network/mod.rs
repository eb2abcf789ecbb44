//! `social-network`: composing posts in DeathStarBench's social network.
//!
//! **Left out.** Remote calls, serialisation, tracing (one number of instructions); separate servers (all
//! stores share one heap, and one thread serves a request); MongoDB's storage engine (documents lie on the
//! heap, indexed by a B+ tree, timeline documents by a hash table).

mod graph;
mod network;
mod sorted_set;

use isotherm_core::{Bytes, parameters};

use self::network::{Network, Request};
use crate::{Built, Memory, ObjectSize, Program, Random, Workload, paper, test};

/// Limits of a post's mentions, links and pictures, drawn from 1 on (the script's loops include both ends).
const MENTIONS: u64 = 6;
const LINKS: u64 = 6;
const MEDIA: u64 = 5;
/// Bytes that a post adds, all its copies included, and that a user starts with (measured).
const BYTES_PER_POST: u64 = 8500;
const BYTES_PER_USER: u64 = 2500;

parameters! {
    struct Settings {
        /// Posts composed; each adds about 8 KB.
        operations: u64 = count(1, 1 << 32, "12k").unit("posts")
            .source("ours: as many small objects as fit a run of seconds (NeoMem VI-A: at most 20 GB)"),
        /// Users; each has 39 followers on average.
        users: u64 = count(2, 1 << 32, "962").source("DeathStarBench's socfb-Reed98"),
        /// Threads that compose, in turn; one thread registers users.
        threads: u64 = count(1, 1024, "32").source("NeoMem VI-A"),
    }
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "social-network",
    title: "composing posts in a social network of small services",
    source: "DeathStarBench's social network, as run in NeoMem VI-A",
    object_size: ObjectSize::Small,
    objects: "24 bytes to 2 KB",
    hot_set_changes: true,
    hot_set: "grows: the ends of timelines, hash tables, skip lists",
    accesses: 40_215_164,
    specs: Settings::SPECS,
    presets: &[
        test(&[("operations", "1200"), ("users", "200")]),
        paper(
            "NeoMem VI-A: 10.3 to 19.7 GB resident, by benchmark",
            "The footprint of the paper.",
            &[("operations", "2M")],
        ),
    ],
    reference_footprint: Some(Bytes(17_000_000_000)),
    reference_cache: Some(Bytes(60 << 20)),
    peak: 1.7,
    builder: |parameters, seed| build(Settings::read(parameters), seed),
};

struct SocialNetwork {
    posts: u64,
    users: u64,
    threads: u64,
    seed: u64,
}

fn build(settings: Settings, seed: u64) -> Built {
    let Settings { operations: posts, users, threads } = settings;
    Ok(Box::new(SocialNetwork { posts, users, threads, seed }))
}

fn request(users: u64, random: &mut Random) -> Request {
    let user = random.below(users);
    let mentions = 1 + random.below(MENTIONS);
    let other = |_| (user + 1 + random.below(users - 1)) % users;
    let mentions = (0..mentions).map(other).collect();
    Request { user, mentions, links: 1 + random.below(LINKS), media: 1 + random.below(MEDIA) }
}

impl Program for SocialNetwork {
    fn footprint(&self) -> Bytes {
        Bytes(self.posts * BYTES_PER_POST + self.users * BYTES_PER_USER)
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        memory.thread(0);
        let bytes = self.footprint().0 + self.footprint().0 / 4;
        let mut network = Network::new(self.users, bytes, self.seed, memory);
        let mut random = Random::new(self.seed);
        for post in 0..self.posts {
            if post % 16 == 0 && memory.finished() {
                return;
            }
            memory.thread((post % self.threads) as u16);
            network.compose(&request(self.users, &mut random), memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::CountingMemory;

    #[test]
    fn every_timeline_holds_the_posts_meant_for_it() {
        let (mut memory, mut random) = (CountingMemory::default(), Random::new(3));
        let mut network = Network::new(60, 8 << 20, 1, &mut memory);
        let mut home = vec![BTreeSet::new(); 60];
        let mut own = vec![Vec::new(); 60];
        let mut authors = Vec::new();
        for _ in 0..1200 {
            let request = request(60, &mut random);
            let post = network.compose(&request, &mut memory);
            assert_eq!(post, authors.len() as u64);
            authors.push(request.user);
            own[request.user as usize].push(post);
            for reader in network.followers(request.user, &mut memory).into_iter().chain(request.mentions) {
                home[reader as usize].insert(post);
            }
        }
        for user in 0..60 {
            let expected: Vec<u64> = home[user as usize].iter().copied().collect();
            assert!(expected.len() > 128, "long enough for a skip list");
            assert_eq!(network.home_timeline(user, &mut memory), expected);
            let [cached, stored] = network.user_timeline(user, &mut memory);
            assert_eq!((&cached, &stored), (&own[user as usize], &own[user as usize]));
        }
        let found = (0..1200).map(|post| network.author(post, &mut memory));
        assert!(found.eq(authors.into_iter().map(Some)));
    }

    #[test]
    fn the_footprint_is_what_posts_and_users_take() {
        let mut memory = CountingMemory::default();
        let program = SocialNetwork { posts: 2000, users: 300, threads: 1, seed: 1 };
        let footprint = program.footprint().0 as f64;
        Box::new(program).run(&mut memory);
        let all = memory.allocations();
        let end = all.last().map_or(0, |last| last.start + last.bytes) - all[0].start;
        assert!((end as f64 / footprint - 1.0).abs() < 0.1, "{end} of {footprint}");
    }
}
