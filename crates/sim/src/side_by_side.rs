//! Several programs side by side on one fast tier, each under an engine of its own.
//!
//! Every program has the machine's cores and bandwidth to itself; they share fast memory alone. At each
//! division, a fixed time of the model apart, all programs wait for each other, and the fast memory of each
//! is set anew ([`Sharing`]). A program that has ended keeps its memory until all have ended.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

use isotherm_core::parameters::Scale;
use isotherm_core::{Nanos, PageId, Pages, SampleBatch, TierId};
use isotherm_machine::Profile;
use isotherm_policies::{Entry, Kind};
use isotherm_shares::{Claim, Curve, share};

use crate::error::SimulateError;
use crate::experiment::Input;
use crate::host::SimHost;
use crate::replay::{Finished, Replay};
use crate::watched::Watched;

/// Mean number of samples of a page after which all counts are halved, so that old heat fades: the live
/// host's.
const FULL: u64 = 16;

/// One of the programs.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Its accesses.
    pub input: &'a Input,
    /// Least fast memory that the others never take; counts under [`Sharing::Fair`] alone.
    pub protect: Pages,
    /// Most fast memory; counts under [`Sharing::Fair`] alone.
    pub limit: Pages,
    /// Weight of its slowdown; counts under [`Sharing::Fair`] alone.
    pub weight: f64,
    /// Divisions that pass before it starts.
    pub start: u32,
}

/// How programs come by fast memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// By [`isotherm_shares::share`], from what the engines have sampled.
    Fair,
    /// Each keeps what it has, and free memory is open to all: the machine without an allocator.
    FirstCome,
}

/// The machine that programs share.
#[derive(Debug, Clone, Copy)]
pub struct Shared<'a> {
    /// Its profile.
    pub profile: &'a Profile,
    /// Fast memory for all programs together.
    pub fast: Pages,
    /// Time between two divisions of it.
    pub interval: Nanos,
    /// Policy of each program's engine, with its default parameters.
    pub policy: &'static Entry,
    /// Divisors of scaled parameters.
    pub scale: Scale,
    /// The random generators' seed.
    pub seed: u64,
}

/// The result of one program.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Share of its accesses that the fast tier served.
    pub hit_ratio: f64,
    /// Its time divided by its time with all memory fast.
    pub slowdown: f64,
    /// Pages moved to the fast tier.
    pub promotions: u64,
    /// Fast memory at each division.
    pub fast: Vec<Pages>,
}

