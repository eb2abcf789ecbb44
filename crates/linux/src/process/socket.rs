//! Unix sockets that only their user and root may use.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use super::Pid;
use crate::sys::sockets;

/// Listens at `path`; no other user can connect at any moment. [`accept`] does not wait.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    let socket = sockets::listen(path.as_os_str().as_bytes());
    socket.map(UnixListener::from).map_err(io::Error::from_raw_os_error)
}

/// Accepts a client of this user or root, which [`listen`]'s mode alone cannot promise: modes can be changed.
/// Returns `None` if nobody waits.
pub fn accept(listener: &UnixListener) -> io::Result<Option<(UnixStream, Pid)>> {
    loop {
        match listener.accept() {
            Ok((client, _)) => {
                if let Ok(peer) = sockets::peer(client.as_raw_fd())
                    && peer.is_trusted()
                {
                    return Ok(Some((client, peer.process)));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether the socket at `path` belonged to a process that has ended.
pub fn is_abandoned(path: &Path) -> bool {
    let connected = sockets::connect(path.as_os_str().as_bytes(), true);
    matches!(connected, Err(libc::ECONNREFUSED))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use super::*;
    use crate::sys::testing::{as_user, is_root, without_umask};

    const NOBODY: u32 = 65534;

    /// Item 14 of the attack of 2026: between bind and chmod another user got in.
    #[test]
    fn no_moment_lets_other_users_connect() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let (ended, seen) = (AtomicBool::new(false), AtomicBool::new(false));
        without_umask(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !ended.load(Relaxed) {
                        let mode = std::fs::metadata(&path).map_or(0, |file| file.mode());
                        seen.fetch_or(mode & 0o077 != 0, Relaxed);
                    }
                });
                for _ in 0..2000 {
                    drop(listen(&path).expect("it listens"));
                    std::fs::remove_file(&path).expect("a socket");
                }
                ended.store(true, Relaxed);
            });
        });
        assert!(!seen.load(Relaxed), "others could connect for a moment");
    }

    #[test]
    fn other_users_are_turned_away_even_where_the_mode_lets_them_in() {
        if !is_root() {
            return eprintln!("skipped: only root can be another user");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
        };
        open(folder.path(), 0o711);
        let listener = listen(&path).expect("it listens");
        let connect = || UnixStream::connect(&path);
        as_user(NOBODY, || connect().expect_err("the mode keeps others out"));
        open(&path, 0o777);
        let _foreign = as_user(NOBODY, || connect().expect("the mode lets others in"));
        assert!(accept(&listener).expect("to accept").is_none());
        let _own = connect().expect("it listens");
        let (_, process) = accept(&listener).expect("to accept").expect("a client");
        assert_eq!(process.0, std::process::id());
    }
}
