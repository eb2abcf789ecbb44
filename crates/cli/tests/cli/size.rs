//! `isotherm size` from end to end.

use crate::support::{Folder, isotherm};

fn refused(arguments: &[&str]) -> String {
    let mut all = vec!["size"];
    all.extend(arguments);
    isotherm(&all).refused(2)
}

#[test]
fn what_it_recommends_holds_when_simulated() {
    let folder = Folder::new();
    let trace = folder.trace();
    let (policies, rounds) = ("first-touch,belady", "6");
    let mut arguments = vec!["size", &trace, "--policy", policies, "--budget", "10%", "--seeds", "2"];
    arguments.extend(["--rounds", rounds, "--json"]);
    let answer = isotherm(&arguments).json();
    let first_touch = &answer["policies"][0];
    assert_eq!(
        (&first_touch["policy"], &first_touch["outcome"]),
        (&"first-touch".into(), &"confirmed".into())
    );
    let recommended = &first_touch["recommended"];
    let size = recommended["fast_bytes"].to_string();
    let mut arguments = vec!["simulate", &trace, "--policy", "first-touch", "--fast", &size];
    arguments.extend(["--rounds", rounds, "--json"]);
    let simulate = isotherm(&arguments).json();
    assert_eq!(simulate["runs"][0]["long_run"]["slowdown"], recommended["slowdown"]);
    assert!(recommended["slowdown"].as_f64() <= Some(1.1));
    assert_eq!(answer["policies"][1]["bound"], true);
}

#[test]
fn it_answers_in_a_table_and_writes_a_report() {
    let folder = Folder::new();
    let (trace, report) = (folder.trace(), folder.at("size.html"));
    let table = isotherm(&["size", &trace, "--seeds", "2", "--report", &report]).ok();
    assert!(table.contains("the long run: ") && table.contains("at most"), "{table}");
    let verdict = table.split("\n\n").next().expect("a paragraph").replace('\n', " ");
    assert!(verdict.contains("to stay within 5.0 % of all-DRAM speed"), "{table}");
    assert!(["Use ", "Do not tier ", "Keep "].iter().any(|start| verdict.starts_with(start)), "{table}");
    assert!(!verdict.contains("oracle") && !verdict.contains("belady"), "a bound is no choice: {table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    for policy in ["first-touch", "freqtier", "oracle", "belady"] {
        assert!(table.contains(&format!("\n{policy} ")), "{policy} is sized by default: {table}");
    }
    let page = std::fs::read_to_string(&report).expect("the report");
    assert!(page.starts_with("<!DOCTYPE html>"));
}

/// The step from a recording to the machine was left to the reader.
#[test]
fn a_plan_for_a_machine_has_its_memory_and_its_price() {
    let folder = Folder::new();
    let trace = folder.trace();
    let arguments =
        ["size", &trace, "--policy", "first-touch", "--seeds", "2", "--rounds", "6", "--budget", "10%"];
    let plan = ["--price", "cxl=3, dram=8", "--footprint", "512G"];
    let value = isotherm(&[&arguments[..], &plan, &["--json"]].concat()).json();
    let plan_of = &value["verdict"]["plan"];
    let number = |name: &str| plan_of[name].as_f64().unwrap_or_else(|| panic!("{name} in {value}"));
    let gb = f64::from(1 << 30);
    assert_eq!(number("footprint_bytes"), 512.0 * gb);
    assert_eq!(number("fast_bytes") + number("slow_bytes"), 512.0 * gb);
    let price = (8.0 * number("fast_bytes") + 3.0 * number("slow_bytes")) / gb;
    assert!((number("price") - price).abs() < 0.01 && number("price_all_dram") == 4096.0, "{plan_of}");
    let share = value["verdict"]["fast_bytes"].as_f64().expect("a size")
        / value["input"]["footprint_bytes"].as_f64().expect("a size");
    assert!((number("fast_bytes") / (512.0 * gb) - share).abs() < 1e-6, "{plan_of}");
    let text = isotherm(&[&arguments[..], &plan].concat()).ok().replace("\n  ", " ");
    assert!(text.contains("Not carried over: ") && text.contains("in place of 4096.00"), "{text}");
}

#[test]
fn the_same_call_gives_the_same_answer() {
    let folder = Folder::new();
    let trace = folder.trace();
    let answer = || {
        let mut answer =
            isotherm(&["size", &trace, "--policy", "freqtier", "--seeds", "2", "--sample", "20k", "--json"])
                .json();
        answer["wall_s"] = 0.into();
        answer
    };
    assert_eq!(answer(), answer());
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let folder = Folder::new();
    let trace = folder.trace();
    for budget in ["-1", "-5%", "five", "", "%", "NaN", "1e9", "5"] {
        let line = refused(&[&trace, "--budget", budget]);
        assert!(line.contains("--budget") && line.contains("5% or 0.05"), "{line}");
    }
    for price in ["8", "dram=8", "dram=8,cxl=-3", "dram=8,cxl=3,hbm=9", "dram=8,cxl=x", ""] {
        let line = refused(&[&trace, "--price", price]);
        assert!(line.contains("--price") && line.contains("dram=8,cxl=3"), "{line}");
    }
    let line = refused(&[&trace, "--policy", "freqteir"]);
    assert!(line.contains("freqteir") && line.contains("freqtier"), "{line}");
    assert!(refused(&["--workload", "gusp"]).contains("gups"));
    assert!(refused(&[&trace, "--machine", "pcat"]).contains("pact"));
    assert!(refused(&[&trace, "--set", "freqtier.batch=many"]).contains("batch"));
    assert!(refused(&[&folder.at("missing.trace")]).contains("missing.trace"));
    std::fs::create_dir(folder.path().join("empty.trace")).expect("a folder");
    assert!(refused(&[&folder.at("empty.trace")]).contains("empty.trace"));
    for arguments in [&["size"][..], &["size", &trace, "--seeds", "1"], &["size", &trace, "--sample", "x"]] {
        assert_eq!(isotherm(arguments).code, Some(2), "{arguments:?}");
    }
}
