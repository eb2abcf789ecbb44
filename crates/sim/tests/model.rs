//! Compares the model with results computed by hand.

mod support;

use isotherm_core::PageSize;
use isotherm_machine::Profile;
use isotherm_sim::{Kind, RunResult, Stream, StreamBuilder};
use isotherm_trace::{Row, Rows};
use support::{ENDLESS_TLB, UNTHROTTLED, input, machine, numbers, plain_machine, run, stream};

const PAGES: u32 = 4096;

fn close(measured: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((measured / expected - 1.0).abs() <= tolerance, "{what}: {measured} against {expected}");
}

fn bound(stream: Stream, profile: &Profile, name: &str) -> RunResult {
    run(&input(stream), profile, &[name], &["50%"], 1.0).runs.remove(0)
}

#[test]
fn a_pointer_chase_takes_latency_times_misses() {
    const MISSES: u32 = 200_000;
    let profile = plain_machine();
    for (name, tier) in [("all-fast", 0), ("all-slow", 1)] {
        let mut page = numbers(7, PAGES);
        let chase = stream((0..MISSES).map(|_| page()), PAGES, 1, 1);
        let latency = profile.tiers[tier].latency.0 as f64;
        let time = bound(chase, &profile, name).modelled_ns.0 as f64;
        close(time, f64::from(MISSES) * latency, 0.02, name);
    }
}

#[test]
fn a_stream_takes_bytes_over_bandwidth() {
    const MISSES: u32 = 2_000_000;
    let profile = machine(&[("core.cores", "16")]);
    for (name, tier) in [("all-fast", 0), ("all-slow", 1)] {
        // Sixteen threads, each with a line every eight instructions: far more than the bandwidth.
        let mut lines = stream((0..MISSES).map(|index| index / 64 % PAGES), PAGES, 8, 0);
        lines
            .accesses
            .iter_mut()
            .enumerate()
            .for_each(|(index, access)| access.thread = (index / 64 % 16) as u16);
        lines.threads = 16;
        let expected = f64::from(MISSES) * 64.0 / profile.tiers[tier].read_bandwidth as f64 * 1e9;
        close(bound(lines, &profile, name).modelled_ns.0 as f64, expected, 0.02, name);
    }
}

/// Reads a list in address order, each element in its own line: every load waits for the one before.
fn list_in_order(passes: u64) -> Stream {
    let mut builder = StreamBuilder::new(PageSize::Base);
    let mut rows = Rows::default();
    for line in (0..passes).flat_map(|_| 0..u64::from(PAGES) * 64) {
        rows.push(Row { process: 0, thread: 0, instructions: 200, line, store: false, dependence: 1 });
    }
    builder.append(&rows);
    builder.finish("list").expect("rows")
}

#[test]
fn of_a_list_in_order_two_lines_a_page_are_missed_and_sampled() {
    let with = |registers, pairs| {
        let numbers = [("core.l2_registers", registers), ("core.pair_prefetcher", pairs)];
        let [often, long] = UNTHROTTLED;
        machine(&[numbers[0], numbers[1], often, long, ENDLESS_TLB, ("costs.sample", "0ns")])
    };
    let (unfetched, prefetched, paired) = (with("0", "1"), with("16", "0"), with("16", "1"));
    let stream = list_in_order(4);
    let lines = stream.accesses.len() as f64;
    let instructions = 200.0 * prefetched.core.instruction_ps as f64 / 1000.0;
    let latency = prefetched.tiers[1].latency.0 as f64;
    let time = |profile| bound(stream.clone(), profile, "all-slow").modelled_ns.0 as f64;
    // A load waits for the one before, and its instructions retire meanwhile: it takes the latency alone.
    close(time(&unfetched), lines * latency, 0.02, "every line a miss");
    // Per page: two misses, the instructions of all other lines, and the lateness of the first of these, less
    // than another latency.
    let waits = |profile, fetched: f64| (time(profile) / (lines / 64.0) - fetched * instructions) / latency;
    assert!((2.0..3.0).contains(&waits(&prefetched, 62.0)), "{} latencies a page", waits(&prefetched, 62.0));
    // The page's second line completes the pair of its first, and comes with it.
    assert!((1.0..2.0).contains(&waits(&paired, 63.0)), "{} latencies a page", waits(&paired, 63.0));
    let samples = |profile| {
        let run = run(&input(stream.clone()), profile, &["pact:batch=0"], &["1%"], 1.0).runs.remove(0);
        run.samples as f64
    };
    close(samples(&unfetched) / samples(&prefetched), 32.0, 0.1, "samples");
    close(samples(&unfetched) / samples(&paired), 64.0, 0.1, "samples of first lines alone");
}

