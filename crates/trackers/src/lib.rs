//! Hotness trackers: counting Bloom filters and exact tables behind one trait, and what goes with them.

#![forbid(unsafe_code)]

mod coalescer;
mod counters;
mod dense;
mod filter;
mod hash;
mod histogram;
mod pac;
mod placement;
mod shape;
mod smooth;
mod table;
mod tracker;

pub use coalescer::Coalescer;
pub use counters::Counters;
pub use dense::{Count, DenseTable};
pub use filter::Filter;
pub use histogram::CountHistogram;
pub use pac::{Cooling, PacTable, Window};
pub use placement::{Blocked, Layout, Standard};
pub use shape::{BLOCK_BYTES, FilterShape, ShapeError};
pub use smooth::{SmoothClock, SmoothScore};
pub use table::HashTable;
pub use tracker::{Change, Tracker};
