//! Access rates of pages from windows in which only the first touch of a page is seen.
//!
//! A page that is touched at random at rate r is touched within a window T with probability 1 - exp(-r T),
//! once, however often it is accessed: the observation is censored. Touches over the time for which pages
//! were armed and not yet touched estimate r, the maximum-likelihood estimate for censored exponential times:
//!
//! ```text
//! r = n (1 - 1/a) / e        n of a windows saw a touch; e: time until the touch or the window's end, summed
//! ```
//!
//! The factor takes out the bias of 1 / e where every window saw one. A touch in a window T then stands for
//! all accesses of the page in it, r T / (1 - exp(-r T)), the inverse of its probability: 1 for a page that
//! is rarely touched, r T for one that always is.

use std::ops::Range;

use isotherm_core::{Nanos, PageId};

/// Touches after which a page's numbers are halved, so that it may change.
const FULL: u16 = 256;
/// Weight of a new window in the mean window time.
const RECENT: f64 = 1.0 / 256.0;
/// Shortest exposure in nanoseconds: what entering the kernel takes until the touch is told.
const LEAST: f32 = 100.0;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Page {
    /// Windows with a touch and without.
    touched: u16,
    untouched: u16,
    /// Nanoseconds in them without a touch.
    exposed: f32,
}

impl Page {
    fn count(&mut self, touched: bool) {
        if self.touched >= FULL || self.untouched == u16::MAX {
            (self.touched, self.untouched) = (self.touched / 2, self.untouched / 2);
            self.exposed /= 2.0;
        }
        *(if touched { &mut self.touched } else { &mut self.untouched }) += 1;
    }

    fn expose(&mut self, nanoseconds: f32) {
        self.exposed += nanoseconds.max(LEAST);
    }

    /// Returns touches per nanosecond.
    fn rate(self) -> f64 {
        let (touched, windows) =
            (f64::from(self.touched), f64::from(self.touched) + f64::from(self.untouched));
        if touched == 0.0 { 0.0 } else { touched * (1.0 - 1.0 / windows) / f64::from(self.exposed) }
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
}

/// Accesses that a touch stands for, and how their error follows from that of the page's rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Standing {
    pub(crate) accesses: f64,
    /// Relative variance of [`Self::accesses`].
    pub(crate) variance: f64,
}

impl Rates {
    pub(crate) fn touched(&mut self, page: PageId, exposed_ns: u32) {
        let page = entry(&mut self.pages, page.index());
        page.count(true);
        page.expose(exposed_ns as f32);
    }

    /// Notes that a page was not touched in a window.
    pub(crate) fn untouched(&mut self, page: PageId, exposed: Nanos) {
        let page = entry(&mut self.pages, page.index());
        page.count(false);
        page.expose(exposed.0 as f32);
    }

    /// Notes a window of a huge page: whether it was touched, and after what time, or how long it was not.
    pub(crate) fn huge(&mut self, chunk: usize, touched: bool, exposed: Nanos) {
        let chunk = entry(&mut self.chunks, chunk);
        chunk.count(touched);
        chunk.expose(exposed.0 as f32);
    }

    /// Notes the time of a window.
    pub(crate) fn closed(&mut self, exposed: Nanos) {
        let exposed = exposed.0 as f64;
        self.window += if self.window == 0.0 { exposed } else { RECENT * (exposed - self.window) };
    }

    /// Returns the mean time of recent windows in nanoseconds; 0 without any.
    pub(crate) fn window(&self) -> f64 {
        self.window
    }

    /// Returns what a touch of the page in a window of so many nanoseconds stands for.
    pub(crate) fn standing(&self, page: PageId, window: f64) -> Standing {
        standing(self.pages.get(page.index()), window)
    }

    /// Returns what a touch of any page of the chunk stands for, where the chunk is a huge page.
    pub(crate) fn standing_in(&self, chunk: usize, window: f64) -> Standing {
        standing(self.chunks.get(chunk), window)
    }

    /// Forgets the pages of a chunk.
    pub(crate) fn forget(&mut self, pages: Range<u32>, chunk: usize) {
        if let Some(chunk) = self.chunks.get_mut(chunk) {
            *chunk = Page::default();
        }
        let end = self.pages.len().min(pages.end as usize);
        if let Some(pages) = self.pages.get_mut(pages.start as usize..end) {
            pages.fill(Page::default());
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.pages.capacity() + self.chunks.capacity()) * size_of::<Page>()
    }
}

fn entry(pages: &mut Vec<Page>, at: usize) -> &mut Page {
    if at >= pages.len() {
        pages.resize((at + 1).next_multiple_of(512), Page::default());
    }
    &mut pages[at]
}

fn standing(page: Option<&Page>, window: f64) -> Standing {
    let known = page.copied().unwrap_or_default();
    let expected = known.rate() * window;
    if expected < 1e-6 {
        return Standing { accesses: 1.0, variance: 0.0 };
    }
    let seen = -(-expected).exp_m1();
    // The elasticity of expected / seen by the rate: 0 of a page rarely touched, 1 of a saturated one.
    let elasticity = 1.0 - expected * (-expected).exp() / seen;
    let variance = elasticity * elasticity / f64::from(known.touched.max(1));
    Standing { accesses: expected / seen, variance }
}
