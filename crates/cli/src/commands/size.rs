//! `isotherm size`: how much fast memory a program needs.

use isotherm_core::Nanos;
use isotherm_report::{Plan, Price};
use isotherm_sim::{Length, SizeExperiment, SizeReport, size};

use crate::args::SizeArgs;
use crate::commands::machines::load_profile;
use crate::commands::simulate::{load, of_input, parse_scale, select_policies, set_machine};
use crate::failure::Failure;
use crate::progress::Watch;
use crate::{fingerprint, output, policies, settings};

/// Policies without `--policy`: one of each kind that an operator can use, and the bounds.
const DEFAULT: [&str; 9] =
    ["first-touch", "isotherm", "lru", "tpp", "memtis", "freqtier", "hybridtier", "oracle", "belady"];

/// The run's length without `--for` and `--rounds`.
const LENGTH: Length = Length::Time(Nanos(600 * Nanos::SECOND.0));

/// Maximum budget: the slowest memory costs less.
const MAX_BUDGET: f64 = 100.0;

pub(crate) fn run(args: &SizeArgs) -> Result<(), Failure> {
    let (report, plan) = compute(args, &Watch::new(args.replay.quiet))?;
    if args.replay.json {
        return output::print(&format!("{}\n", isotherm_report::size_json(&report, &plan)));
    }
    output::print(&isotherm_report::size_table(&report, &plan))?;
    output::name_report(args.replay.report.as_deref(), args.replay.quiet);
    Ok(())
}

/// Does the work and writes the page; returns the result, and what the user plans with it.
pub(crate) fn compute(args: &SizeArgs, watch: &Watch) -> Result<(SizeReport, Plan), Failure> {
    let budget = parse_budget(&args.budget)?;
    let price = args.price.as_deref().map(parse_price).transpose()?;
    let plan = Plan { price, footprint: args.footprint };
    let length = args.length.length()?.unwrap_or(LENGTH);
    let mut settings = settings::parse(&args.replay.set)?;
    let policies = select_policies(&names(args), &mut settings)?;
    let mut profile = load_profile(&args.replay.machine)?;
    set_machine(&mut profile, &mut settings)?;
    let page = output::open(args.replay.report.as_ref())?;
    let runs = policies.len() as u64 * u64::from(args.seeds);
    let samples = (args.seeds.into(), args.sample);
    let loaded = load(&args.replay, &mut settings, (runs, samples), watch)?;
    let experiment = SizeExperiment {
        policies,
        profile: &profile,
        budget,
        seed: args.replay.seed,
        seeds: args.seeds,
        sample_accesses: args.sample,
        length: Some(length),
        scale: parse_scale(&args.replay.scale, loaded.scale)?,
        version: env!("CARGO_PKG_VERSION"),
        stop: Some(watch.flag()),
    };
    let bar = watch.bar(experiment.replays(), "sizing");
    let report = size(&loaded.input, &experiment, &|| bar.inc(1));
    let mut report = report.map_err(|error| of_input(&loaded.input, &error))?;
    report.manifest.binary = fingerprint::own();
    report.manifest.policy_libraries = policies::libraries(report.policies.iter().map(|sized| &sized.policy));
    bar.finish_and_clear();
    output::write(page, || isotherm_report::size_html(&report, &plan))?;
    Ok((report, plan))
}

fn names(args: &SizeArgs) -> Vec<String> {
    if !args.policy.is_empty() {
        return args.policy.clone();
    }
    let exists = |name: &&&str| isotherm_policies::ALL.iter().any(|entry| entry.name == **name);
    DEFAULT.iter().filter(exists).map(|&name| name.to_owned()).collect()
}

fn parse_budget(text: &str) -> Result<f64, Failure> {
    let trimmed = text.trim();
    let (number, unit) =
        trimmed.strip_suffix('%').map_or((trimmed, 1.0), |number| (number.trim_end(), 100.0));
    let budget = number.parse::<f64>().ok().map(|number| number / unit);
    // A bare 5 means 5 % to whoever writes it, and would be 500 %.
    let max = if unit > 1.0 { MAX_BUDGET } else { 1.0 - f64::EPSILON };
    budget.filter(|budget| (0.0..=max).contains(budget)).ok_or_else(|| {
        Failure::Usage(format!(
            "--budget {text}: expected a percentage, or a number below 1: 5% or 0.05 for five percent"
        ))
    })
}

fn parse_price(text: &str) -> Result<Price, Failure> {
    let pairs: Option<Vec<(&str, &str)>> = text.split(',').map(|pair| pair.split_once('=')).collect();
    let find = |name: &str| {
        let (_, price) = pairs.as_ref()?.iter().find(|(key, _)| key.trim() == name)?;
        price.trim().parse().ok().filter(|price: &f64| price.is_finite() && *price > 0.0)
    };
    match (find("dram"), find("cxl"), &pairs) {
        (Some(dram), Some(cxl), Some(pairs)) if pairs.len() == 2 => Ok(Price { dram, cxl }),
        _ => Err(Failure::Usage(format!("--price {text}: expected prices of a GB, such as dram=8,cxl=3"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_percentages_or_numbers() {
        let budget = |text| parse_budget(text).ok();
        assert_eq!((budget("5%"), budget("0.05"), budget(" 7.5 % ")), (Some(0.05), Some(0.05), Some(0.075)));
        assert_eq!((budget("0.99"), budget("150%")), (Some(0.99), Some(1.5)));
        for text in ["", "-1", "-5%", "NaN", "inf", "five", "%", "5%%", "1e3", "5", "1"] {
            assert_eq!(budget(text), None, "{text}");
        }
    }

    #[test]
    fn the_default_policies_exist() {
        let found = DEFAULT.iter().filter(|name| isotherm_policies::find(name).is_ok()).count();
        assert!(found >= 5, "{found}");
    }
}
