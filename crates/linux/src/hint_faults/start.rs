//! Starts the agent: in a program that starts, and in each child that a fork makes.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use super::agent::Agent;
use super::gate;
use super::link::Link;
use super::mappings::Maps;
use super::mechanism::Mechanism;
use super::presence::Presence;
use super::protocol::{SOCKET_VARIABLE, State, VERBOSE_VARIABLE};
use crate::process::Pid;
use crate::sys::agent::{self as sys, BlockedSignals};
use crate::sys::companion::Companion;
use crate::sys::process::pidfd_open;
use crate::sys::range::Range64;
use crate::sys::userfaultfd::Userfault;

/// Delay of the agent in a child, so that storms of forks stay cheap.
const CHILD_PAUSE: Duration = Duration::from_millis(50);

struct Configuration {
    socket: Vec<u8>,
    verbose: bool,
}

static CONFIGURATION: OnceLock<Configuration> = OnceLock::new();
/// Whether a child of a fork gets an agent; it does not where the engine is a thread, which the child lacks.
static IN_CHILDREN: AtomicBool = AtomicBool::new(true);

/// Starts the agent if the environment names a socket; to be called on the main thread before others start.
pub fn start_from_environment() {
    let Some(socket) = std::env::var_os(SOCKET_VARIABLE).filter(|socket| !socket.is_empty()) else { return };
    start(socket, std::env::var_os(VERBOSE_VARIABLE).is_some(), prepare);
}

fn start(socket: OsString, verbose: bool, prepare: fn() -> bool) {
    let first = CONFIGURATION.set(Configuration { socket: socket.into_vec(), verbose }).is_ok();
    if first && prepare() {
        spawn(Duration::ZERO);
    }
}

/// Registers the calling thread, which must be the main one, and the handlers around forks.
fn prepare() -> bool {
    if !gate::configure() {
        return false;
    }
    gate::note_main();
    sys::at_fork(gate::before_fork, gate::after_fork, in_child)
}

/// Prepares for an engine in a thread of this program, on the main thread before others start; forked
/// children have neither engine nor agent. Returns false if forks cannot be observed: then start no agent.
pub fn prepare_inside() -> bool {
    IN_CHILDREN.store(false, SeqCst);
    prepare()
}

/// Starts the agent for the engine thread that listens at `socket`, after [`prepare_inside`].
pub fn start_agent_inside(socket: &Path) {
    start(socket.into(), false, || true);
}

/// Starts an agent in a child of a fork, where all of the parent's words are zero.
extern "C" fn in_child() {
    // The filter may end a program that makes the agent's calls.
    if IN_CHILDREN.load(SeqCst) && !gate::is_filtered() {
        spawn(CHILD_PAUSE);
    }
}

/// Descriptors and numbers of an agent that starts; the program opens them, for the agent is confined.
#[derive(Clone, Copy)]
struct Seed {
    /// The socket, the program's descriptor, and the agent's userfaultfd, mappings and page map; the last
    /// three are -1 in a `state` in which it cannot work.
    descriptors: [RawFd; 5],
    state: State,
    program: u32,
    end_word: u64,
    pause: Duration,
    verbose: bool,
    /// Whether the engine is a thread of the program, which starts the agent.
    inside: bool,
}

fn spawn(pause: Duration) {
    let Some(configuration) = CONFIGURATION.get() else { return };
    let Ok(socket) = Link::connect(&configuration.socket) else { return };
    let program = sys::process_number();
    let (Ok(process), Ok(end_word)) = (pidfd_open(Pid(program)), sys::end_word()) else { return };
    let (state, files) = match open_files() {
        Ok(files) => (State::Waiting, Some(files)),
        Err(state) => (state, None),
    };
    let raw = |file: Option<&OwnedFd>| file.map_or(-1, AsRawFd::as_raw_fd);
    let [userfault, maps, pagemap] =
        files.as_ref().map_or([-1; 3], |files| files.each_ref().map(|file| raw(Some(file))));
    let descriptors = [socket.as_raw_fd(), process.as_raw_fd(), userfault, maps, pagemap];
    gate::set_program(program);
    let (verbose, inside) = (configuration.verbose, !IN_CHILDREN.load(SeqCst));
    let _blocked = BlockedSignals::all();
    // The program's copies of the descriptors are closed at the end of this function. A system without room
    // for another process leaves this one without an agent.
    let _ = Companion::start(live, Seed { descriptors, state, program, end_word, pause, verbose, inside });
}

fn open_files() -> Result<[OwnedFd; 3], State> {
    let userfault = Userfault::open().map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => State::NotPermitted,
        _ => State::Unsupported,
    })?;
    let maps = Maps::open().map_err(|_| State::Unsupported)?;
    let presence = Presence::open().map_err(|_| State::Unsupported)?;
    Ok([userfault.0, maps.0, presence.0])
}

/// Runs the agent, after a pause, until the engine goes or the program ends.
fn live(seed: Seed, memory: Range64) {
    gate::enter();
    // An engine's thread inside of the program ends while its agent still puts pages back.
    if !seed.inside && !sys::end_with(seed.program) {
        return;
    }
    sys::leave_session();
    sys::wake_precisely();
    sys::run_first();
    let [socket, process, userfault, maps, pagemap] = sys::keep_only(seed.descriptors, seed.verbose);
    let (Some(socket), Some(process)) = (socket, process) else { return };
    if sys::confine().is_err() {
        return say(seed, "no agent: the kernel has no system call filters");
    }
    let Some(link) = Link::open(socket, process, seed.end_word, seed.pause, userfault.as_ref()) else {
        return;
    };
    let parts = match (userfault, maps, pagemap) {
        (Some(userfault), Some(maps), Some(pagemap)) => Ok((userfault, maps, pagemap)),
        _ => Err(seed.state),
    };
    if !link.wait_until_wanted() {
        return link.tell(State::Ended);
    }
    let agent = parts.and_then(|(userfault, maps, pagemap)| {
        let own = [memory, link.range()];
        Mechanism::new(Userfault(userfault), Maps(maps), Presence(pagemap), own)
    });
    match agent.and_then(|mechanism| Agent::new(&link, mechanism, seed.program)) {
        Ok(mut agent) => {
            say(seed, "hint faults on");
            let state = agent.run();
            drop(agent);
            if state != State::Ended {
                // The engine reads the reason before it sees the end.
                link.wait_for_end();
            }
        }
        Err(state) => {
            link.tell(state);
            say(seed, state.refusal().unwrap_or_default());
            link.wait_for_end();
        }
    }
}

/// Writes at most one line per process, and only if wanted. Nothing is armed at that time.
fn say(seed: Seed, message: &str) {
    if seed.verbose {
        sys::write_line(message);
    }
}
