//! Golden numbers: each policy's results on a small recording of a real program, to the digit.
//!
//! `data/words.parquet` was recorded from Debian's sqlite3, in `data`:
//! ```sh
//! isotherm record --no-aslr --cache 128K --ways 8 --output words.trace -- sqlite3 :memory: ".read words.sql"
//! ```
//! HeMem's period is shortened: it would sample none of so few accesses.
//!
//! A change that is meant to change results updates the numbers with `ISOTHERM_WRITE_GOLDEN=1 cargo test -p
//! isotherm --test cli golden`, and explains in its description why they moved.

use std::fmt::Write;

use crate::support::{data, isotherm};

fn measured() -> String {
    let trace = data("words.parquet").display().to_string();
    let arguments = [
        "simulate",
        &trace,
        "--policy",
        "all",
        "--fast",
        "1:4,1:16",
        "--scale",
        "2000",
        "--set",
        "hemem.sampling_period=499",
        "--seed",
        "1",
        "--json",
    ];
    let report = isotherm(&arguments).json();
    let mut text = String::from("policy\tfast\thit_ratio\tpromotions\tdemotions\n");
    for run in report["runs"].as_array().expect("runs") {
        let word = |field: &str| run[field].as_str().expect("a word").to_owned();
        let count = |field: &str| run[field].as_u64().expect("a count");
        let hits = run["hit_ratio"].as_f64().expect("a number");
        let (promotions, demotions) = (count("promotions"), count("demotions"));
        let _ = writeln!(text, "{}\t{}\t{hits:.6}\t{promotions}\t{demotions}", word("policy"), word("fast"));
    }
    text
}

#[test]
fn golden_every_policy_gives_its_known_numbers() {
    let file = data("golden.tsv");
    let measured = measured();
    if std::env::var_os("ISOTHERM_WRITE_GOLDEN").is_some() {
        std::fs::write(&file, &measured).expect("the file is written");
    }
    let golden = std::fs::read_to_string(&file).expect("golden numbers");
    assert_eq!(measured, golden, "if the change is meant, see the head of this file");
}
