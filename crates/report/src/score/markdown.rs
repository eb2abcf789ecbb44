//! The scoreboard's page in Markdown.

use isotherm_score::{EffectScore, PaperScore, Proof, Scoreboard, Scored};

use super::words;

/// Returns the page: the summary, then a section per paper.
pub fn score_markdown(board: &Scoreboard) -> String {
    let mut page = format!(
        "# Scoreboard\n\n**{}**\n\n{}\n[How to read it](scoreboard-method.md).\n\n",
        words::verdict(board),
        words::provenance(board)
    );
    page += &table(&words::SUMMARY, words::summary(board).iter().map(<[String; 7]>::as_slice));
    page += "\nIn the tables, `paper → ours (ours / paper)`; `~` marks a figure of the paper that is approximate, a bound, or \
             leaves open which case it is of. Behind an ordering that is not kept stands how much better ours is: below 1, worse.\n";
    for paper in &board.papers {
        page += &section(paper);
    }
    page
}

fn section(paper: &PaperScore) -> String {
    let mut text = format!("\n## {}\n\n{}\n", paper.title, words::paper(paper));
    for comparison in &paper.comparisons {
        text += &compared(comparison);
    }
    if !paper.effects.is_empty() {
        text += &format!("\n### {}: effects of model and scale, switched\n", paper.title);
        paper.effects.iter().for_each(|effect| text += &switched(effect));
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
    let head = words::columns(comparison);
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = comparison.rows.iter().map(|row| words::cells(comparison, row)).collect();
    text += &format!("\n{}", table(&head, rows.iter().map(Vec::as_slice)));
    if !comparison.gains.is_empty() {
        let rows: Vec<_> = comparison.gains.iter().map(words::gain).collect();
        text += &format!("\n{}", table(&words::GAINS, rows.iter().map(<[String; 5]>::as_slice)));
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
    let rows = words::effect(effect);
    format!(
        "\n**{}.** {} On {}; {}; `{}`.{}\n\n{}",
        effect.title,
        effect.what,
        effect.case,
        effect.metric.words(),
        effect.switched,
        effect.updated.as_ref().map_or_else(String::new, words::updated),
        table(&words::EFFECT, rows.iter().map(<[String; 4]>::as_slice))
    )
}

fn table<'a>(head: &[&str], rows: impl Iterator<Item = &'a [String]>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let head_line = line(head.iter().map(|&name| safe(name)).collect());
    let rows: String = rows.map(|row| line(row.iter().map(|cell| safe(cell)).collect())).collect();
    format!("{head_line}|{}\n{rows}", "---|".repeat(head.len()))
}

/// Escapes text so that it cannot end its cell.
fn safe(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
