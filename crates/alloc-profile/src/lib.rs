//! Defines the file in which `libisotherm_alloc.so` tells what a program's calling contexts allocate, and how it is read.
//!
//! The file is mapped by the program and changes while it runs. It consists of 64-bit words of the machine's byte order: a
//! header, then tables of a fixed size ([`layout`]). [`Profile`] is what a reader finds in it.

pub mod layout;
mod read;

pub use read::{Block, Context, Frame, Heat, Module, Profile, ProfileError, Region};
