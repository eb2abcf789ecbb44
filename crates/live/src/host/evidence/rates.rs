//! Access rates of pages from windows in which only the first touch of a page is seen.
//!
//! A page that is touched at random at rate r is touched within a window T with probability 1 - exp(-r T),
//! once, however often it is accessed: the observation is censored. Touches over the time for which pages
//! were armed and not yet touched estimate r, the maximum-likelihood estimate for censored exponential times:
//!
//! ```text
//! r = (n - 1) / e        n windows saw a touch; e: time until the touch or the window's end, summed
//! ```
//!
//! One less than n, for two reasons: it takes out the bias of 1 / e where every window saw a touch, and where
//! few did, pages that are seen by luck look hotter than they are. A touch in a window T then stands for
//! all accesses of the page in it, r T / (1 - exp(-r T)), the inverse of its probability: 1 for a page that
//! is rarely touched, r T for one that always is.
//!
//! Neighbours share their heat as far as they resemble each other: the rates of a block of [`BLOCK`] pages
//! are taken to be gamma-distributed, with mean m and shape a (empirical Bayes):
//!
//! ```text
//! r = (n - 1 + a) / (e + a / m)
//! m = (touches + 1) / (exposure + 1 / mean of all pages)
//! a = sum of u^2 / sum of ((n - u)^2 - u), u = e m       counts vary more than Poisson's by u^2 / a
//! ```
//!
//! This holds of a page whose count is within two standard errors of its block's, |n - u| <= 2 sqrt(u) + 2:
//! a page that differs, as hot ones among cold ones do, tells of itself alone.

use std::ops::Range;

use isotherm_core::{Nanos, PageId};
use isotherm_linux::process::Pid;
use isotherm_linux::source::{Race, SETTLED_EVERY};

use super::border::{self, Unit};
use super::races::{Chosen, Races};

/// Touches after which a page's numbers are halved, so that it may change.
const FULL: u16 = 256;
/// Weight of a new window in the mean window time.
const RECENT: f64 = 1.0 / 256.0;
/// Pages that share their heat.
const BLOCK: usize = 64;
/// Most that the pages of a block are taken to resemble each other: the shape of their rates' distribution.
const ALIKE: f64 = 256.0;
/// Relative variance of the rates of all pages that are to race, as long as no race tells them: their touches
/// come sooner than windows can tell, so that they are known to a factor of 2.
pub(super) const UNRACED: f64 = 0.5;
/// Shortest exposure in nanoseconds: what entering the kernel takes until the touch is told.
const LEAST: f32 = 100.0;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Page {
    /// Windows with a touch and without.
    touched: u16,
    untouched: u16,
    /// Nanoseconds in them without a touch.
    exposed: f32,
}

impl Page {
    pub(super) fn count(&mut self, touched: bool) {
        if self.touched >= FULL || self.untouched == u16::MAX {
            (self.touched, self.untouched) = (self.touched / 2, self.untouched / 2);
            self.exposed /= 2.0;
        }
        *(if touched { &mut self.touched } else { &mut self.untouched }) += 1;
    }

    pub(super) fn expose(&mut self, nanoseconds: f32) {
        self.exposed += nanoseconds.max(LEAST);
    }

    /// Returns whether its touches are as many as expected of a page like its neighbours.
    fn is_like(self, prior: Prior) -> bool {
        let expected = self.nanoseconds() * f64::from(prior.mean);
        (self.touches() - expected).abs() <= 2.0 * expected.sqrt() + 2.0
    }

    fn is_new(self) -> bool {
        (self.touched, self.untouched) == (0, 0)
    }

    pub(super) fn touches(self) -> f64 {
        f64::from(self.touched)
    }

    /// Returns nanoseconds without a touch.
    pub(super) fn nanoseconds(self) -> f64 {
        f64::from(self.exposed)
    }
}

/// The distribution that a page's rate is taken from: gamma, by shape and mean.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Prior {
    shape: f32,
    /// Touches per nanosecond.
    mean: f32,
}

impl Prior {
    /// Returns the shape over the mean: the exposure that it is worth.
    fn exposure(self) -> f64 {
        if self.mean > 0.0 { f64::from(self.shape / self.mean) } else { 0.0 }
    }
}

/// The rates of all pages; empty where no source has windows.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    pages: Vec<Page>,
    /// The rates of huge pages, which are armed and touched as one, by chunk.
    chunks: Vec<Page>,
    /// Of each block of pages, as of the last choice of settled memory.
    blocks: Vec<Prior>,
    /// Pages that are in one of some passes, a bit each.
    settled: Vec<u64>,
    /// Mean time of recent windows in nanoseconds.
    window: f64,
    /// Pages and huge pages that were in windows, and how often.
    known: u64,
    windows: u64,
    /// The hottest pages' rates.
    races: Races,
}

