//! Policies' own memory at the paper's size: structures are built, nothing is run.

use isotherm_core::{Bytes, PageSize, Pages, parse_share};
use isotherm_policies::{Kind, Setup};

use crate::figures::Settings;
use crate::run::{Failure, apply};

pub(crate) fn metadata_percent(
    policy: &str,
    settings: &Settings,
    footprint: &str,
    fast: &str,
) -> Result<f64, Failure> {
    let entry = isotherm_policies::find(policy)?;
    let bytes: Bytes = footprint.parse()?;
    let share = parse_share(fast).ok_or_else(|| format!("'{fast}' is no share of the footprint"))?;
    let Kind::Policy(build) = entry.kind else { return Err(format!("{policy} is a bound").into()) };
    let pages = bytes.0 >> PageSize::Base.shift();
    let fast = Pages((pages as f64 * share) as u64);
    let mut parameters = entry.parameters();
    apply(&mut parameters, settings, fast.0)?;
    let setup = Setup { pages: pages as usize, fast, page_size: PageSize::Base, tiers: 2, seed: 1 };
    let policy = build(&parameters, &setup)?;
    Ok(100.0 * policy.metadata().0 as f64 / bytes.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memtis_keeps_sixteen_bytes_a_page_whatever_is_fast() {
        let percent = |fast| metadata_percent("memtis", &Settings::new(), "1G", fast).expect("it is built");
        assert!((percent("12%") - 0.39).abs() < 0.05, "{}", percent("12%"));
        assert!((percent("12%") - percent("48%")).abs() < 0.01);
    }
}
