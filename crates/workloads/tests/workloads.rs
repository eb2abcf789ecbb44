//! Properties of every workload, and those of single ones that show only in their misses.

use std::collections::HashSet;
use std::ops::ControlFlow;

use isotherm_core::Bytes;
use isotherm_core::cache::Geometry;
use isotherm_trace::Rows;
use isotherm_workloads::{
    ALL, AddressSpace, Limits, Memory, MissRecorder, PAPER_PRESET, PageProfile, TEST_PRESET, Token, find,
};

/// Settings that make a run take well below two seconds.
const TEST: &[(&str, &str)] = &[("preset", TEST_PRESET)];

/// Returns the rows of a workload with these settings, filtered by its cache.
fn record(name: &str, settings: &[(&str, &str)], seed: u64) -> (Rows, AddressSpace) {
    record_with(name, settings, seed, None)
}

/// Records likewise, with a cache of this size.
fn record_with(
    name: &str,
    settings: &[(&str, &str)],
    seed: u64,
    cache: Option<Bytes>,
) -> (Rows, AddressSpace) {
    let workload = find(name).expect("a workload of that name");
    let mut parameters = workload.parameters();
    settings.iter().for_each(|(key, value)| parameters.set(key, value).expect("in range"));
    let program = workload.build(&parameters, seed).expect("consistent settings");
    let mut rows = Rows::default();
    let cache = match (cache, workload.reference_cache) {
        (None, Some(_)) => workload.cache(program.footprint()),
        (size, _) => Geometry::new(size.unwrap_or(Bytes(64 << 10)), 16).expect("a valid size"),
    };
    let mut recorder = MissRecorder::new(cache, Limits::NONE, |chunk: &mut Rows| {
        chunk.iter().for_each(|row| rows.push(row));
        ControlFlow::Continue(())
    });
    program.run(&mut recorder);
    let space = recorder.finish();
    (rows, space)
}

#[test]
fn names_are_unique_defaults_are_valid_and_unknown_names_list_the_known() {
    let names: HashSet<_> = ALL.iter().map(|workload| workload.name).collect();
    assert_eq!(names.len(), ALL.len());
    for workload in ALL {
        assert!(workload.build(&workload.parameters(), 1).is_ok());
        for spec in workload.specs {
            assert!(!spec.source.is_empty() && spec.help.ends_with('.'), "{}.{}", workload.name, spec.name);
        }
    }
    let error = find("gupps").expect_err("no such workload").to_string();
    assert_eq!(error, "there is no workload 'gupps'; did you mean gups?");
}

#[test]
fn every_workload_can_be_set_to_its_test_size_and_to_its_paper_size() {
    for workload in ALL {
        let footprint = |preset| {
            let mut parameters = workload.parameters();
            parameters.set("preset", preset).expect("every workload has it");
            workload.build(&parameters, 1).expect("consistent preset").footprint()
        };
        let default = workload.build(&workload.parameters(), 1).expect("consistent defaults").footprint();
        assert!(footprint(TEST_PRESET) <= default, "{}", workload.name);
        assert!(footprint(PAPER_PRESET) > default, "{}", workload.name);
        assert!(workload.accesses > 0, "{}", workload.name);
    }
}

