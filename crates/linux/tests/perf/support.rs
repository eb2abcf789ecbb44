//! Starts observed programs and reads sources for tests.

use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use isotherm_core::{Nanos, Sampling, SamplingRate, SamplingScope};
use isotherm_linux::perf::events::SourceEvents;
use isotherm_linux::perf::source::{PmuOptions, PmuSource};
use isotherm_linux::process::Pid;
use isotherm_linux::source::{Access, AccessSource};

use super::child::{ROLE, binary};

/// Returns the command of this binary in a role.
pub(crate) fn command(role: &str) -> Command {
    let mut command = binary();
    command.args(["--exact", "child::role", "--nocapture", "--test-threads=1"]).env(ROLE, role);
    command
}

/// Observed program, killed when dropped.
pub(crate) struct Program {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub(crate) pid: Pid,
    region: Range<u64>,
}

impl Program {
    pub(crate) fn start(role: &str) -> Self {
        let mut child =
            command(role).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("this binary starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut program = Self { child, input, output, pid: Pid(0), region: 0..0 };
        program.ready();
        program
    }

    /// Waits for a line that begins with `word` and returns the rest of it.
    pub(crate) fn expect(&mut self, word: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let length = self.output.read_line(&mut line).expect("readable");
            assert_ne!(length, 0, "the program ended before it said {word}");
            // The harness ends its own last line only here.
            if let Some(at) = line.find(word) {
                return line[at + word.len()..].trim().to_owned();
            }
        }
    }

    /// Reads the process and its region.
    pub(crate) fn ready(&mut self) {
        let numbers = self.expect("READY");
        let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().expect("a number")).collect();
        self.pid = Pid(numbers[0] as u32);
        self.region = numbers[1]..numbers[1] + numbers[2] * 4096;
    }

    /// Gives an order without waiting.
    pub(crate) fn tell(&mut self, order: &str) {
        let input = self.input.as_mut().expect("open");
        writeln!(input, "{order}").expect("the program listens");
    }

    /// Gives an order and waits until it is carried out.
    pub(crate) fn order(&mut self, order: &str) {
        self.tell(order);
        self.expect("DONE");
    }

    /// Lets the program end, and waits for it.
    pub(crate) fn finish(&mut self) {
        self.input = None;
        self.child.wait().expect("it ends");
    }

    /// Returns the accesses to its region.
    pub(crate) fn inside<'a>(&self, accesses: &'a [Access]) -> impl Iterator<Item = &'a Access> {
        let region = self.region.clone();
        accesses.iter().filter(move |access| region.contains(&access.address))
    }

    /// Asserts that each of these pages of its region has exactly one access.
    #[track_caller]
    pub(crate) fn assert_pages(&self, accesses: &[Access], expected: impl IntoIterator<Item = u64>) {
        let mut pages: Vec<u64> =
            self.inside(accesses).map(|access| (access.address - self.region.start) / 4096).collect();
        pages.sort_unstable();
        let expected: Vec<u64> = expected.into_iter().collect();
        let differs = pages.iter().zip(&expected).find(|(page, expected)| page != expected);
        assert_eq!((pages.len(), differs), (expected.len(), None));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a request for every `period`-th event.
pub(crate) fn every(period: u64) -> Sampling {
    at(SamplingRate::Period(period))
}

/// Returns a request at a rate.
pub(crate) fn at(rate: SamplingRate) -> Sampling {
    Sampling::loads(rate, SamplingScope::AllTiers, 1000, Nanos::MILLISECOND)
}

/// Makes a source of page faults with rings of `ring_pages` pages.
pub(crate) fn page_faults(ring_pages: usize) -> PmuSource {
    let options = PmuOptions { ring_pages, ..PmuOptions::default() };
    PmuSource::new(SourceEvents::page_faults(), options).expect("page faults need no PMU")
}

/// Drains a source.
pub(crate) fn drained(source: &mut PmuSource) -> Vec<Access> {
    let mut accesses = Vec::new();
    source.drain(&mut accesses).expect("rings are readable");
    accesses
}
