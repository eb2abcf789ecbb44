//! H3, the hash of each lane: each set bit of the page's number selects a word, and these words are XORed.
//!
//! The word of lane `l`, bit `b` comes from output `64 l + b + 1` of SplitMix64 (Steele, Lea, Flood, "Fast
//! Splittable Pseudorandom Number Generators", 2014) started at the device's seed. The hardware XORs 32
//! masked words in two pipeline stages; the model has a table of all 256 sums for each byte of the page.
//!
//! The words of the lowest bits, as many as an index has, form a triangle with ones on its diagonal, which
//! has full rank: W consecutive pages, aligned, meet W entries. Words drawn freely often have less, leave
//! half of the entries untouched, and the histogram no longer gives the error: in 6 draws on 32K consecutive
//! pages (W = 16K, delta = 0.25) 43 % of the pages were beyond the bound.

use crate::Parameters;

/// SplitMix64's increment.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hash functions of all lanes of a device.
#[derive(Debug, Clone)]
pub struct H3 {
    /// Indices of lanes 0 and 1, in a word's halves, for each value of each byte of a page.
    low: Vec<[u64; 256]>,
    /// The same for lanes 2 and 3; empty if the device lacks them.
    high: Vec<[u64; 256]>,
}

impl H3 {
    /// Creates the functions of a device of these sizes.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        let pair = |first: u32| -> Vec<[u64; 256]> {
            let bytes = parameters.address_bits.div_ceil(8);
            (0..bytes).map(|byte| table(parameters, first, byte)).collect()
        };
        Self { low: pair(0), high: if parameters.lanes > 2 { pair(2) } else { Vec::new() } }
    }

    /// Returns the indices into the first `LANES` lanes, 0 where the device has none, of a page without
    /// unwired bits.
    #[must_use]
    #[inline]
    pub fn indices<const LANES: usize>(&self, page: u64) -> [u32; LANES] {
        let low = sum(&self.low, page);
        let high = if LANES > 2 { sum(&self.high, page) } else { 0 };
        std::array::from_fn(|lane| {
            let pair = if lane < 2 { low } else { high };
            (pair >> (32 * (lane & 1))) as u32
        })
    }
}

#[inline]
fn sum(tables: &[[u64; 256]], page: u64) -> u64 {
    let bytes = page.to_le_bytes();
    tables.iter().zip(bytes).fold(0, |sum, (table, byte)| sum ^ table[usize::from(byte)])
}

/// Returns the sums of one byte's words for two lanes.
fn table(parameters: &Parameters, first_lane: u32, byte: u32) -> [u64; 256] {
    let word = |bit: u32| {
        let bit = 8 * byte + bit;
        if bit >= parameters.address_bits {
            return 0;
        }
        let index = |lane: u32| u64::from(seed_word(parameters, lane, bit));
        index(first_lane) | index(first_lane + 1) << 32
    };
    let words: [u64; 8] = std::array::from_fn(|bit| word(bit as u32));
    std::array::from_fn(|value| {
        (0..8).filter(|bit| value >> bit & 1 == 1).fold(0, |sum, bit| sum ^ words[bit])
    })
}

/// Returns the word that a set bit of the page selects in a lane.
fn seed_word(parameters: &Parameters, lane: u32, bit: u32) -> u32 {
    if lane >= parameters.lanes {
        return 0;
    }
    let steps = u64::from(64 * lane + bit) + 1;
    let mut z = parameters.seed.wrapping_add(GAMMA.wrapping_mul(steps));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    let (drawn, one) = (z as u32, 1u32.checked_shl(bit).unwrap_or(0));
    let word = match (bit < parameters.index_bits(), lane % 2) {
        (false, _) => drawn,
        (true, 0) => drawn & (one - 1) | one,
        (true, _) => drawn & !((one << 1) - 1) | one,
    };
    word & (parameters.width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outputs of SplitMix64's reference implementation from seed 1234567.
    #[test]
    fn words_are_splitmix64s() {
        // The seed is shifted so that the first outputs belong to bits 20 to 22, whose words are free.
        let seed = 1_234_567u64.wrapping_sub(GAMMA.wrapping_mul(20));
        let parameters = Parameters { seed, width: 1 << 16, ..Parameters::default() };
        let low = |word: u64| word as u32 & 0xffff;
        assert_eq!(seed_word(&parameters, 0, 20), low(6_457_827_717_110_365_317));
        assert_eq!(seed_word(&parameters, 0, 21), low(3_203_168_211_198_807_973));
        assert_eq!(seed_word(&parameters, 0, 22), low(9_817_491_932_198_370_423));
    }

    #[test]
    fn as_many_pages_in_a_row_as_entries_meet_different_ones() {
        let parameters = Parameters { lanes: 4, width: 1 << 12, ..Parameters::default() };
        let hash = H3::new(&parameters);
        for lane in 0..4 {
            let mut met = vec![false; 1 << 12];
            (0..1 << 12).for_each(|page| met[hash.indices::<4>(5 << 12 | page)[lane] as usize] = true);
            assert!(met.into_iter().all(|met| met), "lane {lane}");
        }
    }

    #[test]
    fn tables_sum_what_single_bits_select() {
        let parameters = Parameters { lanes: 4, address_bits: 37, ..Parameters::default() };
        let hash = H3::new(&parameters);
        let page = 0x15_9a3c_70f1u64;
        for lane in 0..4 {
            let expected = (0..37)
                .filter(|bit| page >> bit & 1 == 1)
                .fold(0, |sum, bit| sum ^ seed_word(&parameters, lane, bit));
            assert_eq!(hash.indices::<4>(page)[lane as usize], expected);
        }
        assert_eq!(hash.indices::<2>(page)[..], hash.indices::<4>(page)[..2]);
    }
}
