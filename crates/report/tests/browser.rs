//! Looks at the pages in a real browser: what is drawn, what fits, what can be operated, and how it looks.

mod support;

use std::collections::BTreeMap;

use isotherm_core::Nanos;
use isotherm_report::{Pictured, Plan, gallery_html, html, live_html, machine_page, size_html};
use isotherm_sim::Heatmap;
use serde_json::Value;
use support::browser::Shown;

/// Widths of a telephone, of a usual window and of a large screen.
const WIDTHS: [u32; 3] = [400, 1280, 1920];

/// Unfolds everything, and has the browser lay it out.
const UNFOLD: &str = "document.querySelectorAll('details').forEach((one) => { one.open = true; });
    await new Promise((done) => setTimeout(done, 200));";

/// Returns every picture by name: whether it is drawn, and its number of points.
fn pictures(shown: &Shown<'_>) -> BTreeMap<String, (String, u64)> {
    let script = format!(
        "{UNFOLD} return {{ errors: document.getElementById('errors').textContent, figures: \
         [...document.querySelectorAll('figure:not([hidden])')].map((one) => \
         [one.id, one.dataset.drawn || 'not drawn', Number(one.dataset.points || 0)]) }};"
    );
    let answer = shown.run(&script);
    assert_eq!(answer["errors"], "", "{answer:.500}");
    let figures: Vec<(String, String, u64)> =
        serde_json::from_value(answer["figures"].clone()).expect("a name, a state and points each");
    figures.into_iter().map(|(name, drawn, points)| (name, (drawn, points))).collect()
}

fn all_drawn(shown: &Shown<'_>) -> BTreeMap<String, (String, u64)> {
    let pictures = pictures(shown);
    for (name, (drawn, points)) in &pictures {
        assert_eq!((drawn.as_str(), *points > 1), ("true", true), "{name}: {points} points");
    }
    pictures
}

fn names(pictures: &BTreeMap<String, (String, u64)>) -> Vec<&str> {
    pictures.keys().map(String::as_str).collect()
}

fn sizing() -> String {
    size_html(&support::sized::sizing(0.3), &Plan::default())
}

fn gallery() -> String {
    let pictured = |name: &str| {
        let mut input = support::report().input;
        input.name = name.into();
        let category = ["large objects".into(), "stable".into()];
        Pictured { title: "a title with </script>".into(), category, input }
    };
    gallery_html(&[pictured("one"), pictured("other")], "1")
}

fn scoreboard() -> String {
    let board = include_str!("../../../docs/generated/scoreboard.json");
    isotherm_report::score_html(&isotherm_report::score_from_json(board).expect("a scoreboard"))
}

fn comparison() -> String {
    let report = isotherm_report::json(&support::report());
    let other = isotherm_report::json(&support::long_report());
    let both = isotherm_report::Comparison::new(("a.json", &report), ("b.json", &other));
    isotherm_report::compare_html(&both.expect("two results"))
}

