//! Data of the page's script: the run's moments in columns, with differences between neighbours.

use isotherm_core::Nanos;
use isotherm_core::live_result::{LiveResult, Moment, Traffic};
use serde_json::{Value, json};

use crate::html::{gauges, merge_factor, rounded};

/// Moments in a picture. Their counts are sums from the start, so that leaving some out keeps sums true.
const MAX_MOMENTS: usize = 600;
/// Tiers in a picture.
const MAX_TIERS: usize = 8;
/// Returns the run's timeline in a bounded size, with a value for each moment.
///
/// `hits` is the fast tier's share of the accesses since the previous moment, if the run saw enough to tell;
/// rates are pages or samples per
/// second since then; both are `null` without accesses or time.
pub(super) fn timeline(result: &LiveResult) -> Value {
    let summary = &result.summary;
    let moments = moments(&summary.timeline);
    let rate = |count: fn(&Moment) -> u64| {
        differences(&moments, |then, now| {
            let seconds = (now.time_ns - then.time_ns).as_seconds();
            (seconds > 0.0).then(|| count(now).saturating_sub(count(then)) as f64 / seconds)
        })
    };
    let on_tier = |tier: usize| -> Vec<u64> {
        moments.iter().map(|moment| moment.resident_bytes.get(tier).map_or(0, |bytes| bytes.0)).collect()
    };
    json!({
        "seconds": moments.iter().map(|moment| rounded(moment.time_ns.as_seconds())).collect::<Vec<_>>(),
        "resident": (0..summary.tiers.len().min(MAX_TIERS)).map(on_tier).collect::<Vec<_>>(),
        "fast_limit": summary.tiers.first().map(|tier| tier.capacity_bytes.0),
        "hits": differences(&moments, |then, now| hit_ratio(then, now).filter(|_| summary.missing.is_none())),
        "promotions": rate(|moment| moment.traffic.promotions),
        "demotions": rate(|moment| moment.traffic.demotions),
        "reclaimed": rate(|moment| moment.traffic.reclaimed),
        "samples": rate(|moment| moment.samples),
        "gauges": gauges(moments.iter().map(|moment| moment.gauges.iter().copied())),
    })
}

/// Selects at most [`MAX_MOMENTS`] moments, with the last one.
///
/// The last one closes the run and has no gauges. Where it closely follows the previous one, differences
/// between the two would be noise: it takes that one's place and gauges.
fn moments(timeline: &[Moment]) -> Vec<Moment> {
    let step = merge_factor(timeline.len(), MAX_MOMENTS);
    let mut moments: Vec<_> = timeline.iter().rev().step_by(step).cloned().collect();
    moments.reverse();
    if let [.., before, second, last] = &mut moments[..]
        && last.time_ns - second.time_ns < Nanos((second.time_ns - before.time_ns).0 / 2)
    {
        if last.gauges.is_empty() {
            last.gauges.clone_from(&second.gauges);
        }
        moments.remove(moments.len() - 2);
    }
    moments
}

/// Compares each moment with the previous one; the first is compared with the start, before any event.
fn differences(moments: &[Moment], of: impl Fn(&Moment, &Moment) -> Option<f64>) -> Vec<Option<f64>> {
    let start = Moment {
        time_ns: Nanos(0),
        resident_bytes: Vec::new(),
        hits: Vec::new(),
        traffic: Traffic::default(),
        samples: 0,
        gauges: Vec::new(),
    };
    let before = std::iter::once(&start).chain(moments);
    before.zip(moments).map(|(then, now)| of(then, now).map(rounded)).collect()
}

fn hit_ratio(then: &Moment, now: &Moment) -> Option<f64> {
    let counted = |tier: usize| {
        let then = then.hits.get(tier).copied().unwrap_or(0);
        now.hits.get(tier).map_or(0, |&hits| hits.saturating_sub(then))
    };
    let all: u64 = (0..now.hits.len()).map(counted).sum();
    (all > 0).then(|| counted(0) as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use isotherm_core::Bytes;

    use super::*;

    fn moment(milliseconds: u64, hits: [u64; 2]) -> Moment {
        Moment {
            time_ns: Nanos(milliseconds * 1_000_000),
            resident_bytes: vec![Bytes(4096), Bytes(8192)],
            hits: hits.into(),
            traffic: Traffic { promotions: milliseconds, ..Traffic::default() },
            samples: hits.iter().sum(),
            gauges: vec![("hot-threshold", milliseconds as f64)],
        }
    }

    #[test]
    fn ratios_are_of_the_accesses_between_moments() {
        let moments = [moment(0, [0, 0]), moment(200, [3, 1]), moment(400, [3, 1]), moment(600, [3, 11])];
        assert_eq!(differences(&moments, hit_ratio), [None, Some(0.75), None, Some(0.0)]);
    }

    #[test]
    fn an_end_close_to_the_moment_before_takes_its_place_and_gauges() {
        let mut end = moment(401, [4, 4]);
        end.gauges.clear();
        let timeline = [moment(0, [0, 0]), moment(200, [3, 1]), moment(400, [3, 1]), end];
        let kept = moments(&timeline);
        assert_eq!(kept.iter().map(|moment| moment.time_ns.0 / 1_000_000).collect::<Vec<_>>(), [0, 200, 401]);
        assert_eq!(kept[2].gauges, [("hot-threshold", 400.0)]);
    }

    #[test]
    fn leaving_moments_out_keeps_the_last_and_the_limit() {
        let timeline: Vec<_> =
            (0..2 * MAX_MOMENTS as u64 + 7).map(|index| moment(index, [index, 0])).collect();
        let kept = moments(&timeline);
        assert!(kept.len() <= MAX_MOMENTS && kept.len() > MAX_MOMENTS / 2, "{}", kept.len());
        assert_eq!(kept.last(), timeline.last());
    }
}
