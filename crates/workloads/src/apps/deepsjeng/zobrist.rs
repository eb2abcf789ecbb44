//! The keys of positions: a random number for each disc, folded together.

use super::board::Board;
use crate::random::Random;

/// Random numbers of each disc and of the player to move.
pub(super) struct Zobrist {
    discs: [[u64; 64]; 2],
    /// Change of the key when discs of a row of eight turn, by row and discs.
    turned: Box<[[u64; 256]; 8]>,
    pub(super) second: u64,
}

impl Zobrist {
    pub(super) fn new(random: &mut Random) -> Self {
        let discs: [[u64; 64]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| random.bits()));
        let changed = |row: usize, turned: usize| {
            let squares = (0..8).filter(|square| turned >> square & 1 == 1).map(|square| 8 * row + square);
            squares.fold(0, |key, square| key ^ discs[0][square] ^ discs[1][square])
        };
        let turned = Box::new(std::array::from_fn(|row| std::array::from_fn(|turned| changed(row, turned))));
        Self { discs, turned, second: random.bits() }
    }

    #[inline]
    pub(super) fn moved(&self, key: u64, board: &Board, square: u32, turned: u64) -> u64 {
        let rows = self.turned.iter().zip(turned.to_le_bytes());
        let changed = rows.fold(0, |changed, (row, turned)| changed ^ row[usize::from(turned)]);
        key ^ self.second ^ self.discs[usize::from(board.second)][square as usize] ^ changed
    }

    pub(super) fn key(&self, board: &Board) -> u64 {
        let (first, second) = if board.second { (board.other, board.own) } else { (board.own, board.other) };
        let mut key = if board.second { self.second } else { 0 };
        for (discs, mut squares) in self.discs.iter().zip([first, second]) {
            while squares != 0 {
                key ^= discs[squares.trailing_zeros() as usize];
                squares &= squares - 1;
            }
        }
        key
    }
}