/// Returns every kind of page, each at its fullest.
fn pages() -> [(&'static str, String); 8] {
    [
        ("machine", machine_page()),
        ("simulation", html(&support::full_report())),
        ("long simulation", html(&support::long_report())),
        ("sizing", sizing()),
        ("live run", live_html(&support::live::live())),
        ("gallery", gallery()),
        ("comparison", comparison()),
        ("scoreboard", scoreboard()),
    ]
}

#[test]
fn every_picture_draws_in_light_and_in_dark() {
    let page = html(&support::report());
    for shown in [Shown::new(&page, 1280), Shown::new(&page, 1280).dark()] {
        let pictures = all_drawn(&shown);
        assert_eq!(names(&pictures), ["curve", "heatmap", "internals", "over-time"]);
        assert_eq!(pictures["heatmap"].1, 128 * 64);
        assert_eq!(pictures["over-time"].1, 100 * 4, "three policies and the oracle");
        assert_eq!(pictures["curve"].1, 3 * 6, "three policies and three bounds at three sizes");
    }
}

#[test]
fn a_sizing_and_a_gallery_draw() {
    let pictures = all_drawn(&Shown::new(&sizing(), 1280));
    assert!(pictures["size"].1 > 4 * 13, "four curves: {} points", pictures["size"].1);
    assert_eq!(names(&all_drawn(&Shown::new(&gallery(), 1280))), ["workload-0", "workload-1"]);
}

#[test]
fn a_live_run_draws_with_its_pauses_and_says_what_is_missing() {
    let pictures = all_drawn(&Shown::new(&live_html(&support::live::live()), 1280));
    let gauges = ["gauge-hot-pages", "gauge-hot-threshold", "gauge-saturated-pages", "gauge-second-chances"];
    assert_eq!(names(&pictures), [&gauges[..], &["hits", "moves", "residency", "samples"]].concat());
    assert_eq!(pictures["residency"].1, 150 * 2, "two tiers");
    assert_eq!(pictures["moves"].1, 150 * 3, "promotions, demotions and reclaim");

    let mut result = support::live::lasting(600);
    let first = result.summary.timeline[300].hits.clone();
    for (index, moment) in result.summary.timeline.iter_mut().enumerate() {
        moment.time_ns = Nanos(moment.time_ns.0 * 200);
        if (300..500).contains(&index) {
            moment.hits.clone_from(&first);
        }
    }
    all_drawn(&Shown::new(&live_html(&result), 1280));

    let without = pictures_of(&live_html(&support::live::empty()));
    assert_eq!(without, ["empty"; 4]);
}

/// A made-up daemon, for the script of the live page to ask.
const DAEMON: &str = include_str!("support/daemon.js");

#[test]
fn a_live_page_draws_what_its_daemon_tells_in_light_and_in_dark() {
    let page = machine_page();
    let script = format!(
        "{DAEMON} second = 600; await look(); second = 601; await look(); {UNFOLD} {MISFITS} {CONTRAST}
         const figures = [...document.querySelectorAll('figure')].map((one) => [one.id, one.dataset.drawn]);
         const rows = (id) => [...byId(id).tBodies[0].rows].map((row) => row.textContent);
         const first = {{ figures, misfits, found: found[0], groups: rows('groups'), programs: rows('programs'),
           points: Number(byId('residency').dataset.points), answer: document.querySelector('.answer').textContent,
           warnings: byId('warnings').textContent, images: document.images.length,
           key: byId('heatmap').querySelector('ul.key').textContent, back: getComputedStyle(document.documentElement).backgroundColor,
           axis: byId('heatmap').querySelector('svg').textContent }};
         const choice = byId('group');
         choice.value = 'batch';
         choice.dispatchEvent(new Event('change'));
         await new Promise((done) => setTimeout(done, 200));
         first.best = document.querySelector('#groups .best').textContent;
         first.errors = document.getElementById('errors').textContent;
         return first;"
    );
    for (width, dark) in [(1280, false), (1280, true), (400, false)] {
        let shown = Shown { dark, ..Shown::new(&page, width) };
        let answer = shown.run(&script);
        assert_eq!((&answer["errors"], &answer["misfits"]), (&"".into(), &Value::Array(vec![])), "{answer}");
        let figures: Vec<[String; 2]> = serde_json::from_value(answer["figures"].clone()).expect("names");
        let drawn =
            ["residency", "hits", "moves", "books", "heatmap"].map(|id| [id.to_owned(), "true".into()]);
        assert_eq!(figures, drawn);
        assert!(
            answer["points"].as_u64() > Some(2 * 600),
            "the past of before the page was opened: {answer}"
        );
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        assert!(text("answer").contains("2 groups") && text("warnings").contains("database: accessed-bits"));
        assert!(answer["groups"][0].as_str().is_some_and(|row| row.starts_with("databaseisotherm2")));
        let hostile = answer["programs"][0].as_str().unwrap_or_default();
        assert!(hostile.starts_with("<img") && answer["images"] == 0, "{hostile}");
        assert!(
            text("key").contains("sampled accesses in a cell") && text("axis").contains("before now (min)")
        );
        assert!(text("best").starts_with("batch"), "{answer}");
        assert!(answer["found"][0].as_f64() >= Some(4.5), "{answer}");
        assert_eq!(text("back"), if dark { "rgb(23, 26, 31)" } else { "rgb(255, 255, 255)" });
    }
}

#[test]
fn an_hour_of_a_live_page_takes_at_most_five_megabytes() {
    let script = format!(
        "{DAEMON} const draw = drawAll; drawAll = () => {{}};
         second = 1; await look(); gc();
         const before = performance.memory.usedJSHeapSize;
         for (second = 2; second <= 7200; second += 1) await look();
         second = 7200; draw(); gc();
         const data = series();
         return {{ heap: performance.memory.usedJSHeapSize - before, bytes: past.values.byteLength, kept: past.length,
           span: -data.from, errors: document.getElementById('errors').textContent,
           true: data.hits.filter((one) => one !== null).every((one) => Math.abs(one - 0.9) < 0.001) }};"
    );
    let answer = Shown::new(&machine_page(), 1280).run(&script);
    assert_eq!((&answer["errors"], &answer["true"]), (&"".into(), &true.into()), "{answer}");
    let number = |name: &str| answer[name].as_f64().expect("a number");
    assert!(number("heap") < 5e6 && number("bytes") < 2e5 && number("kept") <= 1024.0, "{answer}");
    assert!((3590.0..=3600.0).contains(&number("span")), "{answer}");
    println!("after two hours, of which one is kept: {answer}");
}

fn pictures_of(page: &str) -> Vec<String> {
    pictures(&Shown::new(page, 1280)).into_values().map(|(drawn, _)| drawn).collect()
}

#[test]
fn missing_data_is_named_and_no_error() {
    let mut report = support::report();
    report.runs.iter_mut().for_each(|run| run.timeline.clear());
    report.input.heatmap = Heatmap::default();
    report.input.regions.clear();
    let drawn = pictures(&Shown::new(&html(&report), 1280));
    let state = |name: &str| drawn[name].0.as_str();
    assert_eq!(
        ["curve", "heatmap", "internals", "over-time"].map(state),
        ["true", "empty", "empty", "empty"]
    );
    report.runs.retain(|run| run.fast == "1:8");
    assert!(!pictures(&Shown::new(&html(&report), 1280)).contains_key("curve"), "one size is no curve");
    report.runs.clear();
    assert_eq!(pictures_of(&html(&report)), ["empty"; 3]);
}

#[test]
fn a_huge_report_still_draws() {
    all_drawn(&Shown::new(&html(&support::sized(2_000, 4_096, 2_048, 20)), 1280));
}

#[test]
fn hostile_text_runs_nothing() {
    let mut report = support::report();
    let hostile =
        "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">";
    report.input.name = hostile.into();
    report.input.regions[0].name = hostile.into();
    report.input.heatmap.objects[0].name = hostile.into();
    report.input.provenance.insert("command".into(), hostile.into());
    report.runs.iter_mut().for_each(|run| run.fast = format!("{hostile:.20}"));
    let page = html(&report);
    all_drawn(&Shown::new(&page, 1280));
    let shown = Shown::new(&page, 1280);
    let answer = shown.run(&format!("{UNFOLD} return [document.title, document.images.length];"));
    assert!(answer[0].as_str().is_some_and(|title| title.starts_with("Isotherm")), "{answer}");
    assert_eq!(answer[1], 0);
}

/// Finds what does not fit: the page, tables that scroll, and texts and bars that lie outside of it.
const MISFITS: &str = "const wide = document.documentElement.clientWidth;
    const misfits = document.documentElement.scrollWidth > wide ? ['the page'] : [];
    const name = (one) => `${one.tagName} ${one.className.baseVal ?? one.className} ${one.textContent.slice(0, 40)}`;
    if (wide >= 1280) document.querySelectorAll('.scroll').forEach((one) => {
      if (one.scrollWidth > one.clientWidth) misfits.push(`${one.scrollWidth} px ${name(one)}`);
    });
    document.querySelectorAll('svg text, svg path.line, .bar i, canvas, h1, h2, p, li, label, select').forEach((one) => {
      const box = one.getBoundingClientRect();
      if (box.width && (box.left < -1 || box.right > wide + 1)) misfits.push(name(one));
    });";

#[test]
fn everything_fits_at_three_widths_folded_and_unfolded() {
    for (name, page) in pages() {
        for width in WIDTHS {
            let script = format!(
                "const height = document.documentElement.scrollHeight; {UNFOLD} {MISFITS} return [height, misfits];"
            );
            let answer = Shown::new(&page, width).run(&script);
            assert_eq!(answer[1], Value::Array(vec![]), "{name} at {width} px: {answer}");
            let height = answer[0].as_u64().expect("a height");
            assert!(width < 1280 || height <= 4000, "{name} is {height} px tall at {width} px");
        }
    }
}

#[test]
fn tables_sort_by_exact_numbers_and_save_them() {
    let page = html(&support::full_report());
    let script = format!(
        "{UNFOLD}
         const table = [...document.querySelectorAll('table.data')].find((one) => one.tHead.textContent.includes('slowdown'));
         const heads = [...table.tHead.querySelectorAll('button')];
         const column = heads.findIndex((one) => one.textContent === 'moved');
         const sorted = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[column].dataset.value));
         heads[column].click();
         const down = [sorted(), heads[column].parentElement.getAttribute('aria-sort')];
         heads[column].click();
         const up = [sorted(), heads[column].parentElement.getAttribute('aria-sort')];
         heads[0].click();
         const names = [...table.tBodies[0].rows].map((row) => row.cells[0].textContent);
         let saved = 0;
         URL.createObjectURL = (blob) => {{ saved = blob.size; return '#'; }};
         table.parentElement.previousElementSibling.click();
         return {{ down, up, names, csv: csvOf(table), saved }};"
    );
    let answer = Shown::new(&page, 1280).run(&script);
    let numbers = |side: &str| -> Vec<f64> {
        answer[side][0].as_array().expect("numbers").iter().filter_map(Value::as_f64).collect()
    };
    let (down, up) = (numbers("down"), numbers("up"));
    assert!(down.len() == 56 && down.iter().rev().is_sorted() && down[0] > down[55], "{down:?}");
    assert!(up.is_sorted(), "{up:?}");
    assert_eq!([&answer["down"][1], &answer["up"][1]], ["descending", "ascending"]);
    let names: Vec<&str> =
        answer["names"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    assert!(names.is_sorted() && names[0] == "all-fast", "{names:?}");
    let csv = answer["csv"].as_str().expect("text");
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert!(
        lines[0].starts_with("policy,fast tier (bytes),hits,") && lines[0].contains("moving (ns)"),
        "{}",
        lines[0]
    );
    let run = support::full_report().runs.into_iter().find(|run| run.policy == "all-fast").expect("a run");
    let start = format!("all-fast,{},{},", run.fast_bytes.0, run.hit_ratio);
    assert!(lines[1].starts_with(&start), "{} is not {start}", lines[1]);
    assert_eq!(lines.len(), 58, "a heading, 56 runs, and the last line's end");
    assert_eq!(answer["saved"], csv.len(), "the file holds it");
}

