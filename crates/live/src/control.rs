//! The control socket of a running engine (the user-space interface of NeoMem, section V-B).
//!
//! A client sends lines. The answer to each is lines that end with an empty one; the first is `ok` or `error:
//! why`.
//!
//! | line | effect |
//! |---|---|
//! | `status` | prints the policy, its gauges, and the tiers |
//! | `parameters` | prints the policy's parameters in force |
//! | `set KEY=VALUE` | rebuilds the policy with this parameter changed |
//! | `policy NAME [KEY=VALUE ...]` | replaces the policy |
//! | `pause` | samples and moves nothing until `resume` |
//! | `resume` | continues with everything that the policy has learned |
//!
//! The engine polls the socket after each of its steps, and never waits for a client.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use isotherm_linux::LinuxError;

/// Maximum length of a line in bytes.
const MAX_LINE: usize = 4096;
const MAX_CLIENTS: usize = 16;

/// The socket of a run; dropping it removes its file.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    listener: UnixListener,
    clients: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    /// Received bytes of an incomplete line.
    received: Vec<u8>,
}

impl Control {
    /// Listens at `path`, which only its owner may use. Replaces the socket of an engine that has died.
    ///
    /// # Errors
    /// If another file is there, or another engine listens.
    pub fn open(path: &Path) -> Result<Self, LinuxError> {
        let failed = |error: io::Error| LinuxError::file(path, error);
        // A regular file refuses connections too, and must stay.
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

    /// Answers every line that has arrived. Drops clients that do not read their answers.
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
    fn serve(&mut self, answer: &mut impl FnMut(&str) -> String) -> io::Result<()> {
        let mut piece = [0; MAX_LINE];
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
        if open && self.received.len() < MAX_LINE { Ok(()) } else { Err(ErrorKind::BrokenPipe.into()) }
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
        client.write_all(&[b'a'; 2 * MAX_LINE]).expect("room");
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
