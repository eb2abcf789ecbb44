//! `xz`: compression of text with LZMA's match finder, and decompression.
//!
//! All in memory. A thread's encoder has a window that input is copied to, hash tables and bt4's array of
//! trees (11.5 bytes for each byte of the dictionary), cleared for each block. Dictionary and buffers shrink
//! together: the input is 1,400 / 32 dictionaries.

mod finder;
mod text;

use isotherm_core::{Bytes, parameters};

use self::finder::{AHEAD, Finder, LONGEST, SHORTEST};
use self::text::text;
use crate::{Array, Built, Memory, ObjectSize, Program, Random, Token, Workload, mix, paper, test};

/// Dictionaries in the input, and in a block.
const INPUT: f64 = 1400.0 / 32.0;
const BLOCK: usize = 3;
const TURN: usize = AHEAD;
/// Longest run of literals with one mark; a larger mark is a match's length plus this less [`SHORTEST`].
const LITERALS: usize = 128;

parameters! {
    struct Settings {
        /// Memory of the encoders and buffers; the dictionary follows from it.
        footprint: Bytes = size(2 << 20, 1 << 42, "32M")
            .source("ours: a dictionary of 150 KB; 657.xz_s: 32 MiB at level 8, about 7 GB with 8 threads"),
        /// Compressions and decompressions of the input.
        operations: u64 = count(1, 1 << 40, "1").unit("runs").source("657.xz_s: one for each input"),
        /// Threads, each with an encoder.
        threads: usize = count(1, 64, "8").source("PACT 5.1"),
    }
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "xz",
    title: "LZMA's match finder on text, and decompression",
    source: "SPEC CPU 2017 657.xz_s (xz 5.0.5, pxz), as run by PACT 5.3",
    object_size: ObjectSize::Large,
    objects: "trees of 8-byte nodes in arrays, buffers",
    hot_set_changes: true,
    hot_set: "windows slide; each block's trees grow anew; decompression has none",
    accesses: 107_055_409,
    specs: Settings::SPECS,
    presets: &[
        test(&[("footprint", "2M"), ("threads", "2")]),
        paper(
            "657.xz_s at level 8 (PACT 5.1: 6.6 to 40 GB)",
            "A dictionary of 32 MiB.",
            &[("footprint", "7G")],
        ),
    ],
    reference_footprint: Some(Bytes(7 << 30)),
    reference_cache: Some(Bytes(13 << 20 | 768 << 10)),
    peak: 0.7,
    builder: |parameters, seed| build(Settings::read(parameters), seed),
};

struct Xz {
    dictionary: usize,
    runs: u64,
    threads: usize,
    seed: u64,
}

fn bytes(dictionary: usize, threads: usize) -> usize {
    threads * Finder::bytes(dictionary) + 3 * input_bytes(dictionary)
}

fn input_bytes(dictionary: usize) -> usize {
    (dictionary as f64 * INPUT) as usize
}

fn build(settings: Settings, seed: u64) -> Built {
    let (most, threads) = (settings.footprint.0 as usize, settings.threads);
    let (mut low, mut high) = (0, most);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if bytes(middle, threads) <= most { low = middle } else { high = middle }
    }
    if low < 1 << 10 {
        return Err(
            "footprint leaves a dictionary below 1 KiB; expected a larger one or fewer threads".into()
        );
    }
    Ok(Box::new(Xz { dictionary: low, runs: settings.operations, threads, seed }))
}

struct Encoder {
    finder: Finder,
    input: std::ops::Range<usize>,
    output: Vec<u8>,
    literals: Vec<u8>,
    /// Bytes of the last match whose positions are still to be inserted.
    skip: usize,
}

impl Encoder {
    fn new(dictionary: usize, memory: &mut dyn Memory) -> Self {
        let finder = Finder::new(dictionary, memory);
        Self { finder, input: 0..0, output: Vec::new(), literals: Vec::new(), skip: 0 }
    }

    fn start(&mut self, input: std::ops::Range<usize>, memory: &mut dyn Memory) {
        (self.input, self.skip) = (input, 0);
        self.finder.reset(memory);
    }

    /// Searches a few positions; returns whether any of the block is left.
    fn turn(&mut self, input: &Array<u8>, memory: &mut dyn Memory) -> bool {
        if self.finder.ahead() <= LONGEST + TURN && !self.input.is_empty() {
            let taken = self.finder.fill(&input[self.input.clone()], memory);
            input.load_run(memory, self.input.start..self.input.start + taken, Token::NONE);
            self.input.start += taken;
        }
        if memory.reads_ahead() {
            self.finder.read_ahead(TURN.min(self.finder.ahead()));
        }
        for _ in 0..TURN.min(self.finder.ahead()) {
            let byte = self.finder.byte();
            let found = self.finder.advance(memory);
            match found {
                _ if self.skip > 0 => self.skip -= 1,
                None => self.literals.push(byte),
                Some(found) => {
                    self.flush();
                    self.output.push((LITERALS + found.length - SHORTEST) as u8);
                    self.output.extend((found.distance as u32).to_le_bytes());
                    self.skip = found.length - 1;
                }
            }
        }
        let goes_on = self.finder.ahead() > 0 || !self.input.is_empty();
        if !goes_on {
            self.flush();
        }
        goes_on
    }

