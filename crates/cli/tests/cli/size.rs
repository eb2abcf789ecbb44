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
    assert!(table.contains("to stay within 5.0 % of all-DRAM speed"), "{table}");
    for policy in ["first-touch", "freqtier", "oracle", "belady"] {
        assert!(table.contains(&format!("\n{policy} ")), "{policy} is sized by default: {table}");
    }
    let page = std::fs::read_to_string(&report).expect("the report");
    assert!(page.starts_with("<!DOCTYPE html>"));
}

#[test]
fn the_same_call_gives_the_same_answer() {
    let folder = Folder::new();
    let trace = folder.trace();
    let answer = || {
        let mut answer =
            isotherm(&["size", &trace, "--policy", "freqtier", "--sample", "20k", "--json"]).json();
        answer["wall_s"] = 0.into();
        answer
    };
    assert_eq!(answer(), answer());
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let folder = Folder::new();
    let trace = folder.trace();
    for budget in ["-1", "-5%", "five", "", "%", "NaN", "1e9"] {
        let line = refused(&[&trace, "--budget", budget]);
        assert!(line.contains("--budget") && line.contains("expected"), "{line}");
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
