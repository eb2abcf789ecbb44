//! Opens events as far as this machine and user permit, and explains refusals.

use std::io;
use std::path::Path;

use isotherm_core::SamplingRate;

use super::events::{EventSpec, Format, unsupported};
use super::pmu::Encoding;
use super::sys::{self, Attr, Event, Join, flag};
use crate::LinuxError;
use crate::files::{Tree, decimal};
use crate::process::Pid;

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const MAX_RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// `precise_ip`: 3 is exact, 0 may be off by many instructions.
    pub precise: u8,
    /// Whether accesses that the kernel makes for the program, as in `read(2)`, are excluded.
    pub exclude_kernel: bool,
}

/// Returns the kernel's maximum samples per second of an event in frequency mode, or its default.
pub(crate) fn max_rate(root: Tree<'_>) -> u64 {
    root.parsed(MAX_RATE, "a rate", decimal).unwrap_or(100_000)
}

pub(crate) fn encoded(encoding: Encoding) -> Attr {
    let [config, config1, config2, config3] = encoding.config;
    Attr { kind: encoding.kind, config, config1, config2, config3, ..Attr::default() }
}

/// Returns the period, or the frequency and [`flag::FREQ`], of `spec` at a rate.
pub fn period(spec: &EventSpec, rate: SamplingRate, max_rate: u64) -> (u64, u64) {
    match rate {
        SamplingRate::Frequency(frequency) => (frequency.clamp(1, max_rate.max(1)), flag::FREQ),
        // IBS refuses periods below 0x90.
        SamplingRate::Period(period) if spec.period_step > 1 => {
            (period.max(0x90).next_multiple_of(spec.period_step), 0)
        }
        SamplingRate::Period(period) => (period.max(1), 0),
        SamplingRate::Off => (1 << 40, 0),
    }
}

pub(crate) fn sampling(spec: &EventSpec, grant: Grant, rate: SamplingRate, max_rate: u64) -> Attr {
    let (period, frequency) = period(spec, rate, max_rate);
    Attr {
        period,
        sample_type: spec.sample_type(frequency != 0),
        flags: frequency | flag::precise(grant.precise) | modes(grant),
        ..encoded(spec.encoding)
    }
}

pub(crate) fn leading(spec: &EventSpec, grant: Grant) -> Option<Attr> {
    spec.leader.map(|leader| Attr { flags: modes(grant), ..encoded(leader) })
}

fn modes(grant: Grant) -> u64 {
    flag::EXCLUDE_HYPERVISOR | if grant.exclude_kernel { flag::EXCLUDE_KERNEL } else { 0 }
}

/// Opens the event on this thread to find what is permitted: the highest precision first, and the kernel's
/// accesses unless the user may not see them.
pub fn probe(spec: &EventSpec, root: &Path) -> Result<Grant, LinuxError> {
    let mut last = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
    for exclude_kernel in [false, true] {
        for precise in (spec.min_precise..=spec.precise).rev() {
            let grant = Grant { precise, exclude_kernel };
            match attempt(spec, grant) {
                Ok(_) => return Ok(grant),
                Err(error) => last = error,
            }
            if is_denied(&last) {
                break;
            }
        }
        if !is_denied(&last) && spec.format != Format::Ibs {
            break;
        }
    }
    Err(explain(last, &spec.name, Tree::new(root), None))
}

fn attempt(spec: &EventSpec, grant: Grant) -> io::Result<Event> {
    let attr = sampling(spec, grant, SamplingRate::Off, u64::MAX);
    let attr = Attr { flags: attr.flags | flag::DISABLED, ..attr };
    match leading(spec, grant) {
        None => sys::open(&attr, 0, -1, Join::Alone),
        Some(leader) => {
            let leader = sys::open(&leader, 0, -1, Join::Alone)?;
            sys::open(&Attr { flags: attr.flags & !flag::DISABLED, ..attr }, 0, -1, Join::Group(&leader))
        }
    }
}

