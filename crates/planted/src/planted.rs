//! The program with planted hot pages.
//!
//! Each word holds a tag of its place in the upper 48 bits and the number of its writes in the lower 16. An
//! operation picks a page (a hot one with the given probability) and a word of it, checks the tag, adds the
//! word to the checksum and, every other time, writes it. So a lost, misplaced or torn word is found, at once
//! or by the count of writes at the end, and the checksum depends only on the seed and the number of
//! operations.
//!
//! The report is text, one item per line: `range START END` (hexadecimal addresses), `hot PHASE INDEX...`
//! (pages counted from START, for phase 0 and, with `--move-after`, phase 1), `ready NANOSECONDS` and `moved
//! NANOSECONDS` (`CLOCK_MONOTONIC`; the latter is appended when it happens), `ended NANOSECONDS`. The file
//! appears whole, with `ready`.
//!
//! Laps, of the first thread, are lines too: operations so far, `CLOCK_MONOTONIC` and the thread's processor
//! time in nanoseconds.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use crate::arguments::{Arguments, Limit};
use crate::memory::{Kind, Mapping, PAGE, WORDS, fork, monotonic, thread_cpu, wait};
use crate::random::{Random, mix};
use crate::{Failure, ensure};

/// Bits of a word that count writes.
const COUNT: u64 = 0xffff;

/// Operations between two lines of the laps.
const LAP: u64 = 1 << 14;

struct Plan {
    threads: usize,
    seed: u64,
    /// Probability of a hot access in units of 2^-32.
    share: u64,
    limit: Limit,
    move_after: Option<Limit>,
    /// Every page in the order hot, cold, and the number of hot ones, per phase.
    phases: Vec<Vec<u32>>,
    hot: usize,
    read_only: bool,
}

/// Forked processes that share the filled memory.
struct Sharers {
    count: u64,
    /// A byte in it releases one of them.
    leash: io::PipeWriter,
}

impl Sharers {
    fn fork(memory: &Mapping, count: u64) -> Result<Self, Failure> {
        let (mut reader, leash) = io::pipe()?;
        for _ in 0..count {
            fork(|| {
                let told = reader.read_exact(&mut [0]).is_ok();
                told && memory.words().iter().enumerate().all(|(at, word)| word.load(Relaxed) == tag(at))
            })?;
        }
        Ok(Self { count, leash })
    }

    /// Lets them check their memory, and fails unless it is as they got it.
    fn check(mut self) -> Result<(), Failure> {
        for _ in 0..self.count {
            self.leash.write_all(&[0])?;
            let (process, right) = wait()?;
            ensure(right, || format!("planted: the memory of process {process} has changed"))?;
        }
        Ok(())
    }
}

struct Done {
    operations: u64,
    writes: u64,
    checksum: u64,
}

pub(crate) fn run(arguments: &mut Arguments) -> Result<(), Failure> {
    let size = arguments.size("size", 64 << 20)?;
    let kind = arguments.text("memory").unwrap_or_else(|| "ordinary".into());
    let kind = Kind::parse(&kind)
        .ok_or_else(|| Failure::Usage(format!("--memory: '{kind}' is not a right value")))?;
    let memory = Mapping::of_kind(&kind, size)?;
    let contiguous = match arguments.text("layout").as_deref() {
        None | Some("scattered") => false,
        Some("contiguous") => true,
        Some(other) => return Err(Failure::Usage(format!("--layout: '{other}' is not a right value"))),
    };
    advise_pages(&memory, arguments.text("pages").as_deref())?;
    let own_mapping = arguments.flag("own-mapping");
    let report = arguments.text("report");
    let laps = arguments.text("laps");
    let final_check = !arguments.flag("skip-final-check");
    let final_idle = Duration::from_secs(arguments.number("final-idle", 0)?);
    let children = arguments.number("children", 0)?;
    let plan = plan(arguments, memory.pages(), contiguous)?;
    arguments.finish()?;

    if own_mapping && plan.hot < memory.pages() {
        if !contiguous {
            return Err(Failure::Usage("--own-mapping needs --layout contiguous".into()));
        }
        for phase in &plan.phases {
            // Advice kept in the mapping's flags splits it; this one changes only core dumps.
            memory.advise(phase[0] as usize, plan.hot, libc::MADV_DONTDUMP)?;
        }
    }
    fill(&memory);
    let sharers = Sharers::fork(&memory, children)?;
    if let Some(file) = &report {
        write_report(file, &memory, &plan)?;
    }
    say_started()?;
    let mut laps = laps.map(fs::File::create).transpose()?.map(BufWriter::new);
    let done = work(&memory, &plan, report.as_deref(), laps.as_mut())?;
    if let Some(file) = &report {
        append(file, &format!("ended {}\n", monotonic()))?;
    }
    std::thread::sleep(final_idle);
    if final_check {
        check(&memory, done.writes)?;
    }
    sharers.check()?;
    println!("planted: operations {} checksum {:016x}", done.operations, done.checksum);
    Ok(())
}

