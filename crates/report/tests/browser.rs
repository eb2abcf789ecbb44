//! Loads the page in headless Chromium and checks that every picture is on its canvas.
//!
//! Needs Debian's `chromium`, which `make setup` installs; `ISOTHERM_CHROMIUM` names another one.

mod support;

use std::collections::BTreeMap;
use std::process::Command;

use isotherm_core::Nanos;
use isotherm_report::{Pictured, gallery_html, html, live_html, size_html};
use isotherm_sim::{Heatmap, Report};

/// Opens a report's page.
fn loaded(report: &Report, dark: bool) -> String {
    opened(&html(report), dark)
}

/// Returns a page's document after the browser has run the scripts.
fn opened(html: &str, dark: bool) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let page = folder.path().join("report.html");
    std::fs::write(&page, html).expect("the page can be written");
    let browser = std::env::var("ISOTHERM_CHROMIUM").unwrap_or_else(|_| "chromium".into());
    let quiet = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-sync",
        "--disable-background-networking",
        "--disable-component-update",
        "--window-size=1200,900",
    ];
    let output = Command::new(&browser)
        .args(quiet)
        .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)))
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .args(["--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap_or_else(|error| {
            panic!("{browser} cannot be started ({error}): run `make setup`, it installs Chromium")
        });
    let document = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        document.contains("</html>"),
        "{browser} gave no page: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    document
}

/// Returns the value of an attribute in a start tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    tag.split_once(&format!(" {name}=\""))?.1.split('"').next()
}

/// Returns every picture by name: whether it has drawn, and its number of points.
fn pictures(document: &str) -> BTreeMap<String, (String, usize)> {
    let tags = document.split("<figure ").skip(1).filter_map(|rest| rest.split('>').next());
    let picture = |tag: &str| {
        let tag = format!(" {tag}");
        let drawn = attribute(&tag, "data-drawn").unwrap_or("false").to_owned();
        let points = attribute(&tag, "data-points").and_then(|points| points.parse().ok()).unwrap_or(0);
        (attribute(&tag, "id").unwrap_or("?").to_owned(), (drawn, points))
    };
    tags.map(picture).collect()
}

/// Returns the page's error message; empty without errors.
fn errors(document: &str) -> &str {
    let (_, rest) = document.split_once("<p id=\"errors\"").expect("the place for errors");
    rest.split_once('>').and_then(|(_, text)| text.split('<').next()).expect("its text")
}

fn assert_all_drawn(document: &str) -> BTreeMap<String, (String, usize)> {
    assert_eq!(errors(document), "");
    let pictures = pictures(document);
    for (name, (drawn, points)) in &pictures {
        assert_eq!((drawn.as_str(), *points > 1), ("true", true), "{name}: {points} points");
    }
    pictures
}

#[test]
fn every_picture_draws_in_light_and_in_dark() {
    for dark in [false, true] {
        let pictures = assert_all_drawn(&loaded(&support::report(), dark));
        let names: Vec<_> = pictures.keys().map(String::as_str).collect();
        let expected = [
            "cdf",
            "gauge-hot-threshold",
            "gauge-sampling-level",
            "heatmap",
            "hits",
            "hits-over-time",
            "migrations",
            "regions",
            "slowdown",
        ];
        assert_eq!(names, expected);
        assert_eq!(pictures["heatmap"].1, 128 * 64);
        assert_eq!(pictures["hits-over-time"].1, 100 * 4, "three policies and the oracle");
    }
}

#[test]
fn a_sizing_draws_in_light_and_in_dark() {
    let page = size_html(&support::sized::sizing(0.3), &isotherm_report::Plan::default());
    for dark in [false, true] {
        let pictures = assert_all_drawn(&opened(&page, dark));
        assert!(pictures["size"].1 > 4 * 13, "four curves: {} points", pictures["size"].1);
    }
}

