//! Checks a live run's summary on a terminal, its JSON against its schema, and the content of its page.

mod support;

use isotherm_core::live_result::{CounterOrigin, Intervals, LiveResult, Missing, Traffic};
use isotherm_core::{Bytes, Nanos};
use isotherm_report::{Advice, MAX_HTML_BYTES, live_html, live_json, live_text};
use serde_json::Value;
use support::documented::Documented;
use support::live::{empty, lasting, live};
use support::validator::problems;

const DOCUMENTED: Documented = Documented {
    schema: include_str!("../../../docs/reference/live-schema.json"),
    document: include_str!("../../../docs/reference/live-schema.md"),
    path: "docs/reference/live-schema.md",
    test: "live",
    objects: &[
        "run",
        "verdict",
        "manifest",
        "plan",
        "tier",
        "traffic",
        "refused",
        "source",
        "engine",
        "hot_set",
        "intervals",
        "missing",
        "hot_pages",
        "hot_share",
        "memory_range",
        "moment",
    ],
};

fn serialised(result: &LiveResult) -> Value {
    serde_json::from_str(&live_json(result)).expect("the output is JSON")
}

#[test]
fn the_summary_is_unchanged() {
    let expected = include_str!("live.txt");
    let shown = live_text(&live());
    assert_eq!(shown, expected, "\nIf the change is wanted, put this into tests/live.txt:\n{shown}");
}

#[test]
fn memory_in_swap_is_told_with_zswaps_part_of_it() {
    let mut run = live();
    assert!(!live_text(&run).contains("swapped  "));
    (run.summary.swapped_bytes, run.summary.zswapped_bytes) = (Bytes(12 << 20), None);
    assert!(live_text(&run).contains("swapped      12M at the end\n"), "{}", live_text(&run));
    run.summary.zswapped_bytes = Some(Bytes(10 << 20));
    assert!(live_text(&run).contains("swapped      12M at the end, 10M of it in zswap\n"));
    assert!(live_html(&run).contains("memory in swap"));
}

#[test]
fn a_policy_that_keeps_books_says_what_it_cost_and_saved_and_how_sure_that_is() {
    let mut kept = live();
    assert!(!live_text(&kept).contains("program's time."), "HybridTier keeps none");
    let moments = kept.summary.timeline.len();
    let gauges = |saved, error| {
        vec![("spent-percent", 0.42), ("saved-percent", saved), ("saved-error-percent", error)]
    };
    let mut told = |saved, error, shadow| {
        kept.summary.shadow = shadow;
        // The last moment is the summary's, which no policy fills.
        kept.summary.timeline[moments - 1].gauges.clear();
        kept.summary.timeline[moments - 2].gauges = gauges(saved, error);
        live_text(&kept).replace('\n', " ")
    };
    let text = told(12.1, 0.4, false);
    assert!(text.contains("Sampling, deciding and moving took 0.42 % of the program's time."), "{text}");
    let saved = "the moves saved 12.10 % of it, +-0.80 points by chance (19 in 20), and more where its waits overlap.";
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(saved), "{text}");
    assert!(told(-1.0, 0.4, false).contains("the moves lost 1.00 % of it"));
    assert!(told(0.0, 0.0, false).contains("No sample has shown yet"));
    let text = told(12.1, 0.4, true);
    assert!(text.contains("Sampling and deciding took 0.42 % of the program's time."), "{text}");
    assert!(text.contains("the moves would have saved 12.10 % of it"), "{text}");
    assert!(told(-1.0, 0.4, true).contains("the moves would have lost 1.00 % of it"));
    kept.summary.traffic = Traffic::default();
    kept.summary.timeline[moments - 2].gauges = gauges(0.0, 0.0);
    assert!(live_text(&kept).replace('\n', " ").contains("Without moves nothing is saved."));
}

#[test]
fn it_fits_a_terminal() {
    let mut real = live();
    real.summary.shadow = false;
    real.summary.warnings.clear();
    for result in [live(), real, empty()] {
        let shown = live_text(&result);
        let widest =
            shown.lines().filter(|line| !line.starts_with("warning")).map(|line| line.chars().count());
        assert!(widest.max() <= Some(80), "{shown}");
        assert!(shown.lines().count() <= 21, "{shown}");
        assert!(!shown.contains("NaN") && !shown.contains("inf"), "{shown}");
    }
}

