//! The C ABI between a policy's library and the program that loads it.
//!
//! A library exports two symbols: [`VERSION_SYMBOL`], a `uint32_t` that the program reads from the file
//! before it loads it, and [`TABLE_SYMBOL`], a function without arguments that returns a [`Table`].
//!
//! - Structures are `repr(C)`, also those of [`isotherm_core`] that pass: their layout is a part of the
//!   version.
//! - Each function of the table returns an empty [`Text`], or the reason of its failure: the program then
//!   calls nothing of that instance but `drop`.
//! - What one side passes to the other is valid until the call returns. What a library returns (texts, moves,
//!   gauges) is valid until the next call with that instance, texts of the table for ever: a library is never
//!   unloaded.
//! - An instance is used by one thread at a time, which need not be the one that built it.
//! - Numbers that come from the library are checked by the program.

use std::ffi::c_void;

use isotherm_core::parameters::{Kind, Value};
use isotherm_core::{
    Allocation, Bytes, DeviceTraffic, HintFault, MAX_TIERS, Move, MoveStatus, Nanos, PageId, PageSize, Pages,
    Reclaim, Sample, Setup, Spent, TierCounters, TierId, Weights, Work,
};

/// The version of everything in this module. A change of any structure needs another one.
pub const VERSION: u32 = 4;

/// The symbol of a library's version of this interface: a `u32`.
pub const VERSION_SYMBOL: &str = "isotherm_policy_abi";

/// The symbol of the function that returns a library's [`Table`].
pub const TABLE_SYMBOL: &str = "isotherm_policy";

/// The type of that function.
pub type GetTable = unsafe extern "C" fn() -> *const Table;

/// Adjacent items of the other side. Where there are none, the start may be null.
#[derive(Debug)]
#[repr(C)]
pub struct Slice<T> {
    start: *const T,
    length: usize,
}

impl<T> Clone for Slice<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slice<T> {}

impl<T> Default for Slice<T> {
    fn default() -> Self {
        Self::of(&[])
    }
}

impl<T> Slice<T> {
    /// Passes these items.
    pub const fn of(items: &[T]) -> Self {
        Self { start: items.as_ptr(), length: items.len() }
    }

