//! QEMU's control channel (QMP): an object of JSON a line, commands in, answers and events out.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::{Value, json};

use crate::LabError;

pub(super) struct Monitor {
    socket: UnixStream,
    /// Start of a line whose end has not come yet.
    begun: Vec<u8>,
}

impl Monitor {
    /// Makes a channel, and the end of it that QEMU inherits.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub(super) fn open(patience: Duration) -> Result<(Self, UnixStream), LabError> {
        let make = || {
            let (ours, theirs) = UnixStream::pair()?;
            fcntl_setfd(&theirs, FdFlags::empty())?;
            ours.set_read_timeout(Some(patience))?;
            Ok((ours, theirs))
        };
        let (socket, theirs) = make().map_err(LabError::io(Path::new("QEMU"), "make a socket for it"))?;
        let mut monitor = Self { socket, begun: Vec::new() };
        monitor.tell("qmp_capabilities", &json!({}));
        let events = json!({ "capabilities": [{ "capability": "events", "state": true }] });
        monitor.tell("migrate-set-capabilities", &events);
        Ok((monitor, theirs))
    }

    /// Sends a command. One that cannot be sent has no answer, since QEMU has ended.
    pub(super) fn tell(&mut self, command: &str, arguments: &Value) {
        let _ = writeln!(self.socket, "{}", json!({"execute": command, "arguments": arguments}));
    }

    /// Returns the next events that have come, waiting a moment for them: their names, the state of a
    /// migration, or `error` for a command that was refused.
    pub(super) fn hear(&mut self) -> Vec<String> {
        let mut buffer = [0; 4096];
        let count = self.socket.read(&mut buffer).unwrap_or(0);
        self.begun.extend(&buffer[..count]);
        let end = self.begun.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        let lines: Vec<u8> = self.begun.drain(..end).collect();
        lines.split(|&byte| byte == b'\n').filter_map(event).collect()
    }
}

fn event(line: &[u8]) -> Option<String> {
    let message: Value = serde_json::from_slice(line).ok()?;
    if message.get("error").is_some() {
        return Some("error".into());
    }
    let name = message.get("event")?.as_str()?;
    let state = message["data"]["status"].as_str().filter(|_| name == "MIGRATION");
    Some(state.unwrap_or(name).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_whole_and_answers_are_left_out() -> Result<(), Box<dyn std::error::Error>> {
        let (mut monitor, mut qemu) = Monitor::open(Duration::from_millis(50))?;
        let rest = r#"{"return": {}}
{"event": "MIGRATION", "data": {"status": "completed"}, "timestamp": {"seconds": 1}}
{"error": {"class": "GenericError", "desc": "no"}}
{"event": "RES"#;
        qemu.write_all(rest.as_bytes())?;
        assert_eq!(monitor.hear(), ["completed", "error"]);
        assert!(monitor.hear().is_empty());
        qemu.write_all(b"UME\"}\r\n")?;
        assert_eq!(monitor.hear(), ["RESUME"]);
        Ok(())
    }
}
