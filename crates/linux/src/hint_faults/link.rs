//! The agent's end of the connection to the engine.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::pace::Allowed;
use super::protocol::{Shared, hello};
use super::store::SMALL;
use crate::sys::agent as sys;
use crate::sys::mmap::SharedValue;
use crate::sys::range::Range64;
use crate::sys::sockets::{connect, peer, send_file, still_there};

pub(super) struct Link {
    socket: OwnedFd,
    shared: SharedValue<Shared>,
    status: OwnedFd,
}

impl Link {
    pub(super) fn open(path: &[u8]) -> Result<Self, i32> {
        let socket = connect(path, false)?;
        if !peer(socket.as_raw_fd())?.is_trusted() {
            return Err(libc::EPERM);
        }
        let (shared, file) = SharedValue::create()?;
        let status = sys::open(c"/proc/self/stat")?;
        send_file(socket.as_raw_fd(), &hello(), &file)?;
        Ok(Self { socket, shared, status })
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) fn range(&self) -> Range64 {
        self.shared.range()
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Takes nudges; returns false if the engine has gone.
    pub(super) fn is_there(&self) -> bool {
        still_there(self.socket.as_raw_fd())
    }

    /// Waits until the engine wants this process; false if it never will, or the program waits for the agent.
    pub(super) fn wait_until_wanted(&self) -> bool {
        self.wait_while(|shared| shared.wanted.load(Relaxed) == 0)
    }

    pub(super) fn wait_for_end(&self) {
        self.wait_while(|_| true);
    }

    fn wait_while(&self, waiting: impl Fn(&Shared) -> bool) -> bool {
        while waiting(&self.shared) {
            let [nudged, _] = sys::wait([self.socket.as_raw_fd(), -1], Some(Duration::from_millis(500)));
            if (nudged && !self.is_there()) || self.is_alone() || super::gate::is_ending() {
                return false;
            }
        }
        true
    }

    /// Returns whether all of the program's threads have ended and only the agent keeps the process alive.
    pub(super) fn is_alone(&self) -> bool {
        let mut text = [0; 1024];
        let length = sys::read_at(self.status.as_raw_fd(), &mut text, 0);
        text.get(..length)
            .and_then(state_and_threads)
            .is_some_and(|(state, threads)| state == b'Z' && threads <= 2)
    }

    pub(super) fn allowed(&self) -> Allowed {
        Allowed {
            rate: self.shared.rate.load(Relaxed),
            program: self.shared.program_budget.load(Relaxed).min(1_000_000),
            agent: self.shared.agent_budget.load(Relaxed).min(1_000_000),
        }
    }

    pub(super) fn window(&self) -> u64 {
        self.shared.window.load(Relaxed).clamp(1, SMALL)
    }

    /// Returns how many nanoseconds a page that a policy asked for stays armed.
    pub(super) fn armed_bound(&self) -> u64 {
        self.shared.armed_bound.load(Relaxed)
    }
}

/// Returns the leader's state and the number of threads, from `/proc/PID/stat` (`proc_pid_stat(5)`).
fn state_and_threads(text: &[u8]) -> Option<(u8, u64)> {
    let after_name = text.iter().rposition(|byte| *byte == b')')? + 2;
    let mut fields = text.get(after_name..)?.split(|byte| *byte == b' ');
    let state = *fields.next()?.first()?;
    let threads = std::str::from_utf8(fields.nth(16)?).ok()?.parse().ok()?;
    Some((state, threads))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_hides_nothing() {
        let text = b"77 (a) Z 1) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 2 0 1 2 3";
        assert_eq!(state_and_threads(text), Some((b'Z', 2)));
        assert_eq!(state_and_threads(b"77 (a"), None);
        assert_eq!(state_and_threads(b""), None);
    }

    #[test]
    fn this_process_is_read_right() {
        let text = std::fs::read("/proc/self/stat").unwrap();
        let (state, threads) = state_and_threads(&text).unwrap();
        assert!(matches!(state, b'R' | b'S'));
        assert!(threads >= 1);
    }

    #[test]
    fn an_engine_of_another_user_is_refused() {
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::fs::PermissionsExt;

        use crate::process::socket::listen;
        use crate::sys::testing::{as_user, is_root};

        if !is_root() {
            return eprintln!("skipped: only root can be another user");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let open = |path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
        open(folder.path());
        let _engine = as_user(65534, || listen(&path)).unwrap();
        open(&path);
        let agent = || Link::open(path.as_os_str().as_bytes()).err();
        assert_eq!((agent(), as_user(65533, agent)), (Some(libc::EPERM), Some(libc::EPERM)));
        assert_eq!(as_user(65534, agent), None);
    }
}
