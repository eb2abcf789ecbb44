//! Measures the kernel's part of tiering: faults, arming, copies, moves.

use std::io;

use isotherm_core::{MoveStatus, Nanos};
use isotherm_linux::memory::mover::{Mover, MoverOptions, PageMove, Shape};
use isotherm_linux::memory::nodes::{Kernel, MovePages};
use isotherm_linux::process::Pid;
use isotherm_linux::sys::mmap::BoundMemory;
use isotherm_linux::{LinuxError, clock};

use super::memory::Arena;
use super::pattern::Random;
use super::{Numbers, Unit};

const PAGE_BYTES: usize = 4096;
const PAGE_WORDS: usize = PAGE_BYTES / 8;
/// Pages that faults, arming and copies are measured on.
const PAGES: usize = 8192;
/// Pages that are moved, and calls for one page.
const BATCH: usize = 512;
const CALLS: usize = 32;
/// Repetitions in a round.
const REPETITIONS: usize = 3;

/// Memory in base pages, touched in random order.
pub(super) struct Costs {
    memory: Option<BoundMemory>,
    order: Vec<usize>,
}

fn call(name: &'static str) -> impl Fn(io::Error) -> LinuxError {
    move |error| LinuxError::Call { call: name, error }
}

impl Costs {
    pub(super) fn new() -> Result<Self, LinuxError> {
        let memory = BoundMemory::in_base_pages(PAGES * PAGE_BYTES).map_err(call("mmap"))?;
        Ok(Self { memory: Some(memory), order: shuffled(PAGES) })
    }

    /// Measures every cost some times. Copies go from the arena `from` to the arena `to`. `tiers` are a node
    /// of the fast and one of the slow tier, where there are two.
    pub(super) fn round(
        &mut self,
        numbers: &mut Numbers,
        (from, to): (&mut Arena, &mut Arena),
        tiers: Option<(u32, u32)>,
    ) -> Result<(), LinuxError> {
        let Some(memory) = self.memory.take() else { return Ok(()) };
        let (mut memory, order) = (memory, &self.order);
        write_each(&mut memory, order);
        let (mut faults, mut armed) = (Vec::new(), Vec::new());
        for _ in 0..REPETITIONS {
            let plain = write_each(&mut memory, order);
            memory.share_once().map_err(call("fork"))?;
            faults.push(write_each(&mut memory, order) - plain);
            let time;
            (memory, time) = memory.arm().map_err(call("mprotect"))?;
            armed.push(time.0 as f64 / PAGES as f64);
        }
        let copies: Vec<f64> = (0..REPETITIONS).map(|_| copy(from, to, order)).collect();
        numbers.add("costs.fault", Unit::Nanoseconds, "writes that only restore write access", faults);
        numbers.add("costs.arm_page", Unit::Nanoseconds, "mprotect of pages, its flush included", armed);
        let copy_time = copies.iter().map(|rate| PAGE_BYTES as f64 / rate).fold(f64::INFINITY, f64::min);
        let how = if tiers.is_some() {
            "one thread, pages of 4 KiB, slow tier to fast"
        } else {
            "one thread, pages of 4 KiB within the one tier"
        };
        numbers.add("costs.copy_bandwidth", Unit::Gigabytes, how, copies);
        let moved = moves(&mut memory, tiers, copy_time);
        self.memory = Some(memory);
        match moved {
            Ok((calls, pages)) => {
                let how = "move_pages of one page that is in place: a lower bound";
                numbers.add("costs.move_call", Unit::Nanoseconds, how, calls);
                match pages {
                    Some(pages) => {
                        let how = "512 pages, as the mover moves them, less a call and the copies";
                        numbers.add("costs.move_page", Unit::Nanoseconds, how, pages);
                    }
                    None => numbers.lack("costs.move_page", "it needs memory on two tiers".into()),
                }
            }
            Err(error) => {
                for path in ["costs.move_call", "costs.move_page"] {
                    numbers.lack(path, format!("move_pages: {error}"));
                }
            }
        }
        Ok(())
    }
}

/// Returns the numbers below `count` in an order that no prefetcher follows.
fn shuffled(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut random = Random::default();
    (1..count).rev().for_each(|index| order.swap(index, random.below(index + 1)));
    order
}

/// Writes to each page and returns the nanoseconds that one took of this thread's processor time.
fn write_each(memory: &mut BoundMemory, order: &[usize]) -> f64 {
    let words = memory.words();
    let start = clock::thread_cpu();
    order.iter().for_each(|page| words[page * PAGE_WORDS] += 1);
    (clock::thread_cpu() - start).0 as f64 / order.len() as f64
}

