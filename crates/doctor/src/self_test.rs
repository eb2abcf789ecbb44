//! Self-tests of access sources: each watches a loop whose accesses are known.

use std::io;
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use isotherm_core::{Nanos, Sampling, SamplingRate, SamplingScope, Signal};
use isotherm_linux::LinuxError;
use isotherm_linux::process::Pid;
use isotherm_linux::source::{Access, AccessSource};
use serde::Serialize;

use super::finding::{Area, Finding, Remedy};
use super::known_loop::Buffers;

/// Time for which a source may watch.
const WATCH: Duration = Duration::from_secs(1);
/// Time for the loop to start: more than loading a program takes on a busy machine.
const START: Duration = Duration::from_secs(10);
/// Time between two reads of a source.
const PAUSE: Duration = Duration::from_millis(10);
/// Accesses in the buffer after which a test ends.
const ENOUGH: u64 = 1000;
/// Samples per second and thread that are requested.
const FREQUENCY: u64 = 2000;
/// Pages armed at once.
const ARMED: usize = 64;
/// Ranges of each buffer whose accessed bits are read.
const RANGES: u64 = 8;
const PAGE_BYTES: u64 = 4096;

/// Accesses of the known loop that a source saw.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SelfTest {
    pub source: String,
    /// Accesses delivered, and ranges found accessed.
    pub samples: u64,
    /// Samples in the buffer that the loop uses.
    pub in_buffer: u64,
    /// Samples in the buffer that the loop never uses.
    pub in_unused: u64,
    pub lost: u64,
    pub throttled: u64,
    pub watched: Nanos,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// One line of text.
    pub message: String,
    pub remedy: Remedy,
}

impl From<&LinuxError> for Problem {
    fn from(error: &LinuxError) -> Self {
        let remedy = match error {
            LinuxError::Permission { remedy, .. } => Remedy::Command(remedy.clone()),
            LinuxError::Unsupported { remedy, .. } => Remedy::Advice(remedy.clone()),
            _ => Remedy::advice("see the other findings about this source"),
        };
        Self { message: error.to_string(), remedy }
    }
}

/// Lets each source watch its own [`super::known_loop()`], which `command` starts, for at most a second. The
/// standard streams of `command` are replaced.
pub fn self_test(sources: &mut [Box<dyn AccessSource>], command: &mut Command) -> Vec<SelfTest> {
    sources.iter_mut().map(|source| test_one(source.as_mut(), command)).collect()
}

fn test_one(source: &mut dyn AccessSource, command: &mut Command) -> SelfTest {
    let mut test = SelfTest { source: source.name().to_owned(), ..SelfTest::default() };
    let outcome = Loop::start(command).and_then(|running| {
        let before = source.statistics();
        let outcome = watch(source, &running, &mut test);
        source.forget(running.pid);
        let after = source.statistics();
        test.lost = after.lost.saturating_sub(before.lost);
        test.throttled = after.throttled.saturating_sub(before.throttled);
        outcome
    });
    test.problem = outcome.err().as_ref().map(Problem::from);
    test
}