#[test]
fn at_most_five_policies_are_shown_until_the_reader_asks_for_more() {
    let page = html(&support::full_report());
    let script = format!(
        "{UNFOLD}
         const lines = (id) => document.querySelectorAll(`#${{id}} path.line:not([stroke='var(--bound)'])`).length / 2;
         const before = [lines('over-time'), lines('curve')];
         const boxes = [...document.querySelectorAll('#choice input')];
         boxes.find((one) => !one.checked).click();
         const more = lines('over-time');
         const seen = () => document.querySelector('#ranking [data-size]:not([hidden]) caption').textContent;
         const cells = () => document.querySelector('#heatmap canvas').toDataURL();
         const [caption, fast] = [seen(), cells()];
         const choose = (id, value) => {{
           const choice = document.getElementById(id);
           choice.value = value;
           choice.dispatchEvent(new Event('change'));
         }};
         choose('size', 0);
         choose('overlay', '');
         return {{ boxes: boxes.length, before, more, caption, other: seen(), differs: cells() !== fast,
           errors: document.getElementById('errors').textContent }};"
    );
    let answer = Shown::new(&page, 1280).run(&script);
    assert_eq!(answer["errors"], "");
    assert_eq!(answer["boxes"], 23, "every policy that is no limit");
    assert_eq!(answer["before"], serde_json::json!([5, 5]), "{answer}");
    assert_eq!(answer["more"], 6);
    assert_ne!(answer["caption"], answer["other"]);
    assert_eq!(answer["differs"], true, "what is fast colours the heatmap");
}

