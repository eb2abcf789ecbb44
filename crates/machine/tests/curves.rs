//! A simulated chase beside load generators measures the curve that its tier was given.

mod support;

use isotherm_machine::{Curve, Point};
use support::{Bench, GENERATORS, gap, sweep};

/// Distance that a simulated latency may have from a measured one, up to this part of the curve's bandwidth.
const TOLERANCE: f64 = 0.05;
const UP_TO: f64 = 0.9;

/// Returns the latency of the measurements at a bandwidth, on the line between two of them.
fn measured(points: &[Point], bandwidth: f64) -> f64 {
    let above =
        points.iter().position(|point| point.bandwidth >= bandwidth).expect("within the curve").max(1);
    let (low, high) = (points[above - 1], points[above]);
    let weight = ((bandwidth - low.bandwidth) / (high.bandwidth - low.bandwidth)).max(0.0);
    low.latency + (high.latency - low.latency) * weight
}

#[test]
fn a_chase_beside_load_measures_the_curve_of_its_tier() {
    let mut curves = 0;
    for name in Curve::names() {
        let curve = Curve::builtin(name).expect("its own name");
        for points in curve.points().chunk_by(|a, b| a.read_percent == b.read_percent) {
            let (percent, end) = (points[0].read_percent, points[points.len() - 1].bandwidth);
            let simulated = sweep(name, percent / 100.0, end, 50);
            let within: Vec<_> = simulated.iter().filter(|point| point.bandwidth <= UP_TO * end).collect();
            let distance = |point: &&support::Measured| {
                let expected = measured(points, point.bandwidth);
                assert!(
                    (point.latency / expected - 1.0).abs() <= TOLERANCE,
                    "{name}, {percent} % reads: {point:?} where {expected:.1} ns were measured"
                );
                (point.latency / expected - 1.0).abs()
            };
            let worst = within.iter().map(distance).fold(0.0, f64::max);
            let last = within.last().expect("a point").bandwidth / end;
            println!("{name}, {percent} % reads: {:.2} % off at most, up to {last:.3}", 100.0 * worst);
            assert!(within.len() >= 10 && last > 0.85, "{name}, {percent} % reads: {within:?}");
            curves += 1;
        }
    }
    assert!(curves >= 27, "{curves} curves");
}

#[test]
fn near_its_end_a_curve_settles_on_what_is_in_flight() {
    // The steepest curves, and misses in flight that fit their steepest parts.
    let cases =
        [("cxl-model", 60, "1"), ("cxl-model", 90, "1"), ("cxl-model", 90, "2"), ("xeon-8480-ddr5", 57, "5")];
    for (name, percent, registers) in cases {
        let reads = f64::from(percent) / 100.0;
        let mut bench = Bench::new(&[("tier.0.curve", name), ("core.miss_registers", registers)]);
        let point = bench.run(reads, 1, 300);
        let latencies: Vec<f64> = (0..300).map(|_| (bench.run(reads, 1, 1), bench.latency()).1).collect();
        let [low, high] =
            [f64::min, f64::max].map(|pick| latencies.iter().copied().reduce(pick).expect("some"));
        assert!(high < low * 1.03, "{name}, {percent} %, {registers}: {low:.1} to {high:.1} ns");
        // Each generator's misses hold a line each, and reads are a part of the bytes.
        let lines = f64::from(GENERATORS) * registers.parse::<f64>().expect("a number") + 1.0;
        let held = lines * 64.0 / reads;
        let ratio = point.bandwidth * point.latency / held;
        assert!((0.95..1.05).contains(&ratio), "{name}, {percent} %, {registers}: {point:?}, {ratio:.3}");
    }
}

#[test]
fn a_full_memory_serves_its_bandwidth_and_no_more() {
    for (name, percent, end) in [("cxl-model", 90, 29.5), ("xeon-8480-ddr5", 57, 191.8)] {
        let reads = f64::from(percent) / 100.0;
        let point = Bench::with_curve(name).run(reads, 1, 1000);
        assert!((0.98..1.02).contains(&(point.bandwidth / end)), "{name}: {point:?}");
    }
}

#[test]
fn a_tier_between_two_measured_shares_lies_between_their_curves() {
    let at = |reads: f64| {
        let mut bench = Bench::with_curve("xeon-8480-ddr5");
        let gap = gap(reads, 160.0);
        bench.run(reads, gap, 100);
        bench.run(reads, gap, 100).latency
    };
    let [writing, mixed, reading] = [0.74, 0.82, 0.9].map(at);
    assert!(reading + 3.0 < mixed && mixed + 3.0 < writing, "{reading:.1} {mixed:.1} {writing:.1}");
}

#[test]
fn latency_and_bandwidths_of_a_profile_move_its_curve() {
    let curve = [("tier.0.curve", "xeon-8480-ddr5")];
    let moved = [
        ("tier.0.curve", "xeon-8480-ddr5"),
        ("tier.0.latency", "315ns"),
        ("tier.0.read_bandwidth", "120.3GB/s"),
        ("tier.0.write_bandwidth", "41.237GB/s"),
    ];
    let run = |tier: &[(&str, &str)], bandwidth: f64| {
        let mut bench = Bench::new(tier);
        let gap = gap(0.74, bandwidth);
        bench.run(0.74, gap, 100);
        bench.run(0.74, gap, 100).latency
    };
    for bandwidth in [20.0, 100.0, 160.0] {
        let (plain, moved) = (run(&curve, bandwidth), run(&moved, bandwidth / 2.0));
        assert!((moved - plain - 200.0).abs() < 4.0, "{plain:.1} {moved:.1}");
    }
}
