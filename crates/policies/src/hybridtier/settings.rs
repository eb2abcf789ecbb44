//! Defines the validated values that HybridTier runs with.

use isotherm_core::parameters::Parameters;
use isotherm_core::{Nanos, PageSize, Sampling, SamplingRate, SamplingScope};
use isotherm_trackers::{FilterShape, Layout, ShapeError};

use crate::Setup;
use crate::demotion_scan::Watermarks;
use crate::filter_shape::filter_shape;
use crate::hot_threshold::ThresholdSettings;

/// What counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrackerKind {
    /// Counting Bloom filters.
    Filter(Layout),
    /// Exact 16-bit counts.
    Exact,
}

/// The values in force.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) tracker: TrackerKind,
    pub(super) frequency_shape: FilterShape,
    pub(super) momentum_shape: FilterShape,
    /// One more than the largest page.
    pub(super) pages: usize,
    /// The frequency threshold's: its hot set is the fast tier up to the promotion mark.
    pub(super) threshold: ThresholdSettings,
    pub(super) promote_momentum: u32,
    pub(super) demote_momentum: u32,
    /// Samples between two coolings.
    pub(super) frequency_cooling: u64,
    pub(super) momentum_cooling: u64,
    pub(super) watermarks: Watermarks,
    pub(super) scan_batch: usize,
    pub(super) revisit: Nanos,
    pub(super) second_chances: usize,
    pub(super) sampling: Sampling,
    pub(super) audit: bool,
}

impl Settings {
    pub(super) fn new(parameters: &Parameters, setup: &Setup) -> Result<Self, ShapeError> {
        let fast = setup.fast.0;
        let share = |name| (fast as f64 * parameters.number(name)).ceil() as u64;
        let promote_mark = share("promote_watermark").max(1);
        let by_size =
            |base, huge| parameters.count(if setup.page_size == PageSize::Huge { huge } else { base });
        let momentum = by_size("momentum_threshold", "momentum_threshold_huge") as u32;
        let frequency_shape = frequency_shape(parameters, setup)?;
        let divisor = by_size("momentum_divisor", "momentum_divisor_huge");
        Ok(Self {
            tracker: match parameters.choice("tracker") {
                "exact" => TrackerKind::Exact,
                "standard" => TrackerKind::Filter(Layout::Standard),
                _ => TrackerKind::Filter(Layout::Blocked),
            },
            frequency_shape,
            momentum_shape: smaller(frequency_shape, divisor)?,
            pages: setup.pages,
            threshold: ThresholdSettings {
                room: fast.saturating_sub(promote_mark),
                split_ties: parameters.choice("ties") == "split",
                initial: by_size("initial_threshold", "initial_threshold_huge") as u32,
                warmup: (parameters.number("threshold_warmup") * fast.max(1) as f64).ceil() as u64,
                seed: setup.seed,
            },
            promote_momentum: momentum,
            demote_momentum: match parameters.count("demotion_momentum") as u32 {
                0 => momentum,
                other => other,
            },
            frequency_cooling: frequency_cooling(parameters, setup),
            momentum_cooling: parameters.count("momentum_cooling"),
            watermarks: Watermarks {
                promote: promote_mark,
                demote: share("demote_watermark").max(promote_mark),
            },
            scan_batch: parameters.count("scan_batch") as usize,
            revisit: parameters.duration("revisit"),
            second_chances: parameters.count("second_chances") as usize,
            sampling: sampling(parameters),
            audit: parameters.flag("audit"),
        })
    }
}

/// The frequency filter's shape.
fn frequency_shape(parameters: &Parameters, setup: &Setup) -> Result<FilterShape, ShapeError> {
    let shape = filter_shape(parameters, setup)?;
    if parameters.choice("filter_rounding") == "none" {
        return Ok(shape);
    }
    FilterShape::with_bytes((shape.bytes() as u64).next_power_of_two(), shape.width().bits(), shape.hashes())
}

/// The same with `divisor` times fewer bytes; at least one block.
fn smaller(shape: FilterShape, divisor: u64) -> Result<FilterShape, ShapeError> {
    let bytes = (shape.bytes() as u64).div_ceil(divisor);
    FilterShape::with_bytes(bytes, shape.width().bits(), shape.hashes())
}

/// Samples between two coolings of the frequency filter.
fn frequency_cooling(parameters: &Parameters, setup: &Setup) -> u64 {
    let per_page = parameters.number("frequency_cooling_per_page");
    if per_page == 0.0 {
        return parameters.count("frequency_cooling");
    }
    let base_pages = setup.page_size.bytes().0 / PageSize::Base.bytes().0 * setup.fast.0;
    (per_page * base_pages.max(1) as f64).ceil() as u64
}

/// What the policy asks of the host.
fn sampling(parameters: &Parameters) -> Sampling {
    Sampling {
        rate: SamplingRate::Frequency(parameters.count("sampling")),
        scope: match parameters.choice("sampling_scope") {
            "all-tiers" => SamplingScope::AllTiers,
            _ => SamplingScope::EachTier,
        },
        stores: false,
        batch: parameters.count("batch") as usize,
        tick: parameters.duration("tick"),
    }
}
