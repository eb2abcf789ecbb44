//! `run` and `attach` from end to end on this machine's kernel: unmodified programs in shadow mode.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Folder, RunStats, command, hint_faults_work, isotherm, plain, read, shadow};

/// Samples much, unlike the default.
const EAGER: [&str; 4] = ["--policy", "hybridtier", "--overhead", "10%"];

/// Returns the program that tests tier.
fn target() -> String {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_isotherm"));
    let target = binary.parent().expect("a folder").join("examples/live-target");
    assert!(target.exists(), "cargo builds examples with tests: {}", target.display());
    target.display().to_string()
}

#[test]
fn output_and_status_are_the_programs() {
    let (folder, target) = (Folder::new(), target());
    let summary = folder.at("summary.json");
    let program = [&target, "planted", "--size", "32M", "--operations", "30000000"];
    let ran = shadow(&summary, &[], &program);
    assert_eq!((ran.err.as_str(), ran.code), ("", Some(0)));
    assert_eq!(ran.out, plain(&program).out, "with its checksum");
    assert_eq!(read(&summary)["exit_status"], 0);
    let ran = shadow(&summary, &[], &["sh", "-c", "echo out; echo err >&2; exit 42"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(42), "out\n", "err\n"));
    assert_eq!(shadow(&summary, &[], &["sh", "-c", "kill -SEGV $$"]).code, Some(128 + 11));
}

#[test]
fn standard_input_reaches_the_program_and_messages_go_to_standard_error() {
    let mut run = command(&["run", "--shadow", "--policy", "first-touch", "--", "cat"]);
    run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = run.spawn().expect("the binary starts");
    child.stdin.take().expect("piped").write_all(b"hello\n").expect("written");
    let ran = RunStats::from(child.wait_with_output().expect("it ends"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "hello\n"));
    assert!(ran.err.contains("shadow"), "{}", ran.err);
}

#[test]
fn commands_that_cannot_run_end_as_in_a_shell_and_bad_requests_with_2() {
    let run = |arguments: &[&str]| isotherm(&[&["run", "--quiet", "--shadow"], arguments].concat());
    run(&["--", "no-such-command"]).refused(127);
    run(&["--", "/etc/passwd"]).refused(126);
    assert!(run(&["--policy", "hybridteir", "--", "true"]).refused(2).contains("did you mean hybridtier"));
    assert!(run(&["--policy", "belady", "--", "true"]).refused(2).contains("only the simulator"));
    assert!(run(&["--source", "magic", "--", "true"]).refused(2).contains("hint-faults"));
    assert!(run(&["--tiers", "0,99", "--", "true"]).refused(2).contains("99"));
    assert_eq!(isotherm(&["attach", "4000000"]).code, Some(1));
}

