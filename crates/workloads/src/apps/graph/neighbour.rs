//! An entry of a list of neighbours, with or without a weight.

/// An entry of a list of neighbours.
pub(crate) trait Neighbour: Copy + Default + Ord + std::fmt::Debug + Send {
    /// Whether it keeps the weight.
    const WEIGHTED: bool;
    /// Creates the neighbour behind an edge of this weight.
    fn new(vertex: u32, weight: u8) -> Self;

    fn vertex(self) -> u32;
}

impl Neighbour for u32 {
    const WEIGHTED: bool = false;

    fn new(vertex: u32, _weight: u8) -> Self {
        vertex
    }

    #[inline]
    fn vertex(self) -> u32 {
        self
    }
}

/// A neighbour and the weight of the edge to it: 8 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Weighted {
    pub(crate) vertex: u32,
    pub(crate) weight: i32,
}

impl Neighbour for Weighted {
    const WEIGHTED: bool = true;

    fn new(vertex: u32, weight: u8) -> Self {
        Self { vertex, weight: i32::from(weight) }
    }

    #[inline]
    fn vertex(self) -> u32 {
        self.vertex
    }
}
