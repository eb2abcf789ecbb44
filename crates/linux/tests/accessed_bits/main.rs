//! Accessed bits of real programs under the real kernel. The programs check their memory.

mod clear_refs;
mod faults;
mod idle_pages;
mod program;
