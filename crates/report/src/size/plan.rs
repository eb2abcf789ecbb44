//! The step from a sizing to a machine: its price, and the program at the size that it has there.

use isotherm_core::Bytes;
use serde::Serialize;

use crate::format::percent;

/// Bytes of the GB in which memory is sold.
const GB: f64 = (1u64 << 30) as f64;

/// The machine that the user asks about.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Plan {
    /// Prices of memory.
    pub price: Option<Price>,
    /// The program's memory there, if it is not the recording's.
    pub footprint: Option<Bytes>,
}

/// Prices of a GB (2^30 bytes), in any currency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Of fast memory.
    pub dram: f64,
    /// Of slow memory.
    pub cxl: f64,
}

/// A plan for a size of fast memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Planned {
    /// The program's memory.
    pub footprint_bytes: Bytes,
    /// The part of it that is DRAM: the same share as in the sizing.
    pub fast_bytes: Bytes,
    /// The rest.
    pub slow_bytes: Bytes,
    /// Price of both; `None` without prices.
    pub price: Option<f64>,
    /// Price with all of it DRAM; `None` without prices.
    pub price_all_dram: Option<f64>,
}

impl Plan {
    /// Returns the plan for `fast` of `whole`; `None` if nothing was asked.
    pub(crate) fn planned(&self, fast: Bytes, whole: Bytes) -> Option<Planned> {
        if *self == Self::default() {
            return None;
        }
        let footprint_bytes = self.footprint.unwrap_or(whole);
        let share = fast.0 as f64 / whole.0.max(1) as f64;
        let fast_bytes = Bytes((share * footprint_bytes.0 as f64).ceil() as u64).min(footprint_bytes);
        let slow_bytes = Bytes(footprint_bytes.0 - fast_bytes.0);
        let gigabytes = |bytes: Bytes| bytes.0 as f64 / GB;
        let price = |price: Price| price.dram * gigabytes(fast_bytes) + price.cxl * gigabytes(slow_bytes);
        Some(Planned {
            footprint_bytes,
            fast_bytes,
            slow_bytes,
            price: self.price.map(price),
            price_all_dram: self.price.map(|price| price.dram * gigabytes(footprint_bytes)),
        })
    }

    /// Says what the machine needs and costs, and what of the sizing holds there.
    pub(super) fn notes(&self, planned: &Planned) -> Vec<String> {
        let Planned { footprint_bytes, fast_bytes, slow_bytes, .. } = planned;
        let step = self.footprint.map(|_| {
            format!(
                "With {footprint_bytes} of memory: {fast_bytes} of DRAM and {slow_bytes} of slow memory. Carried over: the \
                 share of its memory that is hot, and what a miss costs. Not carried over: how much of the larger memory \
                 the caches hold, the bandwidth that more threads need, and the time that a policy takes to learn more \
                 pages. `isotherm run --shadow` there tells whether the share is the same."
            )
        });
        let cost = planned.price.zip(planned.price_all_dram).map(|(price, all)| {
            format!(
                "Its {footprint_bytes} cost {price:.2} in place of {all:.2} with all of it DRAM: {} less, before what \
                 the slow memory's device costs.",
                percent(1.0 - price / all)
            )
        });
        step.into_iter().chain(cost).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_carry_over_and_prices_are_a_gb() {
        let (gb, price) = (1u64 << 30, Price { dram: 8.0, cxl: 3.0 });
        assert_eq!(Plan::default().planned(Bytes(1), Bytes(4)), None);
        let plan = Plan { price: Some(price), footprint: Some(Bytes(512 * gb)) };
        let planned = plan.planned(Bytes(gb), Bytes(4 * gb)).expect("asked for");
        assert_eq!((planned.fast_bytes, planned.slow_bytes), (Bytes(128 * gb), Bytes(384 * gb)));
        assert_eq!((planned.price, planned.price_all_dram), (Some(2176.0), Some(4096.0)));
        let notes = plan.notes(&planned).join(" ");
        assert!(notes.contains("128G of DRAM and 384G") && notes.contains("46.9 % less"), "{notes}");
        let all = plan.planned(Bytes(4 * gb), Bytes(4 * gb)).expect("asked for");
        assert_eq!(all.slow_bytes, Bytes(0));
    }
}
