//! The graph of followers, with the size and skew of the benchmark's own.
//!
//! That is socfb-Reed98: 962 users, 18,812 friendships, at most 313 of one user. Here they are drawn at
//! random; a user's share falls with its rank by a power law with the same ratio of the largest to the mean.

use crate::{AliasTable, Random};

/// Friendships for each user (socfb-Reed98).
const FRIENDSHIPS_PER_USER: f64 = 18_812.0 / 962.0;
/// Exponent and offset of the power law: the largest degree is 8 times the mean.
const POWER: f64 = -0.6;
const OFFSET: f64 = 8.0;

/// Returns pairs of users that follow each other, each pair once.
pub(super) fn friendships(users: u64, random: &mut Random) -> Vec<(u64, u64)> {
    let weights: Vec<f64> = (0..users).map(|rank| (rank as f64 + OFFSET).powf(POWER)).collect();
    let (table, mut pairs) = (AliasTable::new(&weights), std::collections::HashSet::new());
    let wanted = (users as f64 * FRIENDSHIPS_PER_USER).min((users * (users - 1)) as f64 / 4.0) as usize;
    let mut order = Vec::with_capacity(wanted);
    while order.len() < wanted {
        let (one, other) = (u64::from(table.draw(random)), u64::from(table.draw(random)));
        let pair = (one.min(other), one.max(other));
        if one != other && pairs.insert(pair) {
            order.push(pair);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graph_has_the_size_and_the_largest_degree_of_the_original() {
        let pairs = friendships(962, &mut Random::new(1));
        assert_eq!(pairs.len(), 18_812);
        let mut degrees = vec![0u32; 962];
        pairs.iter().for_each(|&(one, other)| {
            degrees[one as usize] += 1;
            degrees[other as usize] += 1;
        });
        let largest = degrees.iter().max().copied().expect("users");
        assert!((250..380).contains(&largest), "{largest}, the original: 313");
    }
}
