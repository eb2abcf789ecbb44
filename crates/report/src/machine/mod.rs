//! The state of a machine under a daemon: as a table, and as metrics.

mod metrics;
mod table;

pub use metrics::machine_metrics;
pub use table::machine_text;
