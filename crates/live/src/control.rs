//! Defines how a running engine is asked and told things: a unix socket (the user-space interface of NeoMem, section V-B).
//!
//! A client sends lines and gets for each an answer of lines that ends with an empty one; the first says `ok` or `error: why`.
//!
//! | line | what it does |
//! |---|---|
//! | `status` | the policy, its gauges, and the tiers |
//! | `parameters` | the policy's parameters in force |
//! | `set KEY=VALUE` | builds the policy anew with this parameter changed |
//! | `policy NAME [KEY=VALUE ...]` | replaces the policy |
//! | `pause` | samples and moves nothing until `resume` |
//! | `resume` | goes on with what the policy had learned |
//!
//! The engine looks at the socket after each of its steps, and never waits for a client.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use isotherm_linux::LinuxError;

/// Bytes of a line at most.
const LONGEST_LINE: usize = 4096;
/// Clients at a time.
const MAX_CLIENTS: usize = 16;

/// The socket of a run; its file goes with it.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    listener: UnixListener,
    clients: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    /// What came and is no whole line yet.
    received: Vec<u8>,
}

impl Control {
    /// Listens at `path`, for its owner alone. The file of an engine that is gone is replaced.
    ///
    /// # Errors
    /// If something else stands there, or another engine listens.
    pub fn open(path: &Path) -> Result<Self, LinuxError> {
        let failed = |error: io::Error| LinuxError::file(path, error);
        // A file that is no socket refuses connections too, and is not ours to remove.
        let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
        if is_socket
            && let Err(error) = UnixStream::connect(path)
            && error.kind() == ErrorKind::ConnectionRefused
        {
            std::fs::remove_file(path).map_err(failed)?;
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { path: path.to_owned(), listener, clients: Vec::new() })
    }

    /// Answers every line that has come. Clients that do not read their answers are dropped.
    pub fn serve(&mut self, mut answer: impl FnMut(&str) -> String) {
        while self.clients.len() < MAX_CLIENTS
            && let Ok((stream, _)) = self.listener.accept()
        {
            if stream.set_nonblocking(true).is_ok() {
                self.clients.push(Client { stream, received: Vec::new() });
            }
        }
        self.clients.retain_mut(|client| client.serve(&mut answer).is_ok());
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Client {
    /// An error says that the client is to be dropped.
    fn serve(&mut self, answer: &mut impl FnMut(&str) -> String) -> io::Result<()> {
        let mut piece = [0; LONGEST_LINE];
        let open = match self.stream.read(&mut piece) {
            Ok(0) => false,
            Ok(length) => {
                self.received.extend(&piece[..length]);
                true
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => true,
            Err(error) => return Err(error),
        };
        while let Some(end) = self.received.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.received.drain(..=end).collect();
            let text = answer(String::from_utf8_lossy(&line).trim());
            self.stream.write_all(format!("{}\n\n", text.trim_end()).as_bytes())?;
        }
        if open && self.received.len() < LONGEST_LINE { Ok(()) } else { Err(ErrorKind::BrokenPipe.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(line: &str) -> String {
        format!("ok\n{line}")
    }

    #[test]
    fn lines_are_answered_and_clients_come_and_go() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control");
        let mut control = Control::open(&path).expect("nobody listens there");
        assert_eq!(std::fs::metadata(&path).expect("a socket").permissions().mode() & 0o777, 0o600);
        let mut client = UnixStream::connect(&path).expect("it listens");
        client.write_all(b"status\nset a=1\nhalf a li").expect("room");
        control.serve(echo);
        let mut answer = [0; 64];
        let length = client.read(&mut answer).expect("an answer");
        assert_eq!(&answer[..length], b"ok\nstatus\n\nok\nset a=1\n\n");
        drop(client);
        control.serve(echo);
        assert!(control.clients.is_empty());
        drop(control);
        assert!(!path.exists(), "the file goes with the engine");
    }

    #[test]
    fn a_line_without_end_drops_its_client() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control");
        let mut control = Control::open(&path).expect("nobody listens there");
        let mut client = UnixStream::connect(&path).expect("it listens");
        client.write_all(&[b'a'; 2 * LONGEST_LINE]).expect("room");
        (0..3).for_each(|_| control.serve(echo));
        assert!(control.clients.is_empty());
    }

    #[test]
    fn a_dead_engines_socket_is_replaced_and_a_living_ones_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control");
        drop(UnixListener::bind(&path).expect("a socket that nobody listens at any more"));
        let living = Control::open(&path).expect("replaced");
        assert!(Control::open(&path).expect_err("in use").to_string().contains("in use"));
        drop(living);
        std::fs::write(&path, "a file").expect("writable");
        Control::open(&path).expect_err("not a socket");
        assert_eq!(std::fs::read_to_string(&path).expect("left alone"), "a file");
    }
}