    /// Returns the items.
    ///
    /// # Safety
    /// The start points to as many valid items as the length says, for the lifetime that the caller chooses.
    pub const unsafe fn get<'a>(self) -> &'a [T] {
        if self.start.is_null() || self.length == 0 {
            return &[];
        }
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

/// UTF-8 text.
pub type Text = Slice<u8>;

/// Returns a text that the other side reads.
pub const fn text(text: &str) -> Text {
    Slice::of(text.as_bytes())
}

/// A policy's description and its functions.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    /// Its name, in kebab case.
    pub name: Text,
    /// Its name in print.
    pub title: Text,
    /// Where it was published, or where it comes from.
    pub paper: Text,
    /// One or two sentences: what it does.
    pub help: Text,
    /// Its parameters.
    pub parameters: Slice<Parameter>,
    /// Builds an instance from the parameters' values ([`encode`]).
    pub build: unsafe extern "C" fn(Slice<u64>, *const Setup, *mut Built) -> Text,
    /// See [`isotherm_core::Policy::observe`].
    pub observe: unsafe extern "C" fn(*mut c_void, *const Batch, *const Memory) -> Text,
    /// See [`isotherm_core::Policy::step`]; the time is in nanoseconds.
    pub step: unsafe extern "C" fn(*mut c_void, u64, *const Memory, *mut Orders) -> Text,
    /// See [`isotherm_core::Policy::settle`]; the plan is that of the last step.
    pub settle: unsafe extern "C" fn(*mut c_void, *const Settled, *const Memory) -> Text,
    /// See [`isotherm_core::Policy::metadata`]; in bytes.
    pub metadata: unsafe extern "C" fn(*mut c_void, *mut u64) -> Text,
    /// See [`isotherm_core::Policy::gauges`].
    pub gauges: unsafe extern "C" fn(*mut c_void, *mut Slice<Gauge>) -> Text,
    /// Frees an instance.
    pub drop: unsafe extern "C" fn(*mut c_void) -> Text,
}

// SAFETY: what a table points to never changes, and its functions may be called from any thread.
unsafe impl Sync for Table {}

/// A parameter: see [`isotherm_core::parameters::Spec`].
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Parameter {
    /// Its name, in snake case.
    pub name: Text,
    /// Its default, as a user writes it.
    pub default: Text,
    /// Its unit, for people.
    pub unit: Text,
    /// The source of the default.
    pub source: Text,
    /// Its help text.
    pub help: Text,
    /// The words of a choice.
    pub words: Slice<Text>,
    /// Its lower bound, as a value ([`encode`]); 0 where the kind has none.
    pub low: u64,
    /// Its upper bound, likewise.
    pub high: u64,
    /// Its kind: one of the constants of [`kinds`].
    pub kind: u8,
    /// Whether it is divided by the run's scale (1) or not (0).
    pub scaled: u8,
    /// Whether it is an amount for each of a scaled duration (1) or not (0).
    pub rate: u8,
}

/// Numbers of [`isotherm_core::parameters::Kind`].
pub mod kinds {
    /// A whole number between two bounds.
    pub const COUNT: u8 = 0;
    /// A number between two bounds.
    pub const NUMBER: u8 = 1;
    /// True or false.
    pub const FLAG: u8 = 2;
    /// A duration between two bounds.
    pub const DURATION: u8 = 3;
    /// A size between two bounds.
    pub const SIZE: u8 = 4;
    /// One of several words.
    pub const CHOICE: u8 = 5;
}

/// Returns a parameter's value as it passes: a whole number as it is, a number as its IEEE 754 bits, a flag
/// as 0 or 1, a duration in nanoseconds, a size in bytes, a word as its index. A word that is no choice is 0.
pub fn encode(value: Value, kind: Kind) -> u64 {
    match (value, kind) {
        (Value::Count(value), _) => value,
        (Value::Number(value), _) => value.to_bits(),
        (Value::Flag(value), _) => value.into(),
        (Value::Duration(value), _) => value.0,
        (Value::Size(value), _) => value.0,
        (Value::Choice(word), Kind::Choice(words)) => {
            words.iter().position(|other| *other == word).unwrap_or(0) as u64
        }
        (Value::Choice(_), _) => 0,
    }
}

/// Returns the value that [`encode`] made such a number of; `None` if the kind has no such value.
pub fn decode(bits: u64, kind: Kind) -> Option<Value> {
    Some(match kind {
        Kind::Count(..) => Value::Count(bits),
        Kind::Number(..) => Value::Number(f64::from_bits(bits)),
        Kind::Flag => Value::Flag(bits != 0),
        Kind::Duration(..) => Value::Duration(Nanos(bits)),
        Kind::Size(..) => Value::Size(Bytes(bits)),
        Kind::Choice(words) => Value::Choice(words.get(usize::try_from(bits).ok()?)?),
    })
}

/// A new instance with what does not change during its run.
#[derive(Debug)]
#[repr(C)]
pub struct Built {
    /// The instance.
    pub instance: *mut c_void,
    /// The sampling that it starts with.
    pub sampling: Request,
    /// Its signals: [`isotherm_core::Signals::bits`].
    pub signals: u32,
    /// The index of its [`isotherm_core::Record`].
    pub record: u8,
    /// The place for new pages ([`encode_allocation`]).
    pub allocation: u8,
    /// The index of its [`isotherm_core::MigrationContext`].
    pub migration_context: u8,
    /// The weights of the place for new pages, if it has any.
    pub weights: [u8; MAX_TIERS],
}

/// Returns the place for new pages as it passes: the index of the variant, and its weights.
pub fn encode_allocation(allocation: Allocation) -> (u8, [u8; MAX_TIERS]) {
    match allocation {
        Allocation::FastFirst => (0, [0; MAX_TIERS]),
        Allocation::SlowFirst => (1, [0; MAX_TIERS]),
        Allocation::Weighted(Weights(weights)) => (2, weights),
    }
}

/// A request for samples: see [`isotherm_core::Sampling`].
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Request {
    /// The period in accesses, or the frequency in samples a second.
    pub rate: u64,
    /// Deliver after this many samples.
    pub batch: u64,
    /// Deliver after this time in nanoseconds.
    pub tick: u64,
    /// The program's time that samples may take in a second, in nanoseconds; all bits set leave it to the
    /// source.
    pub budget: u64,
    /// How many times rarer the fast tier's samples are.
    pub fast_divisor: u32,
    /// 0 for no samples, 1 for a period, 2 for a frequency.
    pub kind: u8,
    /// The index of its [`isotherm_core::SamplingScope`].
    pub scope: u8,
    /// Whether stores are sampled (1) or not (0).
    pub stores: u8,
}

/// See [`isotherm_core::SampleBatch`].
#[derive(Debug)]
#[repr(C)]
pub struct Batch {
    /// The samples.
    pub samples: Slice<Sample>,
    /// The hint faults.
    pub faults: Slice<HintFault>,
    /// Readings of the profiling devices.
    pub devices: Slice<Reading>,
    /// Counters of each tier.
    pub tiers: Slice<TierCounters>,
    /// Samples lost.
    pub lost: u64,
    /// The costs of tiering.
    pub spent: Spent,
    /// Whether events had to share counters.
    pub multiplexed: bool,
}

/// See [`isotherm_core::DeviceReading`]; all behind `hot` is of its report.
#[derive(Debug)]
#[repr(C)]
pub struct Reading {
    /// Pages found hot.
    pub hot: Slice<PageId>,
    /// The bins of the histogram.
    pub bins: Slice<Bin>,
    /// The traffic through it.
    pub traffic: DeviceTraffic,
    /// Accesses that found its buffer full.
    pub refused: u64,
    /// Accesses that it did not count.
    pub dropped: u64,
    /// Rows of the sketch.
    pub lanes: u32,
    /// The tier that its memory belongs to.
    pub tier: TierId,
    /// Whether there is a report.
    pub reports: bool,
    /// Whether a page comes each time that it was accessed so often, or once until a clear.
    pub again: bool,
}

/// See [`isotherm_core::Bin`].
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Bin {
    /// Entries with such a count.
    pub entries: u64,
    /// The lowest count.
    pub low: u32,
    /// The highest count.
    pub high: u32,
}

/// A step's plan: see [`isotherm_core::Plan`].
#[derive(Debug, Default)]
#[repr(C)]
pub struct Orders {
    /// Pages to move.
    pub moves: Slice<Move>,
    /// Room to make.
    pub reclaim: Slice<Reclaim>,
    /// Pages whose next access faults.
    pub arm: Slice<PageId>,
    /// Pages whose huge pages are split.
    pub split: Slice<PageId>,
    /// Pages whose ranges become huge pages.
    pub collapse: Slice<PageId>,
    /// The cost of deciding.
    pub work: Work,
    /// Sleep afterwards, in nanoseconds.
    pub sleep: u64,
    /// A new sampling request, if `samples` is 1.
    pub sampling: Request,
    /// A request to the profiling devices, if `asks` is 1.
    pub device: DeviceOrders,
    /// Whether sampling changes.
    pub samples: u8,
    /// Whether the devices are asked.
    pub asks: u8,
    /// Whether moves copy transactionally (1) or exclusively (0).
    pub transactional: u8,
}

/// See [`isotherm_core::DeviceRequest`].
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct DeviceOrders {
    /// The threshold, if `sets` is 1.
    pub threshold: u32,
    /// Whether the threshold changes.
    pub sets: u8,
    /// Whether counts are forgotten.
    pub clear: u8,
    /// Whether a report is asked for.
    pub report: u8,
}

/// See [`isotherm_core::Outcome`].
#[derive(Debug)]
#[repr(C)]
pub struct Settled {
    /// One status for each move.
    pub moves: Slice<MoveStatus>,
    /// Pages that each reclaim request freed.
    pub reclaimed: Slice<Pages>,
    /// The pages that reclaim demoted.
    pub demoted: Slice<PageId>,
}

/// See [`isotherm_core::Gauge`]. The name is valid for ever.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Gauge {
    /// A kebab-case name.
    pub name: Text,
    /// Its value.
    pub value: f64,
}

