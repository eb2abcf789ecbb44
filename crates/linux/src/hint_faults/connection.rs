//! One agent as the engine sees it.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::protocol::{Counter, Hello, RING, Record, SETTLED, Shared, State, VERSION, version_of};
use super::settings::HintFaultOptions;
use super::settled;
use crate::clock;
use crate::process::Pid;
use crate::sys::agent;
use crate::sys::mmap::SharedValue;
use crate::sys::process::{pidfd_open, send_by_descriptor};
use crate::sys::sockets::{nudge, receive_files, still_there};

/// Most requests to arm that wait for room in the agent's queue.
const WAITING: usize = 1 << 20;
/// Longest time from the end of a program's agent to its own.
const END: Duration = Duration::from_millis(200);
/// Silence of an agent that is reported; it looks around ten times a second.
const SILENCE: Duration = Duration::from_secs(10);

/// An agent that has connected and not sent its hello yet.
pub(super) struct Pending {
    socket: UnixStream,
    pub(super) process: Pid,
}

impl Pending {
    /// Returns the agent of a process behind the socket; `None` if the process is outside of this namespace.
    pub(super) fn new(socket: UnixStream, process: Pid) -> Option<Self> {
        (process.0 > 0).then_some(Self { socket, process })
    }

    /// Receives the hello: a connection, or `self` if it has not come yet.
    pub(super) fn greet(
        self,
        options: &HintFaultOptions,
    ) -> Result<Result<Connection, Self>, Option<String>> {
        let mut bytes = Hello::default();
        let (length, [file, userfault]) = match receive_files(self.socket.as_raw_fd(), &mut bytes) {
            Ok(received) => received,
            Err(libc::EAGAIN) => return Ok(Err(self)),
            Err(_) => return Err(None),
        };
        let theirs = if length == bytes.len() { version_of(bytes) } else { None }.ok_or(None)?;
        if theirs != VERSION {
            return Err(Some(format!(
                "libisotherm.so speaks version {theirs} of the protocol, this engine {VERSION}: \
                 use the library of the same build"
            )));
        }
        let mapping = file.ok_or(libc::EINVAL).and_then(|file| SharedValue::adopt(&file));
        let shared = mapping.map_err(|error| {
            let error = std::io::Error::from_raw_os_error(error);
            Some(format!("the agent's memory file cannot be used: {error}"))
        })?;
        let program = pidfd_open(self.process).map_err(|_| None)?;
        let (waiting, refused, silent, settled) = (VecDeque::new(), false, false, 0);
        let connection = Connection {
            socket: self.socket,
            program,
            _userfault: userfault,
            shared,
            waiting,
            refused,
            silent,
            settled,
        };
        connection.configure(options);
        Ok(Ok(connection))
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) agent_cpu: u64,
    pub(super) program_time: u64,
    pub(super) lost: u64,
    pub(super) counters: [u64; Counter::COUNT],
}

impl Report {
    /// Adds the counts; values in force at a time are left alone.
    pub(super) fn add(&mut self, other: &Self) {
        let add = |mine: &mut u64, theirs: u64| *mine = mine.saturating_add(theirs);
        add(&mut self.agent_cpu, other.agent_cpu);
        add(&mut self.program_time, other.program_time);
        add(&mut self.lost, other.lost);
        for (at, (mine, theirs)) in self.counters.iter_mut().zip(other.counters).enumerate() {
            if at != Counter::WindowTime as usize && at != Counter::FaultCost as usize {
                add(mine, theirs);
            }
        }
    }
}

pub(super) struct Connection {
    socket: UnixStream,
    /// The program's process.
    program: OwnedFd,
    /// While it is open, threads that touch an armed page wait, also after the agent has been killed.
    _userfault: Option<OwnedFd>,
    shared: SharedValue<Shared>,
    /// Requests to arm that wait for room in the queue.
    waiting: VecDeque<u64>,
    refused: bool,
    silent: bool,
    /// How often settled memory was named.
    settled: u32,
}

impl Connection {
    pub(super) const MEMORY: u64 = size_of::<Shared>() as u64;

    fn configure(&self, options: &HintFaultOptions) {
        self.set_budgets(options);
        self.shared.window.store(u64::from(options.window), Relaxed);
        let bound = u64::try_from(options.armed_bound.as_nanos()).unwrap_or(u64::MAX);
        self.shared.armed_bound.store(bound, Relaxed);
        self.shared.seed.store(options.seed, Relaxed);
    }

    pub(super) fn want(&self) {
        self.shared.wanted.store(1, Relaxed);
        nudge(self.socket.as_raw_fd());
    }

    fn set_budgets(&self, options: &HintFaultOptions) {
        let millionths = |part: f64| (part * 1e6) as u64;
        self.shared.program_budget.store(millionths(options.program_budget), Relaxed);
        self.shared.agent_budget.store(millionths(options.agent_budget), Relaxed);
    }

    /// Sets faults per second, and budgets.
    pub(super) fn set_pace(&self, rate: u64, options: &HintFaultOptions) {
        self.shared.rate.store(rate, Relaxed);
        self.set_budgets(options);
        nudge(self.socket.as_raw_fd());
    }

