//! A program that churns its memory, under every policy at several overheads.

use std::time::Instant;

use super::kills::{engine, sessions};
use super::{Bench, PATIENCE, modes};

#[test]
fn a_program_that_churns_its_memory_ends_as_natively_under_every_policy() {
    let bench = Bench::new();
    let native = std::process::Command::new(bench.at("churn")).output().expect("it starts");
    assert!(native.status.success(), "{native:?}");
    let (mut runs, mut wrong, begun) = (0, Vec::new(), Instant::now());
    for (at, (policy, source)) in sessions(&["hint-faults", "accessed-bits"]).into_iter().enumerate() {
        for (_, overhead) in modes(at, &[source]) {
            let mut command = engine(policy, source, overhead);
            command.args(["--", "timeout", "--kill-after=5", PATIENCE]).arg(bench.at("churn"));
            let ended = command.output().expect("it starts");
            runs += 1;
            if (&ended.stdout, ended.status) != (&native.stdout, native.status) || !ended.stderr.is_empty() {
                wrong.push(format!("{policy}, {source}, {overhead}: {ended:?}"));
            }
        }
    }
    eprintln!("churn under every policy: {runs} runs in {:?}, {} wrong", begun.elapsed(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
