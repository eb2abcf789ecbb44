//! Prints what the simulated chase measures on each built-in curve, for `scripts/memory-curves.py`:
//!
//! ```sh
//! cargo run --release -p isotherm-machine --example curves
//! ```

#[path = "../tests/support/mod.rs"]
mod support;

use isotherm_machine::Curve;

fn main() {
    println!("curve,read_percent,bandwidth_gb_s,latency_ns");
    for name in Curve::names() {
        let curve = Curve::builtin(name).expect("its own name");
        for points in curve.points().chunk_by(|a, b| a.read_percent == b.read_percent) {
            let (percent, end) = (points[0].read_percent, points[points.len() - 1].bandwidth);
            for point in support::sweep(name, percent / 100.0, end, 400) {
                println!("{name},{percent},{:.2},{:.2}", point.bandwidth, point.latency);
            }
        }
    }
}
