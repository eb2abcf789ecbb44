//! The graph as in a file, made from its edges.
//!
//! Making it would cost as much as a search, so it avoids random accesses: both directions of all edges are
//! dealt into parts of neighbouring vertices that fit a core's cache, and each part is sorted by its bits.

use std::fmt::Debug;

use super::generator::Generator;
use super::neighbour::Neighbour;

/// Number of parts, which are written side by side, as a power of two.
const PART_BITS: u32 = 10;
const CHUNK: usize = 1024;
const WEIGHT_BITS: u32 = 8;
/// Most bits that one pass of a sort looks at.
const DIGIT_BITS: u32 = 12;
/// Shorter parts are sorted by comparison.
const SHORT: usize = 2048;

/// A graph as in a file, outside the program's memory: no loops or duplicates, neighbours ascending.
pub(crate) struct Stored<N> {
    pub(crate) offsets: Vec<u64>,
    pub(crate) neighbours: Vec<N>,
    /// Memory it was made with. In an observed run it is kept, because the program would reuse it.
    pub(super) made_with: Vec<Box<dyn Send>>,
}

/// An edge as one number; of 4 bytes where they suffice.
trait Word: Copy + Default + Ord + Into<u64> + Send + 'static {
    fn new(bits: u64) -> Self;
}

impl Word for u32 {
    #[inline]
    fn new(bits: u64) -> Self {
        bits as Self
    }
}

impl Word for u64 {
    #[inline]
    fn new(bits: u64) -> Self {
        bits
    }
}

/// Layout of an edge as one number: its vertex within the part, its neighbour, its weight.
#[derive(Debug, Clone, Copy)]
struct Packing {
    /// Bits of a vertex within its part.
    low: u32,
    /// Bits of a vertex.
    scale: u32,
    /// Bits of a weight; 0 if there is none.
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

    /// Returns the vertex within the part, the neighbour and the weight.
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
        match packing.bits() <= u32::BITS {
            true => Self::sorted::<u32>(generator, packing),
            false => Self::sorted::<u64>(generator, packing),
        }
    }

    fn sorted<W: Word>(generator: &Generator, packing: Packing) -> Self {
        let parts = deal::<N, W>(generator, packing);
        let mut stored = Self {
            offsets: Vec::with_capacity(generator.vertices() + 1),
            neighbours: Vec::with_capacity(2 * generator.edges()),
            made_with: Vec::new(),
        };
        let (mut edges, mut spare) = (Vec::new(), Vec::new());
        for part in 0..parts.next.len() {
            edges.clear();
            parts.collect(part, &mut edges);
            sort(&mut edges, packing.bits(), &mut spare);
            stored.append(&edges, packing);
        }
        stored.offsets.push(stored.neighbours.len() as u64);
        stored.made_with = vec![Box::new(parts), Box::new(edges), Box::new(spare)];
        stored
    }

    fn append<W: Word>(&mut self, sorted: &[W], packing: Packing) {
        let first = self.offsets.len();
        self.offsets.resize(first + (1 << packing.low), 0);
        let mut counts = 0;
        let mut before = u64::MAX;
        for edge in sorted.iter().map(|&edge| -> u64 { edge.into() }) {
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

struct Parts<W> {
    pool: Vec<W>,
    used: usize,
    /// Place of each part's next edge: in a new chunk if the last is full.
    next: Vec<usize>,
    chunks: Vec<Vec<usize>>,
}

impl<W: Word> Parts<W> {
    fn new(parts: usize, most: usize) -> Self {
        let pool = vec![W::default(); most.next_multiple_of(CHUNK) + parts * CHUNK];
        Self { pool, used: 0, next: vec![0; parts], chunks: vec![Vec::new(); parts] }
    }

    #[inline]
    fn put(&mut self, part: usize, edge: W) {
        let next = &mut self.next[part];
        if next.is_multiple_of(CHUNK) {
            self.chunks[part].push(self.used);
            *next = self.used;
            self.used += CHUNK;
        }
        self.pool[*next] = edge;
        *next += 1;
    }

    fn collect(&self, part: usize, edges: &mut Vec<W>) {
        let chunks = &self.chunks[part];
        for (place, &start) in chunks.iter().enumerate() {
            let end = if place + 1 < chunks.len() { start + CHUNK } else { self.next[part] };
            edges.extend_from_slice(&self.pool[start..end]);
        }
    }
}

fn deal<N: Neighbour, W: Word>(generator: &Generator, packing: Packing) -> Parts<W> {
    let mut parts = Parts::new(1 << (packing.scale - packing.low), 2 * generator.edges());
    let mut weights = N::WEIGHTED.then(|| generator.weights());
    generator.for_each_pair(|from, to| {
        let weight = weights.as_mut().and_then(Iterator::next).unwrap_or(0);
        if from != to {
            parts.put(packing.part(from), W::new(packing.pack(from, to, weight)));
            parts.put(packing.part(to), W::new(packing.pack(to, from, weight)));
        }
    });
    parts
}

/// Sorts numbers of `bits` bits, digit by digit from the last.
fn sort<W: Word>(numbers: &mut [W], bits: u32, spare: &mut Vec<W>) {
    if numbers.len() < SHORT {
        numbers.sort_unstable();
        return;
    }
    spare.resize(spare.len().max(numbers.len()), W::default());
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
fn sort_by_digit<W: Word>(from: &[W], to: &mut [W], shift: u32, width: u32) {
    let mut places = [0u32; 1 << DIGIT_BITS];
    let digit =
        |number: W| (Into::<u64>::into(number) >> shift & ((1 << width) - 1)) as usize % (1 << DIGIT_BITS);
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