#[test]
fn stores_take_their_write_backs_over_the_write_bandwidth() {
    const MISSES: u32 = 2_000_000;
    let profile = machine(&[("core.cores", "16"), ("tier.0.write_bandwidth", "5GB/s")]);
    let mut lines = stream((0..MISSES).map(|index| index / 64 % PAGES), PAGES, 8, 0);
    for (index, access) in lines.accesses.iter_mut().enumerate() {
        (access.kind, access.thread) = (Kind::STORE, (index / 64 % 16) as u16);
    }
    lines.threads = 16;
    let expected = f64::from(MISSES) * 64.0 / 5e9 * 1e9;
    close(bound(lines, &profile, "all-fast").modelled_ns.0 as f64, expected, 0.02, "stores");
}

#[test]
fn a_planted_hot_set_hits_as_often_as_its_share() {
    const ACCESSES: u32 = 4_000_000;
    // 90 % of accesses to the last tenth of the pages, 10 % to all: first touch fills the fast tier in
    // address order.
    let hot = PAGES / 10;
    let mut random = numbers(3, 1 << 30);
    let warm_up = 0..PAGES;
    let mut draw =
        move || if random().is_multiple_of(10) { random() % PAGES } else { PAGES - 1 - random() % hot };
    let planted = stream(warm_up.chain((0..ACCESSES).map(|_| draw())), PAGES, 50, 0);
    let report =
        run(&input(planted), &plain_machine(), &["first-touch", "freqtier", "oracle"], &["20%"], 1000.0);
    let fast_share = 0.2;
    let [first_touch, freqtier, oracle] = report.runs.as_slice() else { panic!("three runs") };
    close(first_touch.final_hit_ratio, 0.1 * fast_share, 0.03, "first-touch");
    // The hot set fits and always hits; accesses to all pages hit in the fast tier's share.
    let expected = 0.9 + 0.1 * fast_share;
    close(freqtier.final_hit_ratio, expected, 0.02, "freqtier");
    assert!(oracle.final_hit_ratio >= expected - 1e-3, "{}", oracle.final_hit_ratio);
}

#[test]
fn each_cost_of_tiering_adds_its_own_sum() {
    let costs = [
        ("costs.buffered_sample", "0ns"),
        ("costs.drain_sample", "0ns"),
        ("costs.scan_page", "0ns"),
        ("costs.move_call", "0ns"),
        ("costs.move_page", "0ns"),
        ("costs.shootdown", "0ns"),
        ("costs.cached_touch", "0ns"),
        ("costs.operation", "0ns"),
    ];
    let mut page = numbers(5, PAGES);
    let mut hot = numbers(6, PAGES / 16);
    let chase =
        input(stream((0..600_000).map(|index| if index % 4 == 0 { page() } else { hot() }), PAGES, 20, 1));
    // With a fixed period and a filter that outlives the run, the samples do not depend on their cost.
    let policy = &["lru:sampling_period=50"];
    let with = |settings: &[(&str, &str)]| {
        let mut profile = plain_machine();
        profile.set("costs.copy_bandwidth", "1000GB/s").expect("a bandwidth");
        settings.iter().for_each(|(path, value)| profile.set(path, value).expect("a cost"));
        run(&chase, &profile, policy, &["25%"], 1000.0).runs.remove(0)
    };
    let charged = |run: &RunResult| {
        let charges = &run.charges;
        let sum = charges.sampling
            + charges.shootdowns
            + charges.faulting
            + charges.draining
            + charges.tracking
            + charges.scanning
            + charges.arming
            + charges.moving
            + charges.reclaiming;
        sum.0 as f64
    };
    // Placement, and with it stalls, varies a little when costs change the timing of moves: compare time less
    // stalls.
    let overhead = |run: &RunResult| {
        let stalls: u64 = run.stall_ns.iter().map(|stall| stall.0).sum();
        run.modelled_ns.0 as f64 - stalls as f64
    };
    let free = with(&costs);
    let full = with(&[]);
    assert!(charged(&full) > 0.02 * full.modelled_ns.0 as f64, "the costs are worth testing");
    close(overhead(&full) - overhead(&free), charged(&full) - charged(&free), 0.02, "all costs together");
    for cost in costs {
        let without: Vec<_> = costs.into_iter().filter(|other| other.0 != cost.0).collect();
        let alone = with(&without);
        let expected = charged(&alone) - charged(&free);
        if expected > 0.0 {
            close(overhead(&alone) - overhead(&free), expected, 0.03, cost.0);
        }
    }
}

