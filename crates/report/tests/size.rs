//! Checks a sizing's JSON against its schema, and the content of its table and page.

mod support;

use isotherm_report::{Advice, Plan, Price, size_html, size_json, size_table, sized};
use isotherm_sim::RunLength;
use serde_json::Value;
use support::sized::sizing;
use support::validator::problems;

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../docs/reference/size.schema.json"))
        .expect("the schema is JSON")
}

#[test]
fn the_output_fits_its_schema() {
    for budget in [0.0, 0.3] {
        let mut report = sizing(budget);
        report.length = (budget > 0.0).then_some(RunLength { rounds: 600, simulated: 12 });
        let value = serde_json::from_str(&size_json(&report, &Plan::default())).expect("the output is JSON");
        assert_eq!(problems(&schema(), &value), Vec::<String>::new());
    }
}

#[test]
fn mismatches_are_found() {
    let mut value: Value =
        serde_json::from_str(&size_json(&sizing(0.3), &Plan::default())).expect("the output is JSON");
    value["policies"][0]["outcome"] = "perhaps".into();
    value["policies"][0]["recommended"]["surprise"] = 1.into();
    value["policies"][1]["curve"][0].as_object_mut().expect("a point").remove("low");
    let expected = [
        "report.policies[0].outcome is not one of the words",
        "report.policies[0].recommended is not any of what is allowed",
        "report.policies[1].curve[0].low is not present",
    ];
    assert_eq!(problems(&schema(), &value), expected);
}

#[test]
fn the_table_answers_first_and_fits_eighty_columns() {
    let mut report = sizing(0.3);
    let verdict = sized(&report, &Plan::default());
    let text = size_table(&report, &Plan::default());
    let told = text.replace('\n', " ");
    assert!(told.starts_with(&format!("{} {}", verdict.sentence, verdict.sure)), "{text}");
    assert!(
        verdict.sentence.contains("small.trace") && verdict.sentence.contains("to stay within 30.0 %"),
        "{text}"
    );
    assert!(told.contains("Simulated in full at the recommended size"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // A bound needs least of all, and is never the answer.
    assert!(
        verdict.policy.as_deref().is_none_or(|policy| ["first-touch", "freqtier"].contains(&policy)),
        "{verdict:?}"
    );
    let impossible = size_table(&sizing(0.0), &Plan::default());
    assert!(impossible.starts_with("Keep all of small.trace in DRAM: "), "{impossible}");
    let told = impossible.replace("\n  ", " ");
    assert!(
        told.contains("Over the budget even with the whole footprint fast: first-touch and freqtier."),
        "{told}"
    );
    report.all_slow = 1.1;
    let idle = sized(&report, &Plan::default());
    assert_eq!((idle.advice, idle.fast_bytes.map(|fast| fast.0)), (Advice::DoNotTier, Some(0)));
}

#[test]
fn a_policy_is_advised_only_where_it_needs_less_than_doing_nothing() {
    let mut report = sizing(0.3);
    let need = |report: &mut isotherm_sim::SizeReport, name: &str, bytes: u64| {
        let policy = report.policies.iter_mut().find(|policy| policy.policy == name).expect("it is sized");
        policy.outcome = isotherm_sim::Outcome::Confirmed;
        let size = isotherm_core::Bytes(bytes);
        policy.recommended = Some(isotherm_sim::Recommended {
            fast_bytes: size,
            low_bytes: size,
            high_bytes: Some(size),
            saved_bytes: size,
            slowdown: 1.1,
        });
    };
    need(&mut report, "first-touch", 2 << 20);
    need(&mut report, "freqtier", 1 << 20);
    let better = sized(&report, &Plan::default());
    assert_eq!((better.advice, better.policy.as_deref()), (Advice::Tier, Some("freqtier")));
    assert!(
        better.sentence.starts_with("Use freqtier: ") && better.sentence.contains("2M without tiering"),
        "{better:?}"
    );
    need(&mut report, "freqtier", 2 << 20);
    let equal = sized(&report, &Plan::default());
    assert_eq!((equal.advice, equal.policy), (Advice::DoNotTier, None));
    assert!(!equal.sentence.contains("freqtier"), "{}", equal.sentence);
}

#[test]
fn prices_and_another_footprint_are_told_in_every_output() {
    let report = sizing(0.3);
    let plan =
        Plan { price: Some(Price { dram: 8.0, cxl: 3.0 }), footprint: Some(isotherm_core::Bytes(512 << 30)) };
    let value: Value = serde_json::from_str(&size_json(&report, &plan)).expect("the output is JSON");
    assert_eq!(problems(&schema(), &value), Vec::<String>::new());
    assert_eq!(value["verdict"]["plan"]["price_all_dram"], 4096.0);
    for text in [size_table(&report, &plan).replace("\n  ", " "), size_html(&report, &plan)] {
        for words in ["With 512G of memory: ", "Carried over: ", "in place of 4096.00"] {
            assert!(text.contains(words), "{words}: {text:.3000}");
        }
    }
}

#[test]
fn the_page_is_one_file_that_names_no_other() {
    let page = size_html(&sizing(0.3), &Plan::default());
    assert!(page.len() < isotherm_report::MAX_HTML_BYTES);
    assert!(!page.contains("src=") && !page.contains("href="), "it refers to something");
    assert!(page.contains("id=\"size\"") && !page.contains("{{"));
}