#[test]
fn a_live_run_draws_in_light_and_in_dark() {
    let page = live_html(&support::live::live());
    for dark in [false, true] {
        let pictures = assert_all_drawn(&opened(&page, dark));
        let expected = [
            "gauge-hot-pages",
            "gauge-hot-threshold",
            "gauge-saturated-pages",
            "gauge-second-chances",
            "hits",
            "hot-set",
            "moves",
            "residency",
            "samples",
        ];
        assert_eq!(pictures.keys().map(String::as_str).collect::<Vec<_>>(), expected);
        assert_eq!(pictures["residency"].1, 150 * 3, "two tiers and the limit");
        assert_eq!(pictures["moves"].1, 150 * 3, "promotions, demotions and reclaim");
    }
}

#[test]
fn hours_with_pauses_of_a_live_run_draw() {
    let mut result = support::live::lasting(600);
    let first = result.summary.timeline[300].hits.clone();
    for (index, moment) in result.summary.timeline.iter_mut().enumerate() {
        moment.time_ns = Nanos(moment.time_ns.0 * 200);
        if (300..500).contains(&index) {
            moment.hits.clone_from(&first);
        }
    }
    assert_all_drawn(&opened(&live_html(&result), false));
}

#[test]
fn a_live_run_without_a_timeline_says_so() {
    let mut short = support::live::empty();
    short.summary.timeline = support::live::live().summary.timeline[..2].to_vec();
    short.summary.timeline.iter_mut().for_each(|moment| moment.time_ns = Nanos(0));
    let without = |result| {
        let document = opened(&live_html(&result), false);
        assert_eq!(errors(&document), "");
        pictures(&document).into_values().map(|(drawn, _)| drawn).collect::<Vec<_>>()
    };
    assert_eq!(without(support::live::empty()), ["empty"; 5]);
    assert_eq!(without(short), ["empty"; 9]);
}

#[test]
fn every_workload_of_a_gallery_draws_in_light_and_in_dark() {
    let pictured = |name: &str| {
        let mut input = support::report().input;
        input.name = name.into();
        let category = ["large objects".into(), "stable".into()];
        Pictured { title: "a title with </script>".into(), category, input }
    };
    let page = gallery_html(&[pictured("one"), pictured("other")], "1");
    for dark in [false, true] {
        let pictures = assert_all_drawn(&opened(&page, dark));
        assert_eq!(pictures.keys().collect::<Vec<_>>(), ["workload-0", "workload-1"]);
    }
}

#[test]
fn one_size_is_drawn_as_bars() {
    let mut report = support::report();
    report.runs.retain(|run| run.fast == "1:8");
    let pictures = assert_all_drawn(&loaded(&report, false));
    assert_eq!(pictures["hits"].1, 7, "a bar per policy and bound");
}

#[test]
fn a_huge_report_still_draws() {
    assert_all_drawn(&loaded(&support::sized(2_000, 4_096, 2_048, 20), false));
}

#[test]
fn missing_data_is_named_and_no_error() {
    let mut report = support::report();
    report.runs.iter_mut().for_each(|run| run.timeline.clear());
    report.input.heatmap = Heatmap::default();
    report.input.page_cdf.clear();
    report.input.regions.clear();
    let document = loaded(&report, false);
    assert_eq!(errors(&document), "");
    let pictures = pictures(&document);
    for name in ["hits-over-time", "migrations", "heatmap", "cdf", "regions"] {
        assert_eq!(pictures[name].0, "empty", "{name}");
    }
    assert_eq!(pictures["hits"].0, "true");
}

#[test]
fn hostile_text_runs_nothing() {
    let mut report = support::report();
    let hostile =
        "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">";
    report.input.name = hostile.into();
    report.input.regions[0].name = hostile.into();
    report.input.provenance.insert("command".into(), hostile.into());
    let document = loaded(&report, false);
    assert_all_drawn(&document);
    assert!(!document.contains("<title>taken"), "a script from the data ran");
}
