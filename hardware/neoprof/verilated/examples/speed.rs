//! Prints how many accesses per second of this thread's CPU time the simulated hardware handles: `cargo run
//! --release --example speed`.

use isotherm_neoprof::{Device, Registers, Request, registers};
use isotherm_neoprof_rtl::{Rtl, Variant};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Returns this thread's CPU time in nanoseconds: the first field of its schedstat.
fn cpu_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel with schedstat");
    text.split(' ').next().and_then(|field| field.parse().ok()).expect("a number")
}

fn main() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let requests: Vec<Request> =
        (0..2_000_000).map(|_| Request { page: random.random_range(0..4 << 20), write: false }).collect();
    for variant in Variant::ALL {
        let mut rtl = Rtl::new(variant);
        rtl.write(registers::SET_THRESHOLD, 20);
        let start = cpu_nanos();
        rtl.accesses(&requests);
        rtl.drain();
        let rate = requests.len() as f64 * 1e3 / (cpu_nanos() - start) as f64;
        println!("{variant:?}: {rate:.1} M accesses/s");
    }
}
