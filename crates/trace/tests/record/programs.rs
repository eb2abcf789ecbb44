//! Whole programs: same output and exit status as native, every process and thread seen.

use std::fs;
use std::path::Path;

use isotherm_core::cache::Geometry;
use isotherm_trace::TraceReader;
use isotherm_trace::record::RecordOptions;

use crate::Bench;

/// Lines that a sweep of `misc` touches.
const LINES: usize = 1 << 17;

/// Runs a shell script natively and recorded, each with its own `$OUT`; returns the bench, the outputs being
/// equal.
fn same_as_native(script: &str) -> (Bench, isotherm_trace::record::RecordSummary) {
    let bench = Bench::new();
    let run = |name: &str| {
        fs::create_dir(bench.path(name)).expect("a directory");
        format!("cd {}; exec >stdout 2>stderr; {script}", bench.path(name).display())
    };
    let native = Bench::native(&["/bin/sh", "-c", &run("native")]);
    let summary = bench.record("trace", &["/bin/sh", "-c", &run("recorded")]);
    assert_eq!(Some(summary.status), native.status.code());
    for stream in ["stdout", "stderr"] {
        let read = |name: &str| fs::read_to_string(bench.path(name).join(stream)).expect("output");
        assert_eq!(read("recorded"), read("native"), "{stream}");
    }
    assert_eq!((summary.lost, summary.untraced), (0, 0), "{:?}", summary.untraced_programs);
    (bench, summary)
}

fn ran(summary: &isotherm_trace::record::RecordSummary, command: &str) -> bool {
    summary.processes.iter().any(|process| process.starts_with(command))
}

#[test]
fn a_pipeline_gives_the_same_and_each_of_its_programs_is_traced() {
    let (bench, summary) = same_as_native("seq 20000 | sort -R | sed s/.$// | sort | uniq -c; exit 3");
    assert_eq!(summary.status, 3);
    for command in ["seq", "sort", "uniq -c"] {
        assert!(ran(&summary, command), "{command}: {:?}", summary.processes);
    }
    let rows = bench.rows("trace");
    assert_eq!(rows.len() as u64, summary.trace.rows);
    assert!(summary.accesses > summary.trace.rows);
    let seen: std::collections::BTreeSet<_> = rows.process.iter().collect();
    assert_eq!(seen.len(), summary.processes.len());
}

#[test]
fn make_and_what_it_starts_are_traced_down_to_the_compiled_program() {
    let recipe = "printf 'int puts(const char*);int main(void){puts(\"made\");return 0;}' > a.c; \
                  printf 'all: a\\n\\t./a\\na: a.c\\n\\t@cc -o a a.c\\n' > Makefile; make -s";
    let (_, summary) = same_as_native(recipe);
    for command in ["make -s", "cc ", "./a"] {
        assert!(ran(&summary, command), "{command}: {:?}", summary.processes);
    }
    let stages =
        ["cc1", "collect2"].iter().filter(|stage| summary.processes.iter().any(|it| it.contains(**stage)));
    assert_eq!(stages.count(), 2);
}

#[test]
fn scripts_environments_and_proc_self_exe_are_followed() {
    let bench = Bench::new();
    let program = bench.compile("misc");
    let script = format!(
        "printf '#!/bin/sh -e\\necho \"$0\" \"$@\"\\n' > s; chmod +x s; ./s 'a b' c; env -i X=1 LD_BIND_NOW=1 /usr/bin/env | sort; \
         {} self; echo $?",
        program.display()
    );
    let (_, summary) = same_as_native(&script);
    assert!(ran(&summary, "/bin/sh -e ./s a b c"), "{:?}", summary.processes);
    assert!(summary.processes.iter().any(|process| process.ends_with("misc status 7")));
}

#[test]
fn every_thread_is_seen_with_all_its_misses_behind_a_filter_of_a_quarter_of_any_cache() {
    let bench = Bench::new();
    let program = bench.compile("misc").display().to_string();
    for (name, sets, ways, filter) in
        [("usual", 2048, 16, Some(2048)), ("tiny", 16, 16, Some(64)), ("without", 1, 4, None)]
    {
        let cache = Geometry { sets, ways };
        let options = RecordOptions { cache, ..bench.options(name, &[&program, "threads", "4"]) };
        let summary = Bench::try_record(&options).expect("it records");
        assert_eq!((summary.status, summary.threads, summary.lost), (0, 5, 0));
        let reader = TraceReader::open(bench.path(name)).expect("the trace opens");
        assert_eq!(reader.provenance().filter, filter.map(|sets| Geometry { sets, ways: 1 }));
        let rows = bench.rows(name);
        for thread in 1..=4 {
            let misses = rows.iter().filter(|row| row.thread == thread && row.store).count();
            assert!((LINES..LINES * 21 / 20).contains(&misses), "{name}, thread {thread}: {misses} misses");
        }
    }
}

#[test]
fn a_forking_server_saves_its_memory_in_the_background() {
    assert!(Path::new("/usr/bin/redis-server").exists(), "apt-get install redis-server (or make setup)");
    let script = "redis-server --port 0 --unixsocket ./s --save '' --daemonize no --logfile ./log >/dev/null & \
                  until [ -S ./s ]; do sleep 0.1; done; \
                  redis-cli -s ./s DEBUG POPULATE 20000 key 100; redis-cli -s ./s BGSAVE; \
                  while redis-cli -s ./s INFO persistence | grep -q bgsave_in_progress:1; do sleep 0.1; done; \
                  redis-cli -s ./s INFO persistence | grep last_bgsave_status; redis-cli -s ./s DBSIZE; \
                  redis-cli -s ./s SHUTDOWN NOSAVE; wait; test -s dump.rdb";
    let (bench, summary) = same_as_native(script);
    assert_eq!(summary.status, 0);
    let servers: Vec<u32> = (0..)
        .zip(&summary.processes)
        .filter(|(_, it)| it.starts_with("redis-server"))
        .map(|(number, _)| number)
        .collect();
    assert!(servers.len() >= 2, "the server and its child: {:?}", summary.processes);
    let rows = bench.rows("trace");
    assert!(servers.iter().all(|number| rows.process.contains(number)));
}

#[test]
fn two_runs_of_a_program_with_one_thread_give_the_same_trace_without_aslr() {
    let bench = Bench::new();
    let program = bench.compile("patterns").display().to_string();
    for name in ["first", "second"] {
        let options = RecordOptions { aslr: false, ..bench.options(name, &[&program, "chase"]) };
        Bench::try_record(&options).expect("it records");
    }
    let (first, second) = (bench.rows("first"), bench.rows("second"));
    assert!(first.len() > 400_000);
    assert!(first == second, "{} and {} rows", first.len(), second.len());
}
