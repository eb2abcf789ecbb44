//! The control socket of a running engine (the user-space interface of NeoMem, section V-B).
//!
//! A client sends lines. The answer to each is lines that end with an empty one; the first is `ok` or `error:
//! why`.
//!
//! | line | effect |
//! |---|---|
//! | `status` | prints the policy, its gauges, and the tiers |
//! | `status json` | prints the state as a [`MachineStatus`] with one group, on one line |
//! | `mappings` | prints the memory by address as [`MappingStatus`], on one line |
//! | `limit SIZE` | sets the most fast memory, unless a daemon does |
//! | `fast` | lists the memory on the fast tier: process, start and end of each range |
//! | `parameters` | prints the policy's parameters in force |
//! | `set KEY=VALUE` | rebuilds the policy with this parameter changed, and teaches it with the last samples |
//! | `policy NAME [KEY=VALUE ...]` | replaces the policy |
//! | `pause` | samples and moves nothing until `resume` |
//! | `resume` | continues with everything that the policy has learned |
//!
//! [`MachineStatus`]: isotherm_core::machine_status::MachineStatus
//! [`MappingStatus`]: isotherm_core::machine_status::MappingStatus
//!
//! The engine polls the socket after each of its steps, and never waits for a client. Clients of other users
//! than the engine's and root are turned away.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use isotherm_linux::LinuxError;
use isotherm_linux::process::socket;

/// Maximum length of a line in bytes: a run that joins a daemon tells its programs in one.
const MAX_LINE: usize = 1 << 16;
/// Most clients at a time: one more takes the place of the one that has been silent longest.
const MAX_CLIENTS: usize = 16;

/// Where a run takes requests: at a socket, whose file is removed on drop, or from other threads.
#[derive(Debug)]
pub struct Control {
    socket: Option<(PathBuf, UnixListener)>,
    requests: Option<Requests>,
    /// In the order in which they last said something.
    clients: Vec<Client>,
}

/// A line, and where its answer goes.
type Asked = (String, Sender<String>);

/// Requests of other threads to an engine. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Requests(Arc<Mutex<Vec<Asked>>>);

impl Requests {
    /// Asks the engine, which answers after its next step; the receiver fails if the engine ends before.
    pub fn ask(&self, line: impl Into<String>) -> Receiver<String> {
        let (sender, receiver) = channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((line.into(), sender));
        receiver
    }

    fn serve(&self, answer: &mut impl FnMut(&str) -> String) {
        let asked = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (line, sender) in asked {
            // Whoever asked may not wait any more.
            let _ = sender.send(answer(&line));
        }
    }
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    /// Received bytes of an incomplete line.
    received: Vec<u8>,
    /// Answers that the socket has no room for yet; no line is read meanwhile.
    unsent: Vec<u8>,
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
        if is_socket && socket::is_abandoned(path) {
            std::fs::remove_file(path).map_err(failed)?;
        }
        let listener = socket::listen(path).map_err(failed)?;
        Ok(Self { socket: Some((path.to_owned(), listener)), requests: None, clients: Vec::new() })
    }

    /// Answers requests of other threads.
    pub fn answering(requests: Requests) -> Self {
        Self { socket: None, requests: Some(requests), clients: Vec::new() }
    }

    /// Answers every line that has arrived. Drops clients that do not read their answers.
    pub fn serve(&mut self, mut answer: impl FnMut(&str) -> String) {
        self.requests.iter().for_each(|requests| requests.serve(&mut answer));
        self.answer(&mut answer);
        // So many in one step that nobody waits long, and so few that a step ends.
        for _ in 0..MAX_CLIENTS {
            let Some((_, listener)) = &self.socket else { return };
            let Ok(Some((stream, _))) = socket::accept(listener) else { break };
            if stream.set_nonblocking(true).is_ok() {
                self.clients.push(Client { stream, received: Vec::new(), unsent: Vec::new() });
            }
        }
        self.answer(&mut answer);
        let silent = self.clients.len().saturating_sub(MAX_CLIENTS);
        self.clients.drain(..silent);
    }

    fn answer(&mut self, answer: &mut impl FnMut(&str) -> String) {
        let (mut silent, mut spoke) = (Vec::new(), Vec::new());
        for mut client in self.clients.drain(..) {
            match client.serve(answer) {
                Ok(false) => silent.push(client),
                Ok(true) => spoke.push(client),
                Err(_) => {}
            }
        }
        silent.append(&mut spoke);
        self.clients = silent;
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.socket {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Client {
    /// Sends what the socket has room for; returns whether all is sent.
    fn send(&mut self) -> io::Result<bool> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Returns whether it has said something; an error if it has gone or must go.
    fn serve(&mut self, answer: &mut impl FnMut(&str) -> String) -> io::Result<bool> {
        if !self.send()? {
            return Ok(false);
        }
        let mut piece = [0; MAX_LINE];
        let length = match self.stream.read(&mut piece) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        self.received.extend(&piece[..length]);
        while let Some(end) = self.received.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.received.drain(..=end).collect();
            let text = answer(String::from_utf8_lossy(&line).trim());
            self.unsent.extend(format!("{}\n\n", text.trim_end()).as_bytes());
        }
        self.send()?;
        let goes_on = length > 0 && self.received.len() < MAX_LINE;
        if goes_on { Ok(true) } else { Err(ErrorKind::BrokenPipe.into()) }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

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
    fn an_answer_longer_than_the_sockets_buffer_arrives_whole() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control");
        let mut control = Control::open(&path).expect("nobody listens there");
        let mut client = UnixStream::connect(&path).expect("it listens");
        client.write_all(b"status\n").expect("room");
        let text = "a".repeat(4 << 20);
        let (mut answer, mut piece) = (Vec::new(), vec![0; 1 << 16]);
        while !answer.ends_with(b"\n\n") {
            control.serve(|_| text.clone());
            let length = client.read(&mut piece).expect("an answer");
            answer.extend(&piece[..length]);
        }
        assert_eq!(answer.len(), text.len() + 2);
    }

    #[test]
    fn other_threads_are_answered_too() {
        let requests = Requests::default();
        let mut control = Control::answering(requests.clone());
        let answers = ["status", "set a=1"].map(|line| requests.ask(line));
        control.serve(echo);
        assert_eq!(answers.map(|answer| answer.recv()), [Ok("ok\nstatus".into()), Ok("ok\nset a=1".into())]);
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

    /// Item 14 of the attack of 2026: 16 clients that said nothing kept all others out for good.
    #[test]
    fn clients_that_say_nothing_starve_nobody() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control");
        let mut control = Control::open(&path).expect("nobody listens there");
        let connect = || UnixStream::connect(&path).expect("it listens");
        let mut silent = Vec::new();
        for _ in 0..8 {
            silent.extend((0..100).map(|_| connect()));
            let mut client = connect();
            client.set_read_timeout(Some(Duration::from_secs(1))).expect("a time");
            client.write_all(b"status\n").expect("room");
            (0..10).for_each(|_| control.serve(echo));
            let mut answer = [0; 64];
            let length = client.read(&mut answer).expect("an answer");
            assert_eq!(&answer[..length], b"ok\nstatus\n\n");
            assert!(control.clients.len() <= MAX_CLIENTS, "{}", control.clients.len());
        }
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