#[test]
fn values_out_of_range_are_refused() {
    for workload in ALL {
        let mut parameters = workload.parameters();
        assert!(parameters.set("footprint", "1K").is_err(), "{}", workload.name);
        assert!(parameters.set("footprint", "9000T").is_err(), "{}", workload.name);
        assert!(parameters.set("operations", "0").is_err(), "{}", workload.name);
        assert!(parameters.set("threads", "0").is_err(), "{}", workload.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_rows_and_another_seed_others() {
    for workload in ALL {
        let rows = |seed| record(workload.name, TEST, seed).0;
        let first = rows(1);
        assert_eq!(first, rows(1), "{}", workload.name);
        assert_ne!(first, rows(2), "{}", workload.name);
    }
}

#[test]
fn what_is_touched_was_allocated_and_is_about_the_footprint() {
    for workload in ALL {
        let mut parameters = workload.parameters();
        TEST.iter().for_each(|(key, value)| parameters.set(key, value).expect("in range"));
        let footprint = workload.build(&parameters, 1).expect("consistent").footprint().0 as f64;
        let (rows, space) = record(workload.name, TEST, 1);
        // A chunk is a fifth larger than its item on average. An allocation may start within a line.
        assert!(
            rows.line.iter().all(|line| (0..64).step_by(16).any(|at| space.find((line << 6) + at).is_some()))
        );
        let pages: HashSet<u64> = rows.line.iter().map(|line| line >> 6).collect();
        let touched = pages.len() as f64 * 4096.0;
        assert!((0.72..1.02).contains(&(touched / footprint)), "{}: {touched} of {footprint}", workload.name);
    }
}

/// A memory that is finished after `patience` accesses, and counts on.
#[derive(Default)]
struct Impatient {
    space: AddressSpace,
    patience: u64,
    touched: u64,
}

impl Memory for Impatient {
    fn allocate(&mut self, bytes: u64, context: &'static str) -> u64 {
        self.space.allocate(bytes, context)
    }

    fn load(&mut self, _address: u64, _after: Token) -> Token {
        self.touched += 1;
        Token::NONE
    }

    fn store(&mut self, _address: u64, _after: Token) {
        self.touched += 1;
    }

    fn finished(&self) -> bool {
        self.touched >= self.patience
    }
}

#[test]
fn a_run_ends_soon_after_the_memory_is_finished() {
    for workload in ALL {
        let touched = |patience| {
            let mut parameters = workload.parameters();
            TEST.iter().for_each(|(key, value)| parameters.set(key, value).expect("in range"));
            let program = workload.build(&parameters, 1).expect("consistent");
            let mut memory = Impatient { patience, ..Impatient::default() };
            program.run(&mut memory);
            memory.touched
        };
        let whole = touched(u64::MAX);
        let half = touched(whole / 2);
        assert!(half >= whole / 2 && half - whole / 2 < whole / 4, "{}: {half} of {whole}", workload.name);
    }
}

/// A table of terabytes would otherwise be written to its end, in hours.
#[test]
fn a_run_that_is_finished_while_it_fills_its_tables_fills_no_more() {
    for workload in ALL {
        let mut parameters = workload.parameters();
        let larger = [("footprint", "64M"), ("scale", "16"), ("users", "2000")];
        larger.iter().find(|(key, size)| parameters.set(key, size).is_ok()).expect("a size");
        let mut memory = Impatient { patience: 1000, ..Impatient::default() };
        workload.build(&parameters, 1).expect("consistent").run(&mut memory);
        assert!(memory.touched < 50_000, "{}: {} after 1000", workload.name, memory.touched);
    }
}

#[test]
fn the_hot_region_of_gups_takes_its_share_of_misses_and_then_lies_elsewhere() {
    let settings = [("footprint", "16M"), ("operations", "400k"), ("threads", "1")];
    let (rows, _) = record("gups", &settings, 3);
    let updates: Vec<u64> = rows.iter().filter(|row| !row.store).map(|row| row.line).collect();
    let (before, after) = updates.split_at(updates.len() / 2);
    let hottest = |lines: &[u64]| {
        let mut profile = PageProfile::default();
        (0..4096).for_each(|page| profile.count((rows.line[0] >> 6 << 6) + (page << 6), 0));
        lines.iter().for_each(|line| profile.count(*line, 1));
        profile.shares_of_hottest(&[0.1])[0]
    };
    // 0.9 + 0.1 * 0.1 of updates; the 64 KiB cache absorbs 4 % of those to the 1.6 MB region.
    for half in [before, after] {
        assert!((0.88..0.92).contains(&hottest(half)), "{}", hottest(half));
    }
    assert!(hottest(&updates) < 0.56, "over the whole run no tenth is that hot");
}

#[test]
fn a_chase_is_one_cycle_through_all_lines_in_which_each_read_depends_on_the_one_before() {
    let lines = 1 << 14;
    let settings = [("footprint", "1M"), ("operations", "49152"), ("threads", "1"), ("pattern", "chase")];
    let (rows, _) = record("masim", &settings, 4);
    let reads: Vec<_> = rows.iter().filter(|row| !row.store).collect();
    // The first cycle may find lines that filling the memory has left in the cache.
    let reads = &reads[reads.len() - 2 * lines..];
    let cycle: HashSet<u64> = reads[..lines].iter().map(|row| row.line).collect();
    assert_eq!(cycle.len(), lines);
    assert!((0..lines).all(|at| reads[at].line == reads[at + lines].line));
    assert!(reads[1..].iter().all(|row| row.dependence == 1));
}

#[test]
fn in_the_mixed_pattern_both_threads_read_every_page_equally_often_and_only_one_waits() {
    let settings = [("footprint", "2M"), ("operations", "163840")];
    let (rows, space) = record("masim", &settings, 4);
    let reads = |thread| rows.iter().filter(move |row| !row.store && row.thread == thread);
    assert!(reads(0).all(|row| row.dependence == 0));
    assert!(reads(1).skip(1).all(|row| row.dependence == 1));
    let contexts: Vec<_> = space.allocations().iter().map(|allocation| allocation.context).collect();
    assert_eq!(contexts, ["masim sequential", "masim chase"]);
    let mut profile = PageProfile::default();
    rows.iter().filter(|row| !row.store).for_each(|row| profile.count(row.line, 1));
    assert!((profile.shares_of_hottest(&[0.5])[0] - 0.5).abs() < 0.01);
}

#[test]
fn colocated_masim_is_two_processes_of_a_thread_each() {
    let settings = [("preset", "colocated"), ("footprint", "2M"), ("operations", "50k")];
    let (rows, _) = record("masim", &settings, 4);
    assert!(rows.iter().all(|row| row.process == row.thread));
    assert_eq!(rows.process.iter().collect::<HashSet<_>>().len(), 2);
    let alone = record("masim", &[("footprint", "2M"), ("operations", "50k")], 4).0;
    assert!(alone.process.iter().all(|&process| process == 0));
    assert_eq!(alone.line, rows.line, "nothing else differs");
}

#[test]
fn a_phase_of_masim_heats_its_region() {
    let settings = [
        ("footprint", "4M"),
        ("operations", "400k"),
        ("threads", "1"),
        ("pattern", "random"),
        ("regions", "4"),
        ("hot_share", "0.8"),
        ("phases", "2"),
    ];
    let (rows, space) = record("masim", &settings, 4);
    let reads: Vec<_> = rows.iter().filter(|row| !row.store).collect();
    for (phase, reads) in reads.chunks(reads.len().div_ceil(2)).enumerate() {
        let region = &space.allocations()[phase];
        let hits =
            reads.iter().filter(|row| (row.line << 6).wrapping_sub(region.start) < region.bytes).count();
        assert!((hits as f64 / reads.len() as f64 - 0.85).abs() < 0.02, "0.8 and a quarter of the rest");
    }
}

/// Returns the share of load misses after the warm-up that the hottest pages take.
fn page_skew(footprint: &str, operations: &str) -> Vec<f64> {
    let settings = [("footprint", footprint), ("operations", operations)];
    // The cache in proportion, without the lower bound that `Workload::cache` has.
    let footprint: Bytes = footprint.parse().expect("a size");
    let (rows, _) = record_with("cachelib-cdn", &settings, 1, Some(Bytes(footprint.0 / 8192)));
    let mut profile = PageProfile::default();
    rows.iter().for_each(|row| profile.count(row.line, u64::from(!row.store)));
    profile.shares_of_hottest(&[0.01, 0.1, 0.5])
}

#[test]
fn the_skew_of_the_key_value_cache_over_pages_does_not_depend_on_the_scale() {
    let (small, large) = (page_skew("32M", "33k"), page_skew("128M", "132k"));
    for (small, large) in small.iter().zip(&large) {
        assert!((small - large).abs() < 0.04, "{small:.3} and {large:.3}");
    }
}

#[test]
fn a_walk_of_the_key_value_cache_depends_on_the_pointers_it_follows() {
    let (rows, space) =
        record("cachelib-cdn", &[("footprint", "32M"), ("operations", "50k"), ("threads", "1")], 1);
    let inside = |row: &isotherm_trace::Row| {
        !row.store && space.find(row.line << 6).is_some_and(|found| found.context == "client requests")
    };
    let (waiting, all) = rows
        .iter()
        .skip(rows.len() / 2)
        .filter(inside)
        .fold((0, 0), |(waiting, all), row| (waiting + u32::from(row.dependence > 0), all + 1));
    assert!(all > 1000);
    assert!(f64::from(waiting) > 0.9 * f64::from(all), "{waiting} of {all} follow the request array's miss");
}

#[test]
fn after_the_shift_the_other_half_of_keys_is_asked_for() {
    let settings = [
        ("footprint", "32M"),
        ("operations", "40k"),
        ("overcommit", "0.7"),
        ("shift", "0.5"),
        ("lone_gets", "0"),
    ];
    let (rows, space) = record("cachelib-cdn", &settings, 1);
    let requests =
        space.allocations().iter().find(|found| found.context == "client requests").expect("allocated");
    let middle = requests.start + requests.bytes / 128 / 2 * 128;
    let inside = |row: &isotherm_trace::Row| (row.line << 6).wrapping_sub(requests.start) < requests.bytes;
    let halves: Vec<bool> =
        rows.iter().filter(|row| !row.store && inside(row)).map(|row| row.line << 6 >= middle).collect();
    let turn = halves.iter().position(|&second| second).expect("a second half");
    assert!((0.4..0.6).contains(&(turn as f64 / halves.len() as f64)));
    assert!(halves[turn..].iter().all(|&second| second));
}

/// Returns the keys of the client request objects that were read, in order.
fn keys_asked_for(name: &str, settings: &[(&str, &str)]) -> Vec<u64> {
    let (rows, space) = record_with(name, settings, 1, Some(Bytes(16 << 10)));
    let requests =
        space.allocations().iter().find(|found| found.context == "client requests").expect("allocated");
    let offset = |row: isotherm_trace::Row| (row.line << 6).wrapping_sub(requests.start);
    rows.iter()
        .filter(|row| !row.store)
        .map(offset)
        .filter(|&offset| offset < requests.bytes)
        .map(|offset| offset / 128)
        .collect()
}

/// Returns the share of the hottest tenth of keys that is hot in both halves of a run.
fn hot_in_both_halves(name: &str, change_at: &str) -> f64 {
    let settings =
        [("footprint", "32M"), ("operations", "150k"), ("change_at", change_at), ("preset", "hybridtier")];
    let keys = keys_asked_for(name, &settings);
    let count = 1 + *keys.iter().max().expect("requests") as usize;
    let hottest = |part: &[u64]| {
        let mut asked = vec![0u32; count];
        part.iter().for_each(|&key| asked[key as usize] += 1);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&key| std::cmp::Reverse(asked[key]));
        order.into_iter().take(count / 10).collect::<HashSet<usize>>()
    };
    let (before, after) = keys.split_at(keys.len() / 2);
    hottest(before).intersection(&hottest(after)).count() as f64 / (count / 10) as f64
}

#[test]
fn when_the_hot_set_changes_two_thirds_of_the_hot_keys_are_no_longer_hot() {
    for name in ["cachelib-cdn", "cachelib-social"] {
        // Seen through misses and few requests a key, some change by chance.
        let (stable, changed) = (hot_in_both_halves(name, "0"), hot_in_both_halves(name, "0.5"));
        println!("{name}: {stable:.2} {changed:.2}");
        assert!(
            (0.2..0.45).contains(&(changed / stable)),
            "{name}: {changed:.2} stay instead of {stable:.2}"
        );
    }
}

#[test]
fn the_social_graph_inserts_its_lone_gets_until_the_cache_is_full() {
    let settings = [("footprint", "32M"), ("operations", "300k"), ("threads", "1")];
    let (rows, space) = record("cachelib-social", &settings, 1);
    let slabs = space.allocations().iter().find(|found| found.context == "cache slabs").expect("allocated");
    let inside = |row: &isotherm_trace::Row| (row.line << 6).wrapping_sub(slabs.start) < slabs.bytes;
    let filled =
        |rows: &[u64]| rows.iter().collect::<HashSet<_>>().len() as f64 * 4096.0 / slabs.bytes as f64;
    let pages: Vec<u64> = rows.iter().filter(inside).map(|row| row.line >> 6).collect();
    let touched = filled(&pages);
    assert!((0.85..=1.0).contains(&touched), "{touched:.2} of the slabs are used in the end");
    let (early, _) = record("cachelib-social", &[("footprint", "32M"), ("operations", "1")], 1);
    let early: Vec<u64> = early.iter().filter(inside).map(|row| row.line >> 6).collect();
    assert!((0.3..0.6).contains(&filled(&early)), "{:.2} after all keys were inserted", filled(&early));
}

#[test]
fn a_memory_can_be_driven_by_hand() {
    let mut counting = isotherm_workloads::CountingMemory::default();
    let start = counting.allocate(4096, "test");
    counting.load_range(start + 60, 8, Token::NONE);
    assert_eq!(counting.loads, 2, "eight bytes across two lines");
}
