//! The other end of the daemon's socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer in bytes.
const MAX_ANSWER: usize = 16 << 20;

/// A connection to a daemon.
#[derive(Debug)]
pub struct Client(UnixStream);

impl Client {
    /// Connects to the daemon at a socket. Errors are one line.
    pub fn connect(socket: &Path) -> Result<Self, String> {
        let failed = |error| {
            format!("{}: {error}; expected a running daemon (systemctl start isotherm)", socket.display())
        };
        let stream = UnixStream::connect(socket).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        Ok(Self(stream))
    }

    /// Sends a line and returns the answer without its `ok`.
    ///
    /// # Errors
    /// The daemon's refusal, or that it does not answer.
    pub fn ask(&mut self, line: &str) -> Result<String, String> {
        let failed = |error: std::io::Error| format!("the daemon does not answer: {error}");
        self.0.write_all(format!("{line}\n").as_bytes()).map_err(failed)?;
        let (mut answer, mut piece) = (Vec::new(), vec![0; 1 << 16]);
        while !answer.ends_with(b"\n\n") {
            match self.0.read(&mut piece).map_err(failed)? {
                0 => return Err("the daemon has closed the connection".into()),
                length if answer.len() < MAX_ANSWER => answer.extend(&piece[..length]),
                _ => return Err(format!("the daemon's answer is longer than {MAX_ANSWER} bytes")),
            }
        }
        let text = String::from_utf8_lossy(&answer).trim_end().to_owned();
        match text.split_once('\n').map_or((text.as_str(), ""), |(first, rest)| (first, rest)) {
            ("ok", rest) => Ok(rest.to_owned()),
            (first, _) => Err(first.strip_prefix("error: ").unwrap_or(first).to_owned()),
        }
    }
}
