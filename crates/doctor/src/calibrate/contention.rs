//! Processor time that others take while something is measured: they use its memory as well.

use std::path::Path;

use isotherm_core::Nanos;
use isotherm_linux::LinuxError;
use isotherm_linux::clock;
use isotherm_linux::files::{Tree, decimal};

const STAT: &str = "/proc/stat";
/// Length of the kernel's ticks in `/proc/stat`, the same on every architecture that Linux exports them on.
const TICK: Nanos = Nanos(10_000_000);
/// Columns of the first line that are work: user, nice, system, irq, softirq and steal.
const WORK: [usize; 6] = [0, 1, 2, 5, 6, 7];

/// Start of a measurement.
#[derive(Debug)]
pub(super) struct Contention {
    started: Nanos,
    own: Nanos,
    all: Nanos,
}

impl Contention {
    pub(super) fn begin(root: &Path) -> Result<Self, LinuxError> {
        Ok(Self { started: clock::monotonic(), own: clock::process_cpu(), all: work(root)? })
    }

    /// Returns how many processors others have kept busy since.
    pub(super) fn end(self, root: &Path) -> Result<f64, LinuxError> {
        let all = work(root)?.0.saturating_sub(self.all.0);
        let own = clock::process_cpu().0 - self.own.0;
        let time = clock::monotonic().0 - self.started.0;
        Ok(all.saturating_sub(own) as f64 / time.max(1) as f64)
    }
}

/// Returns the time that all processors have worked, that of other guests included.
fn work(root: &Path) -> Result<Nanos, LinuxError> {
    Tree::new(root).parsed(STAT, "a line of processors' ticks", parse)
}

fn parse(text: &str) -> Option<Nanos> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let columns: Vec<u64> = line.split_whitespace().map(decimal).collect::<Option<_>>()?;
    let ticks: u64 = WORK.iter().filter_map(|&column| columns.get(column)).sum();
    Some(Nanos(ticks.checked_mul(TICK.0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_processors_do_not_work() {
        let text = "cpu  100 10 20 5000 700 3 4 5 60 0\ncpu0 1 1 1 1\n";
        assert_eq!(parse(text), Some(Nanos(142 * 10_000_000)));
        assert_eq!(parse("cpu  1 2 3 4\n"), Some(Nanos(60_000_000)), "an old kernel's columns");
        for text in ["", "intr 5", "cpu  x 1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn own_work_is_not_that_of_others() {
        let root = Path::new("/");
        let begun = Contention::begin(root).expect("/proc");
        let until = clock::monotonic().0 + 50_000_000;
        while clock::monotonic().0 < until {}
        let others = begun.end(root).expect("/proc");
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        assert!((0.0..=processors as f64 + 1.0).contains(&others), "{others}");
    }
}
