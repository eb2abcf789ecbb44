//! The services and their stores.

use super::graph::friendships;
use super::sorted_set::SortedSet;
use crate::apps::redis::dict::{Dict, Space};
use crate::apps::silo::tree::Tree;
use crate::{Memory, Random, Token, WORD, mix};

/// Bytes of a user's name in the cache of mentions: "username_123", header, identifier.
const USER: u64 = 64;
/// Bytes of a post's document beside text and lists: identifiers, creator, field names.
const POST: u64 = 300;
/// Characters of a post's text (the benchmark's script).
const TEXT: u64 = 256;
/// Bytes that a mention, link and picture adds to a post's document: field names, address, identifier.
const MENTION: u64 = 70;
const LINK: u64 = 190;
const MEDIA: u64 = 80;
/// Bytes of a shortened address' document: both addresses.
const URL: u64 = 176;
/// Words of an entry of a user timeline's document: index, field names, post, time (46 bytes of BSON).
const ENTRY: u64 = 6;
/// Instructions of a request: ten services parse, call and answer.
const REQUEST_INSTRUCTIONS: u32 = 100_000;

/// One Redis server's sorted sets by user.
#[derive(Debug, Clone, Copy)]
struct Sets(Dict);

impl Sets {
    /// Returns a user's set, which it makes if necessary, and the name of the pointer to it.
    fn of(self, user: u64, space: &mut Space, memory: &mut dyn Memory) -> (SortedSet, Token) {
        if let Some((set, token)) = self.0.find(user, space, memory, Token::NONE) {
            return (SortedSet(set), token);
        }
        let set = SortedSet::new(space, memory);
        let key = space.block(4, "redis key string", memory);
        space.heap.set_word(key, user);
        self.0.add(key, set.0, "redis key entry", space, memory);
        (set, Token::NONE)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Request {
    pub user: u64,
    pub mentions: Vec<u64>,
    pub links: u64,
    pub media: u64,
}

pub(super) struct Network {
    pub space: Space,
    levels: Random,
    followers: Sets,
    home_timelines: Sets,
    user_timelines: Sets,
    users: Dict,
    timeline_documents: Dict,
    posts: Tree,
    links: Tree,
    posted: u64,
    shortened: u64,
}

impl Network {
    pub(super) fn new(users: u64, bytes: u64, seed: u64, memory: &mut dyn Memory) -> Self {
        let mut space = Space::new(bytes);
        let [followers, home_timelines, user_timelines] =
            [(); 3].map(|()| Sets(Dict::new(&mut space, memory)));
        let [users_by_name, timeline_documents] = [(); 2].map(|()| Dict::new(&mut space, memory));
        let [posts, links] = [(); 2].map(|()| Tree::new(&mut space.heap, memory));
        let mut network = Self {
            space,
            levels: Random::new(mix(seed)),
            followers,
            home_timelines,
            user_timelines,
            users: users_by_name,
            timeline_documents,
            posts,
            links,
            posted: 0,
            shortened: 0,
        };
        for user in 0..users {
            if memory.finished() {
                return network;
            }
            network.register(user, memory);
        }
        for (one, other) in friendships(users, &mut Random::new(seed)) {
            if memory.finished() {
                return network;
            }
            network.follow(one, other, memory);
            network.follow(other, one, memory);
        }
        network
    }

    fn register(&mut self, user: u64, memory: &mut dyn Memory) {
        let item = self.space.block(USER / WORD, "memcached user", memory);
        self.space.heap.set_word(item, user);
        self.users.add(item, item, "memcached user entry", &mut self.space, memory);
    }

    fn follow(&mut self, follower: u64, followed: u64, memory: &mut dyn Memory) {
        let (set, token) = self.followers.of(followed, &mut self.space, memory);
        set.add(follower, follower, &mut self.space, &mut self.levels, memory, token);
    }

    pub(super) fn compose(&mut self, request: &Request, memory: &mut dyn Memory) -> u64 {
        memory.compute(REQUEST_INSTRUCTIONS);
        let post = self.posted;
        self.posted += 1;
        (0..request.links).for_each(|_| self.shorten(memory));
        for &user in &request.mentions {
            if let Some((item, token)) = self.users.find(user, &mut self.space, memory, Token::NONE) {
                memory.load(item, token);
            }
        }
        self.store_post(post, request, memory);
        self.write_user_timeline(request.user, post, memory);
        self.write_home_timelines(post, request, memory);
        post
    }

    fn shorten(&mut self, memory: &mut dyn Memory) {
        let document = self.space.heap.allocate(memory, URL, "mongo url");
        self.space.heap.words_mut(document, URL / WORD).fill(self.shortened);
        memory.store_range(document, URL, Token::NONE);
        self.links.insert(mix(self.shortened), document, &mut self.space.heap, memory);
        self.shortened += 1;
    }

    fn store_post(&mut self, post: u64, request: &Request, memory: &mut dyn Memory) {
        let parts = request.mentions.len() as u64 * MENTION + request.links * LINK + request.media * MEDIA;
        let bytes = (POST + TEXT + parts).next_multiple_of(WORD);
        let document = self.space.heap.allocate(memory, bytes, "mongo post");
        self.space.heap.words_mut(document, bytes / WORD).fill(request.user);
        memory.store_range(document, bytes, Token::NONE);
        self.posts.insert(post, document, &mut self.space.heap, memory);
    }

    /// Rewrites the user's timeline document with the post at its front; adds the post to the sorted set.
    fn write_user_timeline(&mut self, user: u64, post: u64, memory: &mut dyn Memory) {
        let found = self.timeline_documents.find(user, &mut self.space, memory, Token::NONE);
        let record = match found {
            Some((record, _)) => record,
            None => self.make_timeline(user, memory),
        };
        let token = memory.load(record, found.map_or(Token::NONE, |(_, token)| token));
        let [_, document, length, capacity] = self.space.heap.words(record, 4).try_into().unwrap_or([0; 4]);
        memory.load_range(document, (length * ENTRY).max(1) * WORD, token);
        let mut words = self.space.heap.words(document, length * ENTRY).to_vec();
        words.splice(0..0, [post; ENTRY as usize]);
        let room = if words.len() as u64 > capacity { 2 * capacity } else { capacity };
        let new = self.space.block(room, "mongo user timeline", memory);
        self.space.heap.words_mut(new, words.len() as u64).copy_from_slice(&words);
        memory.store_range(new, words.len() as u64 * WORD, Token::NONE);
        self.space.free(document, capacity);
        self.space.heap.words_mut(record, 4).copy_from_slice(&[user, new, length + 1, room]);
        memory.store(record, Token::NONE);
        let (set, token) = self.user_timelines.of(user, &mut self.space, memory);
        set.add(post, post, &mut self.space, &mut self.levels, memory, token);
    }

    fn make_timeline(&mut self, user: u64, memory: &mut dyn Memory) -> u64 {
        let record = self.space.block(4, "mongo timeline record", memory);
        let document = self.space.block(2 * ENTRY, "mongo user timeline", memory);
        self.space.heap.words_mut(record, 4).copy_from_slice(&[user, document, 0, 2 * ENTRY]);
        self.timeline_documents.add(record, record, "mongo timeline entry", &mut self.space, memory);
        record
    }

    /// Adds the post to the home timelines of followers and mentioned users, once, by ascending identifier.
    fn write_home_timelines(&mut self, post: u64, request: &Request, memory: &mut dyn Memory) {
        let (set, token) = self.followers.of(request.user, &mut self.space, memory);
        let mut readers = set.members(&self.space, memory, token);
        readers.extend_from_slice(&request.mentions);
        readers.sort_unstable();
        readers.dedup();
        if memory.reads_ahead() {
            let heap = &self.space.heap;
            let known = |&reader: &u64| self.home_timelines.0.peek(reader, heap).map(SortedSet);
            let sets: Vec<SortedSet> = readers.iter().filter_map(known).collect();
            SortedSet::read_ahead(&sets, post, post, &self.space);
        }
        for reader in readers {
            let (set, token) = self.home_timelines.of(reader, &mut self.space, memory);
            set.add(post, post, &mut self.space, &mut self.levels, memory, token);
        }
    }
}

#[cfg(test)]
mod views {
    use super::*;

    impl Network {
        /// Returns the posts of a user's home timeline, the oldest first.
        pub(in super::super) fn home_timeline(&mut self, user: u64, memory: &mut dyn Memory) -> Vec<u64> {
            let (set, token) = self.home_timelines.of(user, &mut self.space, memory);
            set.members(&self.space, memory, token)
        }

        /// Returns the posts of a user in the cache and in the document, the oldest first.
        pub(in super::super) fn user_timeline(
            &mut self,
            user: u64,
            memory: &mut dyn Memory,
        ) -> [Vec<u64>; 2] {
            let (set, token) = self.user_timelines.of(user, &mut self.space, memory);
            let cached = set.members(&self.space, memory, token);
            let found = self.timeline_documents.find(user, &mut self.space, memory, Token::NONE);
            let stored = found.map_or_else(Vec::new, |(record, _)| {
                let (document, length) =
                    (self.space.heap.word(record + 8), self.space.heap.word(record + 16));
                let entries = self.space.heap.words(document, length * ENTRY).chunks(ENTRY as usize);
                entries.rev().map(|entry| entry[0]).collect()
            });
            [cached, stored]
        }

        pub(in super::super) fn followers(&mut self, user: u64, memory: &mut dyn Memory) -> Vec<u64> {
            let (set, token) = self.followers.of(user, &mut self.space, memory);
            set.members(&self.space, memory, token)
        }

        pub(in super::super) fn author(&self, post: u64, memory: &mut dyn Memory) -> Option<u64> {
            self.posts
                .find(post, &self.space.heap, memory)
                .map(|(document, _)| self.space.heap.word(document))
        }
    }
}
