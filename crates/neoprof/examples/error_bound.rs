//! Prints the error bound and the true error at the widths of the paper's Fig. 15c, on a GUPS of 16 GiB and a
//! Zipf stream: `cargo run --release -p isotherm-neoprof --example error_bound`.

#[path = "../tests/support/mod.rs"]
mod support;

use isotherm_neoprof::Parameters;
use support::{Stream, measure};

const ACCESSES: usize = 40_000_000;
const PAGES: usize = 4 << 20;
const DELTA: f64 = 0.25;

fn main() {
    println!("| stream | W | bound | mean error | pages beyond the bound |\n|---|---|---|---|---|");
    for (name, stream) in [("gups", Stream::gups(ACCESSES, PAGES)), ("zipf", Stream::zipf(ACCESSES, PAGES))] {
        for kilo in [32, 64, 128, 256, 512] {
            let parameters = Parameters { width: kilo << 10, ..Parameters::default() };
            let result = measure(&stream, parameters, DELTA);
            let beyond = 100.0 * result.beyond;
            println!("| {name} | {kilo}K | {} | {:.2} | {beyond:.2} % |", result.bound, result.mean_error);
        }
    }
}
