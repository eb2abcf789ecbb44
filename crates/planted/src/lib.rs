//! The program that tests of live tiering run: it uses memory in a known way and checks what it reads.
//!
//! Cargo builds only the tested package's own binaries and examples. So this is a library, and each package
//! whose tests run the program has a three-line example that calls [`run`].
//!
//! Every mode prints its result on standard output and exits with 0; with 1 and one line on standard error if
//! memory did not hold what it should; with 2 for a wrong command line. `USAGE` lists the modes.

mod arguments;
mod btree;
mod memory;
mod planted;
mod processes;
mod random;
mod server;
mod syscalls;
mod unmap;

use std::process::ExitCode;
use std::time::Duration;

use arguments::Arguments;

/// The help text, printed when the command line is wrong.
const USAGE: &str = "\
usage: target MODE [--OPTION VALUE]...
  planted       touch pages, some of them more often than the others
    --size 64M --hot 10% --share 90%   hot pages, and their share of accesses
    --layout scattered|contiguous      where the hot pages are
    --own-mapping                      contiguous hot pages are a mapping of their own (a line in /proc/PID/maps)
    --move-after N                     after N seconds (or operations) other pages are hot
    --threads 1 --seed 1 --pages default|base|huge
    --memory ordinary|hugetlb|locked|pinned|mergeable|file:PATH
    --read-only                        only read after the memory was filled
    --children 0                       forked processes that share the memory and check it at the end
    --report FILE                      the addresses and the hot pages, written before the accesses begin
    --laps FILE                        operations, time and processor time, every 16,384 operations
    --skip-final-check                 do not touch every page once more at the end
    --final-idle S                     sleep S seconds after the last access, before the final check
  btree         look keys up in a B-tree of --size 16M, of which --hot 12.5% get --share 90% of the look-ups
    --move-after N                     after N look-ups other keys are hot
    --seed 1
  server        read records of 1 KiB of --size 128M by Zipf's law with exponent --theta 99%, scattered
    --idle 0                           memory that is filled and never read, a mapping of its own
    --pause 0                          microseconds to sleep before each request of 64 reads
    --counts FILE                      accesses of each page so far: a 64-bit number each, in a shared mapping
    --report FILE                      the addresses, written before the accesses begin
    --seed 1
  threads       --threads 200 --size 256K of each thread, --waves 1 of threads one after the other
  fork-storm    --children 1000 --parallel 8 --size 1M: each child checks and changes its copy
  exec-chain    --times 10 --size 1M
  unmap-storm   --size 8M: mmap, munmap, mremap, mprotect and MADV_DONTNEED in a loop
  syscalls      --size 1M: pipes, sockets and files from and into big buffers
  idle          fill --size 1M and sleep
Modes but fork-storm and exec-chain end after --seconds (default 2) or after exactly --operations N: then all
of their output depends on the arguments alone.";

/// Runs the mode that the process's command line names.
pub fn run() -> ExitCode {
    let mut arguments = match Arguments::from_command_line() {
        Ok(arguments) => arguments,
        Err(message) => return refuse(&message),
    };
    let outcome = match arguments.mode.as_str() {
        "planted" => planted::run(&mut arguments),
        "btree" => btree::run(&mut arguments),
        "server" => server::run(&mut arguments),
        "threads" => processes::threads(&mut arguments),
        "fork-storm" => processes::fork_storm(&mut arguments),
        "exec-chain" => processes::exec_chain(&mut arguments),
        "unmap-storm" => unmap::run(&mut arguments),
        "syscalls" => syscalls::run(&mut arguments),
        "idle" => idle(&mut arguments),
        mode => Err(Failure::Usage(format!("no mode '{mode}'"))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => refuse(&message),
        Err(Failure::Wrong(message)) => {
            eprintln!("target: {message}");
            ExitCode::FAILURE
        }
    }
}

/// A mode's failure.
enum Failure {
    /// The command line was wrong.
    Usage(String),
    /// Memory, or the system, was wrong.
    Wrong(String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Wrong(error.to_string())
    }
}

/// Fails with `message` unless `holds`.
fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::Wrong(message())) }
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("target: {message}\n{USAGE}");
    ExitCode::from(2)
}

/// Fills memory, sleeps and finds it unchanged.
fn idle(arguments: &mut Arguments) -> Result<(), Failure> {
    let size = arguments.size("size", 1 << 20)?;
    let seconds = arguments.number("seconds", 2)?;
    arguments.finish()?;
    let memory = memory::Mapping::new(size)?;
    memory.fill(1);
    std::thread::sleep(Duration::from_secs(seconds));
    memory.check(1)?;
    println!("idle: checked {} pages", memory.pages());
    Ok(())
}
