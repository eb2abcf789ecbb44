//! The hot set of a run, from the heat of its pages.

use isotherm_core::live_result::{HotPages, HotSet, HotShare, MemoryRange};
use isotherm_core::{Bytes, Nanos, PageId, TierId};

use super::poisson_mixture;
use crate::host::evidence::pages::{GROUPS, PageSamples, for_share, jackknife};
use crate::host::tally::{Heat, Tally};
use crate::host::tiered_memory::TieredMemory;

/// Shares of the accesses whose memory is reported.
const SHARES: [f64; 4] = [0.5, 0.9, 0.95, 0.99];
/// The largest ratio of the bounds of memory with which it is reported.
const WIDEST: f64 = 2.0;

/// Maximum number of listed ranges of the fast tier, the hottest first.
const RANGES: usize = 1000;
/// Maximum number of listed ranges of hot pages, in address order.
const HOT_RANGES: usize = 10_000;

pub(super) fn hot_set(tally: &Tally, memory: &TieredMemory, now: Nanos) -> HotSet {
    let heat = &tally.heat;
    let samples = tally.evidence.pages(now, memory);
    let mut fast_ranges = ranges(heat, memory, |_, tier| tier == TierId::FAST);
    let page_bytes = memory.page_size.bytes();
    fast_ranges.sort_by_key(|range| std::cmp::Reverse(range.accesses * page_bytes.0 / range.bytes.0));
    fast_ranges.truncate(RANGES);
    HotSet { shares: shares(&samples, memory), hot: hot_pages(heat, &samples, memory), fast_ranges }
}

/// Returns the memory that takes each of [`SHARES`] of the accesses, where the bounds of it are near enough.
fn shares(samples: &[PageSamples], memory: &TieredMemory) -> Vec<HotShare> {
    let bytes = |pages: f64| Bytes((pages.ceil() * memory.page_size.bytes().0 as f64) as u64);
    let share = |accesses| {
        let (fewest, most) = for_share(samples, memory.most.0 as usize, accesses)?;
        (most <= WIDEST * fewest.max(1.0)).then(|| HotShare {
            accesses,
            bytes: bytes((fewest + most) / 2.0),
            low_bytes: bytes(fewest),
            high_bytes: bytes(most),
        })
    };
    SHARES.into_iter().filter_map(share).collect()
}

fn hot_pages(heat: &Heat, samples: &[PageSamples], memory: &TieredMemory) -> HotPages {
    let mut counts = Vec::new();
    memory.residency.walk(PageId(0), usize::MAX, |page, _| counts.push(heat.of(page)));
    let Some(at_least) = poisson_mixture::border(counts.iter().copied()) else {
        return HotPages::default();
    };
    let mut ranges = ranges(heat, memory, |page, _| heat.of(page) >= at_least);
    let bytes = Bytes(ranges.iter().map(|range| range.bytes.0).sum());
    let hot: u64 = ranges.iter().map(|range| range.accesses).sum();
    let all: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    ranges.truncate(HOT_RANGES);
    let accesses = hot as f64 / all.max(1) as f64;
    let whole = (memory.most.0 << memory.page_size.shift()) as f64;
    let (part, share) = errors(samples, memory.most.0);
    let [low_bytes, high_bytes] =
        [-1.0, 1.0].map(|sign| Bytes((bytes.0 as f64 * (1.0 + sign * part)).clamp(0.0, whole) as u64));
    let [low_accesses, high_accesses] = [-1.0, 1.0].map(|sign| (accesses + sign * share).clamp(0.0, 1.0));
    if part > 1.0 {
        // Which pages are hot depends on the part of the run that is looked at.
        return HotPages::default();
    }
    HotPages { at_least, bytes, low_bytes, high_bytes, accesses, low_accesses, high_accesses, ranges }
}

/// Returns the relative error of the hot pages' memory, and the error of their share of the accesses.
fn errors(samples: &[PageSamples], mapped: u64) -> (f64, f64) {
    let never = mapped as usize - samples.len().min(mapped as usize);
    let found = |group: usize| {
        let count = |page: &PageSamples| page.without(group).round() as u32;
        let unseen = std::iter::repeat_n(0, never);
        let border = poisson_mixture::border(samples.iter().map(count).chain(unseen)).unwrap_or(u32::MAX);
        let hot = samples.iter().filter(|page| count(page) >= border);
        let (pages, accesses) =
            hot.fold((0.0, 0.0), |(pages, sum), page| (pages + 1.0, sum + page.without(group)));
        let all: f64 = samples.iter().map(|page| page.without(group)).sum();
        (pages, accesses / all.max(f64::MIN_POSITIVE))
    };
    let found: [(f64, f64); GROUPS] = std::array::from_fn(found);
    let mean = found.iter().map(|found| found.0).sum::<f64>() / GROUPS as f64;
    (jackknife(&found.map(|found| found.0)) / mean.max(1.0), jackknife(&found.map(|found| found.1)))
}

/// Returns runs of adjacent mapped pages that are `wanted`, in address order of each 2 MiB.
pub(in crate::host) fn ranges(
    heat: &Heat,
    memory: &TieredMemory,
    wanted: impl Fn(PageId, TierId) -> bool,
) -> Vec<MemoryRange> {
    let bytes = memory.page_size.bytes();
    let mut ranges: Vec<MemoryRange> = Vec::new();
    memory.residency.walk(PageId(0), usize::MAX, |page, tier| {
        let Some((process, start)) = memory.numbers.address(page).filter(|_| wanted(page, tier)) else {
            return;
        };
        let accesses = u64::from(heat.of(page));
        match ranges.last_mut() {
            Some(last) if last.process == process.0 && last.start + last.bytes.0 == start => {
                last.bytes += bytes;
                last.accesses += accesses;
            }
            _ => ranges.push(MemoryRange { process: process.0, start, bytes, accesses }),
        }
    });
    ranges
}
