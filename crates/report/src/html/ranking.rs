//! The ranking: a bar for each run, of what makes it slower than all memory fast.

use std::fmt::Write;

use isotherm_policies::registry::BASELINE;
use isotherm_policies::{Kind, find};
use isotherm_sim::{Report, RunResult};

use super::{colours, escape};
use crate::facts;
use crate::format::{percent, shortened};
use crate::verdict::{self, is_usable};

/// Parts of a bar: each makes a run slower.
const PARTS: [(&str, &str); 4] = [
    ("stall", "waiting for memory"),
    ("sampling", "sampling: samples and hint faults"),
    ("moving", "moving pages"),
    ("deciding", "its own processor time"),
];

/// Bars whose excess is this many times the middle one's are cut, so that the others can be told apart.
const LONGEST: f64 = 4.0;

/// Ticks of the axis, at most.
const TICKS: f64 = 8.0;

/// A slowdown and what it consists of: waiting for memory, sampling, moving and deciding add up to it, less
/// 1. The first is below 0 where the run waits less than with all memory fast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Split {
    pub(super) slowdown: f64,
    pub(super) parts: [f64; 4],
}

impl Split {
    /// Returns the split of the length asked for.
    pub(super) fn of(run: &RunResult) -> Self {
        let long = run.long_run.as_ref();
        let (all_fast, parts) =
            long.map_or((run.all_fast_ns, run.parts), |long| (long.all_fast_ns, long.parts));
        let whole = all_fast.0.max(1) as f64;
        let share = |part: isotherm_core::Nanos| part.0 as f64 / whole;
        let stall = (parts.program.0 as f64 - all_fast.0 as f64) / whole;
        let [sampling, moving, deciding] = [parts.sampling, parts.moving, parts.deciding].map(share);
        Self { slowdown: share(parts.whole()), parts: [stall, sampling, moving, deciding] }
    }
}

/// Returns the runs of each size in order, fastest first, as a table of bars for each size.
pub(super) fn ranking(report: &Report, runs: &[RunResult], sizes: &[u64]) -> String {
    let parts: String =
        PARTS.iter().map(|(class, meaning)| format!("<li><i class=\"{class}\"></i>{meaning}</li>")).collect();
    let best = verdict::simulated(report).and_then(|verdict| verdict.policy);
    let tables = sizes.iter().enumerate().map(|(index, &bytes)| {
        let mut ranked: Vec<_> =
            runs.iter().filter(|run| run.fast_bytes.0 == bytes).map(|run| (Split::of(run), run)).collect();
        ranked.sort_by(|(one, _), (other, _)| one.slowdown.total_cmp(&other.slowdown));
        bars(index, &ranked, best.as_deref())
    });
    format!(
        "<ul class=\"key\"><li>Slower than with all memory fast by:</li>{parts}<li><u></u>without tiering</li></ul>{}",
        tables.collect::<String>()
    )
}

fn bars(size: usize, ranked: &[(Split, &RunResult)], best: Option<&str>) -> String {
    let Some((_, first)) = ranked.first() else { return String::new() };
    let baseline = ranked.iter().find(|(_, run)| run.policy == BASELINE).map(|(split, _)| split.slowdown);
    let scale = Scale::of(ranked);
    // A label at the end would run into the next column.
    let labelled = scale.ticks().filter(|&tick| scale.place(tick) < 95.0);
    let label =
        |tick| format!("<span style=\"left:{:.2}%\">{}x</span>", scale.place(tick), short(1.0 + tick));
    let ticks: String = labelled.map(label).collect();
    let rows: String = ranked.iter().map(|(split, run)| bar(split, run, &scale, baseline, best)).collect();
    let fast = escape(&shortened(&first.fast, 20));
    let needs = "<p class=\"legend\">° needs a kernel or a device that hardly any machine has.</p>";
    let note = if ranked.iter().any(|(_, run)| rare(run)) { needs } else { "" };
    format!(
        "<div data-size=\"{size}\"><table class=\"bars\" style=\"--step:{:.3}%\"><caption>Fast tier {fast} ({})\
         </caption><thead><tr><th scope=\"col\">policy</th><th scope=\"col\" class=\"axis\"><div>{ticks}</div></th>\
         <th scope=\"col\">slowdown</th><th scope=\"col\" class=\"more\">speed</th><th scope=\"col\" class=\"more\">hits\
         </th><th scope=\"col\" class=\"more\">moved</th></tr></thead><tbody>{rows}</tbody></table>{note}</div>",
        scale.place(scale.step),
        first.fast_bytes,
    )
}

fn rare(run: &RunResult) -> bool {
    find(&run.policy).is_ok_and(|entry| matches!(entry.kind, Kind::Policy(_))) && !is_usable(&run.policy)
}

