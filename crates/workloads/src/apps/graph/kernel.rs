//! The interface of a GAPBS kernel to the driver, which loads a graph and runs trials on it.

use isotherm_core::Bytes;
use isotherm_core::parameters::{Parameters, Preset, Spec};

use super::csr::Graph;
use super::generator::Shape;
use super::neighbour::Neighbour;
use super::schedule::Threads;
use crate::{Memory, Random};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) shape: Shape,
    pub(crate) vertices: f64,
    pub(crate) directed_edges: f64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Reference {
    /// Bytes that trials touch at the papers' size, on the Kronecker and the uniform graph.
    pub(crate) footprints: [Bytes; 2],
    pub(crate) cache: Bytes,
}

pub(crate) trait Kernel: Sized {
    type Neighbour: Neighbour;
    const SPECS: &'static [Spec];
    const PRESETS: &'static [Preset];
    const REFERENCE: Reference;
    /// One line, without the graph.
    const TITLE: &'static str;

    fn bytes(size: Size) -> f64;

    /// Allocates its memory; nothing is touched.
    fn new(
        memory: &mut dyn Memory,
        graph: &Graph<Self::Neighbour>,
        parameters: &Parameters,
        threads: Threads,
    ) -> Self;

    /// Runs once and draws the sources it needs. A run that `memory` ended early has no result.
    fn trial(&mut self, memory: &mut dyn Memory, graph: &Graph<Self::Neighbour>, sources: &mut Sources);
}

/// Draws sources: vertices with at least one neighbour.
pub(crate) struct Sources(pub(crate) Random);

impl Sources {
    /// Returns the next source; vertex 0 in a graph without edges.
    pub(crate) fn pick<N: Neighbour>(&mut self, graph: &Graph<N>) -> u32 {
        if graph.directed_edges() == 0 {
            return 0;
        }
        loop {
            let vertex = self.0.below(graph.vertices() as u64) as u32;
            if graph.degree(vertex) > 0 {
                return vertex;
            }
        }
    }
}
