//! Runs programs with the library for tests.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use isotherm_core::{Nanos, Sampling, SamplingRate, SamplingScope};
use isotherm_linux::hint_faults::{HintFaultOptions, HintFaultSource};
use isotherm_linux::process::Pid;
use isotherm_linux::source::{Access, AccessSource};

/// Returns the directory of cargo's outputs beside this test.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its file");
    test.ancestors().nth(2).expect("target/PROFILE/deps/TEST").to_owned()
}

/// Returns the path of `libisotherm.so`.
pub(crate) fn library() -> PathBuf {
    // Cargo puts it here in a test of the workspace too; only `cargo build` copies it beside the binaries.
    built().join("deps/libisotherm.so")
}

/// Returns an example of this package.
pub(crate) fn example(name: &str) -> PathBuf {
    built().join("examples").join(name)
}

/// Returns a request for sampling that only the budgets limit.
pub(crate) fn sampling(rate: SamplingRate) -> Sampling {
    Sampling::loads(rate, SamplingScope::AllTiers, 4096, Nanos(10_000_000)).and_stores()
}

/// Returns budgets that let nearly everything be armed: these tests are about memory, not about time.
pub(crate) fn generous() -> HintFaultOptions {
    HintFaultOptions { program_budget: 1.0, agent_budget: 1.0, window: 64, ..HintFaultOptions::default() }
}

/// Longest wait of a test; a busy machine takes long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns the agents of a process: processes of that name that it started.
pub(crate) fn agents(process: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let text = children.unwrap_or_default();
    let named = |child: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{child}/comm"));
        name.is_ok_and(|name| name.trim() == "isotherm-agent")
    };
    text.split_whitespace().filter_map(|child| child.parse().ok()).filter(named).collect()
}

/// A program with its engine.
pub(crate) struct Run {
    pub(crate) source: HintFaultSource,
    pub(crate) child: Child,
    pub(crate) accesses: Vec<Access>,
    output: Option<BufReader<std::process::ChildStdout>>,
}

/// A program's end.
pub(crate) struct Ended {
    pub(crate) status: std::process::ExitStatus,
    pub(crate) output: String,
    pub(crate) accesses: Vec<Access>,
}

impl Run {
    pub(crate) fn new(
        program: &Path,
        arguments: &[&str],
        options: HintFaultOptions,
        rate: SamplingRate,
    ) -> Self {
        let mut source = HintFaultSource::open(options).expect("a source");
        source.request(&sampling(rate)).expect("a rate");
        let mut child = Command::new(program)
            .args(arguments)
            .envs(source.environment(&library()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        source.follow(Pid(child.id())).expect("to follow");
        let output = child.stdout.take().map(BufReader::new);
        Self { source, child, accesses: Vec::new(), output }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid(self.child.id())
    }

    /// Returns the next line of its output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().expect("its output").read_line(&mut line).expect("a line");
        line
    }

    /// Lets the program go on.
    pub(crate) fn go(&mut self) {
        self.child.stdin.as_mut().expect("its input").write_all(b"\n").expect("to write");
    }

    /// Takes accesses until `enough` or until patience ends; returns which.
    pub(crate) fn drain_until(&mut self, mut enough: impl FnMut(&mut Self) -> bool) -> bool {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            self.source.drain(&mut self.accesses).expect("to drain");
            if enough(self) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        false
    }

    /// Takes accesses until the program ends.
    pub(crate) fn finish(mut self) -> Ended {
        drop(self.child.stdin.take());
        let mut output = self.output.take().expect("its output");
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            output.read_to_string(&mut text).map(|_| text)
        });
        let mut status = None;
        let ended = self.drain_until(|run| {
            status = run.child.try_wait().expect("a child");
            status.is_some()
        });
        if !ended {
            let _ = self.child.kill();
            let _ = self.child.wait();
            panic!("the program hangs");
        }
        self.source.drain(&mut self.accesses).expect("to drain");
        let output = reader.join().expect("a reader").expect("text");
        Ended { status: status.expect("ended"), output, accesses: self.accesses }
    }

    /// Returns why hint faults are unavailable, once that is known.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.source.refusals().first().map(|(_, reason)| reason.clone())
    }
}
