//! System calls that show whether the kernel, seccomp filters and sysctls together permit something.

use std::io;

use isotherm_linux::sys::probe as sys;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Probe {
    #[default]
    Untried,
    Works,
    /// Failed with this `errno`.
    Fails(i32),
}

impl Probe {
    fn of(answer: io::Result<()>) -> Self {
        match answer {
            Ok(()) => Self::Works,
            Err(error) => Self::Fails(error.raw_os_error().unwrap_or(0)),
        }
    }

    fn error(self) -> Option<io::Error> {
        let Self::Fails(number) = self else { return None };
        Some(io::Error::from_raw_os_error(number))
    }

    /// Returns whether rights are missing (EACCES or EPERM).
    pub(super) fn is_denied(self) -> bool {
        self.error().is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Returns whether the kernel does not have the call (ENOSYS).
    pub(super) fn is_unsupported(self) -> bool {
        self.error().is_some_and(|error| error.kind() == io::ErrorKind::Unsupported)
    }

    pub(super) fn fails(self) -> bool {
        matches!(self, Self::Fails(_))
    }

    /// Returns the kernel's message, such as `Operation not permitted (os error 1)`.
    pub(super) fn reason(self) -> String {
        self.error().map_or_else(String::new, |error| error.to_string())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Probes {
    /// `perf_event_open` of processor cycles in user mode.
    pub hardware_events: Probe,
    /// `perf_event_open` of a software clock in user mode.
    pub software_events: Probe,
    /// `userfaultfd` for faults of user mode, which needs no right.
    pub userfaultfd: Probe,
    /// `UFFDIO_API`, for whether userfaultfd can move pages.
    pub userfaultfd_move: Probe,
    /// `userfaultfd` as the agent of hint faults opens it.
    pub hint_faults: Probe,
    pub move_pages: Probe,
}

impl Probes {
    pub fn live() -> Self {
        Self {
            hardware_events: Probe::of(sys::perf_event(sys::HARDWARE)),
            software_events: Probe::of(sys::perf_event(sys::SOFTWARE)),
            userfaultfd: Probe::of(sys::userfaultfd()),
            userfaultfd_move: Probe::of(sys::userfaultfd_move()),
            hint_faults: Probe::of(sys::hint_faults()),
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
        // Other tests open files at the same time, but fewer.
        assert!(open() < before + 200, "descriptors leak");
        assert_ne!(first.move_pages, Probe::Untried);
    }

    #[test]
    fn denial_is_told_from_absence() {
        // EPERM, EACCES, ENOENT and ENOSYS.
        let [eperm, eacces, enoent, enosys] = [1, 13, 2, 38].map(Probe::Fails);
        assert!(eperm.is_denied() && eacces.is_denied());
        assert!(!enoent.is_denied() && !enosys.is_denied() && !Probe::Works.is_denied());
        assert!(enosys.is_unsupported() && !eperm.is_unsupported() && !Probe::Works.is_unsupported());
        assert!(eperm.reason().contains("not permitted"));
    }
}
