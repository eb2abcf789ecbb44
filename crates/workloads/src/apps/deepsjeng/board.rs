//! Othello on bitboards: positions, legal moves and what they turn.

/// A position: the discs of the player to move and of the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Board {
    pub(super) own: u64,
    pub(super) other: u64,
    /// Whether the second player is to move.
    pub(super) second: bool,
}

/// Steps in each direction, upwards and downwards: shift, and squares that it can reach on the board.
const STEPS: [(i32, u64); 8] = {
    const NOT_FIRST: u64 = 0xfefe_fefe_fefe_fefe;
    const NOT_LAST: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    [
        (1, NOT_FIRST),
        (7, NOT_LAST),
        (8, u64::MAX),
        (9, NOT_FIRST),
        (-1, NOT_LAST),
        (-7, NOT_FIRST),
        (-8, u64::MAX),
        (-9, NOT_LAST),
    ]
};

/// The squares from each square to the edge, in each direction.
static RAYS: [[u64; STEPS.len()]; 64] = {
    let mut rays = [[0; STEPS.len()]; 64];
    let mut place = 0;
    while place < 64 * STEPS.len() {
        let (square, direction) = (place / STEPS.len(), place % STEPS.len());
        let mut next = shift(1 << square, STEPS[direction]);
        while next != 0 {
            rays[square][direction] |= next;
            next = shift(next, STEPS[direction]);
        }
        place += 1;
    }
    rays
};

const fn shift(squares: u64, (step, mask): (i32, u64)) -> u64 {
    (if step > 0 { squares << step } else { squares >> -step }) & mask
}

impl Board {
    pub(super) const START: Self =
        Self { own: 0x0000_0008_1000_0000, other: 0x0000_0010_0800_0000, second: false };

    /// Returns the squares where the player may put a disc. In each direction, runs of the other's discs next
    /// to the player's grow by one, one, two and two.
    pub(super) fn moves(&self) -> u64 {
        const INNER: u64 = 0x7e7e_7e7e_7e7e_7e7e;
        let mut moves = 0;
        for (step, inner) in [(1, INNER), (7, INNER), (8, u64::MAX), (9, INNER)] {
            let inner = self.other & inner;
            let (mut up, mut down) = (inner & self.own << step, inner & self.own >> step);
            up |= inner & up << step;
            down |= inner & down >> step;
            let (up_pairs, down_pairs) = (inner & inner << step, inner & inner >> step);
            for _ in 0..2 {
                up |= up_pairs & up << (2 * step);
                down |= down_pairs & down >> (2 * step);
            }
            moves |= up << step | down >> step;
        }
        moves & !(self.own | self.other)
    }

    /// Returns the discs that a disc on `square` turns: on each ray, those before the first square that the
    /// other does not hold, if that is the player's. Addition finds it upwards, the highest bit downwards.
    pub(super) fn turned(&self, square: u32) -> u64 {
        let (up, down) = RAYS[square as usize].split_at(STEPS.len() / 2);
        let mut turned = 0;
        for ray in up {
            let end = (self.other | !ray).wrapping_add(1) & ray & self.own;
            turned |= end.wrapping_sub(u64::from(end != 0)) & ray;
        }
        for ray in down {
            let nearest = 1 << (ray & !self.other | 1).ilog2();
            let end = nearest & ray & self.own;
            turned |= end.wrapping_neg() << 1 & ray;
        }
        turned
    }

    pub(super) fn play(&self, square: u32, turned: u64) -> Self {
        Self { own: self.other & !turned, other: self.own | turned | 1 << square, second: !self.second }
    }

    pub(super) fn pass(&self) -> Self {
        Self { own: self.other, other: self.own, second: !self.second }
    }

    /// Returns how good the position is for the player: mobility, corners and, at the end, discs.
    pub(super) fn value(&self, moves: u64) -> i16 {
        let corners = |discs: u64| (discs & 1) + (discs >> 7 & 1) + (discs >> 56 & 1) + (discs >> 63);
        // Counts all three in one sum, because some target processors cannot count bits. The surplus of 8 a
        // row keeps rows from going below zero.
        let rows = 4 * row_counts(moves) + row_counts(self.own) + EACH_ROW * 8 - row_counts(self.other);
        let pairs = (rows & EVEN_ROWS) + (rows >> 8 & EVEN_ROWS);
        let sum = pairs.wrapping_mul(1 | 1 << 16 | 1 << 32 | 1 << 48) >> 48;
        sum as i16 - 64 + 20 * (corners(self.own) as i16 - corners(self.other) as i16)
    }

    pub(super) fn discs(&self) -> i16 {
        self.own.count_ones() as i16 - self.other.count_ones() as i16
    }
}

/// One bit of each row of eight squares, and all bits of every other row.
const EACH_ROW: u64 = 0x0101_0101_0101_0101;
const EVEN_ROWS: u64 = 0x00ff_00ff_00ff_00ff;

/// Returns the number of set squares of each row, in the row's byte.
fn row_counts(squares: u64) -> u64 {
    const PAIRS: u64 = 0x5555_5555_5555_5555;
    const FOURS: u64 = 0x3333_3333_3333_3333;
    let pairs = squares - (squares >> 1 & PAIRS);
    let fours = (pairs & FOURS) + (pairs >> 2 & FOURS);
    (fours + (fours >> 4)) & 0x0f0f_0f0f_0f0f_0f0f
}

/// Returns the n-th set square, from 0.
pub(super) fn nth(mut squares: u64, n: u64) -> u32 {
    (0..n).for_each(|_| squares &= squares - 1);
    squares.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn paths(board: &Board, depth: u32) -> u64 {
        let mut moves = board.moves();
        if depth == 0 {
            return 1;
        }
        let mut count = 0;
        while moves != 0 {
            let square = moves.trailing_zeros();
            moves &= moves - 1;
            count += paths(&board.play(square, board.turned(square)), depth - 1);
        }
        count
    }

    proptest! {
        #[test]
        fn a_value_is_mobility_corners_and_discs(any in any::<[u64; 3]>()) {
            let [own, mut other, mut moves] = any;
            other &= !own;
            moves &= !(own | other);
            let board = Board { own, other, second: false };
            let count = |squares: u64| i64::from(squares.count_ones());
            let corners = |squares: u64| count(squares & 0x8100_0000_0000_0081);
            let value = 4 * count(moves) + 20 * (corners(own) - corners(other)) + count(own) - count(other);
            prop_assert_eq!(i64::from(board.value(moves)), value);
        }
    }

    #[test]
    fn the_rules_give_the_known_numbers_of_games() {
        let known = [1, 4, 12, 56, 244, 1396, 8200, 55_092];
        (0..8).for_each(|depth| assert_eq!(paths(&Board::START, depth), known[depth as usize], "{depth}"));
    }
}
