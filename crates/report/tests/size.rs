//! Checks a sizing's JSON against its schema, and the content of its table and page.

mod support;

use isotherm_report::{size_html, size_json, size_table};
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
        let value = serde_json::from_str(&size_json(&report)).expect("the output is JSON");
        assert_eq!(problems(&schema(), &value), Vec::<String>::new());
    }
}

#[test]
fn mismatches_are_found() {
    let mut value: Value = serde_json::from_str(&size_json(&sizing(0.3))).expect("the output is JSON");
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
fn the_table_answers_in_a_sentence() {
    let report = sizing(0.3);
    let text = size_table(&report);
    let best = report.best.as_ref().expect("a policy within 30 %");
    assert!(text.contains("small.trace needs") && text.contains(&format!("under {best}")), "{text}");
    assert!(text.contains("Simulated in full at the recommended size"), "{text}");
    let impossible = size_table(&sizing(0.0));
    assert!(
        impossible.contains("Over the budget even with the whole footprint fast: first-touch and freqtier."),
        "{impossible}"
    );
}

#[test]
fn the_page_is_one_file_that_names_no_other() {
    let page = size_html(&sizing(0.3));
    assert!(page.len() < isotherm_report::MAX_HTML_BYTES);
    assert!(!page.contains("src=") && !page.contains("href="), "it refers to something");
    assert!(page.contains("id=\"size\"") && !page.contains("{{"));
}
