//! `objects`, and `--process`: whose memory the misses of a recording are in.

use serde_json::Value;

use crate::support::{Folder, isotherm};

/// Records the program that uses memory in a known way.
fn record(folder: &Folder) -> String {
    let (program, trace) = (folder.compile("objects"), folder.at("objects.trace"));
    let file = folder.file("content", vec![0; 256 << 10]);
    let arguments = ["record", "--no-dependence", "--cache", "64K", "--output", &trace, "--"];
    let ran = isotherm(&[&arguments[..], &[program.as_str(), &file, "10"]].concat());
    assert_eq!(ran.ok(), "done\n");
    trace
}

fn objects(trace: &str, options: &[&str]) -> Value {
    isotherm(&[&["objects", trace, "--json"], options].concat()).json()
}

/// Returns the object whose name ends so, and its size if that is given.
fn object<'a>(found: &'a Value, name: &str, size: Option<u64>) -> &'a Value {
    let objects = found["objects"].as_array().expect("objects");
    let is = |object: &&Value| {
        object["name"].as_str().is_some_and(|found| found.ends_with(name))
            && size.is_none_or(|size| object["size_bytes"] == size)
    };
    objects.iter().find(is).unwrap_or_else(|| panic!("{name}: {found:#}"))
}

fn number(object: &Value, field: &str) -> u64 {
    object[field].as_u64().unwrap_or_else(|| panic!("{field}: {object:#}"))
}

#[test]
fn each_miss_is_counted_for_what_was_mapped_there_then() {
    let folder = Folder::new();
    let trace = record(&folder);
    let found = objects(&trace, &["--fast", "1M"]);
    assert_eq!(found["threads"][0]["name"], "worker");
    assert!(found["manifest"]["binary"].is_string() && found["manifest"]["options"]["fast"] == "1M");
    // 1 MiB of variables without values, ten times.
    let program = object(&found, "/objects", None);
    assert!((160_000..180_000).contains(&number(program, "misses")), "{program:#}");
    assert!(number(program, "memory_bytes") - (1 << 20) < 64 << 10, "{program:#}");
    // The densest MiB is nearly all theirs.
    assert!(number(program, "fast_bytes") > 900 << 10, "{program:#}");
    let file = object(&found, "/content", None);
    assert_eq!((number(file, "misses"), number(file, "memory_bytes")), (4096, 256 << 10));
    assert_eq!((number(file, "fast_bytes"), file["misses_per_mib"].as_f64()), (0, Some(16384.0)));
    // Two mappings, one after the other, probably at one place.
    let anonymous = object(&found, "[anonymous]", Some(3 << 20));
    let expected = (2 * (3 << 20) / 64, 2);
    assert_eq!((number(anonymous, "misses"), number(anonymous, "mappings")), expected);
    let heap = object(&found, "[heap]", None);
    assert!((1536..2000).contains(&number(heap, "misses")), "{heap:#}");
    object(&found, "[thread stack]", None);
    object(&found, "[stack]", None);
    // Nothing is without an owner.
    let names: Vec<_> = found["objects"].as_array().expect("objects").iter().map(|o| &o["name"]).collect();
    assert!(!names.contains(&&Value::from("[unknown]")), "{names:?}");
    let sum = |field: &str| -> u64 {
        found["objects"].as_array().expect("objects").iter().map(|object| number(object, field)).sum()
    };
    assert_eq!(sum("misses"), number(&found["total"], "misses"));
    // The file was used before the variables.
    let mapping = |name: &str| {
        let mappings = found["mappings"].as_array().expect("mappings").iter();
        let named = mappings.filter(|mapping| mapping["name"].as_str().is_some_and(|n| n.ends_with(name)));
        named.max_by_key(|mapping| number(mapping, "misses")).expect("a mapping").clone()
    };
    assert!(number(&mapping("/content"), "last_row") < number(&mapping("/objects"), "first_row"));
}

#[test]
fn the_table_fits_a_terminal_and_follows_its_order() {
    let folder = Folder::new();
    let trace = record(&folder);
    let first = |options: &[&str]| {
        let text = isotherm(&[&["objects", trace.as_str()], options].concat()).ok();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text.lines().nth(4).expect("an object").to_owned()
    };
    assert!(first(&[]).ends_with("/objects"));
    assert!(first(&["--by", "memory"]).ends_with("[anonymous] 2 of 3M"));
    assert!(first(&["--by", "density"]).ends_with("/objects"));
    let text = isotherm(&["objects", &trace, "--top", "2"]).ok();
    assert!(text.ends_with("more: --top N\n") && text.lines().count() == 7, "{text}");
}

