//! Defines what only a system call tells: whether the kernel, a seccomp filter and the sysctls together permit something.

use std::io;

use isotherm_linux::sys::probe as sys;

/// What a call answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Probe {
    /// It was not made.
    #[default]
    Untried,
    /// It succeeded.
    Works,
    /// It failed with this `errno`.
    Fails(i32),
}

impl Probe {
    fn of(answer: io::Result<()>) -> Self {
        match answer {
            Ok(()) => Self::Works,
            Err(error) => Self::Fails(error.raw_os_error().unwrap_or(0)),
        }
    }

    /// Whether it failed because of missing rights.
    pub(super) fn is_denied(self) -> bool {
        matches!(self, Self::Fails(libc::EACCES | libc::EPERM))
    }

    /// Whether it failed, for any reason.
    pub(super) fn fails(self) -> bool {
        matches!(self, Self::Fails(_))
    }

    /// The kernel's words, such as `Operation not permitted (os error 1)`.
    pub(super) fn reason(self) -> String {
        match self {
            Self::Untried => "not tried".to_owned(),
            Self::Works => "works".to_owned(),
            Self::Fails(number) => io::Error::from_raw_os_error(number).to_string(),
        }
    }
}

/// What the kernel answers to calls that have no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Probes {
    /// `perf_event_open` of processor cycles in user mode.
    pub hardware_events: Probe,
    /// `perf_event_open` of a software clock in user mode.
    pub software_events: Probe,
    /// `userfaultfd` that handles faults in system calls too.
    pub userfaultfd: Probe,
    /// `userfaultfd` that handles faults of user mode alone.
    pub userfaultfd_user_mode: Probe,
    /// `UFFDIO_API`, asking whether userfaultfd can move pages.
    pub userfaultfd_move: Probe,
    /// `move_pages`, asking where a page is.
    pub move_pages: Probe,
}

impl Probes {
    /// Asks the running kernel.
    pub fn live() -> Self {
        Self {
            hardware_events: Probe::of(sys::perf_event(sys::HARDWARE)),
            software_events: Probe::of(sys::perf_event(sys::SOFTWARE)),
            userfaultfd: Probe::of(sys::userfaultfd(false)),
            userfaultfd_user_mode: Probe::of(sys::userfaultfd(true)),
            userfaultfd_move: Probe::of(sys::userfaultfd_move()),
            move_pages: Probe::of(sys::move_pages()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_answers_and_leaves_no_descriptor_behind() {
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let first = Probes::live();
        let before = open();
        for _ in 0..200 {
            assert_eq!(Probes::live(), first);
        }
        // Other tests open files beside this one, though not as many.
        assert!(open() < before + 200, "descriptors leak");
        assert_ne!(first.move_pages, Probe::Untried);
    }

    #[test]
    fn denial_is_told_from_absence() {
        assert!(Probe::Fails(libc::EPERM).is_denied() && Probe::Fails(libc::EACCES).is_denied());
        assert!(!Probe::Fails(libc::ENOENT).is_denied() && !Probe::Works.is_denied());
        assert!(Probe::Fails(libc::EPERM).reason().contains("not permitted"));
    }
}
