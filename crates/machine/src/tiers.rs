//! Memory tiers at work: counters, utilisation and loaded latency.

use isotherm_core::{Bytes, Nanos, TierCounters};

use crate::curve::Family;
use crate::profile::TierProfile;
use crate::thread_model::Timing;

/// Bytes of a cache line.
pub const LINE_BYTES: u64 = 64;
const SECOND_PS: u128 = 1_000_000_000_000;

/// A resource that serves work at a fixed rate: a leaky bucket over time.
///
/// Threads' clocks drift apart by a few blocks, so a block may ask for more than its own time offers without
/// being late: only work that does not fit since `since` delays the program.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Server {
    free_at: u64,
}

impl Server {
    /// Adds `busy` picoseconds of work that may have begun at `since`.
    pub(crate) fn serve(&mut self, busy: u64, since: u64) {
        self.free_at = self.free_at.max(since) + busy;
    }

    /// Returns how late the work is at `now`, in picoseconds.
    pub(crate) fn late(self, now: u64) -> u64 {
        self.free_at.saturating_sub(now)
    }
}

/// One memory tier.
#[derive(Debug, Clone, Default)]
pub struct Tier {
    /// Latency of one access under the current load, in picoseconds.
    pub latency: u64,
    /// Number of the accesses of each kind, and their retirement stalls in picoseconds.
    accesses: [u64; KINDS],
    stalls_ps: [u64; KINDS],
    /// Time with a miss in flight, summed over threads, in picoseconds; the same among loads alone.
    busy_ps: u64,
    load_busy_ps: u64,
    /// Lines read that no access asked for.
    unasked: u64,
    /// Bytes of page copies: read, written.
    copies: (u64, u64),
    /// Misses up to the last end of a block, and the sum of their latencies in picoseconds; for loads alone,
    /// and for all.
    settled: [(u64, u64); 2],
    idle_latency: f64,
    curves: Family,
    /// Bytes on the curves for each byte read, for each byte written: 1 unless the profile has bandwidths
    /// of its own.
    scale: (f64, f64),
    /// Share of the tier's time taken by other programs' reads; below 1.
    pressure: f64,
    /// Bytes a picosecond that other programs read.
    others: f64,
    bus: Server,
    /// The bus without page copies.
    alone: Server,
    load: Load,
    /// Bytes already handed to the bus: read, written.
    served: (u64, u64),
    /// Bytes of page copies since then.
    copied: (u64, u64),
}

/// Kinds of accesses: a load that missed, a store that missed, and the two with their line prefetched, in
/// flight or not.
const KINDS: usize = 4;
const LOAD: usize = 0;
const STORE: usize = 1;
const PREFETCHED: usize = 2;

/// Traffic on the curves, as moving sums over blocks.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    /// Bytes read and written.
    read: f64,
    written: f64,
    /// Bytes x latency.
    held: f64,
    /// Picoseconds.
    time: f64,
}

impl Load {
    fn add(&mut self, other: Self) {
        let approach = |sum: &mut f64, value: f64| *sum += (value - *sum) * GAIN;
        approach(&mut self.read, other.read);
        approach(&mut self.written, other.written);
        approach(&mut self.held, other.held);
        approach(&mut self.time, other.time);
    }

    /// Returns the share of reads; without traffic, all are.
    fn reads(self) -> f64 {
        let bytes = self.read + self.written;
        if bytes > 0.0 { self.read / bytes } else { 1.0 }
    }
}

impl Tier {
    pub(crate) fn new(profile: &TierProfile) -> Self {
        let idle_latency = profile.latency.0 as f64 * 1000.0;
        let own = (profile.read_bandwidth as f64, profile.write_bandwidth as f64);
        let (curves, (read, write)) = match &profile.curve {
            Some(curve) => (Family::measured(curve), curve.bandwidths()),
            None => {
                let factor = profile.loaded_latency_factor.unwrap_or(1.0);
                (Family::analytic(own.0, own.1, idle_latency, factor), own)
            }
        };
        let pressure = pressure(profile);
        Self {
            latency: (idle_latency + curves.delay(1.0, 0.0, idle_latency)) as u64,
            idle_latency,
            curves,
            scale: (read / own.0.max(1.0), write / own.1.max(1.0)),
            pressure,
            others: pressure * own.0 / SECOND_PS as f64,
            ..Self::default()
        }
    }

