//! Numbers that come from a library, checked: a host must be able to rely on a plan.

use isotherm_core::{
    Copying, DeviceRequest, Nanos, PageId, Pages, Plan, Sampling, SamplingRate, SamplingScope, TierId, View,
};
use isotherm_policy::abi::{DeviceOrders, Orders, Request};

/// The most samples a second that a request may ask for.
const HIGHEST_FREQUENCY: u64 = 1_000_000_000;
/// The longest time that the program adds to others without overflow.
const LONGEST: u64 = u64::MAX / 4;
/// The most work of a step, of each kind.
const MOST_WORK: u64 = 1 << 40;

/// Reads a request for samples. Fails with the problem.
pub(crate) fn sampling(request: &Request) -> Result<Sampling, String> {
    let Request { rate, batch, tick, budget, fast_divisor, kind, scope, stores } = *request;
    let rate = match (kind, rate) {
        (0, _) => SamplingRate::Off,
        (1, 1..) => SamplingRate::Period(rate),
        (2, 1..=HIGHEST_FREQUENCY) => SamplingRate::Frequency(rate),
        (1, _) => return Err("it asks for samples with period 0; expected at least 1".into()),
        (2, _) => {
            return Err(format!("it asks for {rate} samples a second; expected 1 to {HIGHEST_FREQUENCY}"));
        }
        _ => return Err(format!("it asks for samples at a rate of kind {kind}; expected 0, 1 or 2")),
    };
    let scopes = [SamplingScope::AllTiers, SamplingScope::EachTier, SamplingScope::EachSlowTier];
    let scope = pick(&scopes, scope, "scope of samples")?;
    if !(1..=LONGEST).contains(&tick) {
        let [low, high] = [1, LONGEST].map(Nanos);
        return Err(format!("it asks for a step each {}; expected {low} to {high}", Nanos(tick)));
    }
    if batch == 0 || fast_divisor == 0 {
        return Err("it asks for batches of 0 samples, or a fast tier sampled 0 times rarer".into());
    }
    Ok(Sampling {
        rate,
        scope,
        fast_divisor,
        stores: stores != 0,
        batch: batch as usize,
        tick: Nanos(tick),
        budget: (budget != u64::MAX).then_some(Nanos(budget)),
    })
}

/// Returns the value of an index. Fails with the problem.
pub(crate) fn pick<T: Copy>(values: &[T], index: u8, of: &str) -> Result<T, String> {
    let found = values.get(usize::from(index)).copied();
    found.ok_or_else(|| format!("{index} is no {of}; expected less than {}", values.len()))
}

/// Reads a step's orders into an empty plan. Fails with the problem.
///
/// # Safety
/// All slices of the orders are valid.
pub(crate) unsafe fn read(orders: &Orders, view: &dyn View, plan: &mut Plan) -> Result<(), String> {
    let (pages, tiers) = (view.pages(), view.tiers());
    // SAFETY: by this function's contract.
    let (moves, reclaim, arm) = unsafe { (orders.moves.get(), orders.reclaim.get(), orders.arm.get()) };
    // SAFETY: by this function's contract.
    let (split, collapse) = unsafe { (orders.split.get(), orders.collapse.get()) };
    let page = |page: PageId, what: &str| match page.index() < pages {
        true => Ok(()),
        false => Err(format!("it {what} page {}; the run has {pages} pages, from 0 on", page.0)),
    };
    let tier = |tier: TierId, what: &str| match tier.index() < tiers {
        true => Ok(()),
        false => Err(format!("it {what} tier {}; the run has {tiers} tiers, from 0 on", tier.0)),
    };
    for order in moves {
        page(order.page, "moves")?;
        tier(order.to, "moves to")?;
    }
    reclaim.iter().try_for_each(|order| tier(order.from, "reclaims from"))?;
    arm.iter().try_for_each(|&armed| page(armed, "arms"))?;
    split.iter().try_for_each(|&asked| page(asked, "splits"))?;
    collapse.iter().try_for_each(|&asked| page(asked, "collapses"))?;
    let work = orders.work;
    if work.touches.max(work.operations).max(work.swept) > MOST_WORK || orders.sleep > LONGEST {
        return Err(format!(
            "it reports {work:?} and a sleep of {}: more than a step takes",
            Nanos(orders.sleep)
        ));
    }
    plan.moves.extend_from_slice(moves);
    plan.reclaim.extend(reclaim.iter().map(|&order| {
        let all = view.capacity(order.from);
        isotherm_core::Reclaim { pages: Pages(order.pages.0.min(all.0)), ..order }
    }));
    plan.arm.extend_from_slice(arm);
    plan.split.extend_from_slice(split);
    plan.collapse.extend_from_slice(collapse);
    plan.copying = if orders.transactional != 0 { Copying::Transactional } else { Copying::Exclusive };
    plan.device = (orders.asks != 0).then(|| device(&orders.device));
    plan.sampling = (orders.samples != 0).then(|| sampling(&orders.sampling)).transpose()?;
    plan.work = work;
    plan.sleep = Nanos(orders.sleep);
    Ok(())
}

fn device(orders: &DeviceOrders) -> DeviceRequest {
    let DeviceOrders { threshold, sets, clear, report } = *orders;
    DeviceRequest { threshold: (sets != 0).then_some(threshold), clear: clear != 0, report: report != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: Request = Request {
        rate: 7,
        batch: 100,
        tick: 5_000,
        budget: u64::MAX,
        fast_divisor: 1,
        kind: 1,
        scope: 0,
        stores: 1,
    };

    #[test]
    fn a_request_for_samples_is_read_as_it_was_meant() {
        let read = sampling(&REQUEST).expect("valid");
        let loads = Sampling::loads(SamplingRate::Period(7), SamplingScope::AllTiers, 100, Nanos(5_000));
        assert_eq!(read, loads.and_stores());
        let slow = sampling(&Request { scope: 2, kind: 2, budget: 9, stores: 0, ..REQUEST }).expect("valid");
        let rate = SamplingRate::Frequency(7);
        let expected = Sampling::loads(rate, SamplingScope::EachSlowTier, 100, Nanos(5_000));
        assert_eq!(slow, expected.within(Nanos(9)));
        assert_eq!(sampling(&Request { rate: 0, kind: 0, ..REQUEST }).expect("off").rate, SamplingRate::Off);
    }

    #[test]
    fn a_request_that_no_host_can_serve_is_refused() {
        for (request, words) in [
            (Request { rate: 0, ..REQUEST }, "period 0"),
            (Request { rate: 0, kind: 2, ..REQUEST }, "0 samples a second"),
            (Request { rate: u64::MAX, kind: 2, ..REQUEST }, "samples a second"),
            (Request { kind: 3, ..REQUEST }, "kind 3"),
            (Request { scope: 3, ..REQUEST }, "3 is no scope"),
            (Request { tick: 0, ..REQUEST }, "a step each 0ns"),
            (Request { tick: u64::MAX, ..REQUEST }, "a step each"),
            (Request { batch: 0, ..REQUEST }, "batches of 0"),
            (Request { fast_divisor: 0, ..REQUEST }, "0 times"),
        ] {
            let problem = sampling(&request).expect_err("refused");
            assert!(problem.contains(words), "{words}: {problem}");
        }
    }
}
