//! Prints which share of GUPS's hot pages the device reports within one clear interval, and which share of
//! its reports is hot, by footprint and width: `cargo run --release -p isotherm-neoprof --example detection`.
//!
//! 90 % of the accesses go to an eighth of the pages, scattered over the device: in an interval about a
//! hundred to each hot page and one or two to each other page. Hot pages are read 500 times per interval
//! (every 10 ms of 5 s). The threshold is half of a hot page's accesses, so exact counts would make no error.

use std::collections::HashSet;

use isotherm_neoprof::registers::SET_THRESHOLD;
use isotherm_neoprof::{Device, Model, ParameterError, Parameters, Registers, Request, read_hot_pages};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const HOT_ACCESSES: u64 = 100;
const READINGS: u64 = 500;
const DELTA: f64 = 0.25;

fn main() -> Result<(), ParameterError> {
    println!("| footprint | W | error bound | recall | precision |\n|---|---|---|---|---|");
    for gibibytes in [0.0625, 0.25, 1.0, 4.0, 16.0] {
        let pages = (gibibytes * 262_144.0) as u64;
        for width in [128 << 10, 512 << 10] {
            let (bound, recall, precision) = detect(pages, width)?;
            let percent = |share: f64| format!("{:.2} %", 100.0 * share);
            println!(
                "| {gibibytes} GiB | {}K | {bound} | {} | {} |",
                width >> 10,
                percent(recall),
                percent(precision)
            );
        }
    }
    Ok(())
}

/// Returns the error bound at the interval's end, and the recall and precision of the reports.
fn detect(pages: u64, width: u32) -> Result<(u32, f64, f64), ParameterError> {
    let hot = pages / 8;
    let mut device = Model::new(Parameters { width, ..Parameters::default() })?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    device.write(SET_THRESHOLD, HOT_ACCESSES / 2);
    let mut found = Vec::new();
    for _ in 0..READINGS {
        let mut draw = || {
            let span = if random.random_bool(0.9) { hot } else { pages };
            scattered(random.random_range(0..span))
        };
        let requests: Vec<Request> = (0..hot * HOT_ACCESSES * 10 / 9 / READINGS)
            .map(|_| Request { page: draw(), write: false })
            .collect();
        device.accesses(&requests);
        read_hot_pages(&mut device, &mut found);
    }
    let hot: HashSet<u64> = (0..hot).map(scattered).collect();
    let bound = device.histogram().error_bound(device.parameters().lanes, DELTA);
    found.sort_unstable();
    found.dedup();
    let right = found.iter().filter(|page| hot.contains(page)).count() as f64;
    Ok((bound, right / hot.len() as f64, right / found.len().max(1) as f64))
}

/// Scatters a program's pages over the device, no two to the same place, since each step is invertible.
fn scattered(page: u64) -> u64 {
    let mixed = page.wrapping_mul(0x9e37_79b1) & u64::from(u32::MAX);
    mixed ^ mixed >> 16
}
