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

use std::ops::Range;

use isotherm_core::{Nanos, PageId};
use isotherm_linux::process::Pid;
use isotherm_linux::source::Race;

use super::races::{Chosen, Races};

/// Touches after which a page's numbers are halved, so that it may change.
const FULL: u16 = 256;
/// Weight of a new window in the mean window time.
const RECENT: f64 = 1.0 / 256.0;
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

    /// Returns touches per nanosecond; `delay`: nanoseconds of a touch that are none of the page's.
    fn rate(self, delay: f64) -> f64 {
        let touched = self.touches();
        let exposed = (self.nanoseconds() - touched * delay).max(touched * f64::from(LEAST));
        if touched == 0.0 { 0.0 } else { (touched - 1.0) / exposed }
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

/// The rates of all pages; empty where no source has windows.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    pages: Vec<Page>,
    /// The rates of huge pages, which are armed and touched as one, by chunk.
    chunks: Vec<Page>,
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
    pub(crate) fn touched(&mut self, page: PageId, exposed_ns: u32) {
        self.races.touched(page, exposed_ns);
        let page = entry(&mut self.pages, page.index());
        (self.known, self.windows) = (self.known + u64::from(page.is_new()), self.windows + 1);
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
        let page = entry(&mut self.pages, page.index());
        (self.known, self.windows) = (self.known + u64::from(page.is_new()), self.windows + 1);
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
        self.timed(self.pages.get(page.index()), window)
    }

    /// Returns what a touch of any page of the chunk stands for, where the chunk is a huge page.
    pub(crate) fn standing_in(&self, chunk: usize, window: f64) -> Standing {
        self.timed(self.chunks.get(chunk), window)
    }

    fn timed(&self, page: Option<&Page>, window: f64) -> Standing {
        let page = page.copied().unwrap_or_default();
        standing(page.rate(self.races.delay()) * window, 1.0 / page.touches().max(1.0), 0.0)
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
        (self.pages.capacity() + self.chunks.capacity()) * size_of::<Page>() + self.races.bytes()
    }
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