fn watch(source: &mut dyn AccessSource, running: &Loop, test: &mut SelfTest) -> Result<(), LinuxError> {
    let offers = source.offers();
    source.follow(running.pid)?;
    source.request(&sampling(SamplingRate::Frequency(FREQUENCY), offers.has(Signal::StoreSamples)))?;
    let mut bits = offers.has(Signal::AccessedBits).then(|| BitReader::new(&running.buffers));
    let mut arming = offers.has(Signal::HintFaults).then(|| running.buffers.hot.clone());
    let (started, mut accesses) = (Instant::now(), Vec::new());
    while started.elapsed() < WATCH && test.in_buffer < ENOUGH {
        if let Some(left) = &mut arming {
            source.arm(running.pid, &next_pages(left, &running.buffers.hot))?;
        }
        std::thread::sleep(PAUSE);
        source.drain(&mut accesses)?;
        test.count(&accesses, running);
        accesses.clear();
        if let Some(bits) = &mut bits {
            bits.read(source, running.pid, test)?;
        }
    }
    test.watched = Nanos(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
    source.request(&sampling(SamplingRate::Off, false))
}

fn sampling(rate: SamplingRate, stores: bool) -> Sampling {
    let tick = Nanos(10 * Nanos::MILLISECOND.0);
    Sampling { stores, ..Sampling::loads(rate, SamplingScope::AllTiers, FREQUENCY as usize, tick) }
}

/// Returns the next pages to arm, from the start again after the last.
fn next_pages(left: &mut Range<u64>, whole: &Range<u64>) -> Vec<u64> {
    if left.is_empty() {
        *left = whole.clone();
    }
    let pages: Vec<u64> = left.clone().step_by(PAGE_BYTES as usize).take(ARMED).collect();
    left.start = pages.last().map_or(left.end, |last| last + PAGE_BYTES);
    pages
}

impl SelfTest {
    fn count(&mut self, accesses: &[Access], running: &Loop) {
        for access in accesses.iter().filter(|access| access.process == running.pid) {
            self.samples += 1;
            self.in_buffer += u64::from(running.buffers.hot.contains(&access.address));
            self.in_unused += u64::from(running.buffers.cold.contains(&access.address));
        }
    }

    pub(super) fn finding(&self) -> Finding {
        let topic = Area::Sources.topic("self-test");
        let milliseconds = self.watched.0 / Nanos::MILLISECOND.0;
        let seen = format!(
            "{} samples in {milliseconds} ms, {} of them in the known buffer, {} lost",
            self.samples, self.in_buffer, self.lost
        );
        let lost = "this source, or trust in its samples";
        let advice = |text: &str| Remedy::Advice(format!("choose another --source, and report this: {text}"));
        let finding = if let Some(problem) = &self.problem {
            topic.missing(&problem.message, lost, problem.remedy.clone())
        } else if self.samples == 0 {
            topic.missing("no sample within a second of a known loop", lost, advice("no samples"))
        } else if self.in_unused * 10 > self.in_buffer || self.in_buffer * 2 < self.samples {
            let meaning = format!("{seen}, {} in memory that was never used", self.in_unused);
            topic.warning(meaning, lost, advice("samples elsewhere"))
        } else if self.lost > self.samples {
            let remedy = Remedy::advice("lower the rate of samples, or enlarge the buffers");
            topic.warning(seen, "more samples than it kept", remedy)
        } else {
            topic.ok(seen)
        };
        finding.about(&self.source)
    }
}

/// Reader of accessed bits. Its first answers concern the time before and do not count.
struct BitReader {
    ranges: Vec<Range<u64>>,
    asked: bool,
}

impl BitReader {
    fn new(buffers: &Buffers) -> Self {
        let parts = |whole: &Range<u64>| {
            let (start, length) = (whole.start, (whole.end - whole.start) / RANGES);
            (0..RANGES).map(move |part| start + part * length..start + (part + 1) * length)
        };
        Self { ranges: parts(&buffers.hot).chain(parts(&buffers.cold)).collect(), asked: false }
    }

    fn read(
        &mut self,
        source: &mut dyn AccessSource,
        pid: Pid,
        test: &mut SelfTest,
    ) -> Result<(), LinuxError> {
        let mut answers = Vec::new();
        source.accessed(pid, &self.ranges, &mut answers)?;
        if std::mem::replace(&mut self.asked, true) {
            let accessed = |answers: &[bool]| answers.iter().filter(|&&answer| answer).count() as u64;
            let (hot, cold) = answers.split_at(answers.len().min(RANGES as usize));
            test.in_buffer += accessed(hot);
            test.in_unused += accessed(cold);
            test.samples += accessed(&answers);
        }
        Ok(())
    }
}

/// Known loop in a child process, which is killed when this is dropped.
struct Loop {
    child: Child,
    pid: Pid,
    buffers: Buffers,
}

impl Loop {
    fn start(command: &mut Command) -> Result<Self, LinuxError> {
        let program = command.get_program().to_owned();
        let failed = |error: io::Error| LinuxError::file(&program, error);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().map_err(failed)?;
        let pid = Pid(child.id());
        // Made first, so that the child ends on every return.
        let mut running = Self { child, pid, buffers: Buffers { hot: 0..0, cold: 0..0 } };
        let output = running.child.stdout.take();
        let (sender, receiver) = mpsc::channel();
        // A separate thread reads: a silent program would block this one. Killing the child ends the thread.
        std::thread::spawn(move || sender.send(output.and_then(Buffers::read)));
        let buffers = receiver.recv_timeout(START).ok().flatten();
        running.buffers = buffers
            .ok_or_else(|| failed(io::Error::other("it does not print the addresses of its buffers")))?;
        Ok(running)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
