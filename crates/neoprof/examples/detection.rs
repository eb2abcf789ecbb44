//! Which share of GUPS's hot pages the device reports within one clear interval, and which share of its reports are hot, by
//! footprint and width: `cargo run --release -p isotherm-neoprof --example detection`.
//!
//! 90 % of accesses go to an eighth of the pages, a hundred to each hot page in an interval; hot pages are read 500 times in it (every
//! 10 ms of 5 s). The threshold comes from the interval before: half of a hot page's accesses above the histogram's error bound.

use isotherm_neoprof::registers::{RESET, SET_THRESHOLD};
use isotherm_neoprof::{Device, Model, ParameterError, Parameters, Registers, Request, read_hot_pages};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const HOT_ACCESSES: u64 = 100;
const READINGS: u64 = 500;
const DELTA: f64 = 0.25;

fn main() -> Result<(), ParameterError> {
    println!("| footprint | W | threshold | recall | precision |\n|---|---|---|---|---|");
    for gibibytes in [0.0625, 0.25, 1.0, 4.0, 16.0] {
        let pages = (gibibytes * 262_144.0) as u64;
        for width in [128 << 10, 512 << 10] {
            let (threshold, recall, precision) = detect(pages, width)?;
            let percent = |share: f64| format!("{:.2} %", 100.0 * share);
            println!(
                "| {gibibytes} GiB | {}K | {threshold} | {} | {} |",
                width >> 10,
                percent(recall),
                percent(precision)
            );
        }
    }
    Ok(())
}

/// The threshold, and recall and precision of the interval that it was in force.
fn detect(pages: u64, width: u32) -> Result<(u64, f64, f64), ParameterError> {
    let hot = pages / 8;
    let mut device = Model::new(Parameters { width, ..Parameters::default() })?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut interval = |device: &mut Model, found: &mut Vec<u64>| {
        let accesses = hot * HOT_ACCESSES * 10 / 9;
        for _ in 0..READINGS {
            let mut draw = || {
                let span = if random.random_bool(0.9) { hot } else { pages };
                random.random_range(0..span)
            };
            let requests: Vec<Request> =
                (0..accesses / READINGS).map(|_| Request { page: draw(), write: false }).collect();
            device.accesses(&requests);
            read_hot_pages(device, found);
        }
    };
    interval(&mut device, &mut Vec::new());
    let bound = device.histogram().error_bound(device.parameters().lanes, DELTA);
    let threshold = u64::from(bound) + HOT_ACCESSES / 2;
    device.write(SET_THRESHOLD, threshold);
    device.write(RESET, 1);
    let mut found = Vec::new();
    interval(&mut device, &mut found);
    found.sort_unstable();
    found.dedup();
    let right = found.iter().filter(|&&page| page < hot).count() as f64;
    Ok((threshold, right / hot as f64, right / found.len().max(1) as f64))
}
