//! The table of a profile's numbers, from which come reading, `--set`, the summary and the documentation.

use isotherm_core::{Bytes, Nanos};

use super::Profile;
use super::quantity::Quantity;
use crate::limits::{MAX_REGISTERS, MAX_WALKERS, WINDOW};

pub(super) struct Field {
    /// `core`, `llc`, `tlb`, `tier`, `costs` or `device`.
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    pub(super) quantity: Quantity,
    pub(super) optional: bool,
    pub(super) help: &'static str,
    /// Reads it; the index is that of an existing tier. `None` if the number is not given.
    pub(super) get: fn(&Profile, usize) -> Option<f64>,
    /// Writes a value in the quantity's range.
    pub(super) set: fn(&mut Profile, usize, f64),
}

impl Field {
    pub(super) fn of_tier(&self) -> bool {
        self.section == "tier"
    }

    /// Returns its path, as in `tier.1.latency`.
    pub(super) fn path(&self, tier: usize) -> String {
        if self.of_tier() {
            format!("tier.{tier}.{}", self.name)
        } else {
            format!("{}.{}", self.section, self.name)
        }
    }

    pub(super) fn find(path: &str, tiers: usize) -> Option<(&'static Self, usize)> {
        let (section, rest) = path.split_once('.')?;
        let (tier, name) = match section {
            "tier" => rest.split_once('.')?,
            _ => ("0", rest),
        };
        let tier: usize = tier.parse().ok()?;
        let field = Self::of(section).find(|field| field.name == name)?;
        (!field.of_tier() || tier < tiers).then_some((field, tier))
    }

    pub(super) fn of(section: &str) -> impl Iterator<Item = &'static Self> {
        FIELDS.iter().filter(move |field| field.section == section)
    }
}

/// A type of numbers. All of them fit `f64` exactly: the quantities' ranges end below 2^53.
trait Number {
    const OPTIONAL: bool = false;
    fn get(&self) -> Option<f64>;
    fn set(&mut self, value: f64);
}

macro_rules! number {
    ($($type:ty: $number:ident => $get:expr, $value:ident => $set:expr;)+) => {$(
        impl Number for $type {
            fn get(&self) -> Option<f64> {
                let $number = self;
                Some($get)
            }

            fn set(&mut self, $value: f64) {
                *self = $set;
            }
        }
    )+};
}

number! {
    u32: number => f64::from(*number), value => value as u32;
    u64: number => *number as f64, value => value as u64;
    f64: number => *number, value => value;
    Nanos: number => number.0 as f64, value => Nanos(value as u64);
    Bytes: number => number.0 as f64, value => Bytes(value as u64);
}

impl<N: Number + Default> Number for Option<N> {
    const OPTIONAL: bool = true;

    fn get(&self) -> Option<f64> {
        self.as_ref()?.get()
    }

    fn set(&mut self, value: f64) {
        self.get_or_insert_default().set(value);
    }
}

const fn is_optional<N: Number>(_place: fn(&mut Profile, usize) -> &mut N) -> bool {
    N::OPTIONAL
}

/// Writes the table: section, name and place of each number, its quantity, and a sentence.
macro_rules! fields {
    (@get tier $name:ident) => { |profile, tier| profile.tiers[tier].$name.get() };
    (@get device $name:ident) => { |profile, _| profile.device.as_ref()?.$name.get() };
    (@get $($place:ident)+) => { |profile, _| profile.$($place).+.get() };
    (@place tier $name:ident) => { |profile, tier| &mut profile.tiers[tier].$name };
    (@place device $name:ident) => { |profile, _| &mut profile.device.get_or_insert_default().$name };
    (@place $($place:ident)+) => { |profile, _| &mut profile.$($place).+ };
    (@set tier $name:ident) => { |profile, tier, value| profile.tiers[tier].$name.set(value) };
    (@set device $name:ident) => {
        |profile, _, value| profile.device.get_or_insert_default().$name.set(value)
    };
    (@set $($place:ident)+) => { |profile, _, value| profile.$($place).+.set(value) };
    ($($section:ident.$name:ident = $($place:ident).+, $quantity:expr, $help:literal;)+) => {
        &[$(Field {
            section: stringify!($section),
            name: stringify!($name),
            quantity: $quantity,
            optional: is_optional(fields!(@place $($place)+)),
            help: $help,
            get: fields!(@get $($place)+),
            set: fields!(@set $($place)+),
        }),+]
    };
}

