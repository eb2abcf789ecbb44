//! Tests of `isotherm lab`. Those that boot a guest need `LAB_TEST=quick` or `all`, which
//! `scripts/lab-test.sh` sets, and print `skipped: why` if the lab is not set up (`make lab-setup`).

mod chmu;
mod daemon;
mod damon;
mod determinism;
mod faults;
mod huge;
mod interleaving;
mod neoprof;
mod programs;
mod refused;
mod snapshot;
mod support;
mod three_nodes;
mod tiering;
mod zswap;

use support::{Lab, ok, target};

/// Programs whose output must not depend on where they run. Their input is in the command.
const PROGRAMS: [&[&str]; 3] = [
    &[
        "/usr/bin/python3",
        "-c",
        "import hashlib\nd = {str(i): i * i for i in range(100000)}\nprint(hashlib.sha1(repr(d).encode()).hexdigest())",
    ],
    &["/bin/sh", "-c", "seq 1 100000 | sort -r -S 16M | cksum; sort -k1,1nr demo/shop.sql | cksum"],
    &[
        "/usr/bin/sqlite3",
        ":memory:",
        "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n \
        where i < 50000) insert into t select i % 977, i from n; select a, count(*), sum(b) from t group by a order by 3 desc limit 20;",
    ],
];

#[test]
fn programs_of_the_host_say_in_the_guest_what_they_say_outside() {
    let Some(lab) = Lab::find() else { return };
    for program in PROGRAMS {
        let native =
            ok(std::process::Command::new(program[0]).args(&program[1..]).current_dir(support::root()));
        let guest = lab.run(&["--machine", "small", "--kernel-tiering", "none", "--quiet"], program);
        assert_eq!(guest.code, Some(0), "{}", guest.err);
        assert!(
            !native.is_empty() && native == guest.out,
            "{}: {native:?}, in the guest {:?}",
            program[0],
            guest.out
        );
    }
}

#[test]
fn input_goes_in_whole_and_the_status_comes_out() {
    let Some(lab) = Lab::find() else { return };
    let input: Vec<u8> =
        (0..3_000_000u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let options = ["--machine", "small", "--kernel-tiering", "none", "--quiet"];
    let guest = lab.feed(&options, &["sh", "-c", "cat; echo done >&2; exit 9"], &input);
    assert_eq!((guest.code, guest.err.as_str()), (Some(9), "done\n"));
    assert!(guest.out == input, "{} bytes came back of {}", guest.out.len(), input.len());
}

/// Runs `isotherm lab shell` on this input, typed or from a pipe, which is complete before the guest boots.
fn shell(typed: bool, input: &str) -> (Option<i32>, String) {
    let shell = [support::BINARY, "lab", "shell", "--machine", "small"];
    // A shell whose input is lost would wait for ever.
    let mut command = std::process::Command::new("timeout");
    command.arg("120");
    match typed {
        true => command.args(["script", "-qec", &shell.join(" "), "/dev/null"]),
        false => command.args(shell),
    };
    let guest = support::fed(&mut command, input.as_bytes());
    assert!(guest.err.is_empty() || guest.err.starts_with("isotherm: booting"), "{}", guest.err);
    (guest.code, String::from_utf8_lossy(&guest.out).into_owned())
}

#[test]
fn a_shell_loses_no_byte_of_piped_input_and_ends_with_it() {
    let Some(_) = Lab::find() else { return };
    assert_eq!(shell(false, "echo hello-from-pipe\nexit 7\n"), (Some(7), "hello-from-pipe\n".into()));
    assert_eq!(
        shell(false, "echo the end of input ends it\n"),
        (Some(0), "the end of input ends it\n".into())
    );
}

#[test]
fn a_shell_loses_no_byte_that_is_typed_before_it_is_there() {
    let Some(_) = Lab::find() else { return };
    let (code, shown) = shell(true, "echo typed-$((40 + 2))\ntty\nexit\n");
    let lines: Vec<_> = shown.lines().map(str::trim).collect();
    let said = |what: &str| lines.iter().any(|line| line.trim_start_matches("# ") == what);
    assert!(code == Some(0) && said("typed-42") && said("/dev/hvc0"), "{code:?}: {shown}");
}

#[test]
fn doctor_finds_two_tiers_in_the_guest_and_the_device_of_the_cxl_machine() {
    let Some(lab) = Lab::find() else { return };
    for (machine, device) in [("small", false), ("cxl", true)] {
        let doctor = [support::BINARY, "doctor", "--json", "--no-self-test"];
        let guest = lab.run(&["--machine", machine, "--kernel-tiering", "none", "--quiet"], &doctor);
        let report: serde_json::Value = serde_json::from_slice(&guest.out).expect("doctor prints JSON");
        let found = |name: &str| {
            let all = report["findings"].as_array().expect("findings");
            all.iter()
                .find(|finding| finding["name"].as_str().is_some_and(|text| text.starts_with(name)))
                .cloned()
        };
        let tiers = found("memory-tiers").expect("tiers");
        assert_eq!(tiers["state"], "ok", "{tiers}");
        assert!(tiers.to_string().contains("2 tiers"), "{tiers}");
        assert_eq!(found("dax-device").is_some(), device, "{machine}");
    }
}

#[test]
fn a_policy_runs_in_the_guest_and_the_result_has_what_kernel_and_engine_counted() {
    let Some(lab) = Lab::find() else { return };
    let options = ["--machine", "small", "--policy", "freqtier", "--start", "slow", "--json"];
    let guest = lab.run(&options, &[&target(), "planted", "--size", "16M", "--operations", "1000000"]);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    let result: serde_json::Value =
        serde_json::from_str(&guest.err).expect("our result is the last on standard error");
    let run = &result["runs"][0];
    assert_eq!((run["tiering"].as_str(), run["exit_status"].as_u64()), (Some("freqtier"), Some(0)));
    assert_eq!(run["engine"]["policy"], "freqtier");
    assert_eq!(run["engine"]["shadow"], false, "tiers are real in the guest");
    let moved = |what: &str| run["engine"]["traffic"][what].as_u64().expect("a number");
    let kernel = run["counts"]["moves"]["syscall-or-cpuset"]["succeeded"].as_u64().unwrap_or(0);
    assert_eq!(moved("promotions") + moved("demotions"), kernel);
    assert!(run["residence"].as_array().is_some_and(|moments| !moments.is_empty()));
}

#[test]
fn a_policy_of_a_library_runs_in_the_guest_under_its_name() {
    let Some(lab) = Lab::find() else { return };
    let library = std::path::Path::new(support::BINARY).with_file_name("examples/libmisbehaving.so");
    let library = library.to_str().expect("a path in UTF-8");
    let set = ["--set", "misbehaving.shown=4096", "--start", "slow", "--json"];
    let options = [&["--machine", "small", "--policy", library][..], &set].concat();
    let guest = lab.run(&options, &[&target(), "planted", "--size", "16M", "--operations", "1000000"]);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    let result: serde_json::Value = serde_json::from_str(&guest.err).expect("our result");
    let run = &result["runs"][0];
    assert_eq!((&run["tiering"], &run["engine"]["policy"]), (&"misbehaving".into(), &"misbehaving".into()));
    assert_eq!(run["engine"]["parameters"]["shown"], 4096);
    assert!(run["engine"]["traffic"]["promotions"].as_u64() > Some(0), "{run}");
    let hash = |manifest: &serde_json::Value| manifest["policy_libraries"]["misbehaving"].clone();
    assert!(hash(&run["manifest"]).is_string(), "{run}");
    assert_eq!(hash(&run["manifest"]), hash(&run["engine"]["manifest"]));
}

#[test]
fn a_guest_that_fails_or_is_interrupted_is_told_in_one_line_after_its_console() {
    let Some(lab) = Lab::find() else { return };
    let options = ["--machine", "small", "--kernel-tiering", "none"];
    let panic = lab.run(&options, &["sh", "-c", "echo c >/proc/sysrq-trigger"]);
    assert_eq!(panic.code, Some(125));
    let last = panic.err.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("isotherm: the guest's kernel panicked: sysrq triggered crash"),
        "{}",
        panic.err
    );
    assert!(panic.err.lines().any(|line| line.starts_with("guest: ")), "{}", panic.err);
    let hang = lab.run(&[&options[..], &["--time-limit", "8s"]].concat(), &["sleep", "1000"]);
    assert_eq!(hang.code, Some(124));
    assert!(hang.err.contains("still running after 8 s"), "{}", hang.err);
    let (code, guests_left) = lab.interrupt(&options, &["sleep", "1000"]);
    assert_eq!((code, guests_left), (Some(130), 0));
}

