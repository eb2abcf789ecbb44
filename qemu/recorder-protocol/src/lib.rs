//! The protocol between the recorder and its QEMU plugin: the file that both map, and how both find an executable.

#![forbid(unsafe_code)]

pub mod executable;
pub mod layout;
