//! `deepsjeng`: game-tree search with a large transposition table.
//!
//! On leaving a position, value, bound, depth and best move go over the shallowest or oldest entry. The table
//! is cleared front to back before. One thread plays several games with one table.

mod board;
mod table;
mod zobrist;

use isotherm_core::{Bytes, parameters};

use self::board::{Board, nth};
use self::table::{BUCKET_BYTES, Bound, Entry, Table};
use self::zobrist::Zobrist;
use crate::{Built, Memory, ObjectSize, Program, Random, Workload, mix, paper, test};

/// Most moves played ahead of their search, so that their buckets are on the way; a power of two.
const AHEAD: usize = 8;
/// Moves played ahead before the first is searched; leaving after one move wastes the others.
const FIRST_AHEAD: usize = 4;
/// Moves added after each search: the longer it goes on, the less likely it is to end soon.
const MORE_AHEAD: usize = 2;
const MAX_DEPTH: usize = 30;
/// Beyond every value of a position.
const INFINITE: i16 = 30_000;

parameters! {
    struct Settings {
        /// Memory of the transposition table.
        footprint: Bytes = size(2 << 20, 1 << 42, "64M")
            .source("ours; SPEC's 631.deepsjeng_s: about 7 GB (PACT 5.1: 6.6 GB at least)"),
        /// Positions that are searched.
        operations: u64 = count(1, 1 << 40, "16M").unit("positions")
            .source("ours: about 16 positions a bucket"),
        /// How far each move of a game is searched.
        depth: u8 = count(1, MAX_DEPTH as u64, "9").unit("moves").source("ours"),
        /// Instructions a position, its table accesses aside.
        instructions: u32 = count(0, 1_000_000, "2000")
            .source("ours: the order of a chess program's million positions a second"),
        /// Threads.
        threads: u64 = count(1, 1, "1").source("631.deepsjeng_s is not parallel"),
    }
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "deepsjeng",
    title: "alpha-beta search with a transposition table",
    source: "SPEC CPU 2017 631.deepsjeng_s, as run by PACT 5.3",
    object_size: ObjectSize::Large,
    objects: "64-byte buckets in one table",
    hot_set_changes: false,
    hot_set: "none: keys are random",
    accesses: 23_577_317,
    specs: Settings::SPECS,
    presets: &[
        test(&[("footprint", "2M"), ("operations", "60k"), ("depth", "6")]),
        paper(
            "SPEC's 631.deepsjeng_s, PACT 5.1",
            "The footprint of the reference run.",
            &[("footprint", "6.6G"), ("operations", "2000M"), ("depth", "14")],
        ),
    ],
    reference_footprint: None,
    reference_cache: None,
    peak: 1.15,
    builder: |parameters, seed| build(Settings::read(parameters), seed),
};

/// A position and the move that led to it.
#[derive(Debug, Clone, Copy)]
struct Position {
    board: Board,
    key: u64,
    square: u32,
    /// Its moves, where they are known by then.
    moves: Option<u64>,
}

impl Position {
    fn new(board: Board, key: u64, square: u32) -> Self {
        Self { board, key, square, moves: None }
    }
}

/// Positions after a position's moves, the remembered one first, and alone if it is likely to end the search.
struct Children {
    /// Moves not yet played, and the remembered one, if any.
    left: u64,
    remembered: u64,
    /// Number of moves played on the board, and of those searched.
    tried: usize,
    taken: usize,
    /// Limit on moves played and not yet searched.
    most: usize,
}

impl Children {
    fn new(moves: u64, remembered: u64, ends: bool) -> Self {
        let most = if ends && remembered & moves != 0 { 1 } else { FIRST_AHEAD };
        Self { left: moves, remembered, tried: 0, taken: 0, most }
    }

    /// Returns the next move, if one may be played now.
    #[inline]
    fn ahead(&mut self) -> Option<u32> {
        if self.left == 0 || self.tried - self.taken >= self.most {
            return None;
        }
        let first = self.remembered & self.left;
        let square = if first == 0 { self.left } else { first }.trailing_zeros();
        self.left &= !(1 << square);
        Some(square)
    }
}

struct Search<'a> {
    table: Table,
    zobrist: Zobrist,
    age: u8,
    instructions: u32,
    positions: u64,
    most: u64,
    /// Positions played and not yet searched, by depth: a parent's n-th at n modulo [`AHEAD`].
    ahead: Vec<[Position; AHEAD]>,
    reads_ahead: bool,
    memory: &'a mut dyn Memory,
}