fn is_denied(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

pub(crate) fn explain(error: io::Error, event: &str, root: Tree<'_>, process: Option<Pid>) -> LinuxError {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => denied(root),
        Some(libc::EMFILE | libc::ENFILE) => LinuxError::Permission {
            what: "sampling every thread on every processor",
            needs: "more open files",
            remedy: "raise the limit: ulimit -n 1048576".into(),
        },
        Some(libc::ESRCH) if process.is_some() => LinuxError::Ended(process.map_or(0, |pid| pid.0)),
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::ENODATA | libc::EINVAL) => {
            let remedy = format!(
                "the kernel refuses the event {event} ({error}); it needs a real or virtual processor with this PMU event and \
                addresses in its samples"
            );
            unsupported(remedy)
        }
        Some(libc::EBUSY) => unsupported(format!("another program has exclusive use of the event {event}")),
        _ => LinuxError::Call { call: "perf_event_open", error },
    }
}

fn denied(root: Tree<'_>) -> LinuxError {
    let paranoid = root.text(PARANOID).unwrap_or_else(|_| "unreadable".into());
    LinuxError::Permission {
        what: "sampling memory accesses with the PMU",
        needs: "CAP_PERFMON, and CAP_SYS_PTRACE for programs of other users",
        remedy: format!(
            "sudo setcap cap_perfmon,cap_sys_ptrace=ep \"$(command -v isotherm)\", or for programs of the same user: \
             sudo sysctl kernel.perf_event_paranoid=2 (it is {paranoid})"
        ),
    }
}

pub(crate) fn explain_ring(error: io::Error, pages: usize) -> LinuxError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOMEM) => LinuxError::Permission {
            what: "the memory of perf rings",
            needs: "CAP_IPC_LOCK, or room in kernel.perf_event_mlock_kb",
            remedy: format!("sudo sysctl kernel.perf_event_mlock_kb={}", (pages * 4 + 4) * RINGS),
        },
        _ => LinuxError::Call { call: "mmap of a perf ring", error },
    }
}

/// Maximum rings per processor: life cycle, four kinds of loads, stores.
const RINGS: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_clamped_to_what_the_kernel_and_the_pmu_take() {
        let plain = EventSpec::page_faults();
        let ibs = EventSpec { period_step: 16, ..EventSpec::page_faults() };
        assert_eq!(period(&plain, SamplingRate::Frequency(100_001), 100_000), (100_000, flag::FREQ));
        assert_eq!(period(&plain, SamplingRate::Frequency(0), 100_000), (1, flag::FREQ));
        assert_eq!(period(&plain, SamplingRate::Period(199), 100), (199, 0));
        assert_eq!(period(&plain, SamplingRate::Period(0), 100), (1, 0));
        assert_eq!(period(&ibs, SamplingRate::Period(1001), 100), (1008, 0));
        assert_eq!(period(&ibs, SamplingRate::Period(1), 100), (0x90, 0));
    }

    #[test]
    fn errors_say_what_fixes_them() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(root.path().join("proc/sys/kernel")).expect("created");
        std::fs::write(root.path().join(&PARANOID[1..]), "4\n").expect("written");
        let said = |code| {
            let error = io::Error::from_raw_os_error(code);
            explain(error, "X", Tree::new(root.path()), Some(Pid(7))).to_string()
        };
        for code in [libc::EACCES, libc::EPERM] {
            let text = said(code);
            assert!(text.contains("setcap cap_perfmon") && text.contains("(it is 4)"), "{text}");
        }
        for code in [libc::ENOENT, libc::EOPNOTSUPP, libc::ENODEV, libc::EINVAL] {
            assert!(
                said(code).contains("not supported here: the kernel refuses the event X"),
                "{}",
                said(code)
            );
        }
        assert!(said(libc::EMFILE).contains("ulimit -n"));
        assert_eq!(said(libc::ESRCH), "process 7 has ended");
        let error = explain_ring(io::Error::from_raw_os_error(libc::EPERM), 64).to_string();
        assert!(error.contains("perf_event_mlock_kb=1560"), "{error}");
    }

    #[test]
    fn this_machines_software_events_are_granted_and_a_hardware_event_without_pmu_is_not() {
        let grant = probe(&EventSpec::page_faults(), Path::new("/")).expect("page faults need no PMU");
        assert_eq!(grant.precise, 0);
        let nonsense = Encoding { kind: 0xffff_fff0, config: [0; 4] };
        let spec = EventSpec { encoding: nonsense, precise: 3, min_precise: 1, ..EventSpec::page_faults() };
        let error = probe(&spec, Path::new("/")).expect_err("no such PMU");
        assert!(matches!(error, LinuxError::Unsupported { .. }), "{error}");
    }
}
