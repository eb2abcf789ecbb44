//! `record` from end to end: the program's output and status, refusals, interruptions, and a replay of the
//! trace.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{Folder, RunStats, command, isotherm};

/// Records a shell command to `trace`.
fn record_shell(trace: &str, options: &[&str], script: &str) -> RunStats {
    let mut arguments = vec!["record", "--no-dependence", "--output", trace];
    arguments.extend(options);
    arguments.extend(["--", "sh", "-c", script]);
    isotherm(&arguments)
}

fn rows(trace: &str) -> u64 {
    isotherm(&["trace", "info", trace, "--json"]).json()["rows"].as_u64().expect("a number")
}

#[test]
fn a_program_is_recorded_and_replayed() {
    let folder = Folder::new();
    let (program, trace) = (folder.compile("tree"), folder.at("tree.trace"));
    let ran = isotherm(&["record", "--cache", "64K", "--output", &trace, "--", &program, "4000", "20000"]);
    assert!(ran.err.starts_with("isotherm: ") && ran.err.contains("misses"), "{}", ran.err);
    assert_eq!(ran.ok(), "4000 nodes, 20000 of 20000 found\n", "the program's own output, and nothing else");
    let info = isotherm(&["trace", "info", &trace, "--json"]).json();
    let count = |field: &str| info[field].as_u64().expect("a number");
    assert!(count("rows") > 20_000 && count("dependent") * 3 > count("rows"), "{info}");
    assert_eq!((count("threads"), count("processes")), (1, 1));
    assert!(
        info["provenance"]["command"].as_str().is_some_and(|command| command.contains("tree 4000 20000"))
    );
    let report = isotherm(&["simulate", &trace, "--fast", "1:4", "--policy", "all", "--json"]).json();
    let runs = report["runs"].as_array().expect("runs");
    let hits =
        |name: &str| runs.iter().find(|run| run["policy"] == name).and_then(|run| run["hit_ratio"].as_f64());
    assert!(hits("belady") > hits("oracle") && hits("oracle") > hits("first-touch"));
}

#[test]
fn pages_that_compress_are_told_from_those_that_do_not() {
    let folder = Folder::new();
    let (program, trace) = (folder.compile("contents"), folder.at("contents.trace"));
    let ran =
        isotherm(&["record", "--compressibility", "--no-dependence", "--output", &trace, "--", &program]);
    assert!(ran.err.contains("pages were compressed: by zstd to "), "{}", ran.err);
    let page = |name: &str| {
        let after = ran.out.split(name).nth(1).expect("it is printed").trim_start();
        after.split(|c: char| !c.is_ascii_digit()).next().and_then(|number| number.parse::<u64>().ok())
    };
    let contents = isotherm_trace::read_contents(trace.as_ref()).expect("readable").expect("noted");
    for all in [&contents.zstd, &contents.lz4] {
        let shares = |name| -> Vec<u8> {
            let first = page(name).expect("a number");
            let own = all.iter().filter(|((_, page), _)| (first..first + 512).contains(page));
            own.map(|(_, &share)| share).collect()
        };
        let (noise, text) = (shares("noise"), shares("text"));
        assert!(noise.len() > 400 && noise.iter().all(|&share| share == 255), "{}: {noise:?}", noise.len());
        assert!(text.len() > 400 && text.iter().all(|&share| share < 16), "{}: {text:?}", text.len());
    }
    let arguments = ["simulate", &trace, "--machine", "zswap", "--policy", "first-touch", "--fast", "1:3"];
    let report =
        isotherm(&[&arguments[..], &["--set", "machine.tier.1.capacity=1MiB", "--json"]].concat()).json();
    let number = |field: &str| report["runs"][0][field].as_u64().expect("a number");
    // More than 1 MiB of text is stored in a sixteenth of that.
    let stored = number("stored_bytes");
    assert!(number("swap_ins") > 1000 && stored > 0 && stored < 2 << 16, "{stored}");
}

#[test]
fn status_and_output_are_the_programs() {
    let folder = Folder::new();
    let ran = record_shell(&folder.at("a.trace"), &[], "echo out; echo err >&2; exit 42");
    assert_eq!((ran.code, ran.out.as_str()), (Some(42), "out\n"));
    assert!(ran.after_memory().starts_with("err\n"), "{}", ran.err);
    assert_eq!(record_shell(&folder.at("b.trace"), &[], "kill -SEGV $$").code, Some(128 + 11));
}