    pub(super) fn arm(&mut self, addresses: &[u64]) {
        let room = WAITING - self.waiting.len().min(WAITING);
        self.waiting.extend(addresses.iter().take(room));
        self.shared.add(Counter::Refused, addresses.len().saturating_sub(room) as u64);
        self.pass_on();
    }

    /// Names the pages that are to race.
    pub(super) fn set_racers(&self, list: u32, pages: &[u64]) {
        self.shared.set_racers(list, pages);
    }

    /// Names settled memory; of more ranges than the agent keeps, the first ones.
    pub(super) fn set_settled(&mut self, ranges: &[Range<u64>]) {
        self.settled = self.settled.wrapping_add(1) & 0x7fff_ffff;
        let words: Vec<u64> = ranges.iter().flat_map(settled::words).take(SETTLED).collect();
        self.shared.set_settled(self.settled, &words);
    }

    fn pass_on(&mut self) {
        let before = self.waiting.len();
        while let Some(address) = self.waiting.front()
            && self.shared.ask(*address)
        {
            self.waiting.pop_front();
        }
        if self.waiting.len() != before {
            nudge(self.socket.as_raw_fd());
        }
    }

    /// Takes all records, no more than the ring holds.
    pub(super) fn take(&self, mut see: impl FnMut(Record)) {
        for _ in 0..RING {
            match self.shared.pop() {
                Some(record) => see(record),
                None => return,
            }
        }
    }

    pub(super) fn is_there(&self) -> bool {
        still_there(self.socket.as_raw_fd())
    }

    pub(super) fn program_has_ended(&self) -> bool {
        self.program_ends_within(Duration::ZERO)
    }

    fn program_ends_within(&self, time: Duration) -> bool {
        let [ended] = agent::wait([self.program.as_raw_fd()], time);
        ended
    }

    /// Ends the program if its agent was killed while it may have held pages, which nobody can put back now;
    /// returns that in one line. To be called once the agent has gone.
    pub(super) fn end_program_if_lost(&self) -> Option<String> {
        let lost = State::of(self.shared.state.load(Relaxed)) == State::Ready;
        // The kernel ends the agent just before the program's own end can be seen.
        if !lost || self.program_ends_within(END) || send_by_descriptor(&self.program, libc::SIGKILL).is_err()
        {
            return None;
        }
        Some(
            "its agent (the process isotherm-agent) was killed while it held pages of the program; the program \
             was killed too, since its memory was lost"
                .to_owned(),
        )
    }

    /// Returns once that the agent answers no more.
    pub(super) fn new_silence(&mut self) -> Option<String> {
        let beat = self.shared.beat.load(Relaxed);
        let silence = Duration::from_nanos(clock::monotonic().0.saturating_sub(beat));
        let silent = beat > 0 && silence > SILENCE;
        (silent && !std::mem::replace(&mut self.silent, silent))
            .then(|| format!("its agent has not answered for {} s: is it stopped?", silence.as_secs()))
    }

    /// Returns once why the agent cannot work; passes waiting requests on.
    pub(super) fn new_refusal(&mut self) -> Option<&'static str> {
        self.pass_on();
        let refusal = State::of(self.shared.state.load(Relaxed)).refusal()?;
        (!std::mem::replace(&mut self.refused, true)).then_some(refusal)
    }

    pub(super) fn hidden(&self) -> Vec<Range<u64>> {
        let [a, b, c, d] = &self.shared.hidden;
        [(a, b), (c, d)]
            .into_iter()
            .map(|(start, end)| start.load(Relaxed)..end.load(Relaxed))
            .filter(|range| !range.is_empty())
            .collect()
    }

    pub(super) fn report(&self) -> Report {
        Report {
            agent_cpu: self.shared.agent_cpu.load(Relaxed),
            program_time: self.shared.program_time.load(Relaxed),
            lost: self.shared.lost.load(Relaxed),
            counters: std::array::from_fn(|at| self.shared.counters[at].load(Relaxed)),
        }
    }
}

/// Runs the engine's end against an agent that greets and writes as it likes.
#[cfg(fuzzing)]
pub(super) fn fuzz(hello: &[u8], words: &[(u16, u64)]) -> Report {
    use crate::sys::mmap::SharedWords;

    if let Ok(hello) = hello.try_into() {
        version_of(hello);
    }
    let (shared, file) = SharedValue::<Shared>::create().expect("a memory file");
    let theirs = SharedWords::new(&file.into(), size_of::<Shared>()).expect("mapped");
    let (socket, _) = UnixStream::pair().expect("sockets");
    let program = pidfd_open(Pid(std::process::id())).expect("this process");
    let (waiting, _userfault) = (VecDeque::new(), None);
    let mut connection = Connection {
        socket,
        program,
        _userfault,
        shared,
        waiting,
        refused: false,
        silent: false,
        settled: 0,
    };
    connection.configure(&HintFaultOptions::default());
    let mut total = Report::default();
    for half in words.chunks(words.len().div_ceil(2).max(1)) {
        for &(place, value) in half {
            theirs.words()[usize::from(place) % theirs.words().len()].store(value, Relaxed);
        }
        connection.arm(&[0x1000, 0x2000]);
        let mut taken = 0;
        connection.take(|_| taken += 1);
        assert!(taken <= RING);
        connection.new_refusal();
        assert!(connection.hidden().iter().all(|range| range.start < range.end));
        total.add(&connection.report());
    }
    total
}
