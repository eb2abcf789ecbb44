//! The error bound of section IV-B against the true error on skewed streams, over many draws of the hash
//! functions.

mod support;

use isotherm_neoprof::{Accuracy, Parameters, estimates};
use support::{Stream, measure};

/// Returns the means, over several draws of the hash functions, of the share of pages beyond the bound, the
/// bound and the error.
fn over_draws(stream: &Stream, width: u32, delta: f64) -> (f64, f64, f64) {
    let draws = 6;
    let results: Vec<Accuracy> = (0..draws)
        .map(|seed| measure(stream, Parameters { width, seed, ..Parameters::default() }, delta))
        .collect();
    let mean = |of: &dyn Fn(&Accuracy) -> f64| results.iter().map(of).sum::<f64>() / f64::from(draws as u32);
    (
        mean(&|result| result.beyond),
        mean(&|result| f64::from(result.bound)),
        mean(&|result| result.mean_error),
    )
}

fn holds(name: &str, stream: &Stream) {
    let mut bounds = Vec::new();
    for width in [4 << 10, 16 << 10, 64 << 10] {
        for delta in [0.25, 0.0625] {
            let (beyond, bound, error) = over_draws(stream, width, delta);
            println!(
                "{name} W {width} delta {delta}: bound {bound:.1}, mean error {error:.2}, beyond {beyond:.4}"
            );
            assert!(beyond <= delta, "{name}, W = {width}: {beyond} of the pages beyond a bound for {delta}");
            if delta == 0.25 {
                bounds.push(bound);
            }
        }
    }
    // Wider sketches have smaller bounds (Fig. 15c), and the bound is not trivial: with few entries most
    // pages have errors.
    assert!(bounds.is_sorted_by(|narrow, wide| narrow > wide), "{bounds:?}");
}

#[test]
fn the_bound_holds_with_its_probability_on_gups() {
    holds("gups", &Stream::gups(400_000, 32 << 10));
}

#[test]
fn the_bound_holds_with_its_probability_on_zipf() {
    holds("zipf", &Stream::zipf(400_000, 128 << 10));
}

#[test]
fn the_bound_is_zero_where_most_entries_are_untouched() {
    let stream = Stream::gups(100_000, 8 << 10);
    let result = measure(&stream, Parameters::default(), 0.25);
    assert_eq!(result.bound, 0);
    assert!(result.beyond < 0.01, "{}", result.beyond);
}

#[test]
fn a_sketch_counts_no_page_too_low() {
    let stream = Stream::zipf(50_000, 8 << 10);
    let parameters = Parameters { width: 1 << 10, ..Parameters::default() };
    assert!(
        stream
            .counts
            .iter()
            .zip(estimates(&parameters, &stream.counts))
            .all(|(&count, estimate)| estimate >= count)
    );
}

#[test]
fn counters_that_are_full_are_no_error() {
    let stream = Stream::zipf(200_000, 1 << 10);
    let parameters = Parameters { counter_bits: 8, ..Parameters::default() };
    let estimates = estimates(&parameters, &stream.counts);
    assert_eq!(estimates.iter().max(), Some(&255));
    let result = measure(&stream, parameters, 0.25);
    assert_eq!(
        (result.bound, result.beyond, result.mean_error),
        (0, 0.0, 0.0),
        "512K entries for 1,024 pages"
    );
}
