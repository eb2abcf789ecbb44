//! Starts the agent: in a program that starts, and in each child that a fork makes.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use super::agent::Agent;
use super::gate;
use super::link::Link;
use super::protocol::{SOCKET_VARIABLE, VERBOSE_VARIABLE};
use crate::sys::agent::{self as sys, BlockedSignals};

/// Delay of the agent in a child, so that storms of forks stay cheap.
const CHILD_PAUSE: Duration = Duration::from_millis(50);
const STACK: usize = 512 << 10;

struct Configuration {
    socket: Vec<u8>,
    verbose: bool,
}

static CONFIGURATION: OnceLock<Configuration> = OnceLock::new();
/// Whether a child of a fork gets an agent; it does not where the engine is a thread, which the child lacks.
static IN_CHILDREN: AtomicBool = AtomicBool::new(true);
static THREAD: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);

/// Starts the agent if the environment names a socket; to be called on the main thread before others start.
pub fn start_from_environment() {
    let Some(socket) = std::env::var_os(SOCKET_VARIABLE).filter(|socket| !socket.is_empty()) else { return };
    let verbose = std::env::var_os(VERBOSE_VARIABLE).is_some();
    start(socket, verbose, prepare);
}

pub fn start_agent(socket: &Path) {
    start(socket.into(), false, prepare);
}

fn start(socket: OsString, verbose: bool, prepare: fn() -> bool) {
    let first = CONFIGURATION.set(Configuration { socket: socket.into_vec(), verbose }).is_ok();
    if first && prepare() {
        spawn(Duration::ZERO);
    }
}

/// Registers the calling thread, which must be the main one, and the handlers around forks.
fn prepare() -> bool {
    gate::configure();
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

/// Ends the agent and waits for its end. When the main thread leaves and the process goes on, the last thread
/// must be the program's, because it flushes the program's streams.
pub fn end_agent() {
    gate::end();
    let thread = THREAD.try_lock().ok().and_then(|mut thread| thread.take());
    if let Some(thread) = thread {
        let _ = thread.join();
    }
}

/// Forgets the parent's agent and starts a new one. Runs in each child of a fork.
extern "C" fn in_child() {
    gate::reset_in_child();
    // The parent may have been starting or ending its agent.
    THREAD.clear_poison();
    if let Ok(mut thread) = THREAD.try_lock() {
        // The thread is not in this process: its handle must not be joined or detached.
        std::mem::forget(thread.take());
    }
    if IN_CHILDREN.load(SeqCst) {
        spawn(CHILD_PAUSE);
    }
}

fn spawn(pause: Duration) {
    let _blocked = BlockedSignals::all();
    let agent =
        std::thread::Builder::new().name("isotherm".into()).stack_size(STACK).spawn(move || live(pause));
    if let (Ok(agent), Ok(mut thread)) = (agent, THREAD.try_lock()) {
        *thread = Some(agent);
    }
}

/// Runs the agent, after `pause`, until the engine goes or the program ends.
fn live(pause: Duration) {
    let Some(configuration) = CONFIGURATION.get() else { return };
    gate::note_thread();
    if sys::own_descriptors(configuration.verbose).is_err() {
        return;
    }
    if !pause.is_zero() {
        gate::sleep_unless_ending(pause);
    }
    sys::wake_precisely();
    sys::run_first();
    let link = match Link::open(&configuration.socket) {
        Ok(link) => link,
        Err(error) => return say(configuration, &format!("no engine: error {error}")),
    };
    if !link.wait_until_wanted() {
        return;
    }
    match Agent::new(link) {
        Ok(mut agent) => {
            say(configuration, "hint faults on");
            agent.run();
        }
        Err((link, state)) => {
            link.shared().state.store(state as u64, std::sync::atomic::Ordering::Relaxed);
            say(configuration, state.refusal().unwrap_or_default());
            link.wait_for_end();
        }
    }
}

/// Writes at most one line per process, and only if wanted. Nothing is armed at that time.
fn say(configuration: &Configuration, message: &str) {
    if configuration.verbose {
        // A closed stream is no reason to end.
        let _ = writeln!(std::io::stderr(), "isotherm: {message}");
    }
}
