//! Tells the service manager that the daemon is ready, lives, reloads or ends (`sd_notify(3)`).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// A connection to the service manager; silent where there is none.
#[derive(Debug)]
pub struct Notifier(Option<UnixDatagram>);

impl Notifier {
    /// Connects to the socket that `NOTIFY_SOCKET` names.
    ///
    /// # Errors
    /// If it names one that is not there.
    pub fn from_environment() -> io::Result<Self> {
        match std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()) {
            Some(path) => Self::connect(&path),
            None => Ok(Self(None)),
        }
    }

    /// Connects to a path, or to an abstract name that begins with `@`.
    ///
    /// # Errors
    /// If nobody listens there.
    pub fn connect(path: &OsStr) -> io::Result<Self> {
        let address = match path.as_bytes().split_first() {
            Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(path)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&address)?;
        socket.set_nonblocking(true)?;
        Ok(Self(Some(socket)))
    }

    /// Sends lines such as `READY=1`. The manager's silence is not the daemon's problem.
    pub fn tell(&self, lines: &str) {
        if let Some(socket) = &self.0 {
            let _ = socket.send(lines.as_bytes());
        }
    }
}

/// Returns the time within which the service manager expects a sign of life (`WATCHDOG_USEC`), if this
/// process (`WATCHDOG_PID`) is meant.
pub fn watchdog(get: impl Fn(&str) -> Option<String>) -> Option<Duration> {
    let own = get("WATCHDOG_PID").is_none_or(|pid| pid.parse() == Ok(std::process::id()));
    let time = get("WATCHDOG_USEC")?.parse().ok().filter(|&time| own && time > 0)?;
    Some(Duration::from_micros(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_receives_the_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        Notifier::connect(path.as_os_str()).expect_err("nobody listens");
        let manager = UnixDatagram::bind(&path).expect("bound");
        Notifier::connect(path.as_os_str()).expect("it listens").tell("READY=1");
        let mut bytes = [0; 64];
        let length = manager.recv(&mut bytes).expect("a datagram");
        assert_eq!(&bytes[..length], b"READY=1");
        let name = format!("@isotherm-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name[1..]).expect("a name");
        let manager = UnixDatagram::bind_addr(&address).expect("bound");
        Notifier::connect(OsStr::new(&name)).expect("it listens").tell("WATCHDOG=1");
        assert_eq!(manager.recv(&mut bytes).expect("a datagram"), "WATCHDOG=1".len());
    }

    #[test]
    fn a_watchdog_of_another_process_is_none_of_ours() {
        let own = std::process::id().to_string();
        let read = |pid: Option<&str>, time: &str| {
            watchdog(|name| match name {
                "WATCHDOG_PID" => pid.map(str::to_owned),
                _ => Some(time.to_owned()),
            })
        };
        assert_eq!(read(Some(&own), "3000000"), Some(Duration::from_secs(3)));
        assert_eq!((read(Some("1"), "3000000"), read(None, "soon"), read(None, "0")), (None, None, None));
    }
}
