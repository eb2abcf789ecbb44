//! The hot set of a run, from the heat of its pages.

use isotherm_core::live_result::{HotPages, HotSet, MemoryRange};
use isotherm_core::{Bytes, PageId, TierId};

use super::poisson_mixture;
use crate::host::tally::Heat;
use crate::host::tiered_memory::TieredMemory;

/// Maximum number of listed ranges of the fast tier, the hottest first.
const RANGES: usize = 1000;
/// Maximum number of listed ranges of hot pages, in address order.
const HOT_RANGES: usize = 10_000;

pub(super) fn hot_set(heat: &Heat, memory: &TieredMemory) -> HotSet {
    let mut fast_ranges = ranges(heat, memory, |_, tier| tier == TierId::FAST);
    let page_bytes = memory.page_size.bytes();
    fast_ranges.sort_by_key(|range| std::cmp::Reverse(range.accesses * page_bytes.0 / range.bytes.0));
    fast_ranges.truncate(RANGES);
    HotSet { shares: heat.shares(page_bytes), hot: hot_pages(heat, memory), fast_ranges }
}

fn hot_pages(heat: &Heat, memory: &TieredMemory) -> HotPages {
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
    HotPages { at_least, bytes, accesses: hot as f64 / all.max(1) as f64, ranges }
}

/// Returns runs of adjacent mapped pages that are `wanted`, in address order of each 2 MiB.
fn ranges(heat: &Heat, memory: &TieredMemory, wanted: impl Fn(PageId, TierId) -> bool) -> Vec<MemoryRange> {
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