#[test]
fn everything_can_be_operated_by_keys() {
    for (name, page) in pages() {
        let script = format!(
            "{UNFOLD}
             const controls = [...document.querySelectorAll(
               'summary, button, select, input, figure[data-drawn=true] .plot')];
             const shown = controls.filter((one) => one.checkVisibility());
             const deaf = shown.filter((one) => {{ one.focus(); return document.activeElement !== one; }});
             const silent = [...document.querySelectorAll('figure[data-drawn=true] .plot')].filter((one) => {{
               one.focus();
               one.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'ArrowRight' }}));
               const tip = one.querySelector('.tip');
               const told = !tip.hidden && tip.textContent.includes('\\n');
               one.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Escape' }}));
               return !told || !tip.hidden;
             }});
             const unnamed = [...document.querySelectorAll('svg[role=img]')].filter((one) => !one.ariaLabel);
             return [shown.length, deaf.length, silent.map((one) => one.parentElement.id), unnamed.length];"
        );
        let answer = Shown::new(&page, 1280).run(&script);
        assert!(answer[0].as_u64() > Some(0), "{name}: {answer}");
        assert_eq!(
            [&answer[1], &answer[2], &answer[3]],
            [&0.into(), &Value::Array(vec![]), &0.into()],
            "{name}"
        );
    }
}

