//! Small graphs of each shape on a memory that counts, for the kernels' tests.

use isotherm_core::parameters::Parameters;

use super::csr::Graph;
use super::generator::{Generator, Shape};
use super::kernel::{Kernel, Sources};
use super::schedule::Threads;
use super::stored::Stored;
use crate::{CountingMemory, Random};

pub(crate) const NONE: &[(&str, &str)] = &[];

pub(crate) fn each_graph<K: Kernel>(
    settings: &[(&str, &str)],
    mut test: impl FnMut(&mut K, &Graph<K::Neighbour>, &mut CountingMemory, &mut Sources),
) {
    let mut parameters = Parameters::with_presets("test", K::SPECS, K::PRESETS);
    settings.iter().for_each(|(key, value)| parameters.set(key, value).expect("in range"));
    for (shape, degree, threads) in
        [(Shape::Kronecker, 1, 3), (Shape::Kronecker, 16, 2), (Shape::Uniform, 1, 1), (Shape::Uniform, 8, 4)]
    {
        let mut stored = Stored::generate(&Generator { shape, scale: 12, degree, seed: 7 });
        let (mut memory, threads) = (CountingMemory::default(), Threads(threads));
        let graph = Graph::load(&mut memory, &mut stored, threads);
        let mut kernel = K::new(&mut memory, &graph, &parameters, threads);
        test(&mut kernel, &graph, &mut memory, &mut Sources(Random::new(5)));
        assert!(memory.loads > 1000, "a run without loads");
    }
}
