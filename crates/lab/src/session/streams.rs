//! Connects the program's streams with this process's: sockets that QEMU inherits, with a thread for each.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::io::{FdFlags, fcntl_setfd};

use super::Output;
use crate::LabError;
use crate::qemu::{Port, Ports};
use crate::run_directory::{RunDirectory, write};

/// Passes on the output that a deterministic guest has kept until its end.
pub(super) fn hand_over(run: &RunDirectory, output: Output) -> Result<(), LabError> {
    for (name, file) in [("stdout", run.stdout()), ("stderr", run.stderr())] {
        let kept = run.share().join(name);
        // Missing if the guest did not get that far.
        let Ok(bytes) = std::fs::read(&kept) else { continue };
        let failed = |action| LabError::io(Path::new(name), action);
        match (output, name) {
            (Output::Files, _) => write(&file, &bytes)?,
            (Output::Ours, "stdout") => io::stdout().write_all(&bytes).map_err(failed("write"))?,
            (Output::Ours, _) => io::stderr().write_all(&bytes).map_err(failed("write"))?,
        }
    }
    Ok(())
}

/// Streams of a running program.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// QEMU's ends, until it has inherited them.
    theirs: Vec<UnixStream>,
    /// This end of the input: if it closed before the guest has read it all, QEMU would drop the rest.
    input: Option<Arc<UnixStream>>,
    /// Threads that end when QEMU does.
    outputs: Vec<JoinHandle<()>>,
    /// Set when this process's output is closed.
    pub(super) closed: Arc<AtomicBool>,
}

impl Streams {
    pub(super) fn open() -> Result<(Ports, Self), LabError> {
        let mut streams = Self::default();
        let mut ports = Ports::new();
        for name in ["stdin", "stdout", "stderr"] {
            let failed = |action| LabError::io(Path::new(name), action);
            let (ours, theirs) = UnixStream::pair().map_err(failed("make a socket"))?;
            fcntl_setfd(&theirs, FdFlags::empty())
                .map_err(|error| failed("pass on the socket")(error.into()))?;
            ports.push((name, Port::Socket(theirs.as_raw_fd())));
            streams.theirs.push(theirs);
            streams.relay(name, ours);
        }
        Ok((ports, streams))
    }

    fn relay(&mut self, name: &'static str, socket: UnixStream) {
        if name == "stdin" {
            let socket = Arc::new(socket);
            self.input = Some(Arc::clone(&socket));
            // It may wait for a person for ever, so nobody waits for it.
            std::thread::spawn(move || feed(io::stdin(), &socket));
            return;
        }
        let closed = Arc::clone(&self.closed);
        self.outputs.push(std::thread::spawn(move || {
            let copied =
                if name == "stdout" { drain(&socket, io::stdout()) } else { drain(&socket, io::stderr()) };
            if copied.is_err() {
                closed.store(true, Ordering::Relaxed);
            }
        }));
    }

    /// Closes QEMU's ends here, once it has inherited them, so that this side sees it end.
    pub(super) fn started(&mut self) {
        self.theirs.clear();
    }

    /// Waits until all of the program's output is passed on. QEMU must have ended.
    pub(super) fn finish(self) {
        drop(self.theirs);
        self.outputs.into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// Copies until either side ends; the other side then sees the end.
fn feed(mut input: impl Read, mut socket: &UnixStream) {
    let _ = io::copy(&mut input, &mut socket);
    let _ = socket.shutdown(Shutdown::Write);
}

/// Copies output as soon as it arrives.
fn drain(mut socket: &UnixStream, mut output: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match socket.read(&mut buffer) {
            // The socket breaks when QEMU is killed, which is its end.
            Ok(0) | Err(_) => return Ok(()),
            Ok(count) => {
                output.write_all(&buffer[..count])?;
                output.flush()?;
            }
        }
    }
}
