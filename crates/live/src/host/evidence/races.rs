//! The rates of the hottest pages, from races among them.
//!
//! Problem: the hottest pages are touched sooner than a window can tell ([`isotherm_linux::hint_faults`]):
//! the time until a touch is then a delay d of arming and telling, not 1 / r. In a race the racers are armed
//! at the same time, and page i of those armed is touched next with probability r_i / sum of r (Luce's
//! choice; Plackett-Luce for the pages touched one after another).
//!
//! Approach: maximum likelihood of races and times together, by Hunter's fixed point ("MM algorithms for
//! generalized Bradley-Terry models", 2004). Races tell rates up to a factor; the times of pages that are
//! touched late enough tie them to the clock:
//!
//! ```text
//! r_i = (won_i + n_i) / (offered_i + e_i - n_i d)
//!     won_i: races that page i was first in; offered_i: sum over races with page i armed of 1 / sum of r
//!     n_i: touches in windows, and e_i: time that page i was armed in windows until then, since it races;
//!     both 0 where e_i / n_i is below LATE d
//! all r times c, c = sum of n_i / sum of r_i (e_i - n_i d)
//! d = mean over the hottest quarter of e / n - 1 / r; 0 where their mean is below APART medians
//! ```
//!
//! Racers that are all alike tell no delay: any d would do, with rates to match.
//!
//! Times from before a page raced do not count: a page may race because it was touched soon by luck.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;

use isotherm_core::{Nanos, PageId};
use isotherm_linux::process::Pid;
use isotherm_linux::source::{MAX_RACERS, Race};

use super::rates::Page;

/// Nanoseconds to the first touch of a page that may race: windows time those of slower ones well.
const SOON: u32 = 1_000_000;
/// Most pages touched so soon that wait for the next choice of racers.
const WAITING: usize = 4096;
/// Most pages, lists and races that are kept.
const PAGES: usize = 4096;
const LISTS: usize = 128;
const RACES: usize = 4096;
/// Fewest races, and touches that tie them to the clock, for rates.
const FEWEST: usize = 32;
/// Delays until a touch from which on the time tells a rate.
const LATE: f64 = 3.0;
/// The hottest racers' mean rate over the median from which on they are touched sooner than others by far.
const APART: f64 = 2.5;
/// Steps towards the fixed point at each choice of racers; they begin where the last ones ended.
const STEPS: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Racer {
    page: PageId,
    /// Touches per nanosecond.
    rate: f64,
    /// Its windows since it races.
    windows: Page,
    won: f64,
    offered: f64,
    /// Touches that tell a rate.
    timed: f64,
}

#[derive(Debug)]
struct List {
    process: Pid,
    number: u32,
    /// By place in [`Races::racers`].
    racers: Vec<u32>,
}

#[derive(Debug, Default)]
pub(super) struct Races {
    racers: Vec<Racer>,
    places: HashMap<PageId, u32>,
    /// The newest at the end.
    lists: VecDeque<List>,
    last_list: u32,
    races: VecDeque<Race>,
    /// Pages touched soon since the last choice.
    soon: Vec<PageId>,
    /// Nanoseconds from a touch until the agent knows of it, and other time that every touch has.
    delay: f64,
    /// Relative variance of the factor that all rates share; 0 while it is not known.
    shared: f64,
}

/// A rate from races, in touches per nanosecond, and the relative variances of it and of the factor that all
/// racers share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Raced {
    pub(super) rate: f64,
    pub(super) variance: f64,
    pub(super) shared: f64,
}

/// The racers of a process, to be named to its source.
#[derive(Debug, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) process: Pid,
    pub(crate) list: u32,
    pub(crate) pages: Vec<PageId>,
}

impl Races {
    /// Notes the time until a touch.
    #[inline]
    pub(super) fn touched(&mut self, page: PageId, armed_ns: u32) {
        if armed_ns < SOON && self.soon.len() < WAITING {
            self.soon.push(page);
        }
        self.in_window(page, true, armed_ns as f32);
    }

    pub(super) fn untouched(&mut self, page: PageId, armed: Nanos) {
        self.in_window(page, false, armed.0 as f32);
    }