impl<'a> Search<'a> {
    fn new(
        buckets: usize,
        instructions: u32,
        most: u64,
        random: &mut Random,
        memory: &'a mut dyn Memory,
    ) -> Self {
        Self {
            table: Table::new(buckets, memory),
            zobrist: Zobrist::new(random),
            age: 0,
            instructions,
            positions: 0,
            most,
            ahead: vec![[Position::new(Board::START, 0, 0); AHEAD]; MAX_DEPTH + 1],
            reads_ahead: memory.reads_ahead(),
            memory,
        }
    }

    fn over(&self) -> bool {
        self.positions >= self.most
    }

    /// Returns the position's value within the window: exact inside, a bound outside. 0 once the run is over.
    fn value(&mut self, position: &Position, depth: u8, mut low: i16, high: i16, passed: bool) -> i16 {
        let Position { ref board, key, .. } = *position;
        self.positions += 1;
        if self.positions.is_multiple_of(1024) && self.memory.finished() {
            self.positions = self.most;
        }
        if self.over() {
            return 0;
        }
        self.memory.compute(self.instructions);
        let (found, token) = self.table.probe(key, self.memory);
        if let Some(entry) = found.filter(|entry| entry.depth >= depth) {
            let enough = match entry.bound {
                Bound::Exact => true,
                Bound::AtLeast => entry.value >= high,
                Bound::AtMost => entry.value <= low,
            };
            if enough {
                return entry.value;
            }
        }
        let moves = position.moves.unwrap_or_else(|| board.moves());
        if depth == 0 {
            return board.value(moves);
        }
        if moves == 0 {
            if passed {
                return 100 * board.discs();
            }
            let passed = Position::new(board.pass(), key ^ self.zobrist.second, 64);
            return -self.value(&passed, depth, -high, -low, true);
        }
        let first = low;
        let (mut best, mut best_move) = (-INFINITE, 64);
        let remembered = found.map_or(0, |entry| 1 << entry.best);
        let ends = found.is_some_and(|entry| entry.bound != Bound::AtMost);
        let mut children = Children::new(moves, remembered, ends);
        while low < high
            && let Some(child) = self.next_child(&mut children, position, depth)
        {
            let value = -self.value(&child, depth - 1, -high, -low, false);
            if value > best {
                (best, best_move) = (value, child.square);
            }
            low = low.max(best);
        }
        let bound = if best >= high {
            Bound::AtLeast
        } else if best <= first {
            Bound::AtMost
        } else {
            Bound::Exact
        };
        if !self.over() {
            let entry = Entry { key, value: best, best: best_move as u8, depth, age: self.age, bound };
            self.table.store(entry, token, self.memory);
        }
        best
    }

    /// Returns the position after the next move; plays the following ones too and prefetches their buckets.
    #[inline]
    fn next_child(&mut self, children: &mut Children, parent: &Position, depth: u8) -> Option<Position> {
        while let Some(square) = children.ahead() {
            let turned = parent.board.turned(square);
            let key = self.zobrist.moved(parent.key, &parent.board, square, turned);
            let mut child = Position::new(parent.board.play(square, turned), key, square);
            if self.reads_ahead {
                self.read_ahead(&mut child, depth);
            }
            self.ahead[usize::from(depth)][children.tried % AHEAD] = child;
            children.tried += 1;
        }
        if children.taken == children.tried {
            return None;
        }
        let child = self.ahead[usize::from(depth)][children.taken % AHEAD];
        children.taken += 1;
        children.most = (children.most + MORE_AHEAD).min(AHEAD);
        Some(child)
    }

    /// Prefetches the bucket of a position that a search of this depth enters, and of its likely first move.
    #[inline]
    fn read_ahead(&self, child: &mut Position, depth: u8) {
        self.table.read_ahead(child.key);
        if depth > 1 {
            let moves = child.board.moves();
            child.moves = Some(moves);
            // Without a move it prefetches some other bucket, which does no harm.
            let square = (moves | 1 << 63).trailing_zeros();
            let turned = child.board.turned(square);
            self.table.read_ahead(self.zobrist.moved(child.key, &child.board, square, turned));
        }
    }

