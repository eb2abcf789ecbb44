//! A made-up live run of realistic shape: a shadow run of HybridTier that finds its hot set within seconds.
//! It is deterministic; its numbers are not results.

use isotherm_core::live_result::{
    CounterOrigin, EngineUse, HotPages, HotSet, HotShare, Intervals, LiveResult, MemoryRange, Missing,
    Moment, Refused, SourceUse, Summary, TierUse, Traffic,
};
use isotherm_core::{Bytes, Nanos, PageSize};

use super::{Noise, manifest};

const MIB: u64 = 1 << 20;
const FOOTPRINT: u64 = 2048 * MIB;
const FAST: u64 = 256 * MIB;
/// Time between two moments.
const DISTANCE: f64 = 0.2;

/// Returns a run of 30 seconds.
pub fn live() -> LiveResult {
    lasting(150)
}

/// Returns a run with this many moments.
pub fn lasting(moments: usize) -> LiveResult {
    let timeline = timeline(moments);
    let last = timeline.last().cloned().expect("a moment");
    let half = &timeline[moments / 2].hits;
    let ratio = |fast: u64, slow: u64| fast as f64 / (fast + slow) as f64;
    let steady = ratio(last.hits[0] - half[0], last.hits[1] - half[1]);
    let (whole, slowdown) = (ratio(last.hits[0], last.hits[1]), steady + (1.0 - steady) * 180.0 / 80.0);
    let entry = isotherm_policies::find("hybridtier").expect("a policy of the registry");
    let tier = |index: usize, latency, capacity| TierUse {
        nodes: vec![index as u32],
        stall_ns: Nanos(0),
        latency_ns: Nanos(latency),
        capacity_bytes: Bytes(capacity),
        resident_bytes: last.resident_bytes[index],
        hits: last.hits[index],
    };
    let summary = Summary {
        started_unix_s: 1_790_000_000,
        process_names: ["redis-server", "redis-rdb-bgsave"].map(String::from).into(),
        hits_measured: false,
        counters: CounterOrigin::None,
        cautions: vec!["1.50 samples for each page in use: below 2, hot pages are missed".into()],
        duration_ns: last.time_ns,
        processes: 3,
        shadow: true,
        page_size: PageSize::Base,
        footprint_bytes: Bytes(FOOTPRINT),
        swapped_bytes: Bytes(0),
        zswapped_bytes: Some(Bytes(0)),
        tiers: vec![tier(0, 80, FAST), tier(1, 180, 8192 * MIB)],
        hit_ratio: Some(whole),
        final_hit_ratio: Some(steady),
        slowdown_at_most: Some(slowdown),
        intervals: Intervals {
            hit_ratio: Some([whole - 0.021, whole + 0.018]),
            final_hit_ratio: Some([steady - 0.012, steady + 0.008]),
            slowdown_at_most: Some([slowdown - 0.02, slowdown + 0.03]),
        },
        missing: None,
        traffic: last.traffic,
        sources: sources(last.samples),
        samples_foreign: 77,
        engine: EngineUse {
            cpu_ns: Nanos(410_000_000),
            cpu_share: 0.0187,
            metadata_bytes: Bytes(768 << 10),
            host_bytes: Bytes(5 * MIB),
        },
        hot_set: hot_set(),
        timeline,
        warnings: vec![
            "hint-faults: 3 mappings of process 4711 are shared with a device and were left alone".into(),
        ],
    };
    LiveResult {
        version: "0.1.0".into(),
        manifest: manifest(),
        program: ["/usr/bin/redis-server", "--port", "7777"].map(String::from).into(),
        policy: entry.name.into(),
        parameters: entry.parameters(),
        seed: 1,
        scale: 130.5,
        time_scale: 16.25,
        resized: 2,
        steps: 2900,
        samples: last.samples - 77,
        hint_faults: 12,
        samples_lost: 431,
        exit_status: Some(0),
        summary,
    }
}