    /// Counts one access. A store reads its line for ownership and writes it back later. A PMU counts no miss
    /// for a prefetched line, even in flight: it hits the second-level cache or one of its registers.
    #[inline]
    pub(crate) fn count(&mut self, store: bool, timing: Timing) {
        let kind = usize::from(store) * STORE + usize::from(timing.prefetched) * PREFETCHED;
        self.accesses[kind] += 1;
        self.stalls_ps[kind] += timing.stall;
        self.busy_ps += timing.busy;
        self.load_busy_ps += timing.load_busy;
    }

    /// Returns the loads that this tier served, prefetched ones included.
    pub fn loads(&self) -> u64 {
        self.accesses[LOAD] + self.accesses[LOAD + PREFETCHED]
    }

    /// Returns the stores that this tier served, prefetched ones included.
    pub fn stores(&self) -> u64 {
        self.accesses[STORE] + self.accesses[STORE + PREFETCHED]
    }

    /// Returns the loads that missed, as a PMU counts them.
    pub fn load_misses(&self) -> u64 {
        self.accesses[LOAD]
    }

    /// Returns the retirement stalls of loads that missed, in picoseconds.
    pub fn load_stall_ps(&self) -> u64 {
        self.stalls_ps[LOAD]
    }

    /// Returns the retirement stalls of loads whose prefetched lines were in flight, in picoseconds.
    pub fn late_stall_ps(&self) -> u64 {
        self.stalls_ps[LOAD + PREFETCHED]
    }

    /// Returns the time with a load's miss in flight, summed over threads, in picoseconds.
    pub fn load_busy_ps(&self) -> u64 {
        self.load_busy_ps
    }

    /// Counts lines that no access asked for: prefetched and never used, or of page tables.
    #[inline]
    pub fn read_unasked(&mut self, lines: u64) {
        self.unasked += lines;
    }

    /// Returns the bytes read and written.
    fn bytes(&self) -> (u64, u64) {
        let read = (self.loads() + self.stores() + self.unasked) * LINE_BYTES + self.copies.0;
        (read, self.stores() * LINE_BYTES + self.copies.1)
    }

    /// Returns the misses so far and the sum of their latencies: of loads alone, and of all.
    fn occupancies(&self) -> [(u64, u64); 2] {
        let misses = [self.accesses[LOAD], self.accesses[LOAD] + self.accesses[STORE]];
        std::array::from_fn(|index| {
            let (settled, occupancy) = self.settled[index];
            (misses[index], occupancy + (misses[index] - settled) * self.latency)
        })
    }

    /// Ends a block of `elapsed` program time, whose work began at `since` at the earliest, both in
    /// picoseconds: hands its bytes to the bandwidth servers and adapts the latency.
    pub(crate) fn settle(&mut self, since: u64, elapsed: u64) {
        let bytes = self.bytes();
        self.settled = self.occupancies();
        let read = (bytes.0 - self.served.0) as f64 * self.scale.0;
        let written = (bytes.1 - self.served.1) as f64 * self.scale.1;
        self.served = bytes;
        if elapsed > 0 {
            let time = elapsed as f64;
            let read = read + self.others * self.scale.0 * time;
            let held = (read + written) * self.latency as f64;
            self.load.add(Load { read, written, held, time });
            let in_flight = self.load.held / self.load.time;
            let delay = self.curves.delay(self.load.reads(), in_flight, self.idle_latency);
            self.latency = (self.idle_latency + delay) as u64;
        }
        // Other programs' reads take their share of any interval, however late the program is.
        let per_byte = self.curves.time_per_byte(self.load.reads()) / (1.0 - self.pressure);
        self.bus.serve(((read + written) * per_byte).round() as u64, since);
        let (copied_in, copied_out) = std::mem::take(&mut self.copied);
        let copied = copied_in as f64 * self.scale.0 + copied_out as f64 * self.scale.1;
        self.alone.serve(((read + written - copied) * per_byte).round() as u64, since);
    }

    pub(crate) fn late(&self, now: u64) -> u64 {
        self.bus.late(now)
    }

    /// Returns how late it would be without page copies.
    pub(crate) fn late_alone(&self, now: u64) -> u64 {
        self.alone.late(now)
    }

    /// Returns the counters, with times in nanoseconds.
    pub fn snapshot(&self) -> TierCounters {
        let (read, written) = self.bytes();
        let [(load_misses, load_occupancy), (_, occupancy)] = self.occupancies();
        TierCounters {
            load_misses,
            store_misses: self.accesses[STORE],
            bytes_read: Bytes(read),
            bytes_written: Bytes(written),
            stall: Nanos(self.stalls_ps.iter().sum::<u64>() / 1000),
            occupancy: occupancy / 1000,
            busy: self.busy_ps / 1000,
            load_occupancy: load_occupancy / 1000,
            load_busy: self.load_busy_ps / 1000,
        }
    }

