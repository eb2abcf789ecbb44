//! Dynamic tiering intensity (FreqTier, section V-B 2, Fig. 6): how densely to sample, and when to stop.
//!
//! ```text
//!              unstable: one level up
//!            ┌───────────────────────┐
//!            ▼                       │
//!   high (100 kHz) ──▶ middle (10 kHz) ──▶ low (1 kHz)        each window that is stable: one level down
//!      ▲      │                 │             │
//!      │      │ no promotion in a window, or  │ stable
//!      │      │ a demotion scan without a cold page
//!      │      ▼                 ▼             ▼
//!      └─────────────────── monitoring                        hit ratio changed: back to the highest level
//! ```
//!
//! Hit ratios come from counters, not samples, and cost nothing. They are compared within a fixed tolerance;
//! where so few loads were counted that chance alone (three standard deviations) exceeds it, that wider
//! margin holds. Without such counters nothing would end monitoring: the lowest level takes its place.

use isotherm_core::Nanos;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    High,
    Middle,
    Low,
}

impl Level {
    fn up(self) -> Self {
        match self {
            Self::High | Self::Middle => Self::High,
            Self::Low => Self::Middle,
        }
    }

    /// Returns the level below; `None` below the lowest.
    fn down(self) -> Option<Self> {
        match self {
            Self::High => Some(Self::Middle),
            Self::Middle => Some(Self::Low),
            Self::Low => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Promoting(Level),
    /// Only watching the hit ratio.
    Monitoring,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct HitRatio {
    value: f64,
    loads: u64,
}

impl HitRatio {
    fn differs(self, other: Self, tolerance: f64) -> bool {
        let variance = |ratio: Self| ratio.value * (1.0 - ratio.value) / ratio.loads as f64;
        let chance = 3.0 * (variance(self) + variance(other)).sqrt();
        (self.value - other.value).abs() > tolerance.max(chance)
    }
}

/// The state machine. Its owner tells it time, counters and promotions.
#[derive(Debug, Clone)]
pub(super) struct Intensity {
    window: Nanos,
    monitor_interval: Nanos,
    tolerance: f64,
    pub(super) state: State,
    /// Load misses served by the fast tier and by all, up to now.
    now: (u64, u64),
    /// The same and the time when the current window or interval began; `None` before the first.
    began: Option<(Nanos, (u64, u64))>,
    reference: Option<HitRatio>,
    promoted: u64,
}

impl Intensity {
    /// Starts at the highest level. `tolerance` is a share of all loads.
    pub(super) fn new(window: Nanos, monitor_interval: Nanos, tolerance: f64) -> Self {
        let (state, now) = (State::Promoting(Level::High), (0, 0));
        Self { window, monitor_interval, tolerance, state, now, began: None, reference: None, promoted: 0 }
    }

    /// Learns the counters: load misses of the fast tier and of all, since the start.
    pub(super) fn count(&mut self, load_hits: (u64, u64)) {
        self.now = load_hits;
    }

    pub(super) fn promoted(&mut self, pages: u64) {
        self.promoted += pages;
    }

    /// Learns that a whole demotion scan found no cold page: the fast tier is full of hot ones.
    pub(super) fn found_nothing_cold(&mut self, now: Nanos) -> State {
        // Hits still rose in this window: monitoring takes its own reference from its first interval.
        self.reference = None;
        self.begin(now, self.at_rest());
        self.state
    }

    /// Closes the current window or interval if it has passed; then the state may have changed.
    pub(super) fn advance(&mut self, now: Nanos) -> bool {
        let Some((began, _)) = self.began else {
            self.begin(now, self.state);
            return false;
        };
        let length = if self.state == State::Monitoring { self.monitor_interval } else { self.window };
        if now - began < length {
            return false;
        }
        let next = match self.state {
            State::Promoting(level) => self.judge_window(level, self.measure()),
            State::Monitoring => self.judge_interval(self.measure()),
        };
        self.begin(now, next);
        true
    }

    fn at_rest(&self) -> State {
        if self.now.1 > 0 { State::Monitoring } else { State::Promoting(Level::Low) }
    }

    fn begin(&mut self, now: Nanos, state: State) {
        self.state = state;
        self.began = Some((now, self.now));
        self.promoted = 0;
    }

    /// Returns the hit ratio since the window began; `None` without loads.
    fn measure(&self) -> Option<HitRatio> {
        let (fast, all) = self.began.map_or((0, 0), |(_, then)| then);
        let (hits, loads) = (self.now.0.saturating_sub(fast), self.now.1.saturating_sub(all));
        (loads > 0).then(|| HitRatio { value: hits as f64 / loads as f64, loads })
    }

    fn judge_window(&mut self, level: Level, measured: Option<HitRatio>) -> State {
        let before = self.reference;
        self.reference = measured.or(before);
        if self.promoted == 0 {
            return self.at_rest(); // Promotion plateau.
        }
        match before.zip(measured) {
            None => State::Promoting(level),
            Some((before, now)) if now.differs(before, self.tolerance) => State::Promoting(level.up()),
            Some(_) => level.down().map_or(State::Monitoring, State::Promoting),
        }
    }

    /// Compares with the reference that monitoring began with, so that a slow slide is noticed as well.
    fn judge_interval(&mut self, measured: Option<HitRatio>) -> State {
        match (self.reference, measured) {
            (Some(before), Some(now)) if now.differs(before, self.tolerance) => {
                self.reference = None;
                State::Promoting(Level::High)
            }
            (reference, measured) => {
                self.reference = reference.or(measured);
                State::Monitoring
            }
        }
    }
}
