//! The state of a machine under a daemon: as a table, as a live page, and as metrics.

mod metrics;
mod page;
mod table;

pub use metrics::machine_metrics;
pub use page::machine_page;
pub use table::{machine_line, machine_text, slower};
