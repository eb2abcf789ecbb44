//! See ../Cargo.toml.
