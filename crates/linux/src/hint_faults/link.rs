//! The agent's end of the connection to the engine, and what it knows of the program's life.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::gate;
use super::pace::Allowed;
use super::protocol::{Shared, State, hello};
use super::store::SMALL;
use crate::clock;
use crate::sys::agent as sys;
use crate::sys::mmap::SharedValue;
use crate::sys::range::Range64;
use crate::sys::sockets::{connect, peer, send_files, still_there};

/// Longest time between two looks at the program: exec is not told otherwise, and keeps the old memory.
pub(super) const LOOK: Duration = Duration::from_millis(100);

pub(super) struct Link {
    socket: OwnedFd,
    shared: SharedValue<Shared>,
    /// Can be read when the program has ended.
    program: OwnedFd,
    /// The kernel clears this word when the program's first thread ends or executes another program.
    end_word: u64,
}

impl Link {
    /// Connects to the engine at `path`. Without waiting: an engine whose queue is full gets no agent of this
    /// process. Errors: those of `connect(2)`; `EPERM` if another user listens there.
    pub(super) fn connect(path: &[u8]) -> Result<OwnedFd, i32> {
        let socket = connect(path, true)?;
        if peer(socket.as_raw_fd())?.is_trusted() { Ok(socket) } else { Err(libc::EPERM) }
    }

    /// Sends the hello after `pause`; `None` if the program has ended by then, or without memory or engine.
    ///
    /// The engine gets a copy of the userfaultfd: should the agent be killed, threads that touch an armed
    /// page wait for ever instead of finding zeros there.
    pub(super) fn open(
        socket: OwnedFd,
        program: OwnedFd,
        end_word: u64,
        pause: Duration,
        userfault: Option<&OwnedFd>,
    ) -> Option<Self> {
        let begin = clock::monotonic().0;
        while clock::monotonic().0 - begin < pause.as_nanos() as u64 {
            let [ended] = sys::wait([program.as_raw_fd()], pause / 10);
            if ended || sys::read_word(end_word) == 0 || gate::is_ending() {
                return None;
            }
        }
        let (shared, file) = SharedValue::create().ok()?;
        let link = Self { socket, shared, program, end_word };
        let userfault = userfault.unwrap_or(&file).as_raw_fd();
        send_files(link.descriptor(), &hello(), [file.as_raw_fd(), userfault]).ok()?;
        Some(link)
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) fn range(&self) -> Range64 {
        self.shared.range()
    }

    fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Waits for `other`, the engine, the program's end or the end of the time; returns false if the engine
    /// or the program has gone.
    pub(super) fn wait(&self, other: RawFd, time: Duration) -> bool {
        let [_, nudged, ended] = sys::wait([other, self.descriptor(), self.program.as_raw_fd()], time);
        self.shared.beat.store(clock::monotonic().0, Relaxed);
        let gone = ended || (nudged && !still_there(self.descriptor()));
        !gone && self.program_goes_on()
    }

    /// Returns whether the program's first thread runs, and the program that the agent was started in.
    pub(super) fn program_goes_on(&self) -> bool {
        sys::read_word(self.end_word) != 0
    }

    /// Waits until the engine wants this process; false if it never will.
    pub(super) fn wait_until_wanted(&self) -> bool {
        while self.shared.wanted.load(Relaxed) == 0 {
            if !self.wait(-1, LOOK) || gate::is_ending() {
                return false;
            }
        }
        true
    }

    pub(super) fn wait_for_end(&self) {
        while self.wait(-1, LOOK) {}
        self.tell(State::Ended);
    }

    pub(super) fn tell(&self, state: State) {
        self.shared.state.store(state as u64, Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let agent = || Link::connect(path.as_os_str().as_bytes()).err();
        assert_eq!((agent(), as_user(65533, agent)), (Some(libc::EPERM), Some(libc::EPERM)));
        assert_eq!(as_user(65534, agent), None);
    }
}