/// Tells the lab that all memory is present, so that its binding to a node ends.
pub(crate) fn say_started() -> Result<(), Failure> {
    let Some(file) = std::env::var_os("ISOTHERM_LAB_STARTED") else { return Ok(()) };
    fs::write(&file, "")?;
    // The guest then removes the file.
    while std::path::Path::new(&file).exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn advise_pages(memory: &Mapping, pages: Option<&str>) -> Result<(), Failure> {
    let advice = match pages {
        None | Some("default") => return Ok(()),
        Some("base") => libc::MADV_NOHUGEPAGE,
        Some("huge") => libc::MADV_HUGEPAGE,
        Some(other) => return Err(Failure::Usage(format!("--pages: '{other}' is not a right value"))),
    };
    Ok(memory.advise(0, memory.pages(), advice)?)
}

fn plan(arguments: &mut Arguments, pages: usize, contiguous: bool) -> Result<Plan, Failure> {
    let limit = arguments.limit()?;
    let move_after = match arguments.text("move-after") {
        None => None,
        Some(text) => {
            let number =
                text.parse().map_err(|_| Failure::Usage(format!("--move-after: '{text}' is no number")))?;
            Some(match limit {
                Limit::Time(_) => Limit::Time(Duration::from_secs(number)),
                Limit::Operations(_) => Limit::Operations(number),
            })
        }
    };
    let seed = arguments.number("seed", 1)?;
    let threads = arguments.number("threads", 1)?.clamp(1, 4096) as usize;
    let hot = ((pages as f64 * arguments.share("hot", 0.1)?).round() as usize).clamp(1, pages);
    let share = (arguments.share("share", 0.9)? * 4_294_967_296.0) as u64;
    let mut order: Vec<u32> = (0..pages as u32).collect();
    if !contiguous {
        Random::new(seed).shuffle(&mut order);
    }
    let phases = (0..if move_after.is_some() { 2 } else { 1 })
        .map(|phase| {
            // Contiguous: a quarter and three quarters through the cold pages. Scattered: half of the order
            // apart, so that up to half of the pages may be hot and none twice.
            let quarter = (pages - hot) / 4;
            let mut order = order.clone();
            order.rotate_left(if contiguous { quarter + phase * 2 * quarter } else { phase * pages / 2 });
            order
        })
        .collect();
    let read_only = arguments.flag("read-only");
    Ok(Plan { threads, seed, share, limit, move_after, phases, hot, read_only })
}

/// Returns the upper bits of the word.
fn tag(word: usize) -> u64 {
    mix(word as u64 + 1) & !COUNT
}

fn fill(memory: &Mapping) {
    for (at, word) in memory.words().iter().enumerate() {
        word.store(tag(at), Relaxed);
    }
}

/// Runs all threads and sums up their work.
fn work(
    memory: &Mapping,
    plan: &Plan,
    report: Option<&str>,
    mut laps: Option<&mut BufWriter<fs::File>>,
) -> Result<Done, Failure> {
    let start = Instant::now();
    let moved = Mutex::new(report);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads)
            .map(|thread| {
                let (moved, laps) = (&moved, laps.take());
                scope.spawn(move || Worker { memory, plan, thread, start }.run(moved, laps))
            })
            .collect();
        threads.into_iter().map(ScopedJoinHandle::join).collect()
    });
    let mut total = Done { operations: 0, writes: 0, checksum: 0 };
    for outcome in outcomes {
        let done = outcome.map_err(|_| Failure::Wrong("a thread panicked".into()))??;
        total.operations += done.operations;
        total.writes += done.writes;
        total.checksum = mix(total.checksum ^ done.checksum);
    }
    Ok(total)
}

/// One of n threads; only it uses every n-th page.
struct Worker<'a> {
    memory: &'a Mapping,
    plan: &'a Plan,
    thread: usize,
    start: Instant,
}