/// Returns a run that ended before anything was seen.
pub fn empty() -> LiveResult {
    let mut result = live();
    let summary = &mut result.summary;
    (summary.duration_ns, summary.processes) = (Nanos(3_200_000), 1);
    summary.footprint_bytes = Bytes(0);
    for tier in &mut summary.tiers {
        (tier.resident_bytes, tier.hits) = (Bytes(0), 0);
    }
    summary.tiers[0].capacity_bytes = Bytes(0);
    (summary.hit_ratio, summary.final_hit_ratio, summary.slowdown_at_most) = (None, None, None);
    (summary.traffic, summary.engine) = (Traffic::default(), EngineUse::default());
    (summary.samples_foreign, summary.hot_set) = (0, HotSet::default());
    summary.intervals = Intervals::default();
    summary.missing = Some(Missing::default());
    summary.sources.clear();
    summary.timeline.clear();
    summary.warnings.clear();
    summary.cautions.clear();
    (result.resized, result.steps, result.samples, result.hint_faults, result.samples_lost) = (0, 0, 0, 0, 0);
    result
}

fn sources(samples: u64) -> Vec<SourceUse> {
    let hint_faults = SourceUse {
        name: "hint-faults",
        delivered: samples,
        lost: 431,
        throttled: 2,
        foreign: 19,
        agent_cpu_ns: Nanos(150_000_000),
        program_ns: Nanos(97_000_000),
        memory_bytes: Bytes(2 * MIB),
        left_out_share: Some(0.031),
    };
    let bits = SourceUse {
        name: "accessed-bits",
        delivered: 0,
        lost: 0,
        throttled: 0,
        left_out_share: None,
        ..hint_faults.clone()
    };
    vec![hint_faults, bits]
}

fn hot_set() -> HotSet {
    let share = |accesses, mib: u64| HotShare {
        accesses,
        bytes: Bytes(mib * MIB),
        low_bytes: Bytes(mib * MIB / 8 * 7),
        high_bytes: Bytes(mib * MIB / 8 * 9),
    };
    let range = |index: u64| MemoryRange {
        process: 4711,
        start: 0x7f3a_0000_0000 + index * 0x40_0000,
        bytes: Bytes(4096 * (1 + index % 9)),
        accesses: 90_000 / (index + 1) * (1 + index % 9),
    };
    HotSet {
        shares: vec![share(0.5, 61), share(0.9, 205), share(0.95, 260), share(0.99, 730)],
        hot: HotPages {
            at_least: 3,
            bytes: Bytes(205 * MIB),
            low_bytes: Bytes(198 * MIB),
            high_bytes: Bytes(212 * MIB),
            accesses: 0.91,
            low_accesses: 0.89,
            high_accesses: 0.93,
            ranges: (0..20).map(range).collect(),
        },
        fast_ranges: (0..40).map(range).collect(),
    }
}

/// Returns gauges: the hit ratio climbs as pages move, and sampling slows down when it is high.
fn timeline(moments: usize) -> Vec<Moment> {
    let mut noise = Noise(7);
    let (mut hits, mut samples) = ([0u64; 2], 0);
    let mut traffic = Traffic::default();
    let moment = |index: usize| {
        let learned = 1.0 - (-(index as f64) / moments as f64 * 6.0).exp();
        let rate = 40_000.0 * (1.0 - 0.7 * learned) * (0.9 + 0.2 * noise.next()) * DISTANCE;
        let ratio = 0.2 + 0.72 * learned + 0.02 * noise.next();
        let moved = (9_000.0 * (1.0 - learned) * noise.next()) as u64;
        hits[0] += (rate * ratio) as u64;
        hits[1] += (rate * (1.0 - ratio)) as u64;
        samples += rate as u64;
        traffic.promotions += moved;
        traffic.demotions += moved * 9 / 10;
        traffic.reclaimed += moved / 20;
        traffic.bytes_moved = Bytes((traffic.promotions + traffic.demotions) * 4096);
        traffic.refused =
            Refused { no_room: traffic.promotions / 200, busy: 11, gone: 5, swapped: 2, denied: 1 };
        let mapped = (FOOTPRINT as f64 * (index as f64 / moments as f64 * 4.0).min(1.0)) as u64;
        let gauges = vec![
            ("hot-pages", (50_000.0 * learned).round()),
            ("hot-threshold", 5.0 - (2.0 * learned).round()),
            ("saturated-pages", (900.0 * noise.next()).round()),
            ("second-chances", (300.0 * learned).round()),
        ];
        Moment {
            time_ns: Nanos(((index + 1) as f64 * DISTANCE * 1e9) as u64),
            resident_bytes: vec![Bytes(mapped.min(FAST)), Bytes(mapped.saturating_sub(FAST))],
            hits: hits.into(),
            traffic,
            samples,
            gauges,
        }
    };
    (0..moments).map(moment).collect()
}