/// Replays programs side by side.
///
/// # Errors
/// A machine or a policy that cannot be simulated.
pub fn side_by_side(
    programs: &[Program<'_>],
    shared: &Shared<'_>,
    sharing: Sharing,
) -> Result<Vec<Share>, SimulateError> {
    let replays = programs
        .iter()
        .map(|program| {
            let Shared { profile, scale, seed, .. } = *shared;
            Replay::new(&program.input.stream, &program.input.ranges, profile, scale, seed, 1)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let table = Table {
        programs,
        shared,
        sharing,
        barrier: Barrier::new(programs.len()),
        over: AtomicBool::new(false),
        seats: programs.iter().map(|_| Mutex::new(Seat::default())).collect(),
    };
    let table = &table;
    std::thread::scope(|scope| {
        let run = |(index, (program, replay))| {
            scope.spawn(move || {
                // The others wait for this program at each division, whatever becomes of it.
                let ran = catch_unwind(AssertUnwindSafe(|| table.run(index, program, replay)));
                table.outlast(index);
                ran.unwrap_or_else(|panic| resume_unwind(panic))
            })
        };
        let threads: Vec<_> = programs.iter().zip(&replays).enumerate().map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// One program's place at the table: its claim, and the share that it gets.
#[derive(Debug, Default)]
struct Seat {
    claim: Option<Claim>,
    used: Pages,
    state: State,
    fast: Vec<Pages>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Waiting,
    Running,
    Ended,
}

struct Table<'a> {
    programs: &'a [Program<'a>],
    shared: &'a Shared<'a>,
    sharing: Sharing,
    barrier: Barrier,
    /// Whether all had ended at the last division.
    over: AtomicBool,
    seats: Vec<Mutex<Seat>>,
}

impl Table<'_> {
    fn seat(&self, index: usize) -> MutexGuard<'_, Seat> {
        self.seats[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, index: usize, program: &Program<'_>, replay: &Replay<'_>) -> Result<Share, SimulateError> {
        let Shared { policy: entry, interval, .. } = *self.shared;
        let Kind::Policy(build) = entry.kind else { return Err(SimulateError::Bound(entry.name)) };
        let scaled = replay.scaled(&entry.parameters())?;
        let all_fast = replay.fixed(true).end;
        for _ in 0..program.start {
            self.divide(index);
        }
        self.seat(index).state = State::Running;
        let first = self.divide(index);
        let policy = build(&scaled.parameters, &replay.setup(first.max(Pages(1))))?;
        let state = Heat { counts: vec![0; replay.stream.pages.len()], recent: 0 };
        let mut watched = Watched { policy, state, watch: Heat::take };
        let mut host = replay.host(first, &watched, &scaled);
        let mut next = interval;
        isotherm_core::run(&mut host, &mut watched, |host, watched| {
            while host.processor.now() >= next && !host.processor.ended() {
                next += interval;
                self.claim(index, program, host, &watched.state.counts);
                host.limit_fast(self.divide(index));
            }
        })?;
        self.claim(index, program, &host, &watched.state.counts);
        let time = Finished::of(&host.processor, None).end;
        Ok(Share {
            hit_ratio: host.processor.hits() as f64 / replay.stream.accesses.len().max(1) as f64,
            slowdown: time.0 as f64 / all_fast.0.max(1) as f64,
            promotions: host.migrations.promotions,
            fast: std::mem::take(&mut self.seat(index).fast),
        })
    }

    fn claim(&self, index: usize, program: &Program<'_>, host: &SimHost<'_>, counts: &[u32]) {
        let table = &host.processor.locator;
        let mapped = |page: &(usize, &u32)| table.tier_of(PageId(page.0 as u32)).is_some();
        let counts: Vec<u32> = counts.iter().enumerate().filter(mapped).map(|(_, &count)| count).collect();
        let used = table.used(TierId::FAST);
        let claim = Claim {
            mapped: Pages(counts.len() as u64),
            held: used,
            curve: Curve::of_counts(counts.into_iter()),
            ..self.unknown(program)
        };
        let mut seat = self.seat(index);
        (seat.claim, seat.used) = (Some(claim), used);
    }

    /// Returns the claim of a program whose memory is known and of whose accesses nothing is known.
    fn unknown(&self, program: &Program<'_>) -> Claim {
        let pages = Pages(program.input.stream.pages.len() as u64);
        let tiers = &self.shared.profile.tiers;
        let latency = |tier: usize| tiers[tier].latency.0.max(1) as f64;
        Claim {
            protect: program.protect,
            limit: program.limit,
            weight: program.weight,
            slow: latency(tiers.len() - 1) / latency(0),
            ..Claim::new(pages, Curve::uniform(pages))
        }
    }

    /// Waits for all programs and divides the fast memory; returns this one's.
    fn divide(&self, index: usize) -> Pages {
        if self.barrier.wait().is_leader() {
            let mut seats: Vec<_> = (0..self.seats.len()).map(|index| self.seat(index)).collect();
            self.over.store(seats.iter().all(|seat| seat.state == State::Ended), Relaxed);
            let shares = self.shares(&seats);
            seats.iter_mut().zip(shares).for_each(|(seat, share)| seat.fast.push(share));
        }
        self.barrier.wait();
        self.seat(index).fast.last().copied().unwrap_or_default()
    }

    fn shares(&self, seats: &[MutexGuard<'_, Seat>]) -> Vec<Pages> {
        let fast = self.shared.fast;
        match self.sharing {
            Sharing::Fair => {
                let claim = |(seat, program): (&MutexGuard<'_, Seat>, &Program<'_>)| {
                    let claim = seat.claim.clone().unwrap_or_else(|| self.unknown(program));
                    // A program that waits gets nothing, and one that has ended nothing more.
                    match seat.state {
                        State::Running => claim,
                        State::Waiting | State::Ended => Claim { limit: claim.held, ..claim },
                    }
                };
                share(fast, &seats.iter().zip(self.programs).map(claim).collect::<Vec<_>>())
            }
            Sharing::FirstCome => {
                let running = seats.iter().filter(|seat| seat.state == State::Running).count() as u64;
                let free = fast - seats.iter().map(|seat| seat.used).sum();
                let open = |seat: &MutexGuard<'_, Seat>| match seat.state {
                    State::Running => seat.used + Pages(free.0 / running),
                    State::Waiting | State::Ended => seat.used,
                };
                seats.iter().map(open).collect()
            }
        }
    }

    /// Takes part in the divisions until all programs have ended.
    fn outlast(&self, index: usize) {
        self.seat(index).state = State::Ended;
        while !self.over.load(Relaxed) {
            self.divide(index);
        }
    }
}

/// The samples of each page that a policy was given.
struct Heat {
    counts: Vec<u32>,
    /// Samples since the counts were last halved.
    recent: u64,
}

impl Heat {
    fn take(&mut self, batch: &SampleBatch) {
        let pages = batch.samples.iter().map(|sample| sample.page);
        for page in pages.chain(batch.faults.iter().map(|fault| fault.page)) {
            self.counts[page.index()] += 1;
            self.recent += 1;
        }
        if self.recent > FULL * self.counts.len() as u64 {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.recent = 0;
        }
    }
}