#[test]
fn a_trace_without_mappings_or_with_bad_ones_is_refused() {
    let folder = Folder::new();
    let trace = folder.trace();
    let line = isotherm(&["objects", &trace]).refused(2);
    assert!(line.contains(&trace) && line.contains("record the program again"), "{line}");
    std::fs::write(format!("{trace}/_mappings.jsonl"), "{}\n").expect("written");
    let line = isotherm(&["objects", &trace]).refused(2);
    assert!(line.contains("_mappings.jsonl: line 1"), "{line}");
    // Other verbs do not need them.
    isotherm(&["trace", "info", &trace]).ok();
    let line = isotherm(&["objects", &trace, "--fast", "much"]).refused(2);
    assert!(line.contains("much"), "{line}");
}

#[test]
fn a_list_that_does_not_fit_into_memory_is_refused() {
    let folder = Folder::new();
    let trace = record(&folder);
    let line = isotherm(&["objects", &trace, "--max-memory", "40M"]).refused(2);
    assert!(line.contains("the trace's mappings: needs about"), "{line}");
    // The tool's own memory, and a hundred pages.
    let line = isotherm(&["objects", &trace, "--max-memory", "49250K"]).refused(2);
    assert!(line.contains(&trace) && line.contains(" pages do not fit into memory"), "{line}");
    let said = isotherm(&["objects", &trace, "--max-memory", "60M"]).err;
    assert!(said.starts_with("isotherm: memory: about "), "{said}");
}

#[test]
fn a_copy_of_a_trace_has_its_mappings() {
    let folder = Folder::new();
    let (trace, copy) = (record(&folder), folder.at("copy.trace"));
    isotherm(&["trace", "convert", "--from", "trace", &trace, "--output", &copy]).ok();
    assert_eq!(objects(&trace, &[])["objects"], objects(&copy, &[])["objects"]);
}

#[test]
fn misses_are_counted_for_the_sites_that_allocated_their_memory() {
    let folder = Folder::new();
    let (program, trace) = (folder.compile("sites"), folder.at("sites.trace"));
    let start = ["record", "--sites", "--no-dependence", "--cache", "64K", "--output", &trace, "--"];
    let ran = isotherm(&[&start[..], &[&program, "3"]].concat());
    assert!(!ran.err.contains("no allocation site"), "{}", ran.err);
    assert_eq!(ran.ok(), "done\n");
    let found = objects(&trace, &["--fast", "1M"]);
    assert_eq!(found["manifest"]["options"]["allocator"], "libisotherm_alloc.so");
    let line_of = |text: &str| {
        let source = include_str!("data/sites.c");
        1 + source.lines().position(|line| line.contains(text)).expect("the line")
    };
    // A wrapper passes the table's allocation on. 16,384 lines, three times and once by the child.
    let table = format!("make_table sites.c:{}", line_of("return xmalloc"));
    let table = object(&found, &table, None);
    assert!((65_000..67_000).contains(&number(table, "misses")), "{table:#}");
    // Its pages, and those of the child.
    let memory = number(table, "memory_bytes");
    assert!((1 << 21..(1 << 21) + (1 << 16)).contains(&memory), "{table:#}");
    // 16,384 blocks of 48 bytes fill 12,288 lines, written and, after others filled the cache, read.
    let nodes = format!("make_nodes sites.c:{}", line_of("malloc(sizeof *node)"));
    let nodes = object(&found, &nodes, None);
    assert!((20_000..40_000).contains(&number(nodes, "misses")), "{nodes:#}");
    // A list that grew stays at its own site, but for its first steps.
    let list = format!("make_list sites.c:{}", line_of("realloc("));
    let list = object(&found, &list, None);
    assert!((4_000..40_000).contains(&number(list, "misses")), "{list:#}");
    // The child has the same sites, from its own copy.
    let mappings = found["mappings"].as_array().expect("mappings").iter();
    let tables = mappings.filter(|mapping| mapping["name"] == table["name"]);
    let of: Vec<_> = tables.map(|mapping| number(mapping, "process")).collect();
    assert_eq!(of.len(), 2, "{of:?}");
    let frames = |mapping: &Value| mapping["frames"].as_array().cloned().unwrap_or_default();
    let mappings = found["mappings"].as_array().expect("mappings").iter();
    let calls = mappings.map(frames).find(|calls| calls.iter().any(|c| contains(c, "make_table")));
    let calls = calls.expect("the table's calls");
    assert!(contains(&calls[0], "xmalloc at ") && contains(&calls[2], "main at "), "{calls:?}");
    let text = isotherm(&["objects", &trace]).ok();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(isotherm(&["trace", "info", &trace]).ok().contains("libisotherm_alloc.so"));
}

fn contains(text: &Value, part: &str) -> bool {
    text.as_str().is_some_and(|text| text.contains(part))
}