impl Worker<'_> {
    fn run(
        &self,
        moved: &Mutex<Option<&str>>,
        mut laps: Option<&mut BufWriter<fs::File>>,
    ) -> Result<Done, Failure> {
        let mut random = Random::new(mix(self.plan.seed ^ ((self.thread as u64) << 40)));
        let mut done = Done { operations: 0, writes: 0, checksum: 0 };
        let end = self.part(self.plan.limit);
        let turn = self.plan.move_after.map(|limit| self.part(limit));
        for (phase, order) in self.plan.phases.iter().enumerate() {
            let limit = if phase == 0 { turn.unwrap_or(end) } else { end };
            if phase == 1
                && let Some(file) = moved.lock().ok().and_then(|mut file| file.take())
            {
                append(file, &format!("moved {}\n", monotonic()))?;
            }
            let [hot, cold] = self.own(order);
            while limit.goes_on(self.start, done.operations) && end.goes_on(self.start, done.operations) {
                self.operate(&hot, &cold, &mut random, &mut done)?;
                if let Some(file) = &mut laps
                    && done.operations.is_multiple_of(LAP)
                {
                    writeln!(file, "{} {} {}", done.operations, monotonic(), thread_cpu())?;
                }
            }
        }
        Ok(done)
    }

    /// Returns this thread's part of all operations.
    fn part(&self, limit: Limit) -> Limit {
        let threads = self.plan.threads as u64;
        match limit {
            Limit::Time(_) => limit,
            Limit::Operations(all) => {
                Limit::Operations(all / threads + u64::from((self.thread as u64) < all % threads))
            }
        }
    }

    /// Returns this thread's hot and cold pages, the same pages in all phases. A thread that lacks one kind
    /// uses the other.
    fn own(&self, order: &[u32]) -> [Vec<u32>; 2] {
        let own = |page: &&u32| **page as usize % self.plan.threads == self.thread;
        let (hot, cold) = order.split_at(self.plan.hot);
        [hot, cold].map(|pages| pages.iter().filter(own).copied().collect())
    }

    #[inline]
    fn operate(
        &self,
        hot: &[u32],
        cold: &[u32],
        random: &mut Random,
        done: &mut Done,
    ) -> Result<(), Failure> {
        done.operations += 1;
        let draw = random.next();
        let wanted = (draw & 0xffff_ffff) < self.plan.share;
        let pages = if (wanted && !hot.is_empty()) || cold.is_empty() { hot } else { cold };
        if pages.is_empty() {
            return Ok(());
        }
        let page = pages[random.below(pages.len())] as usize;
        let at = page * WORDS + (draw >> 33) as usize % WORDS;
        let word: &AtomicU64 = &self.memory.words()[at];
        let value = word.load(Relaxed);
        ensure(value & !COUNT == tag(at), || {
            format!("planted: page {page} word {} holds {value:#x}, tag {:#x}", at % WORDS, tag(at))
        })?;
        done.checksum = done.checksum.rotate_left(5).wrapping_add(value);
        if !self.plan.read_only && draw >> 32 & 1 == 1 && value & COUNT < COUNT {
            word.store(value + 1, Relaxed);
            done.writes += 1;
        }
        Ok(())
    }
}

/// Fails unless all words have their tags and were written `writes` times in all.
fn check(memory: &Mapping, writes: u64) -> Result<(), Failure> {
    let mut found = 0;
    for (at, word) in memory.words().iter().enumerate() {
        let value = word.load(Relaxed);
        ensure(value & !COUNT == tag(at), || {
            format!("planted: at the end, page {} holds {value:#x}", at / WORDS)
        })?;
        found += value & COUNT;
    }
    ensure(found == writes, || format!("planted: {writes} writes made, {found} found in memory"))
}

fn write_report(file: &str, memory: &Mapping, plan: &Plan) -> Result<(), Failure> {
    let start = memory.address();
    let mut text = format!("range {start:x} {:x}\n", start + memory.pages() * PAGE);
    for (phase, order) in plan.phases.iter().enumerate() {
        let mut hot = order[..plan.hot].to_vec();
        hot.sort_unstable();
        let _ = write!(text, "hot {phase}");
        for page in hot {
            let _ = write!(text, " {page}");
        }
        text.push('\n');
    }
    let _ = writeln!(text, "ready {}", monotonic());
    // Renamed into place, so that a reader that waits for the file finds it whole.
    let part = format!("{file}.part");
    fs::write(&part, text)?;
    Ok(fs::rename(part, file)?)
}

fn append(file: &str, line: &str) -> Result<(), Failure> {
    Ok(fs::OpenOptions::new().append(true).open(file)?.write_all(line.as_bytes())?)
}