    fn flush(&mut self) {
        for run in self.literals.chunks(LITERALS) {
            self.output.push(run.len() as u8 - 1);
            self.output.extend(run);
        }
        self.literals.clear();
    }
}

/// Compresses the input into `output`, one block for each encoder at a time; returns its length.
fn compress(
    input: &Array<u8>,
    dictionary: usize,
    encoders: &mut [Encoder],
    output: &mut Array<u8>,
    memory: &mut dyn Memory,
) -> usize {
    let (block, mut written) = (BLOCK * dictionary, 0);
    for first in (0..input.len()).step_by(block * encoders.len()) {
        for (thread, encoder) in encoders.iter_mut().enumerate() {
            memory.thread(thread as u16);
            let start = (first + thread * block).min(input.len());
            encoder.start(start..(start + block).min(input.len()), memory);
        }
        let mut active = true;
        while active && !memory.finished() {
            active = false;
            for (thread, encoder) in encoders.iter_mut().enumerate() {
                memory.thread(thread as u16);
                active |= encoder.turn(input, memory);
            }
        }
        memory.thread(0);
        for encoder in encoders.iter_mut() {
            let place = written..written + encoder.output.len();
            output[place.clone()].copy_from_slice(&encoder.output);
            output.store_run(memory, place.clone(), Token::NONE);
            encoder.output.clear();
            written = place.end;
        }
    }
    written
}

/// Undoes [`compress`]; returns how much came out.
fn decompress(input: &Array<u8>, length: usize, output: &mut Array<u8>, memory: &mut dyn Memory) -> usize {
    let (mut at, mut end) = (0, 0);
    while at < length {
        let mark = usize::from(input[at]);
        let from = at;
        memory.compute(20);
        if mark < LITERALS {
            let bytes = mark + 1;
            output[end..end + bytes].copy_from_slice(&input[at + 1..at + 1 + bytes]);
            output.store_run(memory, end..end + bytes, Token::NONE);
            (at, end) = (at + 1 + bytes, end + bytes);
        } else {
            let field = &input[at + 1..at + 5];
            let distance = u32::from_le_bytes([field[0], field[1], field[2], field[3]]) as usize;
            let bytes = mark - LITERALS + SHORTEST;
            // A match may overlap itself: byte by byte.
            (end..end + bytes).for_each(|to| output[to] = output[to - distance]);
            let (_, token) = output.load_run(memory, end - distance..end - distance + bytes, Token::NONE);
            output.store_run(memory, end..end + bytes, token);
            (at, end) = (at + 5, end + bytes);
        }
        if from / 64 != at / 64 {
            input.load_run(memory, from..at, Token::NONE);
        }
    }
    end
}

impl Program for Xz {
    fn footprint(&self) -> Bytes {
        Bytes(bytes(self.dictionary, self.threads) as u64)
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let length = input_bytes(self.dictionary);
        let input = text(length, 2 * self.dictionary, &mut Random::new(mix(self.seed)));
        let input = Array::of(memory, input, "xz input");
        input.store_run(memory, 0..length, Token::NONE);
        let mut compressed = Array::new(memory, length + length / 64 + 64, 0, "xz compressed");
        let mut output = Array::new(memory, length, 0, "xz output");
        let mut encoders: Vec<Encoder> =
            (0..self.threads).map(|_| Encoder::new(self.dictionary, memory)).collect();
        for _ in 0..self.runs {
            let written = compress(&input, self.dictionary, &mut encoders, &mut compressed, memory);
            if memory.finished() {
                return;
            }
            let length = decompress(&compressed, written, &mut output, memory);
            debug_assert_eq!(output[..length], input[..]);
            // The comparison with the input.
            output.load_run(memory, 0..length, Token::NONE);
            input.load_run(memory, 0..length, Token::NONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;

    #[test]
    fn what_was_compressed_is_smaller_and_comes_out_again() {
        let memory = &mut CountingMemory::default();
        for (length, threads) in [(100_000, 3), (20_011, 1), (5, 2)] {
            let input = Array::of(memory, text(length, 4000, &mut Random::new(8)), "input");
            let mut compressed = Array::new(memory, length + length / 64 + 64, 0, "compressed");
            let mut encoders: Vec<Encoder> = (0..threads).map(|_| Encoder::new(4096, memory)).collect();
            let written = compress(&input, 4096, &mut encoders, &mut compressed, memory);
            assert!(length < 1000 || (written as f64) < 0.8 * length as f64, "{written} of {length}");
            let mut output = Array::new(memory, length, 0, "output");
            assert_eq!(decompress(&compressed, written, &mut output, memory), length);
            assert_eq!(output[..], input[..]);
        }
    }
}