/// Accesses that a touch stands for, and how their error follows from that of the page's rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Standing {
    pub(crate) accesses: f64,
    /// Relative variance of [`Self::accesses`].
    pub(crate) variance: f64,
    /// The same of an error that all pages with races share.
    pub(crate) shared: f64,
}

impl Rates {
    /// Notes a touch of a page in a window, which stands for so many windows.
    pub(crate) fn touched(&mut self, page: PageId, exposed_ns: u32, weight: u32) {
        self.races.touched(page, exposed_ns);
        let page = entry(&mut self.pages, page.index());
        self.known += u64::from(page.is_new());
        self.windows += u64::from(weight);
        page.count(true);
        page.expose(exposed_ns as f32);
    }

    pub(crate) fn raced(&mut self, race: &Race) {
        self.races.add(*race);
    }

    /// Chooses the pages that are to race; see [`Races::choose`].
    pub(crate) fn choose_racers(&mut self, process_of: impl Fn(PageId) -> Option<Pid>) -> Vec<Chosen> {
        let Self { pages, races, .. } = self;
        let timed =
            |page: PageId| pages.get(page.index()).map_or(0.0, |page| page.touches() / page.nanoseconds());
        races.choose(timed, process_of)
    }

    /// Notes that a page was not touched in a window.
    pub(crate) fn untouched(&mut self, page: PageId, exposed: Nanos) {
        self.races.untouched(page, exposed);
        let times = if self.is_settled(page) { SETTLED_EVERY } else { 1 };
        let page = entry(&mut self.pages, page.index());
        self.known += u64::from(page.is_new());
        self.windows += u64::from(times);
        page.count(false);
        page.expose(exposed.0 as f32);
    }

    /// Notes a window of a huge page: whether it was touched, and after what time, or how long it was not.
    pub(crate) fn huge(&mut self, chunk: usize, touched: bool, exposed: Nanos) {
        let chunk = entry(&mut self.chunks, chunk);
        (self.known, self.windows) = (self.known + u64::from(chunk.is_new()), self.windows + 1);
        chunk.count(touched);
        chunk.expose(exposed.0 as f32);
    }

    /// Notes the time of a window.
    pub(crate) fn closed(&mut self, exposed: Nanos) {
        let exposed = exposed.0 as f64;
        self.window += if self.window == 0.0 { exposed } else { RECENT * (exposed - self.window) };
    }

    /// Returns the time in which each page is in a window once, on average until `now`.
    pub(crate) fn pass(&self, now: Nanos) -> Nanos {
        Nanos((u128::from(now.0) * u128::from(self.known) / u128::from(self.windows.max(1))) as u64)
    }

    /// Returns the mean time of recent windows in nanoseconds; 0 without any.
    pub(crate) fn window(&self) -> f64 {
        self.window
    }

    /// Returns what a touch of the page in a window of so many nanoseconds stands for.
    pub(crate) fn standing(&self, page: PageId, window: f64) -> Standing {
        if window == 0.0 {
            return Standing::ONE;
        }
        if let Some(raced) = self.races.rate(page) {
            return standing(raced.rate * window, raced.variance, raced.shared);
        }
        let timed = self.timed(self.pages.get(page.index()), self.prior(page.index()), window);
        if self.races.has_raced(page) { Standing { shared: UNRACED, ..timed } } else { timed }
    }

    /// Returns what a touch of any page of the chunk stands for, where the chunk is a huge page.
    pub(crate) fn standing_in(&self, chunk: usize, window: f64) -> Standing {
        self.timed(self.chunks.get(chunk), Prior::default(), window)
    }

    fn timed(&self, page: Option<&Page>, prior: Prior, window: f64) -> Standing {
        let page = page.copied().unwrap_or_default();
        let prior = if page.is_like(prior) { prior } else { Prior::default() };
        let (touched, shape) = (page.touches(), f64::from(prior.shape));
        // A touch's delay is none of the page's time.
        let exposed = (page.nanoseconds() - touched * self.races.delay()).max(touched * f64::from(LEAST));
        let rate = if touched == 0.0 { 0.0 } else { (touched - 1.0 + shape) / (exposed + prior.exposure()) };
        standing(rate * window, 1.0 / (touched + shape).max(1.0), 0.0)
    }

    fn prior(&self, page: usize) -> Prior {
        self.blocks.get(page / BLOCK).copied().unwrap_or_default()
    }

    pub(super) fn is_settled(&self, page: PageId) -> bool {
        has(&self.settled, page.0)
    }

