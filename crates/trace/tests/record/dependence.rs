//! Programs whose dependences are known.

use std::fs;

use isotherm_trace::Row;

use crate::Bench;

/// Returns the rows of the measured part of `patterns PATTERN`, and the range of lines it printed last.
fn measured(pattern: &str) -> (Vec<Row>, [u64; 2]) {
    let bench = Bench::new();
    let (program, output) = (bench.compile("patterns"), bench.path("output"));
    let script = format!("exec {} {pattern} > {}", program.display(), output.display());
    let summary =
        Bench::try_record(&bench.options("trace", &["/bin/sh", "-c", &script])).expect("it records");
    assert_eq!(summary.lost, 0);
    let printed: Vec<[u64; 2]> =
        fs::read_to_string(output).expect("the program printed").lines().map(pair).collect();
    let rows = bench.rows("trace");
    let [begin, end] = printed[0].map(|line| rows.line.iter().position(|&row| row == line).expect("a mark"));
    (rows.iter().skip(begin + 1).take(end - begin - 1).collect(), printed[printed.len() - 1])
}

fn pair(line: &str) -> [u64; 2] {
    let (first, second) = line.split_once(' ').expect("two numbers");
    [first, second].map(|number| u64::from_str_radix(number, 16).expect("a hexadecimal number"))
}

fn assert_share(rows: &[Row], is_right: impl Fn(&Row) -> bool) {
    assert!(rows.len() > 200_000, "{} rows", rows.len());
    let right = rows.iter().filter(|row| is_right(row)).count();
    let share = right as f64 / rows.len() as f64;
    println!("right: {:.2} % of {}", share * 100.0, rows.len());
    assert!(share >= 0.95, "{share}");
}

#[test]
fn each_miss_of_a_chase_depends_on_the_one_before() {
    assert_share(&measured("chase").0, |row| row.dependence == 1);
}

#[test]
fn each_miss_of_four_chains_depends_on_the_fourth_before() {
    assert_share(&measured("chains").0, |row| row.dependence == 4);
}

#[test]
fn the_misses_of_a_gather_depend_on_those_of_its_indices() {
    let (rows, [begin, end]) = measured("gather");
    let gathered: Vec<Row> = rows.into_iter().filter(|row| (begin..end).contains(&row.line)).collect();
    assert_share(&gathered, |row| row.dependence > 0);
}

#[test]
fn the_misses_of_a_stream_depend_on_nothing() {
    assert_share(&measured("stream").0, |row| row.dependence == 0 && !row.store);
}
