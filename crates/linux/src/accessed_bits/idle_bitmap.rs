//! Bitmaps by page frame, as the kernel's idle page tracking has them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Frames per word: bit *f* mod 64 of word *f* / 64 belongs to frame *f*.
const FRAMES: u64 = 64;
const BATCH: usize = 512;

/// Some frames of one word: its index and their bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) index: u64,
    pub(super) bits: u64,
}

/// Groups frames into words, in order and each once.
pub(super) fn words(frames: &mut Vec<u64>) -> Vec<Word> {
    frames.sort_unstable();
    frames.dedup();
    let mut words: Vec<Word> = Vec::new();
    for &frame in frames.iter() {
        let (index, bit) = (frame / FRAMES, 1 << (frame % FRAMES));
        match words.last_mut() {
            Some(word) if word.index == index => word.bits |= bit,
            _ => words.push(Word { index, bits: bit }),
        }
    }
    words
}

/// Returns whether the frame's bit is set in words ordered as by [`words`].
pub(super) fn has(words: &[Word], frame: u64) -> bool {
    words
        .binary_search_by_key(&(frame / FRAMES), |word| word.index)
        .is_ok_and(|at| words[at].bits >> (frame % FRAMES) & 1 == 1)
}

/// Splits words into runs of consecutive ones, of at most [`BATCH`].
fn runs(words: &[Word]) -> impl Iterator<Item = &[Word]> {
    words.chunk_by(|one, next| one.index + 1 == next.index).flat_map(|run| run.chunks(BATCH))
}

/// Sets the bits; the file ignores zeros, so other frames keep theirs.
pub(super) fn set(file: &File, words: &[Word]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(BATCH * 8);
    for run in runs(words) {
        bytes.clear();
        bytes.extend(run.iter().flat_map(|word| word.bits.to_ne_bytes()));
        file.write_all_at(&bytes, run[0].index * 8)?;
    }
    Ok(())
}

/// Keeps those bits that are set in the file; words past its end have none.
pub(super) fn read(file: &File, words: &mut [Word]) -> io::Result<()> {
    let mut bytes = [0; BATCH * 8];
    let mut at = 0;
    while at < words.len() {
        let count = runs(&words[at..]).next().map_or(1, <[Word]>::len);
        let run = &mut words[at..at + count];
        let length = file.read_at(&mut bytes[..count * 8], run[0].index * 8)?;
        bytes[length..count * 8].fill(0);
        for (word, bytes) in run.iter_mut().zip(bytes.as_chunks().0) {
            word.bits &= u64::from_ne_bytes(*bytes);
        }
        at += count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{Read, Seek};

    use proptest::prelude::*;

    use super::*;

    fn file_of(bytes: &[u8]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        file
    }

    proptest! {
        /// Words hold exactly the given frames, and reading them back finds exactly those set in the file.
        #[test]
        fn bits_are_frames(
            frames in proptest::collection::vec(0u64..200_000, 0..300),
            idle in proptest::collection::vec(0u64..200_000, 0..300),
        ) {
            let mut bytes = vec![0u8; 200_000 / 8];
            for &frame in &idle {
                // x86-64 and Arm are little-endian: bit f of a word is bit f % 8 of byte f / 8.
                bytes[frame as usize / 8] |= 1 << (frame % 8);
            }
            let mut words = words(&mut frames.clone());
            prop_assert!(words.windows(2).all(|pair| pair[0].index < pair[1].index));
            prop_assert_eq!(
                words.iter().map(|word| word.bits.count_ones() as usize).sum::<usize>(),
                frames.iter().collect::<BTreeSet<_>>().len()
            );
            read(&file_of(&bytes), &mut words).unwrap();
            for frame in frames {
                prop_assert_eq!(has(&words, frame), idle.contains(&frame));
            }
        }

        /// Written words have the given bits and no others.
        #[test]
        fn writes_set_frames(frames in proptest::collection::vec(0u64..100_000, 1..2_000)) {
            let file = file_of(&[]);
            set(&file, &words(&mut frames.clone())).unwrap();
            let mut bytes = Vec::new();
            (&file).rewind().unwrap();
            (&file).read_to_end(&mut bytes).unwrap();
            prop_assert_eq!(bytes.len() % 8, 0);
            let set: BTreeSet<u64> =
                (0..bytes.len() as u64 * 8).filter(|bit| bytes[*bit as usize / 8] >> (bit % 8) & 1 == 1).collect();
            prop_assert_eq!(set, frames.into_iter().collect());
        }
    }

    #[test]
    fn words_past_the_end_have_no_bits() {
        let mut words = words(&mut vec![3, 64, 70_000]);
        read(&file_of(&[0xff; 8]), &mut words).unwrap();
        assert!(has(&words, 3) && !has(&words, 64) && !has(&words, 70_000));
    }
}