    /// Chooses the memory whose tier is beyond doubt where `fast` pages fit into the fast tier, at most
    /// `most` runs of pages. A huge page has `in_chunk` pages; `idle` ones are known not to have been touched
    /// for so many nanoseconds more.
    pub(crate) fn choose_settled(
        &mut self,
        fast: u64,
        in_chunk: u32,
        idle: &[(Range<u32>, f64)],
        most: usize,
    ) -> Vec<Range<u32>> {
        self.share_heat();
        let mut more: Vec<f64> = Vec::new();
        for (pages, time) in idle {
            more.resize(more.len().max(pages.end as usize), 0.0);
            more[pages.start as usize..pages.end as usize].fill(*time);
        }
        let unit = |pages: Range<u32>, page: &Page, prior: Prior| {
            let more = more.get(pages.start as usize).copied().unwrap_or(0.0);
            let (touches, exposed) = (page.touches(), page.nanoseconds() + more);
            let rate = (touches + f64::from(prior.shape)) / (exposed + prior.exposure());
            (exposed > 0.0).then_some(Unit { pages, touches, exposed, rate })
        };
        let mut units: Vec<Unit> = Vec::new();
        for at in 0..self.pages.len().max(more.len()) {
            let (page, id) = (self.pages.get(at).copied().unwrap_or_default(), at as u32);
            // Racers' windows tie races to the clock, and the hottest pages' touches stand for many accesses.
            if !self.races.has_raced(PageId(id)) {
                let prior = self.prior(at);
                // Without a touch a page still has a rank.
                units.extend(unit(id..id + 1, &page, Prior { shape: prior.shape.max(0.5), ..prior }));
            }
        }
        if in_chunk > 1 {
            let chunk_units = self.chunks.iter().zip((0..).step_by(in_chunk as usize));
            units.extend(
                chunk_units
                    .filter_map(|(chunk, first)| unit(first..first + in_chunk, chunk, Prior::default())),
            );
        }
        let mut runs = border::settled(units, fast);
        runs.truncate(most);
        self.settled = bits(&runs);
        runs
    }

    /// Finds how much the pages of each block resemble each other.
    fn share_heat(&mut self) {
        let sum = |pages: &[Page]| {
            pages.iter().fold((0.0, 0.0), |sum, page| (sum.0 + page.touches(), sum.1 + page.nanoseconds()))
        };
        let (touches, exposed) = sum(&self.pages);
        self.blocks.clear();
        if touches == 0.0 {
            return;
        }
        self.blocks.extend(self.pages.chunks(BLOCK).map(|pages| {
            let own = sum(pages);
            let mean = (own.0 + 1.0) / (own.1 + exposed / touches);
            let (mut expected, mut beyond) = (0.0, 0.0);
            for page in pages {
                let (count, around) = (page.touches(), page.nanoseconds() * mean);
                expected += around * around;
                beyond += (count - around) * (count - around) - around;
            }
            let shape = if beyond > expected / ALIKE { expected / beyond } else { ALIKE };
            Prior { shape: shape as f32, mean: mean as f32 }
        }));
    }

    /// Forgets the pages of a chunk.
    pub(crate) fn forget(&mut self, pages: Range<u32>, chunk: usize) {
        if let Some(chunk) = self.chunks.get_mut(chunk) {
            *chunk = Page::default();
        }
        self.races.forget(&pages);
        let end = self.pages.len().min(pages.end as usize);
        if let Some(pages) = self.pages.get_mut(pages.start as usize..end) {
            pages.fill(Page::default());
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.pages.capacity() + self.chunks.capacity()) * size_of::<Page>()
            + self.blocks.capacity() * size_of::<Prior>()
            + self.settled.capacity() * size_of::<u64>()
            + self.races.bytes()
    }
}

/// Returns pages as a bit each.
fn bits(pages: &[Range<u32>]) -> Vec<u64> {
    let end = pages.iter().map(|pages| pages.end).max().unwrap_or(0);
    let mut bits = vec![0; end.div_ceil(64) as usize];
    for page in pages.iter().cloned().flatten() {
        bits[page as usize / 64] |= 1 << (page % 64);
    }
    bits
}

fn has(bits: &[u64], page: u32) -> bool {
    bits.get(page as usize / 64).is_some_and(|bits| bits >> (page % 64) & 1 != 0)
}

fn entry(pages: &mut Vec<Page>, at: usize) -> &mut Page {
    if at >= pages.len() {
        pages.resize((at + 1).next_multiple_of(512), Page::default());
    }
    &mut pages[at]
}

impl Standing {
    const ONE: Self = Self { accesses: 1.0, variance: 0.0, shared: 0.0 };
}

/// Returns what a touch stands for in a window with so many `expected` accesses; `variance` and `shared`: the
/// relative variances of that number.
fn standing(expected: f64, variance: f64, shared: f64) -> Standing {
    if expected < 1e-6 {
        return Standing::ONE;
    }
    let seen = -(-expected).exp_m1();
    // The elasticity of expected / seen by the rate: 0 of a page rarely touched, 1 of a saturated one.
    let elasticity = 1.0 - expected * (-expected).exp() / seen;
    let square = elasticity * elasticity;
    Standing { accesses: expected / seen, variance: square * variance, shared: square * shared }
}
