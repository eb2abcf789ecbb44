//! Progress bars on standard error, shown only on a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Returns a bar of `length` steps, hidden if `quiet` or not on a terminal.
pub(crate) fn bar(length: u64, what: &'static str, quiet: bool) -> ProgressBar {
    let bar = styled(Some(length), "{msg:<12} {bar:40} {human_pos}/{human_len} {per_sec}", quiet);
    bar.set_message(what);
    bar
}

pub(crate) fn line(quiet: bool) -> ProgressBar {
    styled(None, "{msg}", quiet)
}

fn styled(length: Option<u64>, template: &str, quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
