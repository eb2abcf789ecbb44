//! Messages with fields for the journal, by systemd's native protocol
//! (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL>); lines on standard error where that is not the journal.

use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Most messages that wait for the log.
const MAX_TOLD: usize = 4096;
const SOCKET: &str = "/run/systemd/journal/socket";

/// How important a message is, by the numbers of syslog(3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// Something that was asked for cannot be done.
    Error = 3,
    /// Something works less well than it could.
    Warning = 4,
    /// Something has changed.
    Info = 6,
}

/// A field of a message, such as `("ISOTHERM_GROUP", "database")`.
pub type Field<'a> = (&'a str, &'a str);

/// A message, for the log of operations.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) priority: Priority,
    pub(crate) message: String,
    /// The group that it is about; empty for the machine.
    pub(crate) group: String,
}

/// The field with a group's name.
pub(crate) const GROUP: &str = "ISOTHERM_GROUP";

/// Writes messages and keeps them for the log of operations, if there is one. Clones share what is kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal(Option<Arc<Mutex<Vec<Told>>>>);

impl Journal {
    /// Returns a journal that keeps messages until they are taken.
    pub(crate) fn kept() -> Self {
        Self(Some(Arc::default()))
    }

    pub(crate) fn write(&self, priority: Priority, message: &str, fields: &[Field<'_>]) {
        write(priority, message, fields);
        let Some(kept) = &self.0 else { return };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_TOLD {
            let group = fields.iter().find(|field| field.0 == GROUP).map_or("", |field| field.1);
            kept.push(Told { priority, message: message.into(), group: group.into() });
        }
    }

    /// Returns the messages since the last call.
    pub(crate) fn take(&self) -> Vec<Told> {
        let kept = self.0.as_ref().map(|kept| kept.lock().unwrap_or_else(PoisonError::into_inner));
        kept.map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default()
    }
}

/// Writes a message to the journal, or to standard error.
pub fn write(priority: Priority, message: &str, fields: &[Field<'_>]) {
    static JOURNAL: OnceLock<Option<UnixDatagram>> = OnceLock::new();
    let journal = JOURNAL.get_or_init(|| {
        let stream = std::env::var("JOURNAL_STREAM").ok()?;
        is_stream(&stream, Path::new("/dev/stderr")).then(|| connect(Path::new(SOCKET)).ok()).flatten()
    });
    let sent =
        journal.as_ref().is_some_and(|journal| journal.send(&encoded(priority, message, fields)).is_ok());
    if !sent {
        // Whoever closed it wants to hear nothing.
        let _ = writeln!(io::stderr(), "isotherm: {message}");
    }
}

/// Whether `file` is the stream `DEVICE:INODE` that the service manager connected to the journal.
fn is_stream(stream: &str, file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|file| stream == format!("{}:{}", file.dev(), file.ino()))
}

fn connect(socket: &Path) -> io::Result<UnixDatagram> {
    let journal = UnixDatagram::unbound()?;
    journal.connect(socket)?;
    // A journal that does not keep up loses messages, not the daemon its time.
    journal.set_nonblocking(true)?;
    Ok(journal)
}

fn encoded(priority: Priority, message: &str, fields: &[Field<'_>]) -> Vec<u8> {
    let priority = (priority as u8).to_string();
    let own = [("MESSAGE", message), ("PRIORITY", &priority), ("SYSLOG_IDENTIFIER", "isotherm")];
    let mut bytes = Vec::new();
    for (name, value) in own.into_iter().chain(fields.iter().copied()) {
        // With the length, a value may hold lines.
        bytes.extend(name.as_bytes());
        bytes.push(b'\n');
        bytes.extend((value.len() as u64).to_le_bytes());
        bytes.extend(value.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_receives_fields_whatever_they_hold() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        connect(&path).expect_err("nobody listens");
        let journal = UnixDatagram::bind(&path).expect("bound");
        let fields = [("ISOTHERM_GROUP", "a\nPRIORITY=0")];
        let sent = encoded(Priority::Warning, "no room", &fields);
        connect(&path).expect("it listens").send(&sent).expect("sent");
        let mut bytes = [0; 256];
        let length = journal.recv(&mut bytes).expect("a datagram");
        let expected = "MESSAGE\n\x07\0\0\0\0\0\0\0no room\nPRIORITY\n\x01\0\0\0\0\0\0\x004\n\
                        SYSLOG_IDENTIFIER\n\x08\0\0\0\0\0\0\0isotherm\n\
                        ISOTHERM_GROUP\n\x0c\0\0\0\0\0\0\0a\nPRIORITY=0\n";
        assert_eq!(String::from_utf8_lossy(&bytes[..length]), expected);
    }

    #[test]
    fn standard_error_is_the_journal_where_its_file_is() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let data = file.as_file().metadata().expect("a file");
        assert!(is_stream(&format!("{}:{}", data.dev(), data.ino()), file.path()));
        assert!(!is_stream("1:2", file.path()) && !is_stream("", file.path()));
    }
}