/// Memory as a policy sees it: [`isotherm_core::View`] for the time of a call.
#[derive(Debug)]
#[repr(C)]
pub struct Memory {
    /// The first argument of the functions.
    pub context: *mut c_void,
    /// The tiers, fastest first.
    pub tiers: Slice<Tier>,
    /// One more than the largest page so far.
    pub pages: u64,
    /// The page size of the run.
    pub page_size: PageSize,
    /// Writes the tier of each page, or [`NOWHERE`], to as many places.
    pub tiers_of: unsafe extern "C" fn(*mut c_void, Slice<PageId>, *mut u8),
    /// Walks at most so many mapped pages from a page on; if the flag is set, it tests and clears their
    /// accessed bits. Returns where to go on, or [`END`]. What it found is valid until its next call.
    pub walk: unsafe extern "C" fn(*mut c_void, PageId, u64, bool, *mut Slice<Found>) -> u64,
    /// Returns the first page of the 2 MiB range of a page, and writes the one behind its last.
    pub huge_range: Ranges,
    /// The same of the pages that move together with a page.
    pub unit: Ranges,
}

/// Returns the first page of a range that belongs to a page, and writes the one behind its last.
pub type Ranges = unsafe extern "C" fn(*mut c_void, PageId, *mut u32) -> u32;