#[test]
fn counters_that_are_modelled_are_labelled_so_wherever_the_run_is_shown() {
    let mut result = live();
    let shown =
        |result: &LiveResult| [live_text(result), live_html(result)].map(|text| text.contains("MODELLED"));
    assert_eq!((shown(&result), serialised(&result)["counters"].as_str()), ([false; 2], Some("none")));
    result.summary.counters = CounterOrigin::Modelled;
    assert_eq!((shown(&result), serialised(&result)["counters"].as_str()), ([true; 2], Some("modelled")));
    result.summary.counters = CounterOrigin::LittlesLaw;
    assert!(live_text(&result).contains("Little's law") && !live_text(&result).contains("MODELLED"));
}

#[test]
fn the_verdict_comes_first_and_then_shadow_is_told_from_real() {
    let mut result = live();
    let begins = |result: &LiveResult, verdict: &str, deeds: &str| {
        let shown = live_text(result);
        let told = shown.replace('\n', " ");
        assert!(told.starts_with(verdict) && told.contains(deeds), "{shown}");
        assert!(
            live_html(result).contains(verdict.split(" %").next().expect("a part")),
            "the page says the same"
        );
    };
    result.summary.cautions.clear();
    begins(
        &result,
        "Tier this program: 12.5 % of its memory",
        "Nothing moved (shadow): hybridtier would have moved",
    );
    result.summary.shadow = false;
    begins(
        &result,
        "Tier this program: 12.5 % of its memory",
        "hybridtier moved 241k pages, and 256M of fast memory",
    );
    let page = live_html(&result);
    assert!(page.contains("Where the memory in use is.") && page.contains("Pages moved in a second"));
    assert!(!page.contains("would have") && !page.contains("would move"), "nothing is hypothetical");
    result.summary.traffic = Default::default();
    begins(&result, "Tier this program: ", "hybridtier moved no page, and ");
}

#[test]
fn a_live_verdict_needs_evidence_and_a_gain() {
    let mut result = live();
    result.summary.cautions.clear();
    let verdict = |result: &LiveResult| {
        let verdict = isotherm_report::live(result);
        assert_eq!(serialised(result)["verdict"]["sentence"], verdict.sentence.as_str());
        verdict
    };
    assert_eq!(verdict(&result).policy.as_deref(), Some("hybridtier"));
    let with = |change: &dyn Fn(&mut LiveResult)| {
        let mut other = result.clone();
        change(&mut other);
        let verdict = verdict(&other);
        assert_eq!(verdict.policy, None);
        assert!(!verdict.sentence.contains("hybridtier"), "{verdict:?}");
        (verdict.advice, verdict.sentence)
    };
    let hits = |value: f64, error: f64| {
        move |result: &mut LiveResult| {
            result.summary.hit_ratio = Some(value);
            result.summary.intervals.hit_ratio = Some([value - error, value + error]);
        }
    };
    let even = with(&hits(0.15, 0.01));
    assert!(even.0 == Advice::DoNotTier && even.1.contains("hardly more than its share"), "{even:?}");
    let fits = with(&|result| result.summary.tiers[0].capacity_bytes = result.summary.footprint_bytes);
    assert!(fits.0 == Advice::DoNotTier && fits.1.contains("all memory in use fits"), "{fits:?}");
    let doubtful = with(&hits(0.19, 0.05));
    assert!(doubtful.0 == Advice::Unknown && doubtful.1.contains("which may or may not be"), "{doubtful:?}");
    assert!(doubtful.1.contains("19 % (14-24)") && doubtful.1.contains("a run of 2min"), "{doubtful:?}");
    let few = with(&too_little);
    assert!(few.0 == Advice::Unknown, "{few:?}");
    let ways = "hits lie anywhere from 4 to 96 %, by 1.26k samples (0.04 a page); enough would be a run of 40min, \
                --overhead 10%, --page-size huge, or a machine with a PMU";
    assert!(few.1.contains(ways), "{few:?}");
    let baseline = with(&|result| result.policy = "first-touch".into());
    assert!(baseline.0 == Advice::Unknown && baseline.1.contains("another --policy"), "{baseline:?}");
}

/// Changes a run to one that saw too little for any statement.
fn too_little(result: &mut LiveResult) {
    let summary = &mut result.summary;
    (summary.hit_ratio, summary.final_hit_ratio, summary.slowdown_at_most) = (None, None, None);
    summary.intervals = Intervals::default();
    summary.missing = Some(Missing {
        samples: 1260,
        per_page: 0.04,
        hit_ratio: Some([0.043, 0.957]),
        run_ns: Some(Nanos(2400 * Nanos::SECOND.0)),
        overhead: Some(0.098),
        huge_pages: true,
        source: Some("pmu"),
    });
    summary.hot_set.shares.clear();
    summary.hot_set.hot = Default::default();
}

