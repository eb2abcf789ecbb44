//! The scoreboard as one self-contained HTML file: tables whose colours say what is kept.

use isotherm_score::{EffectScore, PaperScore, Proof, Row, Scoreboard, Scored, Tally};

use super::words;
use crate::html::{Page, escape, fold, prose, section, table};

const MARKS: &str = include_str!("../../assets/score.css");

const LEGEND: &str = "<p class=\"legend\"><span class=\"mark kept\">kept</span> the paper's order <span \
    class=\"mark tie\">tie</span> ours do not differ <span class=\"mark not-kept\">not kept</span> the opposite order \
    <span class=\"mark not-yet\">not yet</span> a workload or policy is missing. In the tables: paper → ours (ours / \
    paper); ~ marks a figure of the paper that is approximate, a bound, or leaves open which case it is of.</p>";

/// Returns the scoreboard as one HTML file, for light and dark screens, without network.
pub fn score_html(board: &Scoreboard) -> String {
    let bars: String = board.papers.iter().map(bar).collect();
    let summary = table(&words::SUMMARY, words::summary(board).into_iter());
    let papers: String = board.papers.iter().map(paper).collect();
    let page = Page {
        kind: "scoreboard",
        title: "the papers' comparisons in the simulator".into(),
        answer: [words::verdict(board), words::provenance(board).replace('`', "")],
        body: section("Orderings", "", &format!("{LEGEND}{bars}{summary}")) + &papers,
        style: MARKS,
        ..Page::default()
    };
    page.html(&())
}

/// Draws a paper's orderings as one bar, in the colours of the tables.
fn bar(paper: &PaperScore) -> String {
    let Tally { kept, tie, not_kept, exempt, not_yet, not_comparable, too_short } = paper.tally;
    let unjudged = not_yet + not_comparable + too_short;
    let parts = [(kept, "kept"), (tie + exempt, "tie"), (not_kept, "not-kept"), (unjudged, "not-yet")];
    let part = |(number, class): &(usize, &str)| {
        format!(
            "<span class=\"{class}\" style=\"flex-grow:{number}\" title=\"{number} {class}\">{number}</span>"
        )
    };
    let parts: String = parts.iter().filter(|(number, _)| *number > 0).map(part).collect();
    format!("<div class=\"tally\"><b>{}</b><div>{parts}</div></div>", escape(&paper.title))
}

fn paper(paper: &PaperScore) -> String {
    let comparisons: String = paper.comparisons.iter().map(compared).collect();
    let effects: String = paper.effects.iter().map(switched).collect();
    let body = format!(
        "<p class=\"legend\">{}</p>{comparisons}<h3>Effects of model and scale, switched</h3>{effects}",
        prose(&words::paper(paper).replace('`', ""))
    );
    fold(&paper.title, &words::tallied(paper.tally), &body)
}

fn compared(comparison: &Scored) -> String {
    let [id, place, title] = [&comparison.id, &comparison.place, &comparison.title].map(|text| escape(text));
    let head = format!("<h3 id=\"{id}\">{place}: {title}</h3><p class=\"legend\">");
    if let Some(why) = &comparison.not_yet {
        return format!("{head}<span class=\"mark not-yet\">not yet</span> {}</p>", prose(why));
    }
    let columns: String =
        words::columns(comparison).iter().map(|name| format!("<th>{}</th>", escape(name))).collect();
    let rows: String = comparison.rows.iter().map(|row| marked(comparison, row)).collect();
    let gains = table(&words::GAINS, comparison.gains.iter().map(words::gain));
    let gains = if comparison.gains.is_empty() { "" } else { &gains };
    let systems = words::systems(&comparison.systems).replace('`', "");
    format!(
        "{head}{} {} {}</p><div class=\"scroll\"><table class=\"data\"><thead><tr>{columns}</tr></thead>\
         <tbody>{rows}</tbody></table></div>{gains}{}",
        prose(&words::conditions(comparison)),
        prose(&comparison.note),
        prose(&systems),
        failures(comparison)
    )
}

/// Writes a row, marked by the verdicts of its orderings.
fn marked(comparison: &Scored, row: &Row) -> String {
    let mark = format!(" class=\"mark {}\"", class(words::verdicts(comparison, row)));
    let cells = words::cells(comparison, row);
    let cell = |(index, text): (usize, &String)| {
        let class = if index == words::ORDER { &mark } else { "" };
        format!("<td{class}>{}</td>", prose(text))
    };
    format!("<tr>{}</tr>", cells.iter().enumerate().map(cell).collect::<String>())
}

fn class(tally: Tally) -> &'static str {
    match tally {
        Tally { not_kept: 1.., .. } => "not-kept",
        Tally { kept: 0, tie: 0, exempt: 0, not_yet: 0, not_comparable: 0, too_short: 0, .. } => "none",
        Tally { kept: 0, tie: 0, exempt: 0, .. } => "not-yet",
        Tally { tie: 0, exempt: 0, .. } => "kept",
        _ => "tie",
    }
}

fn failures(comparison: &Scored) -> String {
    let line = |failed: &words::Failed<'_>| {
        let evidence = failed.evidence.map_or_else(
            || "No evidence yet.".to_owned(),
            |Proof { text, command }| format!("{} <code>{}</code>", prose(text.trim()), escape(command)),
        );
        let pairs: String = failed.lines().map(|pair| format!("<li>{}</li>", prose(&pair))).collect();
        format!("<li>{evidence}<ul>{pairs}</ul></li>")
    };
    let lines: String = words::failed(comparison).iter().map(line).collect();
    if lines.is_empty() { String::new() } else { format!("<p>Not kept:</p><ul class=\"notes\">{lines}</ul>") }
}

fn switched(effect: &EffectScore) -> String {
    format!(
        "<p class=\"legend\"><b>{}.</b> {} On {}; {}; {}.{}</p>{}",
        prose(&effect.title),
        prose(&effect.what),
        escape(&effect.case),
        prose(effect.metric.words()),
        escape(&effect.switched),
        escape(&effect.updated.as_ref().map_or_else(String::new, words::updated)),
        table(&words::EFFECT, words::effect(effect).into_iter())
    )
}
