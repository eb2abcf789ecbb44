//! The engine's thread: it starts before `main` and ends, with a summary, when the program does.

use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use isotherm_core::live_result::LiveResult;
use isotherm_linux::hint_faults::{BlockedSignals, SOCKET_VARIABLE};
use isotherm_live::inside::{self, Output, Settings};
use isotherm_live::session::{Session, Target};

use crate::arena;

/// Longest wait of the program for the engine before `main`, and for its summary at the end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks meanwhile.
const LOOK: Duration = Duration::from_millis(1);
const STACK: usize = 2 << 20;

/// States of the engine.
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
const OVER: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(0);
static ENDING: AtomicBool = AtomicBool::new(false);
static THREAD: OnceLock<Thread> = OnceLock::new();
/// The process that has the engine; a child of a fork does not.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Starts an engine if the environment names a policy and no engine outside; otherwise does nothing. Call it
/// on the main thread before the program starts others.
pub(crate) fn start_from_environment() {
    if std::env::var_os(SOCKET_VARIABLE).is_some_and(|socket| !socket.is_empty()) {
        return;
    }
    match Settings::read(|name| std::env::var_os(name)) {
        Ok(None) => {}
        Ok(Some(settings)) => start(settings),
        Err(error) => say(&error.to_string()),
    }
}

fn start(settings: Settings) {
    if !arena::reserve() || !inside::prepare_inside() {
        return say("no address space is left for the engine; the program runs without one");
    }
    PROCESS.store(std::process::id(), SeqCst);
    STATE.store(STARTING, SeqCst);
    let blocked = BlockedSignals::all();
    let engine = thread::Builder::new().name("isotherm-engine".into()).stack_size(STACK);
    let started = engine.spawn(move || live(&settings)).is_ok();
    drop(blocked);
    if !started {
        STATE.store(OVER, SeqCst);
        return say("the engine's thread cannot be started; the program runs without one");
    }
    // SAFETY: a function that lives as long as this library, which is never unloaded.
    unsafe { libc::atexit(finish) };
    wait_while(STARTING);
}

fn wait_while(state: u32) {
    let deadline = Instant::now() + PATIENCE;
    while STATE.load(SeqCst) == state && Instant::now() < deadline {
        thread::sleep(LOOK);
    }
}

/// Ends the engine and waits for its summary.
pub(crate) extern "C" fn finish() {
    if PROCESS.load(SeqCst) == std::process::id() {
        ENDING.store(true, SeqCst);
        if let Some(engine) = THREAD.get() {
            engine.unpark();
        }
        wait_while(RUNNING);
    }
}

/// Marks the engine as over on drop, so that no thread waits for it.
struct Over;

impl Drop for Over {
    fn drop(&mut self) {
        STATE.store(OVER, SeqCst);
    }
}

fn live(settings: &Settings) {
    let _over = Over;
    // Set once, as there is one engine.
    let _ = THREAD.set(thread::current());
    arena::enter();
    if let Err(error) = inside::separate() {
        return say(&format!("{error}; the program runs without an engine"));
    }
    let own = std::iter::once(arena::range()).chain(inside::own_stack()).collect();
    let session = Session::open(settings.session.clone(), Target::Inside { own, ending: &ENDING });
    let engine = match session.and_then(Session::start) {
        Ok(engine) => engine,
        Err(error) => return say(&format!("{error}; the program runs without an engine")),
    };
    let speaks = [&settings.json, &settings.report].into_iter().flatten().any(|to| *to == Output::Errors);
    if !speaks {
        forget_errors();
    }
    STATE.store(RUNNING, SeqCst);
    match engine.run().result {
        Ok(result) => report(settings, &result),
        Err(error) => say(&error.to_string()),
    }
}

/// Closes this thread's standard error, so that readers of the stream do not wait for this thread.
fn forget_errors() {
    // SAFETY: a path that ends in 0 and this thread's own descriptors. Failing, the stream stays open.
    unsafe {
        let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        libc::dup3(nowhere, libc::STDERR_FILENO, libc::O_CLOEXEC);
    }
}

fn report(settings: &Settings, result: &LiveResult) {
    if let Some(to) = &settings.json {
        match serde_json::to_string_pretty(result) {
            Ok(json) => write(to, &(json + "\n")),
            Err(error) => say(&format!("the summary cannot be written as JSON: {error}")),
        }
    }
    if let Some(to) = &settings.report {
        write(to, &inside::text(result));
    }
}

fn write(to: &Output, text: &str) {
    let written = match to {
        Output::Errors => std::io::stderr().write_all(text.as_bytes()),
        Output::File(path) => std::fs::write(path, text),
    };
    if let (Err(error), Output::File(path)) = (written, to) {
        say(&format!("{}: {error}", path.display()));
    }
}

fn say(message: &str) {
    // A closed stream is no reason to end.
    let _ = writeln!(std::io::stderr(), "isotherm: {message}");
}