#[test]
fn without_evidence_no_figure_is_shown_anywhere() {
    let mut result = live();
    too_little(&mut result);
    let json = serialised(&result);
    assert_eq!(json["verdict"]["advice"], "unknown");
    assert_eq!(problems(&DOCUMENTED.schema(), &json), Vec::<String>::new());
    let shown = live_text(&result);
    assert!(shown.starts_with("No verdict: hits lie anywhere from 4 to 96 %"), "{shown}");
    for told in [
        "hit ratio    not known: too little was seen",
        "slowdown     not known: too little was seen",
        "hot set      not known: too little was sampled",
        "limit 256M; - of accesses",
    ] {
        assert!(shown.contains(told), "{told} is not in\n{shown}");
    }
    let page = live_html(&result);
    for told in ["hits lie anywhere from 4 to 96&nbsp;%", "Too little was sampled to tell"] {
        assert!(page.contains(told), "{told}");
    }
    assert!(page.contains(r#""hits":[null,null"#), "the picture over time shows none either");
}

#[test]
fn a_run_without_anything_seen_says_so() {
    let shown = live_text(&empty());
    assert!(shown.starts_with("No verdict: no access was counted"), "{shown}");
    let answer =
        "\nNothing would have moved (shadow): no memory of redis-server was seen in the\n3.20ms that";
    assert!(shown.contains(answer), "{shown}");
    assert!(shown.contains("hit ratio    not known: no access was counted"), "{shown}");
    assert!(shown.contains("samples      none: no access source"), "{shown}");
    assert!(live_html(&empty()).contains("no memory of redis-server was seen"));
}

#[test]
fn memory_without_accesses_has_no_hit_ratio() {
    let mut result = live();
    (result.summary.hit_ratio, result.summary.final_hit_ratio) = (None, None);
    result.summary.slowdown_at_most = None;
    result.summary.missing = Some(Missing::default());
    let shown = live_text(&result);
    assert!(shown.contains("no access was counted, so the hit"), "{shown}");
    assert!(shown.contains("slowdown     not known"), "{shown}");
}

#[test]
fn memory_that_fits_the_fast_tier_is_told() {
    let mut result = live();
    assert!(!live_text(&result).contains("fits the fast tier"));
    result.summary.tiers[0].capacity_bytes = result.summary.footprint_bytes;
    assert!(live_text(&result).contains("fits the fast tier"));
    assert!(live_html(&result).contains("fits the fast tier"));
}

#[test]
fn memory_that_hint_faults_leave_out_is_told() {
    let mut result = live();
    let told = "3.1 % of memory (files, shared memory, stacks, libraries)";
    assert!(live_text(&result).contains(told) && live_html(&result).contains(told));
    assert_eq!(serialised(&result)["sources"][0]["left_out_share"], 0.031);
    for nothing in [Some(0.0), None] {
        result.summary.sources[0].left_out_share = nothing;
        assert!(!live_text(&result).contains("left out") && !live_html(&result).contains("left out"));
    }
}

#[test]
fn warnings_are_a_line_each_and_the_rest_is_counted() {
    let mut result = live();
    result.summary.warnings =
        (0..9).map(|index| format!("warning {index}:\n{}", "fix it ".repeat(20))).collect();
    let shown = live_text(&result);
    let lines: Vec<_> = shown.lines().filter(|line| line.starts_with("warning ")).collect();
    assert_eq!(lines.len(), 5, "{shown}");
    assert!(lines[3].starts_with("warning      warning 3: fix it ") && lines[3].ends_with("fix it "));
    assert_eq!(lines[4], "warning      and 5 more: --json and --report show all");
}

#[test]
fn the_output_fits_its_schema() {
    for result in [live(), empty()] {
        assert!(live_json(&result).ends_with("}\n"));
        assert!(live_json(&result).lines().count() > 50, "it is indented");
        assert_eq!(problems(&DOCUMENTED.schema(), &serialised(&result)), Vec::<String>::new());
    }
}

#[test]
fn the_parameters_of_every_policy_fit_the_schema() {
    let mut result = live();
    for entry in isotherm_policies::ALL {
        result.parameters = entry.parameters();
        assert_eq!(
            problems(&DOCUMENTED.schema(), &serialised(&result)),
            Vec::<String>::new(),
            "{}",
            entry.name
        );
    }
}

#[test]
fn mismatches_are_found() {
    let mut value = serialised(&live());
    value["surprise"] = 1.into();
    value["page_size"] = "giant".into();
    value["hit_ratio"] = 1.5.into();
    value["tiers"][0].as_object_mut().expect("a tier").remove("hits");
    value["timeline"][3]["gauges"][0] = "hot-pages".into();
    let expected = [
        "report.hit_ratio is not at most the maximum",
        "report.page_size is not one of the words",
        "report.surprise is not documented",
        "report.tiers[0].hits is not present",
        "report.timeline[3].gauges[0] is not of type \"array\"",
        "report.timeline[3].gauges[0] is not a list of that length",
    ];
    let mut found = problems(&DOCUMENTED.schema(), &value);
    found.sort();
    let mut expected = expected.map(String::from).to_vec();
    expected.sort();
    assert_eq!(found, expected);
}

/// The schema is tried only on fields that this run fills.
#[test]
fn the_run_that_is_tried_leaves_no_field_empty() {
    fn trivial(path: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, part) in fields {
                    trivial(&format!("{path}.{name}"), part, found);
                }
            }
            Value::Array(items) if !items.is_empty() => trivial(&format!("{path}[0]"), &items[0], found),
            Value::Array(_) | Value::Null => found.push(path.into()),
            Value::String(text) if text.is_empty() => found.push(path.into()),
            Value::Number(_) | Value::Bool(_) | Value::String(_) => {}
        }
    }
    let mut found = Vec::new();
    trivial("run", &serialised(&live()), &mut found);
    // A live run never has all of a verdict, and either figures or what is missing for them.
    found.retain(|path| !path.starts_with("run.verdict.") && path != "run.missing");
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn every_field_is_documented() {
    DOCUMENTED.check();
}