/// The default policy takes less than the user allows, and says what that was.
#[test]
fn the_default_keeps_books_and_its_own_budget() {
    if !hint_faults_work() {
        return;
    }
    let (folder, target) = (Folder::new(), target());
    let summary = folder.at("summary.json");
    let options = ["run", "--shadow", "--overhead", "10%", "--fast", "12%", "--summary", &summary, "--"];
    let program = [&target, "planted", "--size", "32M", "--hot", "10%", "--share", "90%", "--seconds", "10"];
    let ran = isotherm(&[&options[..], &program].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let said = ran.err.replace('\n', " ");
    assert!(
        said.contains("Sampling and deciding took ") && said.contains(" of the program's time."),
        "{said}"
    );
    let result = read(&summary);
    assert_eq!(result["policy"], "isotherm");
    let lost = result["sources"][0]["program_ns"].as_f64().expect("a number");
    let share = lost / result["duration_ns"].as_f64().expect("a number");
    assert!(share < 0.005, "{:.2} % were lost to sampling", 100.0 * share);
}

#[test]
fn parts_give_each_tier_of_a_machine_its_memory() {
    let (folder, target) = (Folder::new(), target());
    let summary = folder.at("summary.json");
    let program = [&target, "planted", "--size", "64M", "--operations", "3000000"];
    let options = ["--policy", "first-touch", "--machine", "xeon-max", "--fast", "1:2:5"];
    assert_eq!(shadow(&summary, &options, &program).code, Some(0));
    let result = read(&summary);
    let tiers: Vec<f64> = result["tiers"]
        .as_array()
        .expect("tiers")
        .iter()
        .map(|tier| tier["capacity_bytes"].as_f64().expect("bytes") / f64::from(1 << 20))
        .collect();
    assert!(tiers.len() == 3 && tiers[0] >= 8.0 && (tiers[1] / tiers[0] - 2.0).abs() < 0.01, "{tiers:?}");
    assert_eq!(result["manifest"]["options"]["fast"], "1:2:5");
    for (machine, tiers) in [("sapphire-rapids", 2), ("zswap", 2)] {
        let run = ["run", "--shadow", "--quiet", "--machine", machine, "--fast", "1:2:5", "--", "true"];
        let line = isotherm(&run).refused(2);
        assert!(line.contains("--fast: '1:2:5' has 3 parts, but "), "{line}");
        assert!(line.contains(&format!(" has {tiers} tiers; expected a part for each tier")), "{line}");
    }
}

/// Every policy runs in shadow mode or is refused in one line before the program starts.
#[test]
fn every_policy_runs_or_says_what_it_lacks() {
    if !hint_faults_work() {
        return;
    }
    for entry in isotherm_policies::ALL {
        let isotherm_policies::Kind::Policy(_) = entry.kind else { continue };
        let ran = isotherm(&["run", "--shadow", "--quiet", "--policy", entry.name, "--", "echo", "started"]);
        match ran.code {
            Some(0) => assert_eq!((ran.out.as_str(), ran.err.as_str()), ("started\n", ""), "{}", entry.name),
            _ => {
                let line = ran.refused(2);
                assert!(line.contains("which is unavailable here"), "{}: {line}", entry.name);
                assert!(
                    line.contains("the nearest policy that can run here: --policy "),
                    "{}: {line}",
                    entry.name
                );
            }
        }
    }
}

/// PACT decides by counters that this machine may lack: it is refused before the program starts, or runs with
/// modelled counters and reports that.
#[test]
fn pact_runs_with_counters_or_refuses_or_says_that_they_are_modelled() {
    if !hint_faults_work() {
        return;
    }
    let (folder, target) = (Folder::new(), target());
    let pact = ["run", "--shadow", "--quiet", "--policy", "pact"];
    let line = isotherm(&[&pact[..], &["--", "echo", "started"]].concat()).refused(2);
    assert!(line.contains("stall and occupancy counters of each tier"), "{line}");
    assert!(line.contains("--model-counters") && line.contains("--policy freqtier"), "{line}");
    let summary = folder.at("summary.json");
    let program = [&target, "planted", "--size", "32M", "--hot", "10%", "--share", "90%", "--seconds", "8"];
    let options = ["--policy", "pact", "--model-counters", "--overhead", "10%", "--fast", "12%"];
    shadow(&summary, &options, &program).ok();
    let result = read(&summary);
    assert_eq!((&result["counters"], &result["hits_measured"]), (&"modelled".into(), &false.into()));
    let gauge = |name: &str| {
        let values = result["timeline"].as_array().expect("moments").iter();
        let named = values.flat_map(|moment| moment["gauges"].as_array().expect("gauges"));
        named.filter(|gauge| gauge[0] == name).filter_map(|gauge| gauge[1].as_f64()).next_back()
    };
    assert!(gauge("slow-parallelism") >= Some(1.0), "{:?}", gauge("slow-parallelism"));
    assert!(gauge("tracked-pages") > Some(0.0) && gauge("rejected-windows") == Some(0.0));
    // The program runs as without an engine.
    let free =
        isotherm(&["run", "--quiet", "--shadow", "--policy", "pact", "--model-counters", "--", "echo", "on"]);
    assert_eq!((free.code, free.out.as_str()), (Some(0), "on\n"));
}

/// Returns the first address and the pages of the planted hot set from the target's report.
fn planted(report: &str) -> (u64, BTreeSet<u64>) {
    let text = std::fs::read_to_string(report).expect("the target's report");
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).expect("a line").to_owned();
    let range = line("range ");
    let start = u64::from_str_radix(range.split(' ').nth(1).expect("an address"), 16).expect("hexadecimal");
    let hot = line("hot 0 ").split(' ').skip(2).map(|page| page.parse().expect("a page")).collect();
    (start, hot)
}

