//! The recorder plugin.
