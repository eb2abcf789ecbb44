//! `/proc/loadavg` (`proc_loadavg(5)`).

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::ProcRoot;

/// The file, held open.
#[derive(Debug)]
pub struct Load {
    file: Option<File>,
    /// Processors that this process may use.
    processors: u64,
}

impl Load {
    pub fn new(root: &ProcRoot) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        Self { file: File::open(root.path().join("loadavg")).ok(), processors }
    }

    /// Returns whether more threads can run now, with the caller, than there are processors for. A caller
    /// then takes the place of another thread. True where the kernel does not tell.
    pub fn lacks_processors(&self) -> bool {
        let runnable = |text: &str| text.split('/').next()?.split(' ').next_back()?.parse().ok();
        self.read(runnable).is_none_or(|runnable: u64| runnable > self.processors)
    }

    /// Returns the number of the last process that the kernel has made; `None` if it does not tell.
    pub(super) fn last_process(&self) -> Option<u64> {
        self.read(|text| text.split_ascii_whitespace().next_back()?.parse().ok())
    }

    fn read(&self, part: impl Fn(&str) -> Option<u64>) -> Option<u64> {
        let mut text = [0; 128];
        let length = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        part(std::str::from_utf8(&text[..length]).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_takes_a_place_where_more_threads_can_run_than_processors_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let load = |text: &str| {
            std::fs::write(folder.path().join("loadavg"), text).expect("written");
            Load { processors: 16, ..Load::new(&ProcRoot::at(folder.path())) }
        };
        assert!(!load("9.0 1.0 1.0 16/400 1234\n").lacks_processors());
        assert!(load("0.0 1.0 1.0 17/400 1234\n").lacks_processors());
        assert_eq!(load("0.0 1.0 1.0 17/400 1234\n").last_process(), Some(1234));
        for unknown in ["", "0.0 1.0", "a b c d/e f"] {
            assert!(load(unknown).lacks_processors(), "{unknown:?}");
            assert_eq!(load("x").last_process(), None);
        }
    }
}