/// The least contrast of any text with what is behind it, and the page's background.
const CONTRAST: &str = "const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const behind = (one) => {
      for (let at = one; at; at = at.parentElement) {
        const colour = parse(getComputedStyle(at).backgroundColor);
        if (colour.length < 4 || colour[3] > 0) return colour;
      }
      return [255, 255, 255];
    };
    const bright = (colour) => colour.slice(0, 3).map((part) => part / 255)
      .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
      .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0.05);
    const texts = [...document.querySelectorAll('body *')].filter((one) => one.checkVisibility() &&
      [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()) &&
      !['SCRIPT', 'TITLE', 'OPTION'].includes(one.tagName.toUpperCase()) && !one.closest('.bar'));
    const found = texts.map((one) => {
      const style = getComputedStyle(one);
      const text = bright(parse(one.closest('svg') ? style.fill : style.color));
      const back = bright(behind(one));
      return [Math.max(text, back) / Math.min(text, back), `${one.tagName} ${one.textContent.slice(0, 30)}`];
    });
    found.sort((one, other) => one[0] - other[0]);";

#[test]
fn text_is_readable_in_light_and_in_dark() {
    for (name, page) in pages() {
        let backs = [Shown::new(&page, 1280), Shown::new(&page, 1280).dark()].map(|shown| {
            let script = format!(
                "{UNFOLD} {CONTRAST} return [found.length, found[0], getComputedStyle(document.documentElement).backgroundColor];"
            );
            let answer = shown.run(&script);
            assert!(answer[0].as_u64() > Some(20), "{name}: {answer}");
            assert!(answer[1][0].as_f64() >= Some(4.5), "{name}, dark {}: {answer}", shown.dark);
            answer[2].clone()
        });
        assert_ne!(backs[0], backs[1], "{name}");
    }
}

