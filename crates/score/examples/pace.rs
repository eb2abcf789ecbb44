//! Measures every workload's pace beside its sources, and finds the number of instructions that each asks
//! for: `cargo run --release -p isotherm-score --example pace -- [NAME...]` (`make pace`).
//!
//! The figures belong into `crates/workloads/src/pace.rs` (CacheLib's instructions into its settings).

use isotherm_core::parameters::Value;
use isotherm_score::pace::{measure, parameter, ratio};
use isotherm_workloads::{ALL, Original, Source, Workload, find};

/// Finds the number of instructions that gives the original's pace, by secants; instructions alone decide
/// where little waits for memory, so that few steps do.
/// `ours` is what the present number, `now`, gives.
fn wanted(
    workload: &'static Workload,
    source: &Source,
    now: f64,
    ours: f64,
) -> Result<f64, Box<dyn std::error::Error>> {
    if let (Original::Recorded { .. }, "instruction_factor") = (source.original, parameter(workload)) {
        return Ok(now * ratio(source, ours));
    }
    // Slowness is nearly linear in the instructions, and is 1 where the pace is the original's.
    let slowness = |value: f64| -> Result<f64, Box<dyn std::error::Error>> {
        Ok(1.0 / ratio(source, measure(workload, source, Some(value)).map_err(|error| error.to_string())?))
    };
    let round = |value: f64| if parameter(workload) == "instructions" { value.round() } else { value };
    let (mut one, mut two) = (now, round(now * 2.0));
    let (mut at_one, mut at_two) = (1.0 / ratio(source, ours), slowness(two)?);
    for _ in 0..3 {
        let next = round(one + (1.0 - at_one) * (two - one) / (at_two - at_one));
        if !(0.01..1e6).contains(&next) {
            return Ok(f64::NAN);
        }
        (one, at_one) = (two, at_two);
        (two, at_two) = (next, slowness(next)?);
        if (at_two - 1.0).abs() < 0.01 || one == two {
            break;
        }
    }
    Ok(two)
}

fn line(workload: &'static Workload) -> Result<(), Box<dyn std::error::Error>> {
    let parameters = workload.parameters();
    let now = match parameters.value(parameter(workload)) {
        Some(Value::Number(factor)) => factor,
        Some(Value::Count(count)) => count as f64,
        _ => 1.0,
    };
    if workload.pace().sources.is_empty() {
        println!("{:<18} no source", workload.name);
    }
    for source in workload.pace().sources {
        let ours = measure(workload, source, None).map_err(|error| error.to_string())?;
        let (original, unit) = match source.original {
            Original::Recorded { instructions_a_miss, .. } => (instructions_a_miss, "instructions a miss"),
            Original::Printed { units_a_second, .. } => (units_a_second, "units a second"),
        };
        println!(
            "{:<18} ours {ours:>11.1}  original {original:>11.1} {unit:<19}  ratio {:.3}  {} = {now} -> {:.3}  {}",
            workload.name,
            ratio(source, ours),
            parameter(workload),
            wanted(workload, source, now, ours)?,
            source.place,
        );
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        return ALL.iter().try_for_each(|workload| line(workload));
    }
    names.iter().try_for_each(|name| line(find(name)?))
}
