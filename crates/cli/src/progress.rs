//! Progress bars on standard error, shown only on a terminal.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use isotherm_sim::SimulateError;

use crate::failure::Failure;

/// A look at a verb's work from another thread, which may also end it.
#[derive(Debug)]
pub struct Watch {
    quiet: bool,
    bar: Mutex<ProgressBar>,
    stop: AtomicBool,
}

impl Watch {
    /// Returns a watch over work that has not begun. A quiet one shows nothing by itself.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, bar: Mutex::new(ProgressBar::hidden()), stop: AtomicBool::new(false) }
    }

    /// Returns the work's present part, the steps of it that are done, and its steps in all where they are
    /// known.
    pub fn position(&self) -> (String, u64, Option<u64>) {
        let bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        (bar.message(), bar.position(), bar.length())
    }

    /// Ends the work within milliseconds; it then fails.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.stop
    }

    /// Fails once the work is to end.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let stopped = self.stop.load(Ordering::Relaxed);
        if stopped { Err(Failure::failed(SimulateError::Stopped)) } else { Ok(()) }
    }

    /// Begins a part of the work, of `length` steps.
    pub(crate) fn bar(&self, length: u64, what: &'static str) -> ProgressBar {
        self.begin(bar(length, what, self.quiet))
    }

    /// Begins a part of the work that tells its own progress.
    pub(crate) fn line(&self) -> ProgressBar {
        self.begin(line(self.quiet))
    }

    fn begin(&self, bar: ProgressBar) -> ProgressBar {
        *self.bar.lock().unwrap_or_else(PoisonError::into_inner) = bar.clone();
        bar
    }
}

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
    let hidden = quiet || !std::io::stderr().is_terminal();
    let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(length, target);
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
