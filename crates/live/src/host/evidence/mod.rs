//! How much the samples of a run tell: estimates with intervals.
//!
//! | question | module |
//! |---|---|
//! | how often is a page accessed, where windows see only its first touch | `rates` |
//! | which memory does nobody use | `idle` |
//! | which memory is beyond doubt hot or cold | `border` |
//! | and the hottest ones, which are touched sooner than windows can tell | `races` |
//! | which samples are kept for the run's end | `log` |
//! | how much memory takes a share of the accesses | `pages` |
//! | what is a ratio of accesses, and how far would another run be from it | `ratio` |

mod border;
mod idle;
mod log;
pub(crate) mod pages;
mod races;
mod rates;
mod ratio;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use isotherm_core::live_result::Estimate;
use isotherm_core::{Nanos, PageId, PageSize, TierId};
use isotherm_linux::process::Pid;
use isotherm_linux::source::{Access, Cause, Race, ScannedMapping, Untouched};

use super::tiered_memory::TieredMemory;
use idle::Idle;
use log::{Log, Seen};
use pages::{GROUPS, PageSamples};
use rates::{Rates, Standing};
use ratio::Observation;
pub(crate) use ratio::{Block, estimate};

/// The samples of a run.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    rates: Rates,
    log: Log,
    pages_in_chunk: u32,
    /// Part of an access that no whole one has been made of.
    rest: f64,
    idle: Idle,
    /// When settled memory is chosen next.
    next_choice: Nanos,
}

/// Most ranges of settled memory, and the shortest time between two choices.
const SETTLED: usize = 4096;
const SHORTEST_CHOICE: Nanos = Nanos(5 * Nanos::SECOND.0);

impl Evidence {
    /// Notes a sample of a page that was on `tier`; returns the accesses it stands for, as far as known yet.
    #[inline]
    pub(crate) fn saw(
        &mut self,
        time: Nanos,
        page: PageId,
        tier: TierId,
        access: &Access,
        memory: &TieredMemory,
    ) -> u64 {
        let (window, huge, alike) = match access.cause {
            Cause::Touched { exposed_ns } => {
                self.idle.touched(page.0 / memory.numbers.pages_in_chunk());
                if exposed_ns > 0 {
                    self.rates.touched(page, exposed_ns, access.weight);
                }
                (self.rates.window(), exposed_ns == 0, 1)
            }
            Cause::Region { alike } => (0.0, false, alike),
            _ => (0.0, false, 1),
        };
        let milliseconds = (time.0 / Nanos::MILLISECOND.0) as u32;
        let weight = access.weight;
        let seen = Seen { milliseconds, page, window: window as f32, weight, tier, huge, alike };
        self.log.push(seen);
        self.pages_in_chunk = memory.numbers.pages_in_chunk();
        // What is left over goes to the next one.
        self.rest += f64::from(weight) * self.standing(&seen).accesses;
        let whole = self.rest.floor();
        self.rest -= whole;
        whole as u64
    }

    fn standing(&self, seen: &Seen) -> Standing {
        let window = f64::from(seen.window);
        if seen.huge {
            self.rates.standing_in((seen.page.0 / self.pages_in_chunk) as usize, window)
        } else {
            self.rates.standing(seen.page, window)
        }
    }

    /// Notes how long pages were not touched.
    pub(crate) fn untouched(&mut self, window: &Untouched, memory: &TieredMemory) {
        // Elsewhere is memory that is not tiered.
        let Some(first) = memory.numbers.at(window.process, window.start) else { return };
        if !window.huge || window.pages != 0 {
            self.rates.closed(window.exposed);
        }
        self.idle.armed(first.0 / memory.numbers.pages_in_chunk(), u64::from(window.pages.count_ones()));
        if window.huge {
            let chunk = first.0 / memory.numbers.pages_in_chunk();
            return self.rates.huge(chunk as usize, window.pages == 0, window.exposed);
        }
        for at in (0..64).filter(|at| window.pages >> at & 1 == 1) {
            if let Some(page) =
                memory.numbers.at(window.process, window.start + at * PageSize::Base.bytes().0)
            {
                self.rates.untouched(page, window.exposed);
            }
        }
    }

    pub(crate) fn raced(&mut self, race: &Race) {
        self.rates.raced(race);
    }

    /// Returns the racers of each process: its list's number, and addresses.
    pub(crate) fn choose_racers(&mut self, memory: &TieredMemory) -> Vec<(Pid, u32, Vec<u64>)> {
        let numbers = &memory.numbers;
        // A window's pages are of 4 KiB: those of a race must be too.
        if numbers.pages_in_chunk() == 1 {
            return Vec::new();
        }
        let chosen = self.rates.choose_racers(|page| Some(numbers.address(page)?.0));
        let addresses =
            |pages: &[PageId]| pages.iter().map(|&page| numbers.address(page).map_or(0, |at| at.1)).collect();
        chosen.iter().map(|chosen| (chosen.process, chosen.list, addresses(&chosen.pages))).collect()
    }

    /// Notes what a scan of accessed bits found.
    pub(crate) fn scanned(&mut self, mappings: &[ScannedMapping], memory: &TieredMemory) {
        self.idle.scanned(mappings, memory);
    }

