//! Compressible text: words of skewed popularity between tags, and repeated passages.

use crate::random::{Random, mix};

const WORDS: f64 = 8000.0;

/// Returns `length` bytes, in which passages up to `window` bytes back repeat.
pub(super) fn text(length: usize, window: usize, random: &mut Random) -> Vec<u8> {
    let mut text = Vec::with_capacity(length + 512);
    while text.len() < length {
        match random.below(64) {
            0 if text.len() > 512 => {
                let back = 256 + random.below(text.len().min(window) as u64 - 256) as usize;
                let from = text.len() - back;
                let bytes = (32 + random.below(224) as usize).min(back);
                text.extend_from_within(from..from + bytes);
            }
            1 => text.extend(b"</p>\n<p class=\"text\">"),
            2 => text.extend(format!("<a href=\"{}.html\">", random.below(1000)).bytes()),
            _ => word(WORDS.powf(random.unit()) as u64, &mut text),
        }
    }
    text.truncate(length);
    text
}

fn word(rank: u64, text: &mut Vec<u8>) {
    let length = 2 + u64::from(rank.ilog2()) / 2 + mix(rank) % 4;
    let bits = mix(rank ^ 0x77);
    text.extend((0..length).map(|at| b"etaoinshrdlucmfw"[(bits >> (4 * at) & 15) as usize]));
    text.push(b' ');
}
