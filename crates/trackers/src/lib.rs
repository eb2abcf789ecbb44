//! Hotness trackers: counting Bloom filters and exact tables behind one trait, histograms of their counts,
//! smooth counts, and the table of access criticality.
//!
//! ```
//! use isotherm_trackers::{Coalescer, CountHistogram, FilterShape, Layout};
//!
//! # fn main() -> Result<(), isotherm_trackers::ShapeError> {
//! // 1000 pages, 0.1 % false positives, 4-bit counters, 3 hash functions.
//! let mut filter = FilterShape::for_keys(1000, 0.001, 4, 3)?.build(Layout::Blocked)?;
//! let mut histogram = CountHistogram::new(filter.maximum());
//! let (mut coalescer, mut changes) = (Coalescer::default(), Vec::new());
//! filter.increase_batch(coalescer.coalesce([7, 8, 7, 7]), &mut changes);
//! histogram.record_all(&changes);
//! assert_eq!(filter.get(7), 3);
//! assert_eq!(histogram.threshold_for(1), 2, "one page has at least two samples");
//! # Ok(())
//! # }
//! ```

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
#[cfg(feature = "testing")]
pub mod testing;
mod tracker;

pub use coalescer::Coalescer;
pub use counters::Counters;
pub use dense::{Count, DenseTable};
pub use filter::Filter;
pub use histogram::CountHistogram;
pub use pac::{Cooling, PacTable, Window};
pub use placement::{Blocked, Layout, Standard};
pub use shape::{FilterShape, ShapeError};
pub use smooth::{SmoothClock, SmoothScore};
pub use tracker::{Change, Tracker};
