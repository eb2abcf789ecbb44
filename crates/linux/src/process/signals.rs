//! Signals to Isotherm: a handler writes each to a pipe, and whoever runs the program reads it.
//!
//! So SIGTERM is handled in ordinary code, guards are dropped as at any other end, and no signal is blocked,
//! which children would inherit. Signals that were ignored before (`nohup`) stay ignored.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::LinuxError;
pub use crate::sys::process::ENDING;
use crate::sys::process::{self as sys, Disposition};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    pub signal: i32,
    /// Whether the kernel sent it, as for a terminal's keys: then the program has received it too.
    pub from_kernel: bool,
}

/// Receives [`ENDING`] signals and restores their former dispositions on drop. At most one exists.
#[derive(Debug)]
pub struct Signals {
    reader: File,
    /// Kept open for the handler.
    _writer: File,
    former: Vec<(i32, Disposition)>,
}

static TAKEN: AtomicBool = AtomicBool::new(false);

impl Signals {
    pub fn receive() -> Result<Self, LinuxError> {
        if TAKEN.swap(true, Ordering::SeqCst) {
            return Err(LinuxError::Unsupported {
                what: "receiving signals twice in one process",
                remedy: "keep one `Signals` and share it".into(),
            });
        }
        let failed = LinuxError::of_call("sigaction");
        let ends = sys::pipe().inspect_err(|_| TAKEN.store(false, Ordering::SeqCst));
        let (reader, writer) = ends.map_err(failed)?;
        // From here on, drop restores everything.
        let mut signals = Self { reader, _writer: writer, former: Vec::new() };
        sys::set_nonblocking(&signals.reader).map_err(failed)?;
        sys::set_nonblocking(&signals._writer).map_err(failed)?;
        sys::set_signal_pipe(signals._writer.as_raw_fd());
        for signal in ENDING {
            let former = sys::disposition(signal).map_err(failed)?;
            if !former.is_ignored() {
                sys::handle(signal).map_err(failed)?;
                signals.former.push((signal, former));
            }
        }
        Ok(signals)
    }

    pub fn take(&mut self) -> Option<Received> {
        let mut byte = [0];
        loop {
            match self.reader.read(&mut byte) {
                Ok(1) => {
                    let signal = i32::from(byte[0] & !sys::FROM_KERNEL);
                    return Some(Received { signal, from_kernel: byte[0] & sys::FROM_KERNEL != 0 });
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return None,
            }
        }
    }

    /// Returns a descriptor that can be read when a signal came, for `poll(2)`.
    pub fn descriptor(&self) -> RawFd {
        self.reader.as_raw_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, former) in &self.former {
            // It was in force before, so it is valid.
            let _ = sys::restore(*signal, former);
        }
        sys::set_signal_pipe(-1);
        TAKEN.store(false, Ordering::SeqCst);
    }
}