    /// Chooses the memory of each process that needs few windows, in the order of addresses, once in a pass.
    pub(crate) fn choose_settled(
        &mut self,
        now: Nanos,
        memory: &TieredMemory,
    ) -> BTreeMap<Pid, Vec<Range<u64>>> {
        if now < self.next_choice || self.rates.window() == 0.0 {
            return BTreeMap::new();
        }
        self.next_choice = now + self.rates.pass(now).max(SHORTEST_CHOICE);
        let (numbers, fast) = (&memory.numbers, memory.residency.capacity(TierId::FAST).0);
        let runs = self.rates.choose_settled(fast, numbers.pages_in_chunk(), &self.idle.pages, SETTLED);
        // Those without any are told so, too.
        let mut settled: BTreeMap<Pid, Vec<Range<u64>>> =
            numbers.processes().map(|process| (process, Vec::new())).collect();
        let bytes = memory.page_size.bytes().0;
        for run in runs {
            let mut first = run.start;
            while first < run.end {
                // Numbers are in the order of addresses within a chunk.
                let end = run.end.min(numbers.chunk_of(PageId(first)).end);
                if let Some((process, start)) = numbers.address(PageId(first)) {
                    let range = start..start + u64::from(end - first) * bytes;
                    settled.entry(process).or_default().push(range);
                }
                first = end;
            }
        }
        settled.values_mut().for_each(|ranges| ranges.sort_unstable_by_key(|range| range.start));
        settled
    }

    /// Returns the accesses on each tier, as the samples kept stand for them.
    pub(crate) fn hits(&self, tiers: usize, to: Nanos, memory: &TieredMemory) -> Vec<u64> {
        let mut hits = vec![0.0; tiers];
        self.each(memory, to, |tier, observation| hits[tier.index().min(tiers - 1)] += observation.weight);
        hits.into_iter().map(|hits| (hits * f64::from(self.log.every())).round() as u64).collect()
    }

    /// Estimates the mean over the accesses since `from` of a value of their tiers, from 0 to 1; `to` is now.
    /// `None` without samples.
    pub(crate) fn mean(
        &self,
        values: &[f64],
        (from, to): (Nanos, Nanos),
        memory: &TieredMemory,
    ) -> Option<Estimate> {
        let mut observations = Vec::new();
        self.each(memory, to, |tier, observation| {
            let Some(&value) = values.get(tier.index()) else { return };
            observations.extend(Observation { value, ..observation }.within(ms(from), ms(to)));
        });
        ratio::of_observations(&observations, ms(from), ms(to))
    }

    /// Returns the samples kept of each page, in the order of pages; `to` is now.
    pub(crate) fn pages(&self, to: Nanos, memory: &TieredMemory) -> Vec<PageSamples> {
        let mut samples = Vec::new();
        let every = f64::from(self.log.every());
        let group = ms(to) / GROUPS as f64;
        self.each(memory, to, |_, seen| {
            let middle = (seen.span.0 + seen.span.1) / 2.0;
            samples.push((seen.page, seen.weight * every, (middle / group) as usize));
        });
        let mut order: Vec<usize> = (0..samples.len()).collect();
        order.sort_unstable_by_key(|&at| (samples[at].0, at));
        let mut pages: Vec<PageSamples> = Vec::new();
        for at in order {
            let (page, accesses, group) = samples[at];
            if pages.last().is_none_or(|last| last.page != page) {
                pages.push(PageSamples { page, ..PageSamples::default() });
            }
            if let Some(last) = pages.last_mut() {
                last.add(at, group, accesses);
            }
        }
        pages
    }

    /// Passes on the samples kept until now, `to`, from the last one back: the tier and the time that each
    /// stands for.
    ///
    /// A sample of all accesses tells its own. A touch in a window stands for the page's accesses in the pass
    /// of windows around it: until the touch the page was where the touch found it, and from then on where
    /// the next touch finds it, or where it is now. Otherwise the first touch, after which a policy moves the
    /// page, would stand for a whole pass.
    fn each(&self, memory: &TieredMemory, to: Nanos, mut take: impl FnMut(TierId, Observation)) {
        let half = ms(self.rates.pass(to)) / 2.0;
        let mut next: HashMap<PageId, TierId> = HashMap::new();
        for seen in self.log.seen().iter().rev() {
            let standing = self.standing(seen);
            let time = f64::from(seen.milliseconds);
            let observation = Observation {
                span: (time, time),
                part: 1.0,
                alike: f64::from(seen.alike),
                page: seen.page.0,
                weight: f64::from(seen.weight) * standing.accesses,
                value: 0.0,
                variance: standing.variance,
                shared: standing.shared,
            };
            if seen.window == 0.0 {
                take(seen.tier, observation);
                continue;
            }
            let then = next.insert(seen.page, seen.tier).or_else(|| memory.residency.tier_of(seen.page));
            // A settled page is in one of so many passes.
            let half = half * f64::from(seen.weight);
            let spans = [(time - half, time), (time, time + half)];
            for (span, tier) in spans.into_iter().zip([seen.tier, then.unwrap_or(seen.tier)]) {
                take(tier, Observation { span, part: 0.5, weight: observation.weight / 2.0, ..observation });
            }
        }
    }

    /// Forgets the pages of a chunk.
    pub(crate) fn forget(&mut self, pages: Range<u32>) {
        let chunk = pages.start / pages.len().max(1) as u32;
        self.idle.forget(&pages);
        self.rates.forget(pages, chunk as usize);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rates.bytes() + self.log.bytes()
    }
}

fn ms(time: Nanos) -> f64 {
    time.0 as f64 / Nanos::MILLISECOND.0 as f64
}
