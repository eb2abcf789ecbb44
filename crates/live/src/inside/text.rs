//! The short summary that an engine inside a program writes at its end; the JSON holds the full result.

use isotherm_core::live_result::LiveResult;

/// Formats a result as a few lines that begin with `isotherm: `.
pub fn text(result: &LiveResult) -> String {
    let summary = &result.summary;
    let percent = |ratio: Option<f64>, bounds: Option<[f64; 2]>| match (ratio, bounds) {
        (None, _) => "unknown".to_owned(),
        (Some(ratio), None) => format!("{:.1} %", 100.0 * ratio),
        (Some(ratio), Some([low, high])) => {
            format!("{:.0} % ({:.0}-{:.0})", 100.0 * ratio, (100.0 * low).floor(), (100.0 * high).ceil())
        }
    };
    let traffic = &summary.traffic;
    let moved = if summary.shadow { "would have moved (shadow)" } else { "moved" };
    let mut text = format!(
        "isotherm: {} {moved} {} pages up and {} down in {}; refused {}\n",
        result.policy,
        traffic.promotions,
        traffic.demotions + traffic.reclaimed,
        summary.duration_ns,
        traffic.refused.no_room
            + traffic.refused.busy
            + traffic.refused.gone
            + traffic.refused.swapped
            + traffic.refused.denied,
    );
    let fast = summary.tiers.first().map(|tier| tier.capacity_bytes).unwrap_or_default();
    text += &format!(
        "isotherm: fast-tier hits {} ({} in the second half), with {fast} of fast memory for {}\n",
        percent(summary.hit_ratio, summary.intervals.hit_ratio),
        percent(summary.final_hit_ratio, summary.intervals.final_hit_ratio),
        summary.footprint_bytes,
    );
    for source in &summary.sources {
        let (name, delivered, lost) = (source.name, source.delivered, source.lost);
        text += &format!("isotherm: {delivered} samples by {name}, {lost} lost\n");
    }
    summary.cautions.iter().for_each(|caution| text += &format!("isotherm: {caution}\n"));
    text += &format!("isotherm: engine {} of one processor\n", percent(Some(summary.engine.cpu_share), None));
    summary
        .warnings
        .iter()
        .for_each(|warning| text += &format!("isotherm: {}\n", warning.replace('\n', " ")));
    text
}