#[test]
fn quiet_prints_nothing_of_ours() {
    let folder = Folder::new();
    let ran = record_shell(&folder.at("a.trace"), &["--quiet"], "echo err >&2");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "", "err\n"));
}

#[test]
fn standard_input_reaches_the_program() {
    let folder = Folder::new();
    let script = r#"printf 'b\na\n' | "$0" record --quiet --no-dependence --output "$1" -- sort"#;
    let output = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_isotherm"), &folder.at("a.trace")])
        .output();
    assert_eq!(RunStats::from(output.expect("a shell")).ok(), "a\nb\n");
}

#[test]
fn what_cannot_run_is_refused_as_a_shell_does_and_leaves_nothing_behind() {
    let folder = Folder::new();
    let trace = folder.at("a.trace");
    let refused = |code: i32, program: &str| {
        let line = isotherm(&["record", "--output", &trace, "--", program]).refused(code);
        assert!(line.contains(program), "{line}");
        assert!(!folder.path().join("a.trace").exists(), "{program}");
        line
    };
    refused(127, "no-such-command");
    refused(127, "./no/such/command");
    refused(126, &folder.file("plain", "no program"));
    refused(126, "/");
    // The first bytes of an executable: class (1: 32 bits), byte order, machine.
    for (name, class, machine, expected) in
        [("i386", 1, 3, "32-bit"), ("arm", 1, 40, "Arm"), ("arm64", 2, 183, "Arm")]
    {
        let mut header = [0u8; 64];
        header[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
        (header[16], header[18]) = (2, machine);
        let program = folder.file(name, header);
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("permissions");
        let line = refused(126, &program);
        assert!(line.contains(expected), "{line}");
    }
}

#[test]
fn a_trace_that_exists_is_not_overwritten() {
    let folder = Folder::new();
    let trace = folder.trace();
    let before = rows(&trace);
    let line = record_shell(&trace, &[], "true").refused(2);
    assert!(line.contains(&trace) && line.contains("exist"), "{line}");
    assert_eq!(rows(&trace), before);
    let line = record_shell(&folder.at("no/such/folder.trace"), &[], "true").refused(1);
    assert!(line.contains("folder.trace"), "{line}");
}

#[test]
fn ctrl_c_finishes_the_trace() {
    let folder = Folder::new();
    let trace = folder.at("a.trace");
    let script = "while :; do seq 20000 | sort -n >/dev/null; done";
    let child = command(&[
        "record",
        "--no-dependence",
        "--cache",
        "64K",
        "--output",
        &trace,
        "--",
        "sh",
        "-c",
        script,
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("it starts");
    let part = folder.path().join("a.trace/part-00000.parquet");
    let patience = Instant::now() + Duration::from_secs(120);
    while !part.exists() {
        assert!(Instant::now() < patience, "a part ends after some seconds");
        std::thread::sleep(Duration::from_millis(50));
    }
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill").success());
    let ran = RunStats::from(child.wait_with_output().expect("it ends"));
    assert_ne!(ran.code, Some(0), "the program did not end by itself");
    assert!(ran.err.contains("interrupted") && !ran.err.contains("panicked"), "{}", ran.err);
    assert!(rows(&trace) > 0);
    assert!(!folder.path().join("a.trace/.pool").exists(), "nothing else is left");
}

#[test]
fn a_bound_ends_the_trace_and_not_the_program() {
    let folder = Folder::new();
    let trace = folder.at("a.trace");
    let script = "seq 30000 | sort -R | sort >/dev/null; sleep 0.3; echo done";
    let ran = record_shell(&trace, &["--cache", "64K", "--max-size", "4K"], script);
    assert!(ran.err.contains("--max-size"), "{}", ran.err);
    assert_eq!(ran.ok(), "done\n");
    assert!(rows(&trace) > 0);
}

#[test]
fn a_full_disk_is_said_and_leaves_what_fitted() {
    let folder = Folder::new();
    let small = folder.at("small");
    std::fs::create_dir(&small).expect("a folder");
    // Runs in its own mount namespace, where a small file system can be mounted without privileges.
    // The program fills it when a part is finished: records that wait for the recorder need space until then.
    let script = r#"mount -t tmpfs -o size=64m small "$1" || exit 99
        "$0" record --no-dependence --cache 16K --ways 4 --output "$1/a.trace" -- sh -c '
            for i in $(seq 100); do
                [ -e "$0/a.trace/part-00000.parquet" ] && break
                seq 50000 | rev | sort >/dev/null
            done
            cat /dev/zero 2>/dev/null >"$0/rest"
            seq 150000 | rev | sort >/dev/null; echo done' "$1"
        status=$?
        "$0" trace info --json "$1/a.trace" >"$1.json" || exit 98
        exit $status"#;
    let output = std::process::Command::new("unshare")
        .args(["-Urm", "sh", "-c", script, env!("CARGO_BIN_EXE_isotherm"), &small])
        .output();
    let ran = RunStats::from(output.expect("unshare, of util-linux"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), "done\n"), "the program went on: {}", ran.err);
    assert!(ran.err.starts_with("isotherm: ") && ran.err.contains("No space left"), "{}", ran.err);
    assert_eq!(ran.after_memory().lines().count(), 1, "{}", ran.err);
    let info = std::fs::read_to_string(format!("{small}.json")).expect("what trace info said");
    let info: serde_json::Value = serde_json::from_str(&info).expect("JSON");
    assert!(info["rows"].as_u64() > Some(100_000), "{info}");
}

#[test]
fn a_death_by_avx512_is_explained() {
    let folder = Folder::new();
    let program = folder.compile("avx512");
    let ran = isotherm(&["record", "--output", &folder.at("wide.trace"), "--", &program]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(132), "begins\n"), "{}", ran.err);
    let line = ran.err.lines().last().unwrap_or_default();
    assert!(line.contains("AVX-512, which QEMU does not emulate (SIGILL), in add_wide at "), "{line}");
    assert!(line.contains("avx512.c:5") && line.ends_with("gcc's -march=x86-64-v3"), "{line}");
    // Behind a shell, too, and in a library whose setting is known.
    let library = folder.at("libopenblas.so");
    let built =
        folder.compile_with("avx512", &["-shared", "-fPIC", "-Wl,-init,add_wide", "-Wl,--no-gc-sections"]);
    std::fs::rename(built, &library).expect("renamed");
    let preload = format!("LD_PRELOAD={library} /bin/true; echo $?");
    let ran = isotherm(&["record", "--output", &folder.at("library.trace"), "--", "sh", "-c", &preload]);
    assert!(ran.err.contains("add_wide") && ran.err.contains("set OPENBLAS_CORETYPE=Haswell"), "{}", ran.err);
    assert!(ran.ok().ends_with("132\n"));
}

#[test]
fn what_says_that_it_needs_avx512_is_refused_before_it_starts() {
    let folder = Folder::new();
    let program = folder.compile_with("avx512", &["-Wl,-z,x86-64-v4"]);
    let trace = folder.at("refused.trace");
    let line = isotherm(&["record", "--output", &trace, "--", &program]).refused(126);
    assert!(line.contains(&program) && line.contains("x86-64-v4") && line.contains("expected"), "{line}");
    assert!(!std::path::Path::new(&trace).exists());
}

/// numpy's OpenBLAS takes the variable's word and dies.
#[test]
fn a_setting_that_chooses_avx512_is_replaced() {
    let folder = Folder::new();
    let run = |value: &str, trace: &str| -> RunStats {
        let mut command = command(&["record", "--output", &folder.at(trace), "--"]);
        command.args(["sh", "-c", "echo $OPENBLAS_CORETYPE"]).env("OPENBLAS_CORETYPE", value);
        command.output().expect("it starts").into()
    };
    let replaced = run("SkylakeX", "a.trace");
    assert!(replaced.err.contains("OPENBLAS_CORETYPE=SkylakeX chooses AVX-512"), "{}", replaced.err);
    assert_eq!(replaced.ok(), "Haswell\n");
    let kept = run("Zen", "b.trace");
    assert!(!kept.err.contains("OPENBLAS"), "{}", kept.err);
    assert_eq!(kept.ok(), "Zen\n");
}
