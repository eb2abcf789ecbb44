//! Checks the page's size, and that text from outside stays text.

mod support;

use std::iter::repeat_with;

use isotherm_machine::MachineNumber;
use isotherm_report::{MAX_HTML_BYTES, html};
use isotherm_sim::{Held, Region};

#[test]
fn a_huge_report_makes_a_page_within_the_limit() {
    let mut report = support::sized(2_000, 4_096, 2_048, 20);
    let quotes = "\"".repeat(20_000);
    let number = || MachineNumber { path: quotes.clone(), value: quotes.clone(), source: quotes.clone() };
    report.machine.numbers = repeat_with(number).take(1_000).collect();
    report.machine.title = quotes.clone();
    report.input.name = quotes.clone();
    report.input.provenance = (0..1_000).map(|key| (format!("{key}{quotes}"), quotes.clone())).collect();
    let held = |accesses| Held { name: format!("{accesses}{quotes}"), pages: 1, accesses };
    report.input.heatmap.objects = (0..1_000).map(held).collect();
    let region = |accesses| Region { name: quotes.clone(), bytes: report.input.footprint_bytes, accesses };
    report.input.regions = (0..1_000).map(region).collect();
    for run in &mut report.runs {
        run.trace = Some(quotes.clone());
    }
    let size = html(&report).len();
    assert!(size <= MAX_HTML_BYTES, "{size} bytes");
}

#[test]
fn the_page_needs_no_other_file_and_no_network() {
    let page = html(&support::report());
    for reference in ["<link", "<img", "src=", "@import", "url("] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert!(page.len() < 250_000, "a usual page is small: {} bytes", page.len());
    let full = html(&support::full_report()).len();
    assert!(full < 700_000, "every policy at two sizes: {full} bytes");
}

#[test]
fn text_from_outside_stays_text() {
    let mut report = support::report();
    let hostile = "x'\"></script><script>alert(1)</script><!--{{data}}";
    report.input.name = hostile.into();
    report.input.provenance.insert("command".into(), hostile.into());
    report.input.heatmap.objects[0].name = hostile.into();
    report.input.regions[0].name = hostile.into();
    report.machine.title = hostile.into();
    let page = html(&report);
    assert!(!page.contains("<script>alert"), "a script element came through");
    assert_eq!(page.matches("<script").count(), 2);
    assert!(page.contains("x&#39;&quot;&gt;&lt;/script&gt;"), "the name is shown");
    assert!(
        page.contains(r#"x'\"\u003e"#) || page.contains(r#"x'\">\u003c/script>"#),
        "the object's name is in the data"
    );
}

#[test]
fn the_answer_stands_on_top() {
    let page = html(&support::report());
    let answer = "Use freqtier: with 1/9 of the memory fast the program runs 1.39 times as fast as without \
                  tiering (80.3&nbsp;% of full speed, was 57.9&nbsp;%).";
    assert!(page.contains(answer));
}

/// Every page begins with what to do, before any picture and table.
#[test]
fn every_page_begins_with_its_verdict() {
    let sizing = support::sized::sizing(0.3);
    let pages = [
        html(&support::report()),
        html(&support::long_report()),
        isotherm_report::size_html(&sizing, &isotherm_report::Plan::default()),
        isotherm_report::live_html(&support::live::live()),
    ];
    for page in pages {
        let (_, verdict) = page.split_once("<div class=\"verdict").expect("a verdict");
        let answer = verdict.split_once("<p class=\"answer\">").expect("its sentence").1;
        let words = ["Use ", "Do not tier", "Tier ", "No verdict", "Keep all"];
        assert!(words.iter().any(|word| answer.starts_with(word)), "{answer:.200}");
        let place = page.find("<div class=\"verdict").expect("a verdict");
        assert!(
            ["<figure", "<table", "<dl"].iter().all(|other| page.find(other).is_none_or(|at| at > place))
        );
    }
}

#[test]
fn a_report_without_runs_is_a_page_too() {
    let mut report = support::report();
    report.runs.clear();
    assert!(html(&report).contains("Nothing was run."));
}