fn bar(split: &Split, run: &RunResult, scale: &Scale, baseline: Option<f64>, best: Option<&str>) -> String {
    let limit = facts::limits().contains(&run.policy.as_str());
    let is_best = best == Some(run.policy.as_str());
    let class = if is_best {
        " class=\"best\""
    } else if limit {
        " class=\"bound\""
    } else {
        ""
    };
    let excess = split.slowdown - 1.0;
    // What a run waits less than with all memory fast shortens its bar.
    let mut from = split.parts[0].min(0.0);
    let mut segments = String::new();
    for ((name, meaning), part) in PARTS.iter().zip(split.parts) {
        let start = scale.place(from.max(0.0));
        from += part.max(0.0);
        let width = scale.place(from.max(0.0)) - start;
        if width >= 0.01 {
            let _ = write!(
                segments,
                "<i class=\"{name}\" style=\"width:{width:.2}%\" title=\"{meaning}: {part:+.3}\"></i>"
            );
        }
    }
    if excess > scale.most {
        segments += "<b title=\"longer than the picture\">»</b>";
    }
    let line = baseline.map_or_else(String::new, |slowdown| {
        format!("<u style=\"left:{:.2}%\" title=\"without tiering\"></u>", scale.place(slowdown - 1.0))
    });
    let speed = baseline
        .map_or_else(|| "-".into(), |without| format!("{:+.1} %", (without / split.slowdown - 1.0) * 100.0));
    let mark = if rare(run) { "°" } else { "" };
    format!(
        "<tr{class}><th scope=\"row\"><i style=\"background:{}\"></i>{}{mark}</th><td class=\"bar\"><div>{line}\
         {segments}</div></td><td>{}</td><td class=\"more\">{speed}</td><td class=\"more\">{}</td><td class=\"more\">{}\
         </td></tr>",
        colours::css(&run.policy),
        escape(&run.policy),
        format_args!("{:.3}", split.slowdown),
        percent(run.hit_ratio),
        if run.bytes_moved.0 == 0 { "-".into() } else { run.bytes_moved.to_string() },
    )
}

/// The axis of the bars: from all memory fast to the longest bar that is not cut.
struct Scale {
    most: f64,
    step: f64,
}

impl Scale {
    fn of(ranked: &[(Split, &RunResult)]) -> Self {
        let mut excess: Vec<f64> = ranked.iter().map(|(split, _)| (split.slowdown - 1.0).max(0.0)).collect();
        excess.sort_by(f64::total_cmp);
        let limit = LONGEST * excess[excess.len() / 2];
        let longest = excess.iter().rev().copied().find(|&one| limit == 0.0 || one <= limit);
        let longest = longest.unwrap_or(0.0).max(0.01);
        let power = 10f64.powf((longest / TICKS).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = step.into_iter().find(|&step| longest / step <= TICKS).unwrap_or(longest);
        Self { most: longest, step }
    }

    /// Returns the place of an excess in percent of the axis.
    fn place(&self, excess: f64) -> f64 {
        (excess / self.most).clamp(0.0, 1.0) * 100.0
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        (0..=(self.most / self.step + 1e-9) as usize).map(|tick| tick as f64 * self.step)
    }
}

fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use isotherm_core::{Bytes, Nanos};
    use isotherm_sim::TimeParts;

    use super::*;

    fn run(policy: &str, parts: [u64; 4]) -> RunResult {
        let [program, sampling, moving, deciding] = parts.map(Nanos);
        RunResult {
            policy: policy.into(),
            fast: "1:1".into(),
            fast_bytes: Bytes(4096),
            all_fast_ns: Nanos(100),
            parts: TimeParts { program, sampling, moving, deciding },
            ..RunResult::default()
        }
    }

    #[test]
    fn parts_add_up_to_the_slowdown_and_may_be_saved() {
        let split = Split::of(&run("lru", [120, 10, 5, 1]));
        assert_eq!(split.slowdown, 1.36);
        assert!((split.parts.iter().sum::<f64>() - 0.36).abs() < 1e-12);
        let saved = Split::of(&run("lru", [95, 10, 5, 0]));
        assert!((saved.parts.iter().sum::<f64>() - 0.1).abs() < 1e-12 && saved.parts[0] < 0.0);
    }

    #[test]
    fn bars_are_as_long_as_their_parts_and_the_outlier_is_cut() {
        let runs =
            [run("lru", [150, 20, 30, 0]), run("first-touch", [180, 0, 0, 0]), run("tpp", [9000, 0, 0, 0])];
        let ranked: Vec<_> = runs.iter().map(|run| (Split::of(run), run)).collect();
        let text = bars(0, &ranked, Some("lru"));
        for part in [
            "<i class=\"stall\" style=\"width:50.00%\"",
            "<i class=\"sampling\" style=\"width:20.00%\"",
            "<i class=\"moving\" style=\"width:30.00%\"",
            "<tr class=\"best\"><th scope=\"row\"><i style=\"background:var(--p2)\"></i>lru</th>",
            "<u style=\"left:80.00%\"",
            "-10.0 %",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert_eq!(text.matches("longer than the picture").count(), 1);
    }
}