#[test]
fn a_recording_without_sites_says_so() {
    let folder = Folder::new();
    let program = folder.compile_with("sites", &["-static"]);
    let start = ["record", "--sites", "--no-dependence", "--output", &folder.at("static.trace"), "--"];
    let ran = isotherm(&[&start[..], &[&program]].concat());
    assert!(ran.err.contains("no allocation site") && ran.err.contains("statically"), "{}", ran.err);
    assert_eq!(ran.ok(), "done\n");
}

/// A Python behind a wrapper recorded 78 shell helpers.
#[test]
fn wrappers_are_left_out_of_recordings_replays_and_lists() {
    let folder = Folder::new();
    let script = "seq 2000 | sort -n | tail -1";
    let record = |trace: &str, options: &[&str]| {
        let start = ["record", "--no-dependence", "--cache", "64K", "--output", trace];
        isotherm(&[&start[..], options, &["--", "sh", "-c", script]].concat())
    };
    let (all, one) = (folder.at("all.trace"), folder.at("one.trace"));
    record(&all, &[]).ok();
    let ran = record(&one, &["--process", "sort"]);
    assert!(ran.err.contains(", 1 of "), "{}", ran.err);
    assert_eq!(ran.ok(), "2000\n");
    let of = |trace: &str, options: &[&str]| number(&objects(trace, options)["total"], "misses");
    let (everything, sorts) = (of(&all, &[]), of(&all, &["--process", "sort"]));
    assert!(sorts > 0 && sorts < everything, "{sorts} of {everything}");
    let recorded = of(&one, &[]);
    assert!(recorded.abs_diff(sorts) < sorts / 10, "{recorded} of {sorts}");
    let found = objects(&one, &[]);
    assert!(found["objects"].as_array().is_some_and(|all| all.iter().all(|o| o["process"] == "sort")));
    let replay = |trace: &str, options: &[&str]| {
        let start = ["simulate", trace, "--policy", "all-slow", "--fast", "50%", "--json"];
        isotherm(&[&start[..], options].concat()).json()
    };
    let replayed = |trace: &str, options: &[&str]| replay(trace, options)["runs"][0]["accesses"].as_u64();
    // Both verbs have read the same rows.
    for options in [&[][..], &["--process", "sort"]] {
        let input = |result: Value| result["manifest"]["input"].as_str().map(str::to_owned);
        assert!(input(objects(&all, options)).is_some_and(|hash| hash.starts_with("xxh64:")));
        assert_eq!(input(objects(&all, options)), input(replay(&all, options)));
    }
    assert_eq!(replayed(&all, &["--process", "sort"]), Some(sorts));
    assert_eq!(replayed(&all, &[]), Some(everything));
    for verb in ["simulate", "objects", "size"] {
        let line = isotherm(&[verb, &all, "--process", "ruby"]).refused(2);
        assert!(line.contains("ruby") && line.contains("seq, sh, sort, tail"), "{line}");
    }
    let none = folder.at("none.trace");
    let ran = record(&none, &["--process", "ruby"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), "2000\n"), "{}", ran.err);
    assert!(ran.after_memory().contains("ruby") && ran.err.contains("seq, sh, sort, tail"), "{}", ran.err);
    assert!(!folder.path().join("none.trace").exists());
}

#[test]
fn the_heatmap_shows_the_same_objects() {
    let folder = Folder::new();
    let (trace, page) = (record(&folder), folder.at("page.html"));
    let found = objects(&trace, &[]);
    let arguments = ["simulate", &trace, "--policy", "first-touch,lru", "--json", "--report", &page];
    let simulated = isotherm(&arguments).json();
    let held = simulated["input"]["heatmap"]["objects"].as_array().expect("objects");
    let misses = |name: &str| -> u64 {
        let named = held.iter().filter(|held| held["name"].as_str().is_some_and(|held| held.ends_with(name)));
        named.map(|held| number(held, "accesses")).sum()
    };
    // One place is named by what it held last, so a few pages may change hands.
    for (name, size) in [("/objects", None), ("/content", None), ("[heap]", None), ("[stack]", None)] {
        let (told, shown) = (number(object(&found, name, size), "misses"), misses(name));
        assert!(told.abs_diff(shown) * 10 <= told.max(100), "{name}: {told}, in the heatmap {shown}");
    }
    assert!(misses("[anonymous] 3M") > 0 && misses("[thread stack]") > 0, "{held:#?}");
    let all: u64 = held.iter().map(|held| number(held, "accesses")).sum();
    assert_eq!(all, number(&simulated["input"], "accesses"));
    assert!(!simulated["input"]["regions"].as_array().expect("regions").is_empty());
    let page = std::fs::read_to_string(&page).expect("a report");
    let title = page.split_once("Whose memory").expect("a table of objects").1;
    assert!(title.contains("[heap]") && title.contains("/objects"), "{title:.2000}");
    assert!(page.contains("\"fast\":{\"cells\":\""), "what is fast lies over the heatmap");
}
