//! NeoProf, the profiling device in a CXL memory's controller (NeoMem, sections III to V): a model that
//! answers bit for bit as the hardware in `hardware/neoprof`, and the register protocol of both.
//!
//! ```
//! use isotherm_neoprof::registers::SET_THRESHOLD;
//! use isotherm_neoprof::{Device, Model, Parameters, Registers, read_histogram, read_hot_pages};
//!
//! let mut device = Model::new(Parameters::default())?;
//! device.write(SET_THRESHOLD, 2);
//! (0..3).for_each(|_| device.access(42, false));
//!
//! let mut hot = Vec::new();
//! read_hot_pages(&mut device, &mut hot);
//! assert_eq!(hot, [42], "its third access exceeded the threshold");
//! let counted: u64 = read_histogram(&mut device)?.bins().map(|bin| bin.entries).sum();
//! assert_eq!(counted, 512 << 10, "each entry of the first lane is in a bin");
//! # Ok::<(), isotherm_neoprof::ParameterError>(())
//! ```

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