/// The tier of a page that is not mapped.
pub const NOWHERE: u8 = u8::MAX;

/// The end of a walk.
pub const END: u64 = u64::MAX;

/// A tier.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Tier {
    /// The latency of a load while it is idle.
    pub latency: Nanos,
    /// Its size.
    pub capacity: Pages,
    /// Its free pages.
    pub free: Pages,
    /// Bytes a second, or 0.
    pub bandwidth: u64,
}

/// A page that a walk found.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Found {
    /// The page.
    pub page: PageId,
    /// Its tier.
    pub tier: TierId,
    /// Whether it was accessed, if that was asked.
    pub accessed: bool,
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// Libraries were compiled with these sizes and places of last fields.
    #[test]
    fn the_layout_of_a_version_does_not_change() {
        assert_eq!(VERSION, 4, "a new version: enter its layout below");
        let sizes = [
            size_of::<Setup>(),
            size_of::<Sample>(),
            size_of::<HintFault>(),
            size_of::<TierCounters>(),
            size_of::<Spent>(),
            size_of::<DeviceTraffic>(),
            size_of::<Move>(),
            size_of::<Reclaim>(),
            size_of::<Work>(),
            size_of::<MoveStatus>(),
            size_of::<PageSize>(),
            size_of::<Table>(),
            size_of::<Parameter>(),
            size_of::<Built>(),
            size_of::<Request>(),
            size_of::<Batch>(),
            size_of::<Reading>(),
            size_of::<Orders>(),
            size_of::<Settled>(),
            size_of::<Gauge>(),
            size_of::<Memory>(),
            size_of::<Tier>(),
            size_of::<Found>(),
        ];
        let expected =
            [40, 32, 32, 72, 40, 24, 8, 16, 24, 1, 1, 136, 120, 72, 40, 120, 80, 168, 48, 24, 72, 32, 8];
        assert_eq!(sizes, expected, "raise VERSION with a change of the layout");
        let places = [
            offset_of!(Setup, seed),
            offset_of!(Sample, operation),
            offset_of!(HintFault, operation),
            offset_of!(TierCounters, bytes_written),
            offset_of!(Spent, moving),
            offset_of!(Orders, transactional),
            offset_of!(Batch, multiplexed),
            offset_of!(Reading, reports),
            offset_of!(Table, drop),
            offset_of!(Memory, unit),
        ];
        assert_eq!(places, [32, 25, 25, 64, 32, 162, 112, 77, 128, 64], "raise VERSION with a change");
    }

    #[test]
    fn values_pass_unchanged() {
        let word = Kind::Choice(&["4", "8"]);
        for (value, kind) in [
            (Value::Count(u64::MAX), Kind::Count(0, u64::MAX)),
            (Value::Number(0.1), Kind::Number(0.0, 1.0)),
            (Value::Flag(true), Kind::Flag),
            (Value::Duration(Nanos(7)), Kind::Duration(Nanos(1), Nanos(9))),
            (Value::Size(Bytes(1 << 40)), Kind::Size(Bytes(0), Bytes(1 << 40))),
            (Value::Choice("8"), word),
        ] {
            assert_eq!(decode(encode(value, kind), kind), Some(value));
        }
        assert_eq!(decode(2, word), None);
    }
}
