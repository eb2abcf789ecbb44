//! The verbs, one module each.

pub(crate) mod alloc_profile;
pub(crate) mod calibrate;
pub(crate) mod compare;
pub(crate) mod daemon;
pub(crate) mod doctor;
pub(crate) mod generate;
pub(crate) mod lab;
pub(crate) mod live;
pub(crate) mod machines;
pub(crate) mod objects;
pub(crate) mod policies;
pub(crate) mod policy;
pub(crate) mod ps;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod score;
pub(crate) mod simulate;
pub(crate) mod size;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod workloads;