#[test]
fn the_page_shows_the_answer_the_tables_and_the_warnings() {
    let page = live_html(&live());
    for part in [
        "Nothing moved (shadow): hybridtier would have moved",
        "redis-server --port 7777 under hybridtier",
        "<td>hint-faults</td>",
        "<td>refused: no room</td>",
        "<td>0x7f3a00000000</td>",
        ">205M (",
        "3 mappings of process 4711",
        "<h3>hybridtier",
        "Where the memory in use would be.",
        "Pages that would move in a second",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("{{"), "a place was not filled");
    for reference in ["<link", "<img", "src=", "@import", "url(", "href="] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn names_from_outside_stay_text() {
    let hostile = "/x/'\"></script><script>alert(1)</script><!--{{data}}\u{1b}]0;taken\u{7}";
    let mut result = live();
    result.program = vec![hostile.into()];
    result.summary.warnings = vec![hostile.into()];
    let page = live_html(&result);
    assert!(!page.contains("<script>alert"), "a script element came through");
    assert_eq!(page.matches("<script").count(), 2);
    assert!(page.contains("&lt;script&gt;alert(1)"), "the name is shown");
    let shown = live_text(&result);
    assert!(!shown.contains(['\u{1b}', '\u{7}']), "a terminal would obey this");
    assert_eq!(shown.lines().filter(|line| line.starts_with("warning")).count(), 1);
}

#[test]
fn a_full_timeline_and_long_texts_make_a_page_within_the_limit() {
    let mut result = lasting(600);
    let quotes = "\"".repeat(20_000);
    result.program = vec![quotes.clone(); 100];
    result.version.clone_from(&quotes);
    result.summary.warnings = (0..1000).map(|index| format!("{index}{quotes}")).collect();
    let range = result.summary.hot_set.fast_ranges[0];
    result.summary.hot_set.fast_ranges = vec![range; 1000];
    result.summary.sources = vec![result.summary.sources[0].clone(); 300];
    let size = live_html(&result).len();
    assert!(size <= MAX_HTML_BYTES, "{size} bytes");
    let usual = live_html(&lasting(600)).len();
    assert!(usual < 500_000, "a usual page is small: {usual} bytes");
}

#[test]
fn nothing_is_divided_by_zero() {
    let mut result = live();
    result.summary.tiers.clear();
    for moment in &mut result.summary.timeline {
        moment.time_ns = Nanos(0);
        moment.hits.clear();
        moment.resident_bytes.clear();
    }
    result.summary.footprint_bytes = Bytes(0);
    result.summary.duration_ns = Nanos(0);
    for text in [live_text(&result), live_html(&result)] {
        let own = text.split("<script").next().expect("the start");
        assert!(!own.contains("NaN") && !own.contains("inf "), "{own}");
    }
}