/// Copies pages and returns the bandwidth in GB/s.
fn copy(from: &mut Arena, to: &mut Arena, order: &[usize]) -> f64 {
    let (from, to) = (from.used_words(), to.used_words());
    let pages = (from.len().min(to.len()) / PAGE_WORDS).max(1);
    // Spread over all of the memory, so that caches hold none of them.
    let step = (pages / order.len()).max(1);
    let start = clock::monotonic();
    for page in order {
        let at = page * step % pages * PAGE_WORDS;
        let end = (at + PAGE_WORDS).min(from.len()).min(to.len());
        to[at..end].copy_from_slice(&from[at..end]);
    }
    let time = (clock::monotonic() - start).0 as f64;
    (order.len() * PAGE_BYTES) as f64 / time
}

type Moves = (Vec<f64>, Option<Vec<f64>>);

/// Returns the nanoseconds of a call for one page in place and, between two tiers, of each page of a call for
/// many without its copy.
fn moves(memory: &mut BoundMemory, tiers: Option<(u32, u32)>, copy: f64) -> io::Result<Moves> {
    let start = memory.words().as_ptr().addr() as u64;
    let addresses: Vec<u64> = (0..BATCH as u64).map(|page| start + page * PAGE_BYTES as u64).collect();
    let mut status = [0];
    let here = Pid(0);
    Kernel.move_pages(here, &addresses[..1], None, &mut status, false)?;
    let place = status;
    let calls: io::Result<Vec<f64>> = (0..REPETITIONS)
        .map(|_| {
            let start = clock::monotonic();
            for _ in 0..CALLS {
                Kernel.move_pages(here, &addresses[..1], Some(&place), &mut status, false)?;
            }
            Ok((clock::monotonic() - start).0 as f64 / CALLS as f64)
        })
        .collect();
    let calls = calls?;
    let Some((fast, slow)) = tiers else { return Ok((calls, None)) };
    let call = calls.iter().copied().fold(f64::INFINITY, f64::min);
    let mut mover = Mover::new(Kernel, MoverOptions::default());
    let mut to = |node: u32| -> io::Result<Nanos> {
        let page = |&address: &u64| PageMove { address, shape: Shape::Base, node };
        let (moves, mut statuses): (Vec<PageMove>, _) = (addresses.iter().map(page).collect(), Vec::new());
        let start = clock::monotonic();
        let own = Pid(std::process::id());
        mover.step(start, own, &moves, &mut statuses, &mut |_, _| false).map_err(io::Error::other)?;
        let time = clock::monotonic() - start;
        match statuses.iter().find(|&&status| status != MoveStatus::Moved) {
            Some(status) => Err(io::Error::other(format!("a page was not moved: {status:?}"))),
            None => Ok(time),
        }
    };
    to(slow)?;
    let mut pages = Vec::new();
    for _ in 0..REPETITIONS {
        for node in [fast, slow] {
            pages.push((to(node)?.0 as f64 - call) / BATCH as f64 - copy);
        }
    }
    Ok((calls, Some(pages)))
}

#[cfg(test)]
mod tests {
    use isotherm_core::Bytes;

    use super::*;

    #[test]
    fn an_order_holds_each_page_once() {
        let mut order = shuffled(1000);
        let near = order.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 4).count();
        assert!(near < 30, "{near} neighbours");
        order.sort_unstable();
        assert_eq!(order, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn costs_of_this_machine_are_plausible_and_what_needs_two_tiers_is_left_out() {
        let arena = || Arena::new(Bytes(64 << 20), None).expect("memory");
        let (mut from, mut to) = (arena(), arena());
        from.used_words()[0] = 77;
        let mut numbers = Numbers::default();
        let mut costs = Costs::new().expect("memory");
        costs.round(&mut numbers, (&mut from, &mut to), None).expect("measured");
        let of = |path: &str| {
            let found = numbers.found.iter().find(|number| number.path == path);
            found.map(|number| number.series.value()).unwrap_or_else(|| panic!("{path}"))
        };
        // A fault takes longer than writing to memory and less than reading a disk.
        assert!((100.0..100_000.0).contains(&of("costs.fault")), "{}", of("costs.fault"));
        assert!((1.0..100_000.0).contains(&of("costs.arm_page")));
        assert!((0.05..200.0).contains(&of("costs.copy_bandwidth")));
        assert_eq!(to.used_words()[0], 77, "it was copied");
        assert!(numbers.lacking.iter().any(|(path, why)| path == "costs.move_page" && !why.is_empty()));
    }
}