    fn in_window(&mut self, page: PageId, touched: bool, armed_ns: f32) {
        if let Some(&place) = self.places.get(&page) {
            let windows = &mut self.racers[place as usize].windows;
            windows.count(touched);
            windows.expose(armed_ns);
        }
    }

    /// Returns the nanoseconds that every touch has beside the page's own time.
    pub(super) fn delay(&self) -> f64 {
        self.delay
    }

    pub(super) fn rate(&self, page: PageId) -> Option<Raced> {
        if self.shared == 0.0 {
            return None;
        }
        let racer = self.racers[*self.places.get(&page)? as usize];
        let seen = racer.won + racer.timed;
        (seen > 0.0).then(|| Raced { rate: racer.rate, variance: 1.0 / seen, shared: self.shared })
    }

    pub(super) fn has_raced(&self, page: PageId) -> bool {
        self.places.contains_key(&page)
    }

    pub(super) fn add(&mut self, race: Race) {
        let Some(list) = list_of(&self.lists, &race) else { return };
        // The agent lives in the program: its numbers may be anything.
        if usize::from(race.first) >= list.racers.len() || race.armed >> race.first & 1 == 0 {
            return;
        }
        if self.races.len() == RACES {
            self.races.pop_front();
        }
        self.races.push_back(race);
    }

    /// Chooses the pages touched most often as the racers of each process; `timed` is a page's rate by
    /// windows.
    pub(super) fn choose(
        &mut self,
        timed: impl Fn(PageId) -> f64,
        process_of: impl Fn(PageId) -> Option<Pid>,
    ) -> Vec<Chosen> {
        self.estimate();
        let mut pages = std::mem::take(&mut self.soon);
        pages.extend(self.places.keys());
        pages.sort_unstable();
        pages.dedup();
        let rate = |page| self.rate(page).map_or_else(|| timed(page), |raced| raced.rate);
        let mut found: Vec<(Pid, f64, PageId)> =
            pages.into_iter().filter_map(|page| Some((process_of(page)?, rate(page), page))).collect();
        found.retain(|found| found.1 > 1.0 / f64::from(SOON));
        found.sort_unstable_by(|one, other| one.0.cmp(&other.0).then(other.1.total_cmp(&one.1)));
        // A process does not go on with racers that are gone.
        let idle = |process: &Pid| found.iter().all(|found| found.0 != *process);
        let idle: BTreeSet<Pid> = self.lists.iter().map(|list| list.process).filter(idle).collect();
        if self.racers.len() > PAGES {
            self.forget_all();
        }
        let racing = found.chunk_by(|one, other| one.0 == other.0).map(|racers| (racers[0].0, racers));
        racing
            .chain(idle.into_iter().map(|process| (process, &[][..])))
            .map(|(process, racers)| self.enter(process, racers))
            .collect()
    }

    /// Makes pages of a process, the hottest first, its racers.
    fn enter(&mut self, process: Pid, pages: &[(Pid, f64, PageId)]) -> Chosen {
        let pages = &pages[..pages.len().min(MAX_RACERS)];
        let mut racers: Vec<u32> = pages.iter().map(|&(_, rate, page)| self.keep(page, rate)).collect();
        // In an order of their own: the same racers are the same list.
        racers.sort_unstable();
        let before = self.lists.iter().rev().find(|list| list.process == process);
        let list = match before.filter(|before| before.racers == racers) {
            Some(before) => before.number,
            None => {
                self.last_list += 1;
                if self.lists.len() == LISTS {
                    let oldest = self.lists.pop_front().map(|list| list.number);
                    self.races.retain(|race| Some(race.list) != oldest);
                }
                self.lists.push_back(List { process, number: self.last_list, racers: racers.clone() });
                self.last_list
            }
        };
        let pages = racers.iter().map(|&place| self.racers[place as usize].page).collect();
        Chosen { process, list, pages }
    }

    /// Returns a page's place; a new one begins at its rate by windows.
    fn keep(&mut self, page: PageId, rate: f64) -> u32 {
        *self.places.entry(page).or_insert_with(|| {
            let (windows, won, offered, timed) = (Page::default(), 0.0, 0.0, 0.0);
            self.racers.push(Racer { page, rate, windows, won, offered, timed });
            self.racers.len() as u32 - 1
        })
    }