const REGISTERS: u32 = MAX_REGISTERS as u32;
/// Entries of a TLB; the highest number holds any program.
const ENTRIES: Quantity = Quantity::count(1, 1 << 30);
const CYCLES: Quantity = Quantity::count(0, 1000);
/// The time of one event; 0 switches its cost off.
const COST: Quantity = Quantity::duration(0);

pub(super) const FIELDS: &[Field] = fields! {
    core.cores = core.cores, Quantity::count(1, 4096),
        "Cores that the program and the tiering thread share.";
    core.frequency = clock.frequency, Quantity::frequency(), "Clock of a core.";
    core.instructions_per_cycle = clock.instructions_per_cycle, Quantity::ratio(0.01, 64.0),
        "Instructions that retire in a cycle where no miss of the last-level cache stalls.";
    core.reorder_window = core.reorder_window, Quantity::count(1, 65536), "Entries of the reorder buffer.";
    core.miss_registers = core.miss_registers, Quantity::count(1, REGISTERS),
        "Misses that a core can have outstanding (line fill buffers).";
    core.store_buffer = core.store_buffer, Quantity::count(1, WINDOW as u32), "Entries of the store buffer.";
    core.l2_registers = core.l2_registers, Quantity::count(0, REGISTERS),
        "Optional: requests that a core's second-level cache can have outstanding, misses and its \
            streamer's prefetches; 0 by default, which is no prefetcher.";
    core.pair_prefetcher = core.pair_prefetcher, Quantity::count(0, 1),
        "Optional: whether that cache also completes each line that misses to a pair of 128 bytes, 1 or 0; \
            0 by default, and without `core.l2_registers`.";
    core.l2_size = core.l2_size, Quantity::size(), "Size of a core's second-level cache.";
    core.l2_latency = core.l2_latency, CYCLES, "Cycles of a load that hits it.";
    llc.size = llc_size, Quantity::size(), "Size of the last-level cache.";
    llc.ways = llc_ways, Quantity::count(1, 128), "Its associativity.";
    tlb.first_entries = tlb.first_entries, ENTRIES,
        "Entries of a core's first-level data TLB for pages of 4 KiB; a run's scale divides all entries.";
    tlb.first_huge_entries = tlb.first_huge_entries, ENTRIES, "The same for pages of 2 MiB.";
    tlb.first_ways = tlb.first_ways, Quantity::count(1, 128), "Its associativity.";
    tlb.second_entries = tlb.second_entries, ENTRIES,
        "Entries of the second level that pages of 4 KiB may use.";
    tlb.second_huge_entries = tlb.second_huge_entries, ENTRIES, "The same for pages of 2 MiB.";
    tlb.second_ways = tlb.second_ways, Quantity::count(1, 128), "Its associativity.";
    tlb.second_latency = tlb.second_latency, CYCLES, "Cycles that a hit in the second level adds.";
    tlb.directory_entries = tlb.directory_entries, ENTRIES,
        "Entries of the walkers' cache of the tables above those that map pages.";
    tlb.walkers = tlb.walkers, Quantity::count(1, MAX_WALKERS as u32),
        "Page walks that a core has going on at once.";
    tier.latency = tier.latency, Quantity::duration(1), "Idle load-to-use latency.";
    tier.loaded_latency_factor = tier.loaded_latency_factor, Quantity::ratio(1.0, 1000.0),
        "Latency at full bandwidth over the idle latency; a tier with a curve has none.";
    tier.read_bandwidth = tier.read_bandwidth, Quantity::bandwidth(), "Peak bandwidth of reads.";
    tier.write_bandwidth = tier.write_bandwidth, Quantity::bandwidth(), "Peak bandwidth of writes.";
    tier.capacity = tier.capacity, Quantity::size(),
        "Optional: size of a tier between the fastest and the slowest; without it, as large as the fastest.";
    tier.pressure = tier.pressure, Quantity::bandwidth(),
        "Optional: bandwidth that other programs take of reads, all the time.";
    tier.compressed = tier.compressed, Quantity::count(0, 2),
        "Optional: 1 in the slowest tier if it holds pages compressed by zstd, as zswap does, 2 by lz4. A page of it faults: its \
            latency is that of such a fault without decompression, its bandwidths are those of one core that \
            decompresses and compresses, and the memory for it is the tier's before.";
    tier.k = tier.k, Quantity::duration(1),
        "Optional: what a load costs that nothing overlaps, as `isotherm calibrate` measures it; live runs \
            of PACT use it.";
    costs.sample = costs.sample, COST,
        "Program thread: one sample that takes an interrupt of its own: in frequency mode, or with a record \
            that the processor cannot write alone.";
    costs.buffered_sample = costs.buffered_sample, COST,
        "Program thread: one sample of a fixed period that the processor buffers, many to an interrupt.";
    costs.sample_rate_limit = costs.sample_rate_limit, Quantity::count(1, 1_000_000_000),
        "Samples a second and event above which the kernel throttles (`kernel.perf_event_max_sample_rate`).";
    costs.sample_time_limit = costs.sample_time_limit, Quantity::percent(1.0),
        "Share of a core's time above which it lowers that rate (`kernel.perf_cpu_time_max_percent`); 0% \
            and 100% never lower it.";
    costs.ring_samples = costs.ring_samples, Quantity::count(1, 1 << 30),
        "Samples that all ring buffers together hold before they lose any.";
    costs.drain_sample = costs.drain_sample, COST, "Tiering thread: reading and decoding one sample.";
    costs.move_call = costs.move_call, COST, "Tiering thread: one `move_pages` call, whatever its pages.";
    costs.move_page = costs.move_page, COST,
        "Tiering thread: unmapping, flushing and remapping one page, without its copy.";
    costs.copy_bandwidth = costs.copy_bandwidth, Quantity::bandwidth(),
        "Bandwidth of one core copying a page, where the tiers are not slower.";
    costs.shootdown = costs.shootdown, COST, "Each program thread: one TLB shootdown.";
    costs.shootdown_batch = costs.shootdown_batch, Quantity::count(1, 1 << 20),
        "Pages that share one shootdown.";
    costs.scan_page = costs.scan_page, COST, "Tiering thread: one entry of a page-table scan.";
    costs.accessed_page = costs.accessed_page, COST,
        "Tiering thread or program: one entry of a scan of accessed bits.";
    costs.arm_page = costs.arm_page, COST,
        "Tiering thread or program: making one page fault at its next access.";
    costs.fault = costs.fault, COST, "Program thread: one hint fault, without what is done in it.";
    costs.lock_hold = costs.lock_hold, COST, "How long a fault or a move holds the lock that they share.";
    costs.reclaim_page = costs.reclaim_page, COST,
        "Tiering thread: one page that the kernel's reclaim looks at.";
    costs.reclaim_lists = costs.reclaim_lists, Quantity::count(1, 2),
        "Optional: by what the kernel's reclaim tells cold pages: 2, an inactive and an active list; 1, or \
            nothing here, a clock over all pages.";
    costs.cached_touch = costs.cached_touch, COST,
        "Tiering thread: a metadata cache line that hits the last-level cache.";
    costs.operation = costs.operation, COST, "Tiering thread: one simple operation.";
    costs.reserve = costs.reserve, Quantity::percent(0.5), "Share of a tier that the kernel keeps free.";
    device.lanes = device.lanes, Quantity::count(1, 4), "Profiling device: rows of its sketch.";
    device.width = device.width, Quantity::count(64, 1 << 24),
        "Entries of a row, a power of two; a run's scale divides them.";
    device.counter_bits = device.counter_bits, Quantity::count(4, 16), "Bits of a counter.";
    device.hot_entries = device.hot_entries, Quantity::count(4, 1 << 20),
        "Hot pages that it holds until they are read, a power of two; a run's scale divides them.";
    device.clock = device.clock, Quantity::frequency(), "Cycles in each of which a cache line can pass.";
    device.read = device.read, COST, "Tiering thread: reading one of its registers.";
    device.write = device.write, COST, "Tiering thread: writing one.";
};
