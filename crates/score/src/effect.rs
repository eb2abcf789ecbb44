//! Measures effects of the model or the scale: the same runs with and without them.

use crate::figures::{Effect, Paper, Settings};
use crate::request::Mode;
use crate::run::Results;
use crate::scoreboard::{EffectRow, EffectScore};
use crate::values::Values;

pub(crate) fn effect(paper: &Paper, effect: &Effect, mode: Mode, results: &Results) -> EffectScore {
    let with = Values::new(paper, effect.metric, mode, results);
    let without = Values { switched: Some(effect), ..with };
    let row = |system: &String| {
        let value = |values: &Values<'_>| values.value(system, &effect.workload, &effect.size);
        let (with, without) = (value(&with), value(&without));
        let missing = with.as_ref().err().or(without.as_ref().err()).map(ToString::to_string);
        EffectRow { system: system.clone(), with: with.ok(), without: without.ok(), missing }
    };
    EffectScore {
        id: effect.id.clone(),
        title: effect.title.clone(),
        what: effect.what.clone(),
        case: format!("{} at {}", effect.workload, effect.size),
        switched: switched(effect),
        updated: None,
        metric: effect.metric,
        rows: effect.systems.iter().map(row).collect(),
    }
}

fn switched(effect: &Effect) -> String {
    let set = |group: &str, settings: &Settings| {
        settings.iter().map(|(key, value)| format!("{group}.{key}={value}")).collect::<Vec<_>>()
    };
    let mut parts = set("machine", &effect.machine);
    parts.extend(set("POLICY", &effect.set));
    parts.extend(set("WORKLOAD", &effect.workload_set));
    parts.extend(effect.scale.map(|scale| format!("--scale {scale}")));
    parts.extend(effect.huge.then(|| "--page-size huge".to_owned()));
    parts.join(", ")
}
