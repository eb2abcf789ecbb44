//! Defines the graph as it lies in a file, made from its edges.
//!
//! Making it costs as much as a search of it, so it avoids random accesses: both directions of all edges are dealt into parts
//! of neighbouring vertices that fit a core's cache, and each part is sorted by its bits.

use super::csr::Neighbour;
use super::generator::Generator;

/// Parts, as a power of two: as many lines as are written to at once.
const PART_BITS: u32 = 10;
/// Bits of a weight.
const WEIGHT_BITS: u32 = 8;
/// Most bits that one pass of a sort looks at.
const DIGIT_BITS: u32 = 12;
/// Shorter parts are sorted by comparison.
const SHORT: usize = 2048;

/// A graph outside the program's memory, as in a file: without loops and duplicates, neighbours in ascending order.
#[derive(Debug)]
pub(crate) struct Stored<N> {
    pub(crate) offsets: Vec<u64>,
    pub(crate) neighbours: Vec<N>,
    /// What it was made with: where a native run is observed, memory that was freed here would become the program's own.
    made_with: Vec<Vec<u64>>,
}

/// How an edge is written as one number: its vertex within the part, its neighbour, its weight.
#[derive(Debug, Clone, Copy)]
struct Packing {
    /// Bits of a vertex within its part.
    low: u32,
    /// Bits of a vertex.
    scale: u32,
    /// Bits of a weight, if it is kept.
    weight: u32,
}

impl Packing {
    fn bits(self) -> u32 {
        self.low + self.scale + self.weight
    }

    fn part(self, vertex: u32) -> usize {
        (vertex >> self.low) as usize
    }

    fn pack(self, from: u32, to: u32, weight: u8) -> u64 {
        let within = u64::from(from) & ((1 << self.low) - 1);
        let weight = u64::from(weight) & ((1 << self.weight) - 1);
        (within << self.scale | u64::from(to)) << self.weight | weight
    }

    /// Vertex within the part, neighbour, weight.
    fn unpack(self, edge: u64) -> (usize, u32, u8) {
        let weight = (edge & ((1 << self.weight) - 1)) as u8;
        let vertices = edge >> self.weight;
        ((vertices >> self.scale) as usize, (vertices & ((1 << self.scale) - 1)) as u32, weight)
    }
}

impl<N: Neighbour> Stored<N> {
    /// Makes the graph. Of duplicates the lightest stays.
    pub(crate) fn generate(generator: &Generator) -> Self {
        let scale = generator.scale;
        let weight = if N::WEIGHTED { WEIGHT_BITS } else { 0 };
        let packing = Packing { low: scale - PART_BITS.min(scale), scale, weight };
        let (pairs, mut edges, ends) = deal::<N>(generator, packing);
        let mut stored = Self {
            offsets: Vec::with_capacity(generator.vertices() + 1),
            neighbours: Vec::with_capacity(edges.len()),
            made_with: Vec::new(),
        };
        let (mut spare, mut start) = (Vec::new(), 0);
        for end in ends {
            let part = &mut edges[start..end];
            sort(part, packing.bits(), &mut spare);
            stored.append(part, packing);
            start = end;
        }
        stored.offsets.push(stored.neighbours.len() as u64);
        stored.made_with = vec![pairs, edges, spare];
        stored
    }

    /// Frees what it was made with.
    pub(crate) fn forget_making(&mut self) {
        self.made_with = Vec::new();
    }

    /// Adds the vertices of the next part.
    fn append(&mut self, sorted: &[u64], packing: Packing) {
        let first = self.offsets.len();
        self.offsets.resize(first + (1 << packing.low), 0);
        let mut counts = 0;
        let mut before = u64::MAX;
        for &edge in sorted {
            let same = edge >> packing.weight == before;
            before = edge >> packing.weight;
            if !same {
                let (vertex, neighbour, weight) = packing.unpack(edge);
                self.offsets[first + vertex] += 1;
                self.neighbours.push(N::new(neighbour, weight));
                counts += 1;
            }
        }
        let mut sum = self.neighbours.len() as u64 - counts;
        for offset in &mut self.offsets[first..] {
            sum += std::mem::replace(offset, sum);
        }
    }
}

/// The edges' vertices; both directions of every edge that is no loop, part by part; and where each part ends.
fn deal<N: Neighbour>(generator: &Generator, packing: Packing) -> (Vec<u64>, Vec<u64>, Vec<usize>) {
    let mut ends = vec![0usize; 1 << (packing.scale - packing.low)];
    let count = |&(from, to): &(u32, u32)| {
        let kept = usize::from(from != to);
        ends[packing.part(from)] += kept;
        ends[packing.part(to)] += kept;
    };
    let joined = |(from, to): (u32, u32)| u64::from(from) << 32 | u64::from(to);
    let pairs: Vec<u64> = generator.pairs().inspect(count).map(joined).collect();
    let mut sum = 0;
    for end in &mut ends {
        sum += std::mem::replace(end, sum);
    }
    let mut dealt = vec![0; sum];
    let mut put = |from: u32, to: u32, weight: u8| {
        let place = &mut ends[packing.part(from)];
        dealt[*place] = packing.pack(from, to, weight);
        *place += 1;
    };
    let mut weights = N::WEIGHTED.then(|| generator.weights());
    for &pair in &pairs {
        let (from, to) = ((pair >> 32) as u32, pair as u32);
        let weight = weights.as_mut().and_then(Iterator::next).unwrap_or(0);
        if from != to {
            put(from, to, weight);
            put(to, from, weight);
        }
    }
    (pairs, dealt, ends)
}

/// Sorts numbers of so many bits, digit by digit from the last.
fn sort(numbers: &mut [u64], bits: u32, spare: &mut Vec<u64>) {
    if numbers.len() < SHORT {
        numbers.sort_unstable();
        return;
    }
    spare.resize(spare.len().max(numbers.len()), 0);
    let spare = &mut spare[..numbers.len()];
    let passes = bits.div_ceil(DIGIT_BITS);
    let width = bits.div_ceil(passes);
    for pass in 0..passes {
        match pass % 2 {
            0 => sort_by_digit(numbers, spare, pass * width, width),
            _ => sort_by_digit(spare, numbers, pass * width, width),
        }
    }
    if passes % 2 == 1 {
        numbers.copy_from_slice(spare);
    }
}

/// Writes `from` to `to` in the order of the digit of `width` bits above `shift`; equals keep their order.
fn sort_by_digit(from: &[u64], to: &mut [u64], shift: u32, width: u32) {
    let mut places = [0u32; 1 << DIGIT_BITS];
    let digit = |number: u64| (number >> shift & ((1 << width) - 1)) as usize % (1 << DIGIT_BITS);
    from.iter().for_each(|&number| places[digit(number)] += 1);
    let mut sum = 0;
    for place in &mut places[..1 << width] {
        sum += std::mem::replace(place, sum);
    }
    for &number in from {
        let place = &mut places[digit(number)];
        to[*place as usize] = number;
        *place += 1;
    }
}