#[test]
fn a_printout_is_light_and_has_no_controls() {
    for (name, page) in pages() {
        // The browser lays out as for paper what is meant for it.
        let paper =
            page.replace("@media screen and", "@media speech and").replace("@media print", "@media all");
        assert_ne!(paper, page, "{name}");
        let script = format!(
            "{MISFITS}
             const controls = [...document.querySelectorAll('input, .csv')].filter((one) => one.checkVisibility());
             return [misfits, controls.length, getComputedStyle(document.documentElement).backgroundColor];"
        );
        let answer = Shown::new(&paper, 720).dark().run(&script);
        assert_eq!(answer, serde_json::json!([[], 0, "rgb(255, 255, 255)"]), "{name}");
    }
}

/// Side of a square of the page that is compared with the one committed.
const SQUARE: u32 = 40;

/// Compares the pages with `tests/looks`, which hold the mean colour of each square of 40 pixels: fonts of
/// another machine change little of it, another layout or other colours much. With `ISOTHERM_WRITE_LOOKS=1`
/// it writes them.
#[test]
fn pages_look_as_they_did() {
    let (simulation, live) = (html(&support::full_report()), live_html(&support::live::live()));
    let looked = [
        ("simulation-400", Shown::new(&simulation, 400)),
        ("simulation-1280", Shown::new(&simulation, 1280)),
        ("simulation-1280-dark", Shown::new(&simulation, 1280).dark()),
        ("simulation-1920", Shown::new(&simulation, 1920)),
        ("live-1280", Shown::new(&live, 1280)),
    ];
    for (name, shown) in looked {
        let height = shown.run("return document.documentElement.scrollHeight;").as_u64().expect("a height");
        let height = u32::try_from(height).expect("a height").next_multiple_of(SQUARE);
        let now = Shown { height, ..shown }.looks(SQUARE);
        let path = format!("{}/tests/looks/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("ISOTHERM_WRITE_LOOKS").is_some() {
            std::fs::write(&path, now.join("\n") + "\n").expect("it can be written");
            continue;
        }
        let before = std::fs::read_to_string(&path).expect("it is checked in");
        let before: Vec<&str> = before.lines().collect();
        let differs = difference(&before, &now);
        assert!(
            differs.as_ref().is_ok_and(|share| *share < 0.03),
            "{name} looks different ({differs:?} of it); if that is meant, look at it and write tests/looks again"
        );
    }
}

/// Returns the share of squares whose colour differs visibly from all above and below the same place, which
/// text of another size may shift by two.
fn difference(before: &[&str], now: &[String]) -> Result<f64, String> {
    if before.len().abs_diff(now.len()) > 2 || before[0].len() != now[0].len() {
        return Err(format!(
            "{} by {} digits, were {} by {}",
            now.len(),
            now[0].len(),
            before.len(),
            before[0].len()
        ));
    }
    let digits =
        |line: &str| line.chars().map(|digit| digit.to_digit(16).expect("a digit")).collect::<Vec<_>>();
    let before: Vec<Vec<u32>> = before.iter().map(|line| digits(line)).collect();
    let (mut all, mut different) = (0, 0);
    for (row, line) in now.iter().enumerate() {
        let near = &before[row.saturating_sub(2).min(before.len() - 1)..(row + 3).min(before.len())];
        for (column, cell) in digits(line).chunks(3).enumerate() {
            let alike = |old: &Vec<u32>| {
                let old = &old[3 * column..3 * column + 3];
                old.iter().zip(cell).all(|(one, other)| one.abs_diff(*other) <= 2)
            };
            all += 1;
            different += u32::from(!near.iter().any(alike));
        }
    }
    Ok(f64::from(different) / f64::from(all))
}
