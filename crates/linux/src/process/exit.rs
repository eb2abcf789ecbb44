//! A program's end.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(u8),
    Signal(u8),
}

impl Exit {
    /// Returns the exit status as a shell shows it: 128 + the signal that killed the program.
    pub fn status(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128u8.saturating_add(signal),
        }
    }

    /// Converts the status of `wait(2)`; `None` where the process only stopped or continued.
    pub fn from_wait(status: i32) -> Option<Self> {
        let status = ExitStatus::from_raw(status);
        let byte = |number: i32| u8::try_from(number).ok();
        let code = status.code().and_then(byte).map(Self::Code);
        code.or_else(|| status.signal().and_then(byte).map(Self::Signal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_of_a_shell() {
        assert_eq!(Exit::from_wait(0x0300), Some(Exit::Code(3)));
        assert_eq!(Exit::from_wait(0x0009).map(Exit::status), Some(137));
        // 0x80 marks a core dump.
        assert_eq!(Exit::from_wait(0x008b).map(Exit::status), Some(139));
        assert_eq!(Exit::from_wait(0x137f), None);
    }
}