/// Returns the hot pages that were found, numbered from `start`; of one process if it is given.
fn hot_pages(summary: &Value, start: u64, process: Option<u64>) -> BTreeSet<u64> {
    let ranges = summary["hot_set"]["hot"]["ranges"].as_array().expect("ranges");
    let number = |range: &Value, field: &str| range[field].as_u64().expect("a number");
    let pages = |range: &Value| {
        let (first, bytes) = (number(range, "start"), number(range, "bytes"));
        (0..bytes / 4096).map(move |page| (first.wrapping_sub(start) / 4096).wrapping_add(page))
    };
    let wanted = |range: &&Value| process.is_none_or(|process| number(range, "process") == process);
    ranges.iter().filter(wanted).flat_map(pages).collect()
}

/// Returns the share of planted pages that were found and the share of found pages that were not planted.
fn found_and_false(found: &BTreeSet<u64>, planted: &BTreeSet<u64>) -> (f64, f64) {
    let right = found.intersection(planted).count() as f64;
    (right / planted.len() as f64, 1.0 - right / found.len().max(1) as f64)
}

#[test]
fn a_planted_hot_set_is_found() {
    if !hint_faults_work() {
        return;
    }
    let (folder, target) = (Folder::new(), target());
    let (summary, report) = (folder.at("summary.json"), folder.at("planted"));
    // A busy machine gives fewer samples a second: runs longer until they suffice.
    for seconds in ["15", "30", "60", "120"] {
        let program = [
            &target,
            "planted",
            "--size",
            "32M",
            "--hot",
            "10%",
            "--share",
            "90%",
            "--seconds",
            seconds,
            "--report",
            &report,
        ];
        shadow(&summary, &[&EAGER[..], &["--fast", "12%"]].concat(), &program).ok();
        let result = read(&summary);
        let samples = result["samples"].as_u64().expect("a number");
        let (start, hot) = planted(&report);
        let (share, wrong) = found_and_false(&hot_pages(&result, start, None), &hot);
        eprintln!("{samples} samples: {:.1} % found, {:.1} % false", 100.0 * share, 100.0 * wrong);
        if share >= 0.95 && wrong <= 0.05 {
            return;
        }
    }
    panic!("the planted hot set was not found");
}

/// Asks a running engine at its control socket.
fn ask(control: &str, line: &str) -> Option<String> {
    let mut stream = UnixStream::connect(control).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    stream.write_all(format!("{line}\n").as_bytes()).ok()?;
    let (mut answer, mut piece) = (Vec::new(), [0; 1 << 16]);
    while !answer.ends_with(b"\n\n") {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(length) => answer.extend(&piece[..length]),
        }
    }
    String::from_utf8(answer).ok()
}