    /// Counts a page copied from or to this tier.
    pub fn copy(&mut self, size: Bytes, written: bool) {
        let (total, since) = if written {
            (&mut self.copies.1, &mut self.copied.1)
        } else {
            (&mut self.copies.0, &mut self.copied.0)
        };
        *total += size.0;
        *since += size.0;
    }
}

/// Returns the share of a tier's time that other programs take.
fn pressure(profile: &TierProfile) -> f64 {
    let share = profile.pressure.unwrap_or(0) as f64 / profile.read_bandwidth.max(1) as f64;
    share.min(1.0 - LEFT)
}

/// Minimum share of a tier's time left to the program: memory controllers are fair to light users.
const LEFT: f64 = 0.1;
/// Weight of the last block in the moving sums of traffic.
const GAIN: f64 = 0.1;

/// Returns the picoseconds that `bytes` take at `bandwidth` bytes per second.
pub fn transfer_time(bytes: u64, bandwidth: u64) -> u64 {
    (u128::from(bytes) * SECOND_PS / u128::from(bandwidth.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Timing = Timing { stall: 0, busy: 0, load_busy: 0, prefetched: false, unasked: 0 };

    fn tier() -> Tier {
        pressed(None)
    }

    fn pressed(pressure: Option<u64>) -> Tier {
        Tier::new(&TierProfile {
            name: "test".into(),
            latency: Nanos(100),
            loaded_latency_factor: Some(3.0),
            read_bandwidth: 64_000_000_000,
            write_bandwidth: 32_000_000_000,
            pressure,
            ..TierProfile::default()
        })
    }

    #[test]
    fn what_others_read_is_missing_from_the_bandwidth_and_raises_the_latency() {
        let mut tier = pressed(Some(32_000_000_000));
        (0..1000).for_each(|_| tier.count(false, IDLE));
        tier.settle(0, 2_000_000);
        assert_eq!(tier.late(0), 2_000_000, "1000 lines take 2 us at the half of 64 GB/s that is left");
        // Only the others use half of the bandwidth: 1 + 2 x 0.5^3 times the idle latency.
        (0..300).for_each(|_| tier.settle(0, 1_000_000));
        assert!((tier.latency as f64 / 125_000.0 - 1.0).abs() < 0.01, "{}", tier.latency);
        let mut full = pressed(Some(640_000_000_000));
        full.count(false, IDLE);
        full.settle(0, 1000);
        assert!((9_900..10_100).contains(&full.late(0)), "a tenth is left: {}", full.late(0));
    }

    #[test]
    fn what_is_prefetched_is_read_and_served_but_no_miss() {
        let mut tier = tier();
        tier.count(false, Timing { prefetched: true, stall: 7, ..IDLE });
        tier.count(true, Timing { prefetched: true, ..IDLE });
        tier.count(false, IDLE);
        tier.read_unasked(3);
        let counters = tier.snapshot();
        assert_eq!((counters.load_misses, counters.store_misses, counters.occupancy), (1, 0, 100));
        assert_eq!((tier.loads(), tier.stores()), (2, 1));
        assert_eq!((tier.load_stall_ps(), tier.late_stall_ps()), (0, 7));
        assert_eq!((counters.bytes_read.0, counters.bytes_written.0), (6 * LINE_BYTES, LINE_BYTES));
    }

    #[test]
    fn transfers_are_late_by_what_exceeds_the_bandwidth() {
        let mut tier = tier();
        (0..1000).for_each(|_| tier.count(false, IDLE));
        tier.settle(0, 1_000_000);
        assert_eq!(tier.late(1_000_000), 0, "1000 lines take 1 us at 64 GB/s");
        assert_eq!(tier.late(400_000), 600_000);
    }

    #[test]
    fn copies_make_it_late_beyond_what_the_program_does() {
        let mut tier = tier();
        (0..1000).for_each(|_| tier.count(false, IDLE));
        tier.copy(Bytes(64_000), false);
        tier.settle(0, 1_000_000);
        assert_eq!((tier.late(0), tier.late_alone(0)), (2_000_000, 1_000_000));
    }

    #[test]
    fn latency_rises_to_its_factor_under_full_load_and_falls_back() {
        let mut tier = tier();
        for _ in 0..200 {
            (0..1000).for_each(|_| tier.count(false, IDLE));
            tier.settle(0, 1_000_000);
        }
        assert!((tier.latency as f64 / 300_000.0 - 1.0).abs() < 0.01, "{}", tier.latency);
        (0..200).for_each(|_| tier.settle(0, 1_000_000));
        assert!(tier.latency < 101_000, "{}", tier.latency);
    }
}
