//! The NeoProf hardware of `../rtl`, simulated cycle by cycle, behind the trait that its model implements too.

mod rtl;
mod variant;

pub use rtl::Rtl;
pub use variant::Variant;
