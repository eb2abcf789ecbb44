//! Soar's profile run and placement: a stream's objects, their scores, and their pages' tiers.

use isotherm_core::{Nanos, Pages, TierId};
use isotherm_policies::soar::{ProfileInterval, place};

use crate::page_table::Locator;
use crate::replay::{Finished, Replay};
use crate::stream::Stream;
use crate::summary::{FastRows, NamedRange};

/// Interval of the profile run: Soar reads its counters once a second.
const INTERVAL: Nanos = Nanos::SECOND;

#[derive(Debug)]
struct Objects {
    of_page: Vec<u32>,
    pages: Vec<u64>,
}

/// A stream's objects, and the pages and score of each: the fast tier's size has no part in them.
#[derive(Debug)]
pub(crate) struct Profiled {
    objects: Objects,
    scored: Vec<(u64, f64)>,
}

impl Profiled {
    /// Profiles the stream.
    pub(crate) fn new(replay: &Replay<'_>) -> Self {
        let objects = Objects::of(replay.stream, replay.ranges);
        let scored = objects.pages.iter().copied().zip(scores(replay, &objects)).collect();
        Self { objects, scored }
    }
}

impl Objects {
    /// Groups pages by the names of their allocations, or each run of neighbouring pages without names.
    fn of(stream: &Stream, ranges: &[NamedRange]) -> Self {
        let of_page = if ranges.is_empty() { runs(stream) } else { named(stream, ranges) };
        let mut pages = vec![0; of_page.iter().max().map_or(0, |&last| last as usize + 1)];
        of_page.iter().for_each(|&object| pages[object as usize] += 1);
        Self { of_page, pages }
    }
}

fn runs(stream: &Stream) -> Vec<u32> {
    let (bytes, mut object) = (stream.page_size.bytes().0, 0);
    let follows = |before: (u32, u64), page: (u32, u64)| before.0 == page.0 && before.1 + bytes == page.1;
    let places = stream.pages.iter().enumerate();
    places
        .map(|(index, &page)| {
            object += u32::from(index > 0 && !follows(stream.pages[index - 1], page));
            object
        })
        .collect()
}

/// Groups pages by name; pages outside every range form one more object.
fn named(stream: &Stream, ranges: &[NamedRange]) -> Vec<u32> {
    let mut sorted: Vec<&NamedRange> = ranges.iter().collect();
    sorted.sort_by_key(|range| range.address);
    let mut names: Vec<&str> = sorted.iter().map(|range| range.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let bytes = stream.page_size.bytes().0;
    let object = |&(_, address): &(u32, u64)| {
        let first = sorted.partition_point(|range| range.address + range.bytes.0 <= address);
        let owner = sorted.get(first).filter(|range| range.address < address + bytes);
        let name = owner.and_then(|range| names.binary_search(&range.name.as_str()).ok());
        name.unwrap_or(names.len()) as u32
    };
    stream.pages.iter().map(object).collect()
}

/// Places everything in the fast tier and counts each object's loads.
struct Counting<'a> {
    objects: &'a Objects,
    loads: Vec<u64>,
}

impl Locator for Counting<'_> {
    fn serve(&mut self, _index: usize, _page: u32) -> u8 {
        TierId::FAST.0
    }

    fn stalled(&mut self, page: u32, store: bool, _stall: u64) {
        self.loads[self.objects.of_page[page as usize] as usize] += u64::from(!store);
    }
}

struct Placed {
    tiers: Vec<u8>,
    fast: FastRows,
}

impl Placed {
    fn new(tiers: Vec<u8>) -> Self {
        let mut fast = FastRows::new(tiers.len());
        let is_fast = |&(_, &tier): &(usize, &u8)| tier == TierId::FAST.0;
        tiers.iter().enumerate().filter(is_fast).for_each(|(page, _)| fast.enter(page));
        Self { tiers, fast }
    }
}

impl Locator for Placed {
    fn serve(&mut self, _index: usize, page: u32) -> u8 {
        self.tiers[page as usize]
    }

