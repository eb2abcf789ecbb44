//! A process's state in `/proc/PID/stat` (`proc_pid_stat(5)`).

use super::proc::excerpt;
use super::{Pid, ProcRoot};
use crate::LinuxError;
use crate::sys::agent::AGENT_NAME;

/// `PF_KTHREAD` and `PF_EXITING` of include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;
const EXITING: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// The state's letter: `R`, `S`, `D`, `T`, `Z` and others.
    pub state: u8,
    pub parent: Pid,
    pub kernel: bool,
    /// Whether it is an agent of hint faults, which has no memory of its own.
    pub agent: bool,
    /// Whether it is about to end: its files belong to root by then.
    pub exiting: bool,
    pub threads: u32,
    /// Start in clock ticks since boot: a reused number has another start.
    pub start: u64,
    /// Start of the program's code; 0 or 1 without permission to trace it. Changes with exec.
    pub code: u64,
    /// Start of its stack; as [`Self::code`].
    pub stack: u64,
}

impl ProcessStat {
    pub fn read(root: &ProcRoot, pid: Pid, buffer: &mut Vec<u8>) -> Result<Self, LinuxError> {
        root.read(pid, "stat", buffer)?;
        Self::parse(buffer).ok_or_else(|| LinuxError::Format {
            path: root.file(pid, "stat"),
            expected: "'pid (comm) state ppid ...' of at least 28 fields",
            found: excerpt(buffer),
        })
    }

    /// Parses the file's text. The command may hold any bytes, with parentheses and blanks.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let end = text.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(&text[end + 1..]).ok()?;
        let mut fields = [""; 26];
        let mut words = rest.split_ascii_whitespace();
        for field in &mut fields {
            *field = words.next()?;
        }
        // fields[0] is number 3 of the manual page.
        let number = |manual: usize| fields[manual - 3].parse::<u64>().ok();
        let [state] = *fields[0].as_bytes() else { return None };
        Some(Self {
            state,
            parent: Pid(u32::try_from(number(4)?).ok()?),
            kernel: number(9)? & KERNEL_THREAD != 0,
            agent: text[..end].ends_with(AGENT_NAME.to_bytes())
                && text[..end - AGENT_NAME.count_bytes()].ends_with(b"("),
            exiting: number(9)? & EXITING != 0,
            threads: u32::try_from(number(20)?).ok()?,
            start: number(22)?,
            code: number(26)?,
            stack: number(28)?,
        })
    }

    /// A first thread that ended while others run is a zombie, but the process has not ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINE: &str = "42 (a) b) (c) S 7 42 42 34816 42 4194304 100 0 0 0 1 2 0 0 20 0 3 0 987654 1000000 250 \
                        18446744073709551615 94000000000000 94000000100000 140720000000000 0 0 0 0 0 0 0 0 0 17 1";

    #[test]
    fn fields_are_counted_from_the_last_parenthesis() {
        let stat = ProcessStat::parse(LINE.as_bytes()).expect("well-formed");
        let expected = ProcessStat {
            state: b'S',
            parent: Pid(7),
            kernel: false,
            agent: false,
            exiting: false,
            threads: 3,
            start: 987_654,
            code: 94_000_000_000_000,
            stack: 140_720_000_000_000,
        };
        assert_eq!(stat, expected);
    }

    #[test]
    fn this_process_and_a_kernel_thread_are_recognised() {
        let mut buffer = Vec::new();
        let own = ProcessStat::read(&ProcRoot::default(), Pid(std::process::id()), &mut buffer).expect("own");
        assert!(!own.kernel && !own.has_ended() && own.threads >= 1 && own.code > 1);
        match ProcessStat::read(&ProcRoot::default(), Pid(2), &mut buffer) {
            Ok(kthreadd) if kthreadd.parent == Pid(0) => assert!(kthreadd.kernel),
            _ => println!("skipped: process 2 is not kthreadd in this PID namespace"),
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = ProcessStat::parse(&text);
        }

        #[test]
        fn a_line_cut_short_is_refused(part in 0.0..1.0) {
            // Behind the start of the last number that is used.
            let end = (LINE.find("140720").expect("the stack's start") as f64 * part) as usize;
            prop_assert_eq!(ProcessStat::parse(&LINE.as_bytes()[..end]), None);
        }
    }
}
