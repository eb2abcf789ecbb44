//! NeoProf, the profiling device in a CXL memory's controller (NeoMem, sections III to V): a model that answers bit
//! for bit as the hardware in `hardware/neoprof` does, and the register protocol that both speak.

#![forbid(unsafe_code)]

mod accuracy;
mod buffer;
mod device;
mod hash;
mod histogram;
mod model;
mod parameters;
pub mod registers;
mod sketch;

pub use accuracy::{Accuracy, accuracy, estimates};
pub use device::{Device, Registers, Request, read_histogram, read_hot_pages};
pub use hash::H3;
pub use histogram::{bin_of, bin_range, histogram_of_bins, histogram_of_counts};
pub use isotherm_core::{Bin, Histogram};
pub use model::Model;
pub use parameters::{ParameterError, Parameters};
