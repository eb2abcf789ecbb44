//! The scoreboard's page in Markdown.

use isotherm_score::{EffectScore, PaperScore, Proof, Scoreboard, Scored};

use super::words;

/// Returns the page: the summary, then a section per paper.
pub fn score_markdown(board: &Scoreboard) -> String {
    let mut page = format!(
        "# Scoreboard\n\n**{}**\n\n{}\n[How to read it](../reference/scoreboard-method.md).\n\n",
        words::verdict(board),
        words::provenance(board)
    );
    page += &table(&words::SUMMARY, words::summary(board).iter());
    page += "\nIn the tables, `paper → ours (ours / paper)`; `~` marks a figure of the paper that is \
             approximate, a bound, or leaves open which case it is of. Behind an ordering that is not kept \
             stands how much better ours is: below 1, worse.\n";
    page.extend(board.papers.iter().map(section));
    page
}

fn section(paper: &PaperScore) -> String {
    let mut text = format!("\n## {}\n\n{}\n", paper.title, words::paper(paper));
    text.extend(paper.comparisons.iter().map(compared));
    if !paper.effects.is_empty() {
        text += &format!("\n### {}: effects of model and scale, switched\n", paper.title);
        text.extend(paper.effects.iter().map(switched));
    }
    text
}

fn compared(comparison: &Scored) -> String {
    let mut text = format!("\n### {}: {}\n\n", comparison.place, comparison.title);
    text += &format!("`{}`. Orderings: {}. ", comparison.id, words::tallied(comparison.tally));
    if let Some(why) = &comparison.not_yet {
        return text + &format!("Not yet: {why}.\n");
    }
    text += &format!("{}\n", words::conditions(comparison));
    for more in [&comparison.note, &words::systems(&comparison.systems)] {
        if !more.is_empty() {
            text += &format!("{more}\n");
        }
    }
    let rows = comparison.rows.iter().map(|row| words::cells(comparison, row));
    text += &format!("\n{}", table(&words::columns(comparison), rows));
    if !comparison.gains.is_empty() {
        text += &format!("\n{}", table(&words::GAINS, comparison.gains.iter().map(words::gain)));
    }
    text + &failures(comparison)
}

/// Lists the orderings that are not kept, each with its evidence.
fn failures(comparison: &Scored) -> String {
    let failed = words::failed(comparison);
    if failed.is_empty() {
        return String::new();
    }
    let line = |failed: &words::Failed<'_>| {
        let evidence = failed.evidence.map_or_else(
            || "No evidence yet.".to_owned(),
            |Proof { text, command }| format!("{} `{command}`", text.trim()),
        );
        let pairs: String = failed.lines().map(|pair| format!("  - {pair}\n")).collect();
        format!("- {evidence}\n{pairs}")
    };
    format!("\nNot kept:\n\n{}", failed.iter().map(line).collect::<String>())
}

fn switched(effect: &EffectScore) -> String {
    format!(
        "\n**{}.** {} On {}; {}; `{}`.{}\n\n{}",
        effect.title,
        effect.what,
        effect.case,
        effect.metric.words(),
        effect.switched,
        effect.updated.as_ref().map_or_else(String::new, words::updated),
        table(&words::EFFECT, words::effect(effect).iter())
    )
}

fn table<R: AsRef<[String]>>(head: &[impl AsRef<str>], rows: impl Iterator<Item = R>) -> String {
    let rows: String = rows.map(|row| line(row.as_ref())).collect();
    format!("{}|{}\n{rows}", line(head), "---|".repeat(head.len()))
}

/// Writes a row; no text can end its cell.
fn line(cells: &[impl AsRef<str>]) -> String {
    let cell = |text: &_| AsRef::<str>::as_ref(text).replace('|', "\\|").replace('\n', " ");
    format!("| {} |\n", cells.iter().map(cell).collect::<Vec<_>>().join(" | "))
}