/// Returns the accesses to each page that the server has counted.
fn counts(path: &str) -> Vec<u64> {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

/// Returns the accesses to fast memory and to all, by the server's own counts, until it has ended.
fn served(server: &mut Child, control: &str, counted: &str, start: u64) -> (u64, u64) {
    let (mut before, mut served) = (counts(counted), (0, 0));
    while server.try_wait().expect("a child").is_none() {
        std::thread::sleep(Duration::from_millis(500));
        let Some(answer) = ask(control, "fast") else { break };
        let now = counts(counted);
        let since = |page: usize| now.get(page).zip(before.get(page)).map_or(0, |(now, then)| now - then);
        served.1 += (0..now.len()).map(since).sum::<u64>();
        for line in answer.lines().filter(|line| *line != "ok" && !line.is_empty()) {
            let words: Vec<&str> = line.split(' ').collect();
            let page = |word: &str| {
                let address = u64::from_str_radix(word, 16).expect("hexadecimal");
                (address.saturating_sub(start) / 4096) as usize
            };
            served.0 += (page(words[1])..page(words[2]).min(now.len())).map(since).sum::<u64>();
        }
        before = now;
    }
    (served.0, served.1)
}

/// The quick form of `make live-trial`: a figure has bounds and is near the truth, or there is none at all.
#[test]
fn a_hit_ratio_has_bounds_that_contain_the_programs_own_counts_or_is_not_told() {
    if !hint_faults_work() {
        return;
    }
    let (folder, target) = (Folder::new(), target());
    let [summary, control, counted, report] =
        ["summary", "control", "counts", "report"].map(|name| folder.at(name));
    // What fills the memory is counted by Isotherm alone: a run must be long against it.
    for seconds in ["20", "40", "80"] {
        let _ = std::fs::remove_file(&report);
        let server = [&target, "server", "--size", "32M", "--seconds", seconds, "--counts", &counted];
        let options = ["--policy", "hybridtier", "--fast", "16M", "--overhead", "5%"];
        let mut run = command(&[&["run", "--shadow"], &options[..]].concat());
        run.args(["--control", &control, "--summary", &summary, "--"])
            .args(server)
            .args(["--report", &report]);
        let mut run = run.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let deadline = Instant::now() + Duration::from_secs(60);
        while !Path::new(&report).exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let text = std::fs::read_to_string(&report).expect("the server's report");
        let start =
            u64::from_str_radix(text.split(' ').nth(1).expect("an address"), 16).expect("hexadecimal");
        let (fast, all) = served(&mut run, &control, &counted, start);
        let shown = RunStats::from(run.wait_with_output().expect("it ends"));
        assert_eq!(shown.code, Some(0), "{}", shown.err);
        let result = read(&summary);
        if result["hit_ratio"].is_null() {
            assert!(result["missing"]["run_ns"].is_u64() || result["missing"]["samples"] == 0, "{result}");
            assert_eq!(result["verdict"]["advice"], "unknown");
            assert!(shown.err.contains("hit ratio    not known"), "{}", shown.err);
            continue;
        }
        let (hits, truth) = (result["hit_ratio"].as_f64().expect("a number"), fast as f64 / all as f64);
        let bound = |at: usize| result["intervals"]["hit_ratio"][at].as_f64().expect("a bound");
        eprintln!("{hits:.3} ({:.3}-{:.3}), truth {truth:.3}", bound(0), bound(1));
        assert!(bound(0) <= hits && hits <= bound(1));
        assert!(bound(0) - 0.05 <= truth && truth <= bound(1) + 0.05, "{truth:.3} is not near {hits:.3}");
        return;
    }
    panic!("80 s were too short to tell the hit ratio");
}

/// Two programs share the tiers under one policy, which distinguishes their pages.
#[test]
fn the_hot_sets_of_two_programs_are_found_side_by_side() {
    if !hint_faults_work() {
        return;
    }
    let (folder, target) = (Folder::new(), target());
    let summary = folder.at("summary.json");
    let reports = [folder.at("one"), folder.at("other")];
    for seconds in ["15", "30", "60", "120"] {
        let start = |seed: usize| {
            let report = &reports[seed - 1];
            format!(
                "{target} planted --size 32M --hot 10% --share 90% --seconds 600 --seed {seed} --report {report} & echo $!"
            )
        };
        // They end together: the summary omits memory that was freed before the end.
        let script = format!("{}; {}; sleep {seconds}; kill -KILL 0", start(1), start(2));
        let options = [&EAGER[..], &["--fast", "12%"]].concat();
        let ran = shadow(&summary, &options, &["setsid", "--wait", "sh", "-c", &script]);
        assert_eq!(ran.code, Some(128 + 9), "{}", ran.err);
        let result = read(&summary);
        let processes: Vec<u64> = ran.out.lines().map(|line| line.parse().expect("a process")).collect();
        let is_found = |(report, &process): (&String, &u64)| {
            let (start, hot) = planted(report);
            let (share, wrong) = found_and_false(&hot_pages(&result, start, Some(process)), &hot);
            eprintln!("process {process}: {:.1} % found, {:.1} % false", 100.0 * share, 100.0 * wrong);
            share >= 0.95 && wrong <= 0.05
        };
        if reports.iter().zip(&processes).filter(|&case| is_found(case)).count() == 2 {
            return;
        }
    }
    panic!("the planted hot sets were not found");
}

/// Memory that hint faults cannot observe was left out and not told; stacks counted as observed.
#[test]
fn memory_that_hint_faults_leave_out_is_in_the_summary() {
    if !hint_faults_work() {
        return;
    }
    let folder = Folder::new();
    let (summary, page, program) =
        (folder.at("summary.json"), folder.at("page.html"), folder.compile("shared"));
    let run = ["run", "--shadow", "--source", "hint-faults", "--summary", &summary];
    let run = [&run[..], &EAGER].concat();
    for seconds in ["3", "15", "30"] {
        let ran = isotherm(&[&run[..], &["--report", &page, "--", &program, seconds]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let source = &read(&summary)["sources"][0];
        assert_eq!(source["name"], "hint-faults");
        // 16 MiB are shared and 8 MiB a stack, of 32 MiB and up to 10 MiB of libraries. The last look may
        // have been before they were in use.
        let Some(share) = source["left_out_share"].as_f64() else { continue };
        eprintln!("{:.1} % left out", 100.0 * share);
        if (0.70..0.85).contains(&share) {
            let line = format!("{:.1} % of memory (files, shared memory, stacks, libraries)", 100.0 * share);
            assert!(ran.err.contains(&format!("\nleft out     {line}\n")), "{}", ran.err);
            assert!(std::fs::read_to_string(&page).expect("a page").contains(&line));
            return;
        }
    }
    panic!("the share was wrong at every length");
}

/// Returns a command with about `times` seconds of work.
fn work(name: &str, times: u32) -> [String; 3] {
    let (option, text) = match name {
        "sqlite3" => (
            ":memory:",
            format!(
                "create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i+1 \
                 from n where i<{}) insert into t select i, hex(i*7919) from n; create index x on t(b); select \
                 count(*), sum(a), max(b), min(length(b)) from t; select sum(length(u.b)) from t join t u on u.b=t.b;",
                1_200_000 * times
            ),
        ),
        _ => (
            "-c",
            format!(
                "import hashlib\nd={{i:str(i*i) for i in range(400000)}}\nh=hashlib.sha256()\n\
                 for r in range({}):\n  for k in sorted(d): h.update(d[k].encode())\nprint(h.hexdigest(), len(d))",
                6 * times
            ),
        ),
    };
    [name.into(), option.into(), text]
}

#[test]
fn sqlite_and_python_give_the_same_output_and_are_observed() {
    if !hint_faults_work() {
        return;
    }
    let folder = Folder::new();
    for name in ["sqlite3", "python3"] {
        if Command::new(name).arg("--version").output().is_err() {
            eprintln!("skipped: {name} is not installed");
            continue;
        }
        // A fast machine may finish before an agent has seen anything: then it gets more work.
        let is_seen = |times: u32| {
            let program = work(name, times);
            let program = program.each_ref().map(String::as_str);
            let summary = folder.at(name);
            let ran = shadow(&summary, &["--overhead", "10%"], &program);
            assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{name}");
            assert_eq!(ran.out, plain(&program).out, "{name}");
            let result = read(&summary);
            assert!(result["footprint_bytes"].as_u64() > Some(20 << 20), "{}", result["footprint_bytes"]);
            eprintln!("{name}: {} samples, {}", result["samples"], result["warnings"]);
            result["samples"].as_u64() > Some(0)
        };
        assert!([1, 4, 8].into_iter().any(is_seen), "{name}: no sample");
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    listener.local_addr().expect("an address").port()
}

/// Ends the process if a test fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It has already ended if the test succeeded.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends an inline command to redis and returns the first part of the answer.
fn redis(port: u16, line: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    stream.write_all(format!("{line}\r\n").as_bytes()).ok()?;
    let mut buffer = [0; 4096];
    let read = stream.read(&mut buffer).ok()?;
    Some(String::from_utf8_lossy(&buffer[..read]).trim().to_owned())
}

/// Fills a redis server and reads it under load; returns the digest of its data.
fn redis_digest(mut server: Command, port: u16) -> String {
    let mut server = Killed(server.spawn().expect("it starts"));
    let deadline = Instant::now() + Duration::from_secs(60);
    while redis(port, "PING").as_deref() != Some("+PONG") {
        assert!(Instant::now() < deadline, "redis answers");
        std::thread::sleep(Duration::from_millis(50));
    }
    redis(port, "DEBUG POPULATE 200000 key 100").expect("filled");
    let load = ["-p", &port.to_string(), "-q", "-n", "100000", "-r", "200000", "-t", "get"];
    let loaded = Command::new("redis-benchmark").args(load).stdout(Stdio::null()).status();
    assert!(loaded.expect("redis-benchmark").success());
    let digest = redis(port, "DEBUG DIGEST").expect("a digest");
    redis(port, "SHUTDOWN NOSAVE");
    assert_eq!(server.0.wait().expect("it ends").code(), Some(0));
    digest
}

#[test]
fn redis_under_load_holds_the_same_and_is_observed() {
    if !hint_faults_work() {
        return;
    }
    if Command::new("redis-benchmark").arg("--version").output().is_err() {
        eprintln!("skipped: redis is not installed");
        return;
    }
    let folder = Folder::new();
    let summary = folder.at("redis.json");
    let options = |port: u16| {
        let port = port.to_string();
        [
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--enable-debug-command",
            "yes",
            "--loglevel",
            "warning",
        ]
        .map(str::to_owned)
    };
    let port = free_port();
    let mut bare = Command::new("redis-server");
    bare.args(options(port)).stdout(Stdio::null());
    let expected = redis_digest(bare, port);
    let port = free_port();
    // The default policy samples too rarely for so short a run.
    let run = ["run", "--shadow", "--quiet", "--policy", "hybridtier", "--summary", &summary];
    let mut tiered = command(&[&run[..], &["--", "redis-server"]].concat());
    tiered.args(options(port)).stdout(Stdio::null());
    assert_eq!(redis_digest(tiered, port), expected);
    let result = read(&summary);
    assert!(result["samples"].as_u64() > Some(0), "{}", result["warnings"]);
}

#[test]
fn a_running_process_is_attached_to_and_a_second_engine_is_refused() {
    let (folder, target) = (Folder::new(), target());
    let summary = folder.at("attached.json");
    let program = ["planted", "--size", "16M", "--seconds", "30"];
    let child = Command::new(&target).args(program).stdout(Stdio::null()).spawn().expect("it starts");
    let child = Killed(child);
    let pid = child.0.id().to_string();
    let attach = ["attach", "--shadow", "--quiet", "--json", "--policy", "lru", "--for", "4s"];
    let first = command(&[&attach[..], &["--summary", &summary, &pid]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    std::thread::sleep(Duration::from_millis(1500));
    let refused = isotherm(&["attach", "--shadow", "--quiet", "--for", "1s", &pid]).refused(1);
    assert!(refused.contains("second engine"), "{refused}");
    is_listed(&first.id().to_string(), &pid);
    let ran = RunStats::from(first.wait_with_output().expect("it ends"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let result = read(&summary);
    assert!(result["footprint_bytes"].as_u64() >= Some(16 << 20), "{}", result["footprint_bytes"]);
    assert_eq!(serde_json::from_str::<Value>(&ran.out).ok(), Some(result), "JSON on standard output");
    assert!(Path::new(&format!("/proc/{pid}")).exists(), "the program goes on");
    assert!(!isotherm(&["ps"]).ok().contains(&pid), "nobody tiers it");
}

/// Checks that `ps` and `doctor` see the engine that tiers a process.
fn is_listed(engine: &str, process: &str) {
    let listed = isotherm(&["ps", "--json"]).json();
    let running =
        listed.as_array().expect("a list").iter().find(|one| one["process"].as_u64() == process.parse().ok());
    let running = running.unwrap_or_else(|| panic!("{process} in {listed}"));
    assert_eq!((running["engine"].to_string().as_str(), &running["policy"]), (engine, &"lru".into()));
    assert!(running["program"].as_str().is_some_and(|program| program.contains("planted")), "{running}");
    let table = isotherm(&["ps"]).ok();
    let row = |line: &str| line.split_whitespace().take(3).eq([process, engine, "lru"]);
    assert!(table.lines().any(row), "{table}");
    let report = isotherm(&["doctor", "--json", "--no-self-test"]).json();
    let findings = report["findings"].as_array().expect("findings");
    let finding = findings.iter().find(|one| one["name"] == "engine" && one["subject"] == process);
    let finding = finding.unwrap_or_else(|| panic!("{process} in {report}"));
    assert_eq!(
        (&finding["state"], &finding["remedy"]["command"]),
        (&"warning".into(), &format!("kill -INT {engine}").into())
    );
    assert!(
        report["verdict"].as_str().is_some_and(|text| text.contains("conflict")),
        "{}",
        report["verdict"]
    );
}

/// The word after `run` was taken for the program, whatever it began with: "--fsat: command not found".
#[test]
fn an_unknown_option_is_named_and_the_programs_own_are_left_to_it() {
    for verb in [
        &["run"][..],
        &["record", "--output", "x.trace"],
        &["lab", "run"],
        &["lab", "compare"],
        &["alloc-profile"],
    ] {
        let ran = isotherm(&[verb, &["--fsat", "1:8", "--", "true"]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{verb:?}");
        assert!(ran.err.contains("unexpected argument '--fsat'"), "{verb:?}: {}", ran.err);
    }
    assert!(isotherm(&["run", "--fsat", "1:8", "--", "true"]).err.contains("'--fast'"), "the nearest one");
    for program in [&["--", "echo", "--fsat"][..], &["echo", "--fsat"], &["echo", "--fsat", "--json", "-q"]] {
        let ran = isotherm(&[&["run", "--shadow", "--quiet"], program].concat());
        assert!(ran.out.starts_with("--fsat") && ran.code == Some(0), "{program:?}: {} {}", ran.out, ran.err);
    }
}

/// `--quiet` swallowed what `--json` had asked for.
#[test]
fn json_is_printed_even_quietly() {
    let ran = isotherm(&["run", "--shadow", "--quiet", "--json", "--", "echo", "out"]);
    let result: Value = serde_json::from_str(&ran.err).expect("JSON, and nothing else");
    assert_eq!((ran.out.as_str(), &result["exit_status"]), ("out\n", &0.into()));
}

#[test]
fn signals_reach_the_program_and_its_end_is_passed_on() {
    let folder = Folder::new();
    let summary = folder.at("summary.json");
    let script = "trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let mut run = command(&["run", "--shadow", "--quiet", "--summary", &summary, "--", "sh", "-c", script]);
    let mut child = Killed(run.stdout(Stdio::piped()).spawn().expect("it starts"));
    let mut out = child.0.stdout.take().expect("piped");
    let mut line = [0; 6];
    out.read_exact(&mut line).expect("it is ready");
    let kill = Command::new("kill").args(["-TERM", &child.0.id().to_string()]).status();
    assert!(kill.expect("kill").success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("text");
    assert_eq!((rest.as_str(), child.0.wait().expect("it ends").code()), ("caught\n", Some(3)));
    assert_eq!(read(&summary)["exit_status"], 3, "the summary is written all the same");
}

#[test]
fn huge_pages_are_tracked_whole() {
    if !hint_faults_work() {
        return;
    }
    let (folder, target) = (Folder::new(), target());
    let summary = folder.at("summary.json");
    let program = [&target, "planted", "--size", "64M", "--pages", "huge", "--seconds", "6"];
    shadow(&summary, &[&EAGER[..], &["--page-size", "huge", "--fast", "25%"]].concat(), &program).ok();
    let result = read(&summary);
    assert_eq!(result["page_size"], "huge");
    assert!(result["footprint_bytes"].as_u64() >= Some(64 << 20), "{}", result["footprint_bytes"]);
    assert!(result["samples"].as_u64() > Some(0), "{}", result["warnings"]);
    let ranges = result["hot_set"]["fast_ranges"].as_array().expect("ranges");
    assert!(!ranges.is_empty());
    for range in ranges {
        let number = |field: &str| range[field].as_u64().expect("a number");
        assert_eq!((number("start") % (2 << 20), number("bytes") % (2 << 20)), (0, 0), "{range}");
    }
}
