//! The past hour of each group, in bounded memory: at most 0.1 MB of moments and 1 MB of heat each.

use std::collections::{BTreeMap, VecDeque};

use isotherm_core::Nanos;
use isotherm_core::machine_status::{GroupStatus, MachineStatus, MappingStatus};
use serde_json::{Value, json};

use super::heat::{Column, heat_map};

/// Time between two looks at the memory by address.
pub(crate) const HEAT: std::time::Duration = std::time::Duration::from_secs(20);
/// Seconds that are kept.
const SPAN: f64 = 3600.0;
/// Seconds of which each moment is kept; of those before one every [`FAR`] seconds.
const RECENT: f64 = 300.0;
const FAR: f64 = 10.0;
/// Least seconds between two moments.
pub(crate) const NEAR: f64 = 0.9;
/// Most moments of a group: more than are left once old ones are thinned out.
const MAX_MOMENTS: usize = 1024;
/// Most columns of heat.
const MAX_COLUMNS: usize = 180;
/// Tiers told apart; slower ones count as the last.
const TIERS: usize = 4;
/// The values of a moment, in order: sums since the start but for the time, the share and the last four.
pub(crate) const COLUMNS: [&str; 14] = [
    "seconds",
    "share",
    "fast_hits",
    "hits",
    "promotions",
    "demotions",
    "reclaimed",
    "samples",
    "saved_s",
    "spent_s",
    "tier0",
    "tier1",
    "tier2",
    "tier3",
];

pub(crate) type Moment = [f64; COLUMNS.len()];

/// The time before the page was opened.
#[derive(Default)]
pub(crate) struct History(BTreeMap<String, Past>);

#[derive(Default)]
struct Past {
    moments: Vec<Moment>,
    heat: VecDeque<Column>,
}

impl History {
    /// Takes the state of all groups; forgets groups that are gone.
    pub(crate) fn take(&mut self, status: &MachineStatus) {
        self.0.retain(|name, _| status.groups.iter().any(|group| group.name == *name));
        for group in &status.groups {
            let past = self.0.entry(group.name.clone()).or_default();
            let moment = moment(group, status.time_ns);
            if past.moments.last().is_none_or(|last| moment[0] - last[0] >= NEAR) {
                if past.moments.len() == MAX_MOMENTS {
                    thin(&mut past.moments);
                }
                past.moments.push(moment);
            }
        }
    }

    /// Takes a group's memory by address.
    pub(crate) fn take_heat(&mut self, group: &str, time: Nanos, mappings: &[MappingStatus]) {
        let Some(past) = self.0.get_mut(group) else { return };
        past.heat.push_back(Column::of(time.as_seconds(), mappings));
        if past.heat.len() > MAX_COLUMNS {
            past.heat.pop_front();
        }
    }

    /// Returns a group's moments behind a time; `None` for a group that is not there.
    pub(crate) fn moments(&self, group: &str, since_s: f64) -> Option<Value> {
        let moments = &self.0.get(group)?.moments;
        let first = moments.partition_point(|moment| moment[0] <= since_s);
        Some(json!({ "columns": COLUMNS, "moments": moments[first..] }))
    }

    /// Returns a group's heatmap of address over time.
    pub(crate) fn heat(&self, group: &str) -> Option<Value> {
        self.0.get(group).map(|past| heat_map(&past.heat))
    }
}

pub(crate) fn moment(group: &GroupStatus, time: Nanos) -> Moment {
    let tier = |tier: usize| {
        let last = tier + 1 == TIERS;
        let these = group.resident_bytes.iter().skip(tier).take(if last { usize::MAX } else { 1 });
        these.map(|bytes| bytes.0 as f64).sum()
    };
    let traffic = &group.traffic;
    [
        time.as_seconds(),
        group.share_bytes.0 as f64,
        group.hits.first().copied().unwrap_or(0) as f64,
        group.hits.iter().sum::<u64>() as f64,
        traffic.promotions as f64,
        traffic.demotions as f64,
        traffic.reclaimed as f64,
        group.samples as f64,
        group.saved_ns.as_seconds(),
        (group.engine_ns + group.observing_ns).as_seconds(),
        tier(0),
        tier(1),
        tier(2),
        tier(3),
    ]
}

/// Drops what is too old, and thins out what is not recent: sums stay true whatever is left out.
fn thin(moments: &mut Vec<Moment>) {
    let now = moments.last().map_or(0.0, |last| last[0]);
    let mut kept = f64::NEG_INFINITY;
    moments.retain(|moment| {
        let age = now - moment[0];
        let stays = age <= SPAN && (age <= RECENT || moment[0] - kept >= FAR);
        if stays {
            kept = moment[0];
        }
        stays
    });
}

#[cfg(test)]
mod tests {
    use isotherm_core::Bytes;

    use super::*;

    fn status(second: u64) -> MachineStatus {
        let group = GroupStatus {
            name: "database".into(),
            hits: vec![9 * second, second],
            resident_bytes: [1, 2, 3, 4, 5].map(Bytes).into(),
            ..GroupStatus::default()
        };
        MachineStatus {
            time_ns: Nanos(second * 1_000_000_000),
            groups: vec![group],
            ..MachineStatus::default()
        }
    }

    #[test]
    fn two_hours_take_the_memory_of_one_and_sums_stay_true() {
        let mut history = History::default();
        (1..=7200).for_each(|second| history.take(&status(second)));
        let moments = &history.0["database"].moments;
        assert!(moments.len() <= MAX_MOMENTS, "{}", moments.len());
        let first = moments[0][0];
        assert!((7200.0 - SPAN - 1024.0..=7200.0 - SPAN).contains(&first), "{first}");
        assert_eq!(moments.iter().map(|moment| moment[3]).max_by(f64::total_cmp), Some(72_000.0));
        assert!(moments.iter().all(|moment| moment[2] == 0.9 * moment[3] && moment[13] == 9.0));
        let answer = history.moments("database", 7198.0).expect("the group");
        assert_eq!(answer["moments"].as_array().map(Vec::len), Some(2));
        assert_eq!(answer["columns"][0], "seconds");
        assert!(history.moments("other", 0.0).is_none());
        history.take(&MachineStatus::default());
        assert!(history.heat("database").is_none(), "a group that is gone is forgotten");
    }

    #[test]
    fn looks_in_quick_succession_are_one_moment() {
        let mut history = History::default();
        (0..10).for_each(|_| history.take(&status(5)));
        assert_eq!(history.0["database"].moments.len(), 1);
    }
}