    /// Goes some steps towards the most likely rates.
    fn estimate(&mut self) {
        if self.races.len() < FEWEST {
            return;
        }
        for _ in 0..STEPS {
            self.count_races();
            let delay = self.delay;
            let (mut touches, mut expected) = (0.0, 0.0);
            for racer in &mut self.racers {
                let (seen, armed) = (racer.windows.touches(), racer.windows.nanoseconds());
                let late = armed > LATE * delay * seen;
                racer.timed = if late { seen } else { 0.0 };
                let time = if late { armed - seen * delay } else { 0.0 };
                if racer.won + racer.timed > 0.0 {
                    racer.rate = (racer.won + racer.timed) / (racer.offered + time);
                    touches += racer.timed;
                    expected += racer.rate * time;
                }
            }
            if touches > 0.0 {
                self.racers.iter_mut().for_each(|racer| racer.rate *= touches / expected);
            }
            let won: f64 = self.racers.iter().filter(|racer| racer.timed > 0.0).map(|racer| racer.won).sum();
            let known = touches >= FEWEST as f64 && won > 0.0;
            self.shared = if known { 1.0 / touches + 1.0 / won } else { 0.0 };
            self.find_delay();
        }
    }

    fn count_races(&mut self) {
        let Self { racers, lists, races, .. } = self;
        racers.iter_mut().for_each(|racer| (racer.won, racer.offered) = (0.0, 0.0));
        for race in races {
            let Some(list) = list_of(lists, race) else { continue };
            let armed = || list.racers.iter().enumerate().filter(|&(at, _)| race.armed >> at & 1 != 0);
            let all: f64 = armed().map(|(_, &place)| racers[place as usize].rate).sum();
            for (_, &place) in armed() {
                racers[place as usize].offered += 1.0 / all;
            }
            racers[list.racers[usize::from(race.first)] as usize].won += 1.0;
        }
    }

    fn find_delay(&mut self) {
        let Some(newest) = self.lists.back() else { return };
        let mut hottest: Vec<Racer> =
            newest.racers.iter().map(|&place| self.racers[place as usize]).collect();
        hottest.retain(|racer| racer.windows.touches() > 0.0);
        hottest.sort_unstable_by(|one, other| other.rate.total_cmp(&one.rate));
        let median = hottest.get(hottest.len() / 2).map_or(0.0, |racer| racer.rate);
        hottest.truncate(hottest.len().div_ceil(4));
        let sum: f64 = hottest.iter().map(|racer| racer.rate).sum();
        let apart = sum > APART * median * hottest.len() as f64;
        let touches: f64 = hottest.iter().map(|racer| racer.windows.touches()).sum();
        let late = |racer: &Racer| racer.windows.nanoseconds() - racer.windows.touches() / racer.rate;
        let over: f64 = hottest.iter().map(late).sum();
        self.delay = if apart { (over / touches).max(0.0) } else { 0.0 };
    }

    /// Forgets pages, whose numbers may be used for others.
    pub(super) fn forget(&mut self, pages: &Range<u32>) {
        self.places.retain(|page, _| !pages.contains(&page.0));
        self.soon.retain(|page| !pages.contains(&page.0));
    }

    fn forget_all(&mut self) {
        self.racers.clear();
        self.places.clear();
        self.lists.clear();
        self.races.clear();
        self.shared = 0.0;
    }

    pub(super) fn bytes(&self) -> usize {
        self.racers.capacity() * size_of::<Racer>()
            + self.places.capacity() * size_of::<(PageId, u32)>()
            + self.lists.iter().map(|list| list.racers.capacity() * size_of::<u32>()).sum::<usize>()
            + self.races.capacity() * size_of::<Race>()
            + self.soon.capacity() * size_of::<PageId>()
    }
}

fn list_of<'a>(lists: &'a VecDeque<List>, race: &Race) -> Option<&'a List> {
    let behind = lists.back()?.number.checked_sub(race.list)? as usize;
    let at = lists.len().checked_sub(1 + behind)?;
    lists.get(at).filter(|list| list.process == race.process)
}
