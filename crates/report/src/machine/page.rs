//! The live page of a daemon. It has no data of its own: its script asks the daemon that serves it.

use crate::html::{HEATMAP, OVER_TIME, PLOT, Page, figure, fold, section};

const SCRIPT: &str = include_str!("../../assets/machine.js");

/// Columns of the groups' table; numbers begin with the third.
const GROUPS: [&str; 12] = [
    "group",
    "policy",
    "programs",
    "share",
    "protected",
    "limit",
    "fast",
    "slow",
    "hits",
    "moves/s",
    "spent",
    "saved at most",
];
/// Columns of the programs' table; numbers begin with the third.
const PROGRAMS: [&str; 6] = ["program", "cgroup", "process", "fast", "slow", "accesses"];

const CHOICE: &str = "<label>group <select id=\"group\"></select></label>";

/// Returns the live page that a daemon serves, as one self-contained HTML file.
pub fn machine_page() -> String {
    let heat = figure(
        "heatmap",
        "Accesses by time and address",
        "As sampled; old accesses count for less. Coloured: in the fast tier; grey: in slow memory. Gaps between \
         mappings are left out. The latest hour, a column every 20 seconds.",
        "",
    );
    let pictures = [
        figure("residency", "Memory on each tier", "Of the group's programs.", ""),
        figure(
            "hits",
            "Hit ratio",
            "Share of the accesses that the fast tier served; gaps are times without any.",
            "",
        ),
        figure("moves", "Moves", "Pages between tiers in a second.", ""),
        figure(
            "books",
            "Books",
            "Processor time of the engine and time lost to sampling, against an upper bound on the time that \
             tiering has saved, beside as much fast memory filled at random: as if programs only waited for \
             each access in turn.",
            "",
        ),
    ];
    let body = [
        section("Groups", "", &empty_table("groups", &GROUPS)),
        section("Over time", CHOICE, &format!("<div class=\"pair\">{}</div>", pictures.concat())),
        section("Memory", "", &heat),
        section("Programs", "", &empty_table("programs", &PROGRAMS)),
        fold("Warnings", "of engines, and other software that moves pages", "<ul id=\"warnings\"></ul>"),
    ];
    let page = Page {
        kind: "live",
        title: "this machine".into(),
        answer: ["Waiting for the daemon.".into(), String::new()],
        body: body.concat(),
        scripts: &[PLOT, HEATMAP, OVER_TIME, SCRIPT],
        ..Page::default()
    };
    page.html(&())
}

/// Returns a table that the script fills.
fn empty_table(id: &str, header: &[&str]) -> String {
    let head = |(column, name): (usize, &&str)| {
        let class = if column >= 2 { " class=\"n\"" } else { "" };
        format!("<th scope=\"col\"{class}>{name}</th>")
    };
    let header: String = header.iter().enumerate().map(head).collect();
    format!(
        "<div class=\"scroll\"><table class=\"data\" id=\"{id}\"><thead><tr>{header}</tr></thead><tbody></tbody>\
         </table></div>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_nothing_but_its_daemon() {
        let page = machine_page();
        assert!(page.len() < 100_000, "{}", page.len());
        for outside in ["http:", "https:", "src=", "@import", "url("] {
            let outside = page.match_indices(outside).map(|(at, _)| &page[at..(at + 60).min(page.len())]);
            assert_eq!(outside.collect::<Vec<_>>(), [""; 0]);
        }
    }
}