#[test]
fn compare_prints_one_row_for_each_tiering() {
    let Some(_) = Lab::find() else { return };
    let options = ["--machine", "small", "--kernel", "none,numab", "--policies", "lru", "--fast", "64M"];
    let guest = Lab::verb("compare", &options, &["sh", "-c", "echo same"], &[]);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    for name in ["none", "numab", "lru"] {
        assert!(guest.err.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}: {}", guest.err);
    }
    // Different output means damaged memory, or a program that prints where it runs.
    let differing = Lab::verb("compare", &options[..4], &["cat", "/proc/sys/kernel/numa_balancing"], &[]);
    assert_eq!(differing.code, Some(1));
    assert!(differing.err.contains("differs"), "{}", differing.err);
}

#[test]
fn compare_says_why_a_policy_did_not_run() {
    let Some(_) = Lab::find() else { return };
    let options = ["--machine", "small", "--kernel", "", "--policies", "neomem", "--json"];
    let guest = Lab::verb("compare", &options, &["true"], &[]);
    assert_eq!(guest.code, Some(1), "{}", guest.err);
    let lines: Vec<&str> = guest.err.lines().collect();
    let result: serde_json::Value = serde_json::from_str(lines[lines.len() - 2]).expect("our result");
    let run = &result["runs"][0];
    let why = run["refusal"].as_str().expect("a reason");
    assert!(run["exit_status"] == 2 && why.contains("neomem"), "{run}");
    assert_eq!(lines.last(), Some(&&*format!("isotherm: neomem did not run: {why}")));
}

#[test]
fn the_kernels_tiering_goes_by_the_modelled_clock() {
    let Some(lab) = Lab::find() else { return };
    let damon = "/sys/kernel/mm/damon/admin/kdamonds/1/contexts/0";
    let read = |tiering, files: &[String]| {
        let options = ["--machine", "small", "--kernel-tiering", tiering, "--clock-ratio", "6", "--quiet"];
        let words: Vec<&str> = ["cat"].into_iter().chain(files.iter().map(String::as_str)).collect();
        let guest = lab.run(&options, &words);
        assert_eq!(guest.code, Some(0), "{}", guest.err);
        String::from_utf8_lossy(&guest.out).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let files = ["monitoring_attrs/intervals/aggr_us", "schemes/0/apply_interval_us"];
    assert_eq!(read("damon", &files.map(|file| format!("{damon}/{file}"))), ["600000", "6000000"]);
    let files = ["scan_delay_ms", "scan_period_min_ms"];
    let numa = files.map(|file| format!("/sys/kernel/debug/sched/numa_balancing/{file}"));
    assert_eq!(read("numab", &numa), ["6000", "6000"]);
}
