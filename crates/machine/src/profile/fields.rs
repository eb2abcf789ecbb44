//! Defines every number of a profile in one table: from it come reading, `--set`, the summary and the documentation.

use isotherm_core::{Bytes, Nanos};

use super::Profile;
use super::quantity::Quantity;
use crate::slots::Slots;
use crate::thread_model::WINDOW;

/// One number of a profile.
pub(super) struct Field {
    /// `core`, `llc`, `tier`, `costs` or `device`.
    pub(super) section: &'static str,
    /// Its name there.
    pub(super) name: &'static str,
    /// Unit and range.
    pub(super) quantity: Quantity,
    /// One sentence.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test holds the documentation's table to it"))]
    pub(super) help: &'static str,
    /// Reads it; the index is the tier's, which exists. `None` where an optional number is not given.
    pub(super) get: fn(&Profile, usize) -> Option<f64>,
    /// Whether a profile may leave it out.
    pub(super) optional: bool,
    /// Writes a value that is in the quantity's range.
    pub(super) set: fn(&mut Profile, usize, f64),
}

impl Field {
    /// Whether each tier has one.
    pub(super) fn of_tier(&self) -> bool {
        self.section == "tier"
    }

    /// Its path, as in `tier.1.latency`.
    pub(super) fn path(&self, tier: usize) -> String {
        if self.of_tier() {
            format!("tier.{tier}.{}", self.name)
        } else {
            format!("{}.{}", self.section, self.name)
        }
    }

    /// The field at a path, and its tier.
    pub(super) fn find(path: &str, tiers: usize) -> Option<(&'static Self, usize)> {
        let (section, rest) = path.split_once('.')?;
        let (tier, name) = match section {
            "tier" => rest.split_once('.')?,
            _ => ("0", rest),
        };
        let tier: usize = tier.parse().ok()?;
        let field = FIELDS.iter().find(|field| field.section == section && field.name == name)?;
        (!field.of_tier() || tier < tiers).then_some((field, tier))
    }

    /// The fields of a section.
    pub(super) fn of(section: &str) -> impl Iterator<Item = &'static Self> {
        FIELDS.iter().filter(move |field| field.section == section)
    }
}

/// A field whose value lies at a place of the profile, converted to and from `f64`.
macro_rules! field {
    (optional $section:literal, $name:literal, $quantity:expr, $($place:ident).+, $help:literal) => {
        Field {
            section: $section,
            name: $name,
            quantity: $quantity,
            help: $help,
            get: |profile, _| profile.$($place).+.map(f64::from),
            optional: true,
            set: |profile, _, value| profile.$($place).+ = Some(value as u32),
        }
    };
    ($section:literal, $name:literal, $quantity:expr, $($place:ident).+, $type:ty, $help:literal) => {
        Field {
            section: $section,
            name: $name,
            quantity: $quantity,
            help: $help,
            get: |profile, _| Some(profile.$($place).+ as f64),
            optional: false,
            set: |profile, _, value| profile.$($place).+ = value as $type,
        }
    };
    (tier $name:literal, $quantity:expr, $($place:tt).+, $type:ty, $help:literal) => {
        Field {
            section: "tier",
            name: $name,
            quantity: $quantity,
            help: $help,
            get: |profile, tier| Some(profile.tiers[tier].$($place).+ as f64),
            optional: false,
            set: |profile, tier, value| profile.tiers[tier].$($place).+ = value as $type,
        }
    };
    (device $name:literal, $quantity:expr, $($place:tt).+, $type:ty, $help:literal) => {
        Field {
            section: "device",
            name: $name,
            quantity: $quantity,
            help: $help,
            get: |profile, _| profile.device.as_ref().map(|device| device.$($place).+ as f64),
            optional: false,
            set: |profile, _, value| {
                profile.device.get_or_insert_default().$($place).+ = value as $type;
            },
        }
    };
    (cost $name:literal, $place:ident, $help:literal) => {
        Field {
            section: "costs",
            name: $name,
            quantity: Quantity::duration(0),
            help: $help,
            get: |profile, _| Some(profile.costs.$place.0 as f64),
            optional: false,
            set: |profile, _, value| profile.costs.$place = Nanos(value as u64),
        }
    };
}