#[test]
fn equal_runs_give_equal_bytes_on_any_number_of_threads() {
    let mut page = numbers(9, PAGES);
    let random = input(stream((0..300_000).map(|_| page()), PAGES, 30, 0));
    let json = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
        let all: Vec<&str> = isotherm_policies::ALL.iter().map(|entry| entry.name).collect();
        let mut report = pool.install(|| run(&random, &plain_machine(), &all, &["1:4", "1:16"], 100.0));
        report.runs.iter_mut().for_each(|run| run.wall_s = 0.0);
        format!("{report:?}")
    };
    let one = json(1);
    assert_eq!(one, json(1));
    assert_eq!(one, json(2));
}

#[test]
fn no_policy_beats_belady_and_none_is_below_all_slow() {
    for seed in 1..5 {
        let mut page = numbers(seed, PAGES);
        let mut burst = numbers(seed + 50, 20);
        let bursts = (0..20_000).flat_map(|_| std::iter::repeat_n(page(), burst() as usize + 1));
        let stream = stream(bursts, PAGES, 30, 0);
        let all: Vec<&str> = isotherm_policies::ALL.iter().map(|entry| entry.name).collect();
        let report = run(&input(stream), &plain_machine(), &all, &["1:4", "1:16"], 1000.0);
        for run in &report.runs {
            if run.policy == "all-fast" {
                continue;
            }
            assert!(run.hit_ratio <= run.belady_hit_ratio + 1e-12, "{} at {}", run.policy, run.fast);
            // Soar places whole objects, and the only one here is larger than the fast tier.
            let slow = ["all-slow", "soar"].contains(&run.policy.as_str());
            assert!(slow || run.hit_ratio > 0.0, "{} at {}", run.policy, run.fast);
        }
    }
}

#[test]
fn a_policy_that_beats_the_interval_oracle_is_said_to() {
    // A working set of 300 pages that changes every 20,000 accesses fits the fast tier of 410 pages: a policy
    // that follows it hits nearly always. An interval of the oracle spans more than two of them, 600 pages
    // and more.
    let mut page = numbers(1, 300);
    let phases = (0..1_000_000).map(|index| (index / 20_000 * 300 + page()) % PAGES);
    let stream = stream(phases, PAGES, 300, 1);
    let policies = ["lru:sampling_period=1,batch=64", "first-touch"];
    // Each sample costs so much that the tiering thread keeps up with the program.
    let mut profile = plain_machine();
    profile.set("costs.buffered_sample", "1500ns").expect("a cost");
    let report = run(&input(stream), &profile, &policies, &["10%"], 1.0);
    let [lru, first_touch] = report.runs.as_slice() else { panic!("two runs") };
    assert!(
        lru.hit_ratio > lru.oracle_hit_ratio && lru.beats_oracle,
        "{} {}",
        lru.hit_ratio,
        lru.oracle_hit_ratio
    );
    assert!(lru.hit_ratio <= lru.belady_hit_ratio);
    assert!(!first_touch.beats_oracle);
}