    /// Searches a position deeper and deeper; returns its value and best move.
    fn deepen(&mut self, board: &Board, depth: u8) -> (i16, u32) {
        self.age = self.age.wrapping_add(1);
        let (key, mut value) = (self.zobrist.key(board), 0);
        for depth in 1..=depth {
            value = self.value(&Position::new(*board, key, 64), depth, -INFINITE, INFINITE, false);
        }
        let best = self.table.probe(key, self.memory).0.map_or(64, |entry| u32::from(entry.best));
        (value, best)
    }

    fn game(&mut self, depth: u8, random: &mut Random) {
        let mut board = Board::START;
        let mut passes = 0;
        for turn in 0..120 {
            let moves = board.moves();
            passes = if moves == 0 { passes + 1 } else { 0 };
            if passes == 2 || self.over() {
                return;
            }
            if moves == 0 {
                board = board.pass();
                continue;
            }
            let mut square = nth(moves, random.below(u64::from(moves.count_ones())));
            if turn >= 4 {
                let best = self.deepen(&board, depth).1;
                square = if best < 64 { best } else { square };
            }
            board = board.play(square, board.turned(square));
        }
    }
}

struct DeepSjeng {
    settings: Settings,
    buckets: usize,
    seed: u64,
}

fn build(settings: Settings, seed: u64) -> Built {
    let buckets = settings.footprint.0 as usize / BUCKET_BYTES;
    Ok(Box::new(DeepSjeng { settings, buckets, seed }))
}

impl Program for DeepSjeng {
    fn footprint(&self) -> Bytes {
        Bytes((self.buckets * BUCKET_BYTES) as u64)
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let mut random = Random::new(mix(self.seed));
        let Settings { depth, instructions, operations: positions, .. } = self.settings;
        let mut search = Search::new(self.buckets, instructions, positions, &mut random, memory);
        while !search.over() {
            search.game(depth, &mut random);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CountingMemory, Token};

    fn minimax(board: &Board, depth: u8) -> i16 {
        let moves = board.moves();
        if depth == 0 {
            return board.value(moves);
        }
        let squares = (0..64).filter(|square| moves >> square & 1 == 1);
        squares
            .map(|square| -minimax(&board.play(square, board.turned(square)), depth - 1))
            .max()
            .expect("no pass")
    }

    #[test]
    fn the_search_finds_what_minimax_finds() {
        let mut random = Random::new(2);
        for case in 0..20 {
            let mut board = Board::START;
            for _ in 0..case {
                let moves = board.moves();
                let square = nth(moves, random.below(u64::from(moves.count_ones())));
                board = board.play(square, board.turned(square));
            }
            let mut memory = CountingMemory::default();
            let buckets = if case % 2 == 0 { 16 } else { 4096 };
            let mut search = Search::new(buckets, 0, u64::MAX, &mut random, &mut memory);
            assert_eq!(search.deepen(&board, 5).0, minimax(&board, 5), "after {case} moves");
        }
    }

    #[test]
    fn a_remembered_bound_counts_only_outside_the_window() {
        let mut memory = CountingMemory::default();
        let mut search = Search::new(64, 0, u64::MAX, &mut Random::new(2), &mut memory);
        let key = search.zobrist.key(&Board::START);
        let right = minimax(&Board::START, 2);
        for (bound, value, cuts) in
            [(Bound::AtLeast, 900, false), (Bound::AtLeast, 1000, true), (Bound::AtMost, -900, false)]
        {
            let entry = Entry { key, value, best: 19, depth: 9, age: 0, bound };
            search.table.store(entry, Token::NONE, search.memory);
            let found = search.value(&Position::new(Board::START, key, 64), 2, -1000, 1000, false);
            assert_eq!(found, if cuts { value } else { right }, "{entry:?}");
        }
    }

    #[test]
    fn a_key_changes_with_each_disc() {
        let zobrist = Zobrist::new(&mut Random::new(1));
        let turned = Board::START.turned(19);
        let moved = Board::START.play(19, turned);
        let key = zobrist.key(&Board::START);
        assert_eq!(zobrist.moved(key, &Board::START, 19, turned), zobrist.key(&moved));
        assert_ne!(zobrist.key(&Board::START), zobrist.key(&moved));
        assert_ne!(zobrist.key(&moved), zobrist.key(&moved.pass()));
    }
}
