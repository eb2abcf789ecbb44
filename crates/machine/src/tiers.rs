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
    /// Counts of misses and bytes; [`Self::snapshot`] adds the times.
    pub counters: TierCounters,
    /// Retirement stalls in picoseconds.
    pub stall_ps: u64,
    occupancy_ps: u64,
    /// Time with a miss in flight, summed over threads, in picoseconds.
    pub busy_ps: u64,
    load_occupancy_ps: u64,
    /// As `busy_ps`, among loads alone.
    pub load_busy_ps: u64,
    /// As `stall_ps`, for loads that missed.
    pub load_stall_ps: u64,
    /// Stall for loads whose prefetched lines were still in flight.
    pub late_stall_ps: u64,
    /// Accesses whose line had been prefetched, arrived or not.
    prefetched_loads: u64,
    prefetched_stores: u64,
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
        self.counters.bytes_read.0 += LINE_BYTES;
        self.counters.bytes_written.0 += u64::from(store) * LINE_BYTES;
        self.stall_ps += timing.stall;
        if timing.prefetched {
            self.prefetched_loads += u64::from(!store);
            self.prefetched_stores += u64::from(store);
            self.late_stall_ps += if store { 0 } else { timing.stall };
            return;
        }
        self.counters.load_misses += u64::from(!store);
        self.counters.store_misses += u64::from(store);
        self.occupancy_ps += self.latency;
        self.busy_ps += timing.busy;
        if !store {
            self.load_stall_ps += timing.stall;
            self.load_occupancy_ps += self.latency;
            self.load_busy_ps += timing.load_busy;
        }
    }

    /// Returns the loads that this tier served, prefetched ones included.
    pub fn loads(&self) -> u64 {
        self.counters.load_misses + self.prefetched_loads
    }

    /// Returns the stores that this tier served, prefetched ones included.
    pub fn stores(&self) -> u64 {
        self.counters.store_misses + self.prefetched_stores
    }

    /// Counts lines that no access asked for: prefetched and never used, or of page tables.
    #[inline]
    pub fn read_unasked(&mut self, lines: u64) {
        self.counters.bytes_read.0 += lines * LINE_BYTES;
    }

    /// Ends a block of `elapsed` program time, whose work began at `since` at the earliest, both in
    /// picoseconds: hands its bytes to the bandwidth servers and adapts the latency.
    pub(crate) fn settle(&mut self, since: u64, elapsed: u64) {
        let bytes = (self.counters.bytes_read.0, self.counters.bytes_written.0);
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
        TierCounters {
            stall: Nanos(self.stall_ps / 1000),
            occupancy: self.occupancy_ps / 1000,
            busy: self.busy_ps / 1000,
            load_occupancy: self.load_occupancy_ps / 1000,
            load_busy: self.load_busy_ps / 1000,
            ..self.counters
        }
    }

    /// Counts a page copied from or to this tier.
    pub fn copy(&mut self, size: Bytes, written: bool) {
        if written {
            self.counters.bytes_written += size;
            self.copied.1 += size.0;
        } else {
            self.counters.bytes_read += size;
            self.copied.0 += size.0;
        }
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

    const IDLE: Timing = Timing { stall: 0, busy: 0, load_busy: 0, prefetched: false, wasted: false };

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
        assert_eq!((tier.stall_ps, tier.load_stall_ps, tier.late_stall_ps), (7, 0, 7));
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
