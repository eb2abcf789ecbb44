//! The move of the hot set in the middle of a run, which redirects the request for a drawn key.
//!
//! FreqTier (VII-D, Fig. 11) sends all requests to the first half of keys, then to the second. HybridTier
//! (2.3.2, Fig. 4; 6.3.1) lets two thirds of the hot keys turn cold; here that share of all keys, chosen at
//! random, exchange popularity, each with the one half of them further down.

use crate::permutation::Permutation;

pub(super) enum Shift {
    Never,
    /// The first half of keys, and from `at` on the second.
    Halves {
        at: u64,
        half: u64,
    },
    /// The key drawn, and from `at` on another one for some keys.
    Change {
        at: u64,
        /// Destination of each key's requests after the change.
        targets: Vec<u32>,
    },
}

impl Shift {
    pub(super) fn change(at: u64, keys: u64, share: f64, seed: u64) -> Self {
        let (order, changing) = (Permutation::new(keys, seed ^ 3), (share * keys as f64).round() as u64);
        let chosen: Vec<u32> =
            (0..keys).filter(|&key| order.at(key) < changing).map(|key| key as u32).collect();
        let mut targets: Vec<u32> = (0..keys as u32).collect();
        let partners = chosen.iter().cycle().skip(chosen.len() / 2);
        chosen.iter().zip(partners).for_each(|(&key, &partner)| targets[key as usize] = partner);
        Self::Change { at, targets }
    }

    pub(super) fn redirect(&self, key: u64, now: u64) -> u64 {
        match self {
            Self::Never => key,
            Self::Halves { at, half } => key % half + if now < *at { 0 } else { *half },
            Self::Change { at, .. } if now < *at => key,
            Self::Change { targets, .. } => u64::from(targets[key as usize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_send_every_request_to_one_half_and_then_to_the_other() {
        let shift = Shift::Halves { at: 50, half: 100 };
        assert!((0..200).all(|key| shift.redirect(key, 49) < 100));
        assert!((0..200).all(|key| (100..200).contains(&shift.redirect(key, 50))));
    }

    #[test]
    fn a_change_takes_popularity_from_its_share_of_hot_keys_and_none_from_all() {
        let keys = 30_000;
        let shift = Shift::change(10, keys, 2.0 / 3.0, 1);
        assert!((0..keys).all(|key| shift.redirect(key, 9) == key));
        let mut asked: Vec<u64> = (0..keys).map(|key| shift.redirect(key, 10)).collect();
        // Ranks are keys: what the hottest tenth of requests asks for afterwards.
        let still = asked[..3000].iter().filter(|&&key| key < 3000).count();
        assert!((900..1100).contains(&still), "{still} of 3000");
        asked.sort_unstable();
        assert!(asked.into_iter().eq(0..keys), "every key is asked for by one rank");
    }

    #[test]
    fn a_change_of_nothing_changes_nothing() {
        let shift = Shift::change(0, 100, 0.0, 1);
        assert!((0..100).all(|key| shift.redirect(key, 5) == key));
    }
}