#[test]
fn three_tiers_hold_what_their_sizes_allow() {
    let mut profile = plain_machine();
    let mut middle = profile.tiers[0].clone();
    middle.latency.0 += 10;
    middle.capacity = Some(isotherm_core::Bytes(1024 << 12));
    profile.tiers.insert(1, middle);
    let latencies: Vec<f64> = profile.tiers.iter().map(|tier| tier.latency.0 as f64).collect();
    let pages = (0..PAGES).chain((0..50 * PAGES).map(|index| index % PAGES));
    let report = run(&input(stream(pages, PAGES, 1, 1)), &profile, &["first-touch"], &["25%"], 1.0);
    // A quarter of the accesses in the first tier, a quarter in the second, half in the third.
    let mean = latencies[0] / 4.0 + latencies[1] / 4.0 + latencies[2] / 2.0;
    close(report.runs[0].modelled_ns.0 as f64, f64::from(51 * PAGES) * mean, 0.01, "three tiers");
    assert_eq!(report.runs[0].stall_ns.len(), 3);
}

#[test]
fn the_parts_of_each_time_add_up_to_it_and_are_what_was_charged() {
    let all: Vec<&str> = isotherm_policies::ALL.iter().map(|entry| entry.name).collect();
    let mut page = numbers(11, PAGES);
    let chase = input(stream((0..400_000).map(|_| page() / (1 + page() % 9)), PAGES, 30, 1));
    let usual = machine(&[]);
    for profile in [&plain_machine(), &usual] {
        for run in run(&chase, profile, &all, &["20%"], 1000.0).runs {
            let (name, parts, charges) = (&run.policy, run.parts, run.charges);
            assert_eq!(parts.whole(), run.modelled_ns, "{name}");
            close(run.slowdown, parts.whole().0 as f64 / run.all_fast_ns.0 as f64, 1e-12, name);
            // One thread waits for all that is done in it.
            let sampling = (charges.sampling + charges.faulting).0;
            assert!(parts.sampling.0 + 1000 >= sampling, "{name}: {parts:?} {charges:?}");
            if run.tiering_cpu_ns.0 == 0 && charges.shootdowns.0 == 0 {
                assert_eq!(parts.program, run.modelled_ns, "{name} does nothing");
            }
            // Beside it, tiering takes time of the program's only where there is no other core.
            let in_program = charges.scanning.0 + charges.arming.0 + charges.moving.0;
            let beside = run.tiering_cpu_ns.0 > 1_000_000 && in_program < run.tiering_cpu_ns.0;
            assert!(
                profile.core.cores > 1 || !beside || parts.deciding.0 > run.tiering_cpu_ns.0 / 3,
                "{name}: {parts:?} of {}",
                run.tiering_cpu_ns
            );
        }
    }
}

#[test]
fn the_cells_that_are_fast_are_where_pages_lie() {
    // First half touched first, so it is fast under first-touch and stays; then the others.
    let pages = (0..PAGES).chain((0..40 * PAGES).map(|index| index % PAGES));
    let report = run(
        &input(stream(pages, PAGES, 10, 1)),
        &plain_machine(),
        &["first-touch", "lru:sampling_period=10,batch=64", "belady"],
        &["50%"],
        1.0,
    );
    let map = &report.input.heatmap;
    let [first_touch, lru, belady] = report.runs.as_slice() else { panic!("three runs") };
    let cell = |run: &RunResult, row: usize, column: usize| run.fast_cells[row * map.columns + column];
    assert_eq!(first_touch.fast_cells.len(), map.counts.len());
    assert_eq!([0, 10, 39].map(|row| cell(first_touch, row, 50)), [255; 3]);
    assert_eq!([40, 60, 79].map(|row| cell(first_touch, row, 119)), [0; 3]);
    let fast =
        |run: &RunResult, column| (0..map.rows).map(|row| u64::from(cell(run, row, column))).sum::<u64>();
    for column in [0, 60, 119] {
        assert!(fast(lru, column) <= 255 * map.rows as u64 / 2, "no more than fits");
    }
    assert!(fast(lru, 119) > 0 && lru.fast_cells != first_touch.fast_cells);
    assert!(belady.fast_cells.is_empty(), "its pages have no place between their accesses");
}