    fn fast_rows(&self) -> Option<&FastRows> {
        Some(&self.fast)
    }
}

/// Places the stream's objects in `fast` pages and the further tiers, and replays it.
pub(crate) fn run(replay: &Replay<'_>, fast: Pages) -> Finished {
    let Profiled { objects, scored } = replay.soar();
    let levels: Vec<Vec<u64>> = replay.levels(fast).iter().map(|pages| place(scored, pages.0)).collect();
    replay.placed(Placed::new(tiers(objects, &levels)))
}

/// Returns each page's tier: of an object, as many pages as the first level says are in the fast tier, as the
/// second says in it or the next one, and so on.
fn tiers(objects: &Objects, levels: &[Vec<u64>]) -> Vec<u8> {
    let mut placed = vec![0; objects.pages.len()];
    let tier = |&object: &u32| {
        let object = object as usize;
        placed[object] += 1;
        levels.iter().take_while(|level| level[object] < placed[object]).count() as u8
    };
    objects.of_page.iter().map(tier).collect()
}

/// Returns each object's score over the intervals of a run with all memory fast.
fn scores(replay: &Replay<'_>, objects: &Objects) -> Vec<f64> {
    let mut processor = replay.processor(Counting { objects, loads: vec![0; objects.pages.len()] });
    let interval = Nanos((INTERVAL.0 as f64 / replay.scale.time) as u64);
    let cycle = 1e9 / replay.profile.clock.frequency.max(1) as f64;
    let (mut scores, mut end, mut before) = (vec![0.0; objects.pages.len()], interval, (0, 0));
    while processor.run_block() {
        if processor.now() < end && !processor.ended() {
            continue;
        }
        end = processor.now() + interval;
        let tier = processor.tier(TierId::FAST);
        let now = (tier.load_stall_ps(), tier.load_busy_ps());
        let all: u64 = processor.locator.loads.iter().sum();
        let profile = ProfileInterval {
            stall: (now.0 - before.0) as f64 / 1000.0,
            amortised: (now.1 - before.1) as f64 / 1000.0 / all.max(1) as f64 / cycle,
        };
        before = now;
        for (score, loads) in scores.iter_mut().zip(&mut processor.locator.loads) {
            *score += profile.score(std::mem::take(loads) as f64 / all.max(1) as f64);
        }
    }
    scores
}

#[cfg(test)]
mod tests {
    use isotherm_core::Bytes;

    use super::*;

    fn stream(addresses: &[u64]) -> Stream {
        Stream {
            pages: addresses.iter().map(|&page| (0, page << 12)).collect(),
            threads: 1,
            ..Stream::default()
        }
    }

    #[test]
    fn objects_are_what_has_one_name() {
        let range = |name: &str, page: u64, pages: u64| NamedRange {
            process: 0,
            name: name.into(),
            address: page << 12,
            bytes: Bytes(pages << 12),
        };
        let ranges = [range("nodes", 0, 2), range("edges", 2, 1), range("nodes", 3, 1)];
        let objects = Objects::of(&stream(&[0, 1, 2, 3, 9]), &ranges);
        assert_eq!(objects.of_page, [1, 1, 0, 1, 2]);
        assert_eq!(objects.pages, [1, 3, 1]);
    }

    #[test]
    fn the_first_pages_of_an_object_that_spills_are_fast() {
        let objects = Objects { of_page: vec![0, 1, 1, 0, 1], pages: vec![2, 3] };
        assert_eq!(tiers(&objects, &[vec![0, 2]]), [1, 0, 0, 1, 1]);
        assert_eq!(tiers(&objects, &[vec![0, 2], vec![1, 3]]), [1, 0, 0, 2, 1], "of three tiers");
    }

    #[test]
    fn without_names_neighbours_are_one_object() {
        assert_eq!(Objects::of(&stream(&[3, 4, 7, 8, 9]), &[]).pages, [2, 3]);
    }
}
