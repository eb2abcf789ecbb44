//! The NeoProf hardware of `../rtl`, simulated cycle by cycle behind the trait of its model.
//!
//! As a shared object it is the device of the lab's virtual machine ([`exports`]).

pub mod exports;
mod rtl;
mod variant;

pub use rtl::Rtl;
pub use variant::Variant;
