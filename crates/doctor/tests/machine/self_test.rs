//! Self-tests of sources that are right and of sources that are wrong.

use std::process::Command;

use isotherm_doctor::{Area, Findings, Remedy, SelfTest, State, self_test};

use crate::doctor_program;
use crate::sources::{Kind, source};

fn command() -> Command {
    let mut command = Command::new(doctor_program());
    command.arg("--known-loop");
    command
}

fn tested(kind: Kind) -> (SelfTest, Findings) {
    let tests = self_test(&mut [source(kind)], &mut command());
    let mut findings = Findings::default();
    findings.add_self_tests(&tests);
    (tests.into_iter().next().expect("one test a source"), findings)
}

fn state(findings: &Findings) -> State {
    findings.find("self-test test-source").expect("a finding").state
}

#[test]
fn the_kernels_accessed_bits_show_the_used_buffer_and_not_the_unused_one() {
    let (test, findings) = tested(Kind::Bits);
    assert_eq!(test.problem, None);
    assert!(test.in_buffer > 0 && test.in_buffer == test.samples, "{test:?}");
    assert_eq!(test.in_unused, 0, "{test:?}");
    assert!(test.watched.as_seconds() > 0.0, "{test:?}");
    assert_eq!(state(&findings), State::Ok, "{findings}");
}

/// Beside the buffer, the loop uses its stack and its library, which are separate mappings.
#[test]
fn samples_are_counted_by_the_buffer_that_they_fall_into() {
    let (test, _) = tested(Kind::Samples);
    assert!(test.in_buffer > 0 && test.in_buffer < test.samples, "{test:?}");
    assert_eq!(test.in_unused, 0, "{test:?}");
}

#[test]
fn sources_that_are_wrong_are_found_out() {
    let (silent, findings) = tested(Kind::Silent);
    assert_eq!((silent.samples, state(&findings)), (0, State::Missing));
    assert!(silent.watched.as_seconds() >= 1.0);
    assert!(findings.to_string().contains("no sample within a second of a known loop"));

    let (everything, findings) = tested(Kind::Everything);
    assert_eq!((everything.in_unused, state(&findings)), (everything.in_buffer, State::Warning));

    let (elsewhere, findings) = tested(Kind::Elsewhere);
    assert_eq!((elsewhere.in_buffer, state(&findings)), (0, State::Warning));
    assert!(elsewhere.samples > 0);

    let (lossy, _) = tested(Kind::Lossy);
    assert_eq!(lossy.lost, lossy.samples * 2);
}

#[test]
fn a_source_that_may_not_follow_says_what_permits_it() {
    let (test, findings) = tested(Kind::Denied);
    let remedy = Remedy::Command("sysctl -w kernel.perf_event_paranoid=1".to_owned());
    assert_eq!(test.problem.as_ref().map(|problem| &problem.remedy), Some(&remedy));
    let finding = findings.find("self-test test-source").unwrap();
    assert_eq!(
        (finding.area, finding.state, finding.remedy.as_ref()),
        (Area::Sources, State::Missing, Some(&remedy))
    );
}

#[test]
fn a_loop_that_does_not_start_is_a_problem_and_no_hang() {
    for (program, arguments, expected) in [
        ("/nonexistent/isotherm", &[][..], "/nonexistent/isotherm: No such file"),
        ("true", &[], "does not print the addresses of its buffers"),
        ("echo", &["1", "2"], "does not print the addresses of its buffers"),
    ] {
        let tests = self_test(&mut [source(Kind::Bits)], Command::new(program).args(arguments));
        let problem = tests[0].problem.as_ref().expect(program);
        assert!(problem.message.contains(expected), "{}", problem.message);
    }
}

#[test]
fn the_loop_ends_with_its_standard_input() {
    use std::io::Read;
    use std::process::Stdio;
    let mut child = command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0u8; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}