/// Every number, section by section. All of them fit `f64` exactly: the ranges end below 2^53.
#[expect(clippy::cast_lossless, reason = "one macro serves every type")]
pub(super) const FIELDS: &[Field] = &[
    field!(
        "core",
        "cores",
        Quantity::count(1, 4096),
        core.cores,
        u32,
        "Cores that the program and the tiering thread share."
    ),
    field!("core", "frequency", Quantity::frequency(), clock.frequency, u64, "Clock of a core."),
    field!(
        "core",
        "instructions_per_cycle",
        Quantity::ratio(0.01, 64.0),
        clock.instructions_per_cycle,
        f64,
        "Instructions that retire in a cycle where no miss of the last-level cache stalls."
    ),
    field!(
        "core",
        "reorder_window",
        Quantity::count(1, 65536),
        core.reorder_window,
        u32,
        "Entries of the reorder buffer."
    ),
    field!(
        "core",
        "miss_registers",
        Quantity::count(1, Slots::MAX as u32),
        core.miss_registers,
        u32,
        "Misses that a core can have outstanding (line fill buffers)."
    ),
    field!(
        "core",
        "store_buffer",
        Quantity::count(1, WINDOW as u32),
        core.store_buffer,
        u32,
        "Entries of the store buffer."
    ),
    field!(
        optional "core",
        "l2_registers",
        Quantity::count(0, Slots::MAX as u32),
        core.l2_registers,
        "Optional: requests that a core's second-level cache can have outstanding, misses and its streamer's prefetches; 0, or nothing here, no prefetcher."
    ),
    Field {
        section: "llc",
        name: "size",
        quantity: Quantity::size(),
        help: "Size of the last-level cache.",
        get: |profile, _| Some(profile.llc_size.0 as f64),
        optional: false,
        set: |profile, _, value| profile.llc_size = Bytes(value as u64),
    },
    field!("llc", "ways", Quantity::count(1, 128), llc_ways, u32, "Its associativity."),
    field!(tier "latency", Quantity::duration(1), latency.0, u64, "Idle load-to-use latency."),
    field!(
        tier "loaded_latency_factor",
        Quantity::ratio(1.0, 1000.0),
        loaded_latency_factor,
        f64,
        "Latency at full bandwidth over the idle latency."
    ),
    field!(tier "read_bandwidth", Quantity::bandwidth(), read_bandwidth, u64, "Peak bandwidth of reads."),
    field!(tier "write_bandwidth", Quantity::bandwidth(), write_bandwidth, u64, "Peak bandwidth of writes."),
    Field {
        section: "tier",
        name: "capacity",
        quantity: Quantity::size(),
        help: "Optional: size of a tier between the fastest and the slowest; without it, as large as the fastest.",
        get: |profile, tier| profile.tiers[tier].capacity.map(|bytes| bytes.0 as f64),
        optional: true,
        set: |profile, tier, value| profile.tiers[tier].capacity = Some(Bytes(value as u64)),
    },
    Field {
        section: "tier",
        name: "pressure",
        quantity: Quantity::bandwidth(),
        help: "Optional: bandwidth that other programs take of reads, all the time.",
        get: |profile, tier| profile.tiers[tier].pressure.map(|bandwidth| bandwidth as f64),
        optional: true,
        set: |profile, tier, value| profile.tiers[tier].pressure = Some(value as u64),
    },
    Field {
        section: "tier",
        name: "k",
        quantity: Quantity::duration(1),
        help: "Optional: what a load costs that nothing overlaps, as `isotherm calibrate` measures it; live runs of PACT use it.",
        get: |profile, tier| profile.tiers[tier].k.map(|k| k.0 as f64),
        optional: true,
        set: |profile, tier, value| profile.tiers[tier].k = Some(Nanos(value as u64)),
    },
    field!(cost "sample", sample, "Program thread: the interrupt that takes one sample."),
    field!(
        "costs",
        "ring_samples",
        Quantity::count(1, 1 << 30),
        costs.ring_samples,
        u64,
        "Samples that all ring buffers together hold before they lose any."
    ),
    field!(cost "drain_sample", drain_sample, "PolicyRun thread: reading and decoding one sample."),
    field!(cost "move_call", move_call, "PolicyRun thread: one `move_pages` call, whatever its pages."),
    field!(cost "move_page", move_page, "PolicyRun thread: unmapping, flushing and remapping one page, without its copy."),
    field!(
        "costs",
        "copy_bandwidth",
        Quantity::bandwidth(),
        costs.copy_bandwidth,
        u64,
        "Bandwidth of one core copying a page, where the tiers are not slower."
    ),
    field!(cost "shootdown", shootdown, "Each program thread: one TLB shootdown."),
    field!(
        "costs",
        "shootdown_batch",
        Quantity::count(1, 1 << 20),
        costs.shootdown_batch,
        u32,
        "Pages that share one shootdown."
    ),
    field!(cost "scan_page", scan_page, "PolicyRun thread: one entry of a page-table scan."),
    field!(cost "accessed_page", accessed_page, "PolicyRun thread or program: one entry of a scan of accessed bits."),
    field!(cost "arm_page", arm_page, "PolicyRun thread or program: making one page fault at its next access."),
    field!(cost "fault", fault, "Program thread: one hint fault, without what is done in it."),
    field!(cost "lock_hold", lock_hold, "How long a fault or a move holds the lock that they share."),
    field!(cost "reclaim_page", reclaim_page, "PolicyRun thread: one page that the kernel's reclaim looks at."),
    field!(
        optional "costs",
        "reclaim_lists",
        Quantity::count(1, 2),
        costs.reclaim_lists,
        "Optional: by what the kernel's reclaim tells cold pages: 2, an inactive and an active list; 1, or nothing here, a clock over all pages."
    ),
    field!(cost "cached_touch", cached_touch, "PolicyRun thread: a metadata cache line that hits the last-level cache."),
    field!(cost "operation", operation, "PolicyRun thread: one simple operation."),
    field!(
        "costs",
        "reserve",
        Quantity::percent(0.5),
        costs.reserve,
        f64,
        "Share of a tier that the kernel keeps free."
    ),
    field!(device "lanes", Quantity::count(1, 4), lanes, u32, "Profiling device: rows of its sketch."),
    field!(device "width", Quantity::count(64, 1 << 24), width, u32, "Entries of a row, a power of two; a run's scale divides them."),
    field!(device "counter_bits", Quantity::count(4, 16), counter_bits, u32, "Bits of a counter."),
    field!(
        device "hot_entries",
        Quantity::count(4, 1 << 20),
        hot_entries,
        u32,
        "Hot pages that it holds until they are read, a power of two; a run's scale divides them."
    ),
    field!(device "clock", Quantity::frequency(), clock, u64, "Cycles in each of which a cache line can pass."),
    field!(device "read", Quantity::duration(0), read.0, u64, "PolicyRun thread: reading one of its registers."),
    field!(device "write", Quantity::duration(0), write.0, u64, "PolicyRun thread: writing one."),
];
