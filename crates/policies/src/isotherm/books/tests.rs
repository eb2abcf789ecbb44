use isotherm_core::{Counters, Operation, PageId, TierCounters};

use super::*;

fn sample(tier: u8) -> Sample {
    Sample {
        time: Nanos(0),
        page: PageId(0),
        weight: 100,
        latency: if tier == 0 { 100 } else { 250 },
        exposed: 0,
        tier: TierId(tier),
        operation: Operation::Load,
    }
}

/// A batch after `entries` equal ones of 1 ms: two threads, 1,000 slow accesses that stalled 50 ns each.
fn batch(entries: u64, samples: &[Sample]) -> SampleBatch {
    let ms = Nanos::MILLISECOND.0;
    let slow = TierCounters {
        load_misses: 1000 * entries,
        stall: Nanos(50_000 * entries),
        ..TierCounters::default()
    };
    SampleBatch {
        samples: samples.to_vec(),
        counters: Counters { tiers: vec![TierCounters::default(), slow], ..Counters::default() },
        spent: Spent {
            elapsed: Nanos(ms * entries),
            running: Nanos(2 * ms * entries),
            sampling: Nanos(600 * entries),
            deciding: Nanos(200 * entries),
            moving: Nanos(8000 * entries),
        },
        ..SampleBatch::default()
    }
}

/// Makes entries of two samples, one of each tier; returns what the samples counted.
fn entered(books: &mut Books, entries: std::ops::RangeInclusive<u64>, displaced: [bool; 2]) -> u32 {
    let elsewhere = |sample: &Sample| TierId(1 - sample.tier.0);
    let mut counts = 0;
    for entry in entries {
        let samples = [sample(0), sample(1)];
        books.begin(&batch(entry, &samples), [Nanos(0); 2].into_iter());
        for (sample, displaced) in samples.iter().zip(displaced) {
            counts += u32::from(books.note(sample, displaced.then(|| elsewhere(sample)), books.part));
        }
        books.note_moves(2);
        books.end(0.0);
    }
    counts
}

#[test]
fn prices_and_costs_are_the_hosts_measurements_in_time_of_the_program() {
    let mut books = Books::default();
    entered(&mut books, 1..=4, [false; 2]);
    assert_eq!(books.sample.get(), Some(300.0));
    let page = 4000.0 / (2.0 + CALL);
    assert_eq!(books.page_move.get(), Some(page), "8,000 ns by two threads for a call and two pages");
    assert_eq!(books.pace(), Some(2000.0));
    // Of a move a quarter is lost.
    assert_eq!((books.looking(), books.spent()), (4.0 * 400.0, 4.0 * 1400.0));
    assert!((books.saving(TierId(0), TierId(1)) - 0.6).abs() < 1e-12);
}

/// The first batch had four pages. With its call's time they looked five times as dear as pages are, and no
/// others moved for half a second.
#[test]
fn regression_a_batch_of_few_pages_does_not_make_moves_look_dear() {
    let price = |pages: u64| {
        let mut books = Books::default();
        books.note_moves(pages as usize);
        let mut batch = batch(1, &[]);
        batch.spent.running = batch.spent.elapsed;
        batch.spent.moving = Nanos(27_000 + 1800 * pages);
        books.begin(&batch, [Nanos(0); 2].into_iter());
        books.price_of_move()
    };
    assert!((1500.0..2000.0).contains(&price(4)) && (1700.0..1900.0).contains(&price(1000)), "{}", price(4));
}

/// While a program filled its memory, most samples were of stores that count as no misses. Ten times as
/// many samples came as were paid for, and then none until the program had run for long.
#[test]
fn regression_the_pace_of_sampled_events_is_that_of_samples_where_misses_are_fewer() {
    let mut books = Books::default();
    let samples = vec![sample(0); 64];
    for entry in 1..=3 {
        books.begin(&batch(entry, &samples), [Nanos(0); 2].into_iter());
        books.end(0.0);
    }
    let pace = books.pace().expect("known");
    let told = 2e6 / (64.0 * 100.0);
    assert!((told..1.25 * told).contains(&pace), "64 samples, each for 100 events, in 2 ms: {pace}");
    let few = vec![Sample { weight: 1_000_000, ..sample(0) }; 3];
    books.begin(&batch(4, &few), [Nanos(0); 2].into_iter());
    assert!(books.pace() > Some(1000.0), "three samples are chance: {:?}", books.pace());
}

#[test]
fn samples_of_displaced_pages_are_what_was_saved_and_lost() {
    let mut books = Books::default();
    entered(&mut books, 1..=2, [false; 2]);
    entered(&mut books, 3..=3, [true, false]);
    // 100 accesses that stall one of two threads for 50 ns if slow, 60 % less if fast.
    assert!((books.saved - 100.0 * 25.0 * 0.6).abs() < 1e-6, "{}", books.saved);
    assert!((books.saved_error() - books.saved).abs() < 1e-6, "one sample is as uncertain as large");
    entered(&mut books, 4..=4, [false, true]);
    assert!(books.saved.abs() < 1e-6);
}

/// Of two tiers of 100 and 250 ns, the fast one is worth less than its latency tells once it is loaded.
#[test]
fn an_overloaded_tier_costs_those_that_wait_too_and_one_unseen_is_idle() {
    let idle = || [Nanos(100), Nanos(250)].into_iter();
    let told = |books: &mut Books, entry, latencies: [u32; 2], count: usize| {
        let sample = |tier: u8| Sample { latency: latencies[usize::from(tier)], ..sample(tier) };
        let mut samples = vec![sample(0); count];
        samples.extend((latencies[1] > 0).then(|| sample(1)));
        books.begin(&batch(entry, &samples), idle());
        for sample in &samples {
            books.note(sample, None, books.part);
        }
        books.end(0.0);
    };
    let mut books = Books::default();
    told(&mut books, 1, [110, 250], 1);
    let mean = 250.0;
    assert!((books.saving(TierId(0), TierId(1)) - (250.0 - 121.0) / mean).abs() < 1e-9);
    let mut books = Books::default();
    told(&mut books, 1, [200, 300], 1);
    // Its own wait is 100 ns shorter; 200^2 / 100 against 300^2 / 250.
    assert!((books.saving(TierId(0), TierId(1)) - (360.0 - 400.0) / 300.0).abs() < 1e-9);
    assert!(books.overload(TierId(0), TierId(1)) == 0.0, "the counters tell no stall there");
    for entry in 2..60 {
        told(&mut books, entry, [200, 0], 100);
    }
    assert!((books.latency(TierId(1)).expect("known") - 250.0).abs() < 1.0);
}

/// FlexKVS: one thread fills it, and its writes, which do not stall, were worth sixteen of the reads of
/// sixteen threads. What moved for them made it up to 22 % slower.
#[test]
fn regression_stores_of_a_phase_that_do_not_stall_are_worth_nothing() {
    let mut books = Books::default();
    let samples = [sample(0), sample(1)];
    entered(&mut books, 1..=2, [false; 2]);
    let mut batch = batch(3, &samples);
    batch.counters.tiers[0] = TierCounters { load_misses: 1000, stall: Nanos(80_000), ..Default::default() };
    batch.counters.tiers[1].stall = Nanos(100_000);
    books.begin(&batch, [Nanos(0); 2].into_iter());
    let counts: [u16; 2] =
        samples.each_ref().map(|sample| (0..8).map(|_| books.note(sample, None, books.part)).sum());
    // A fast access stalls 80 ns of its 100, so a slow one to the page would take 200 of its 250.
    assert_eq!(counts, [8 * 200 / 50, 0]);
}

/// In a program that had been well placed for long, the few accesses left to slow pages did not wait, so
/// that nothing was saved by its books, and after a change nothing moved any more.
#[test]
fn regression_a_fast_page_saves_by_the_stall_of_fast_accesses() {
    let mut books = Books::default();
    let samples = [sample(0), sample(1)];
    for entry in 1..=3 {
        let mut batch = batch(entry, &samples);
        batch.counters.tiers[0] =
            TierCounters { load_misses: 1000 * entry, stall: Nanos(80_000 * entry), ..Default::default() };
        batch.counters.tiers[1].stall = Nanos(1000 * entry);
        books.begin(&batch, [Nanos(0); 2].into_iter());
        books.note(&samples[0], (entry == 3).then_some(TierId(1)), books.part);
        books.note(&samples[1], None, books.part);
        books.end(0.0);
    }
    // 100 accesses that stall one of two threads for 80 ns, with a latency of 100 ns in place of 250.
    assert!((books.saved - 100.0 * 40.0 * 1.5).abs() < 1e-6, "{}", books.saved);
}

/// PageRank: 1,000 slow accesses stalled 50 ns each. Of the 100 that were still slow after moves each
/// stalled for 200 ns, and the books told of six times what was saved.
#[test]
fn regression_accesses_left_to_slow_pages_do_not_tell_what_fast_ones_save() {
    let mut books = Books::default();
    let samples = [sample(0), sample(1)];
    entered(&mut books, 1..=20, [false; 2]);
    for entry in 21..=30 {
        let later = entry - 20;
        let mut batch = batch(20, &samples);
        batch.spent.elapsed = Nanos(Nanos::MILLISECOND.0 * entry);
        batch.spent.running = Nanos(2 * Nanos::MILLISECOND.0 * entry);
        batch.counters.tiers[0].load_misses = 900 * later;
        batch.counters.tiers[1].load_misses += 100 * later;
        batch.counters.tiers[1].stall = Nanos(50_000 * 20 + 20_000 * later);
        books.begin(&batch, [Nanos(0); 2].into_iter());
        books.note(&samples[0], Some(TierId(1)), books.part);
        books.end(0.0);
    }
    let by_then = 10.0 * 100.0 * 25.0 * 0.6;
    assert!((1.0..1.1).contains(&(books.saved / by_then)), "{} of {by_then}", books.saved);
}

#[test]
fn of_the_stall_while_most_were_slow_later_entries_count_more() {
    let mut books = Books::default();
    entered(&mut books, 1..=20, [false; 2]);
    for entry in 21..=40 {
        let mut batch = batch(entry, &[]);
        batch.counters.tiers[1].stall = Nanos(50_000 * 20 + 200_000 * (entry - 20));
        books.begin(&batch, [Nanos(0); 2].into_iter());
        books.end(0.0);
    }
    let (stall, slow) = books.together;
    assert!((155.0..170.0).contains(&(stall / slow)), "of 50 and then 200 ns: {}", stall / slow);
}

#[test]
fn where_samples_tell_no_latency_of_a_tier_the_idle_one_s_counts() {
    let mut books = Books::default();
    let silent = [0, 1].map(|tier| Sample { latency: 0, ..sample(tier) });
    books.begin(&batch(1, &silent), [Nanos(100), Nanos(400)].into_iter());
    for sample in &silent {
        books.note(sample, None, books.part);
    }
    books.end(0.0);
    assert!((books.saving(TierId(0), TierId(1)) - 0.75).abs() < 1e-12);
    books.note(&sample(1), None, books.part);
    books.end(0.0);
    let saving = books.saving(TierId(0), TierId(1));
    assert!((saving - 0.6).abs() < 1e-12, "of 250 beside the idle tier's 100: {saving}");
}

#[test]
fn of_three_tiers_each_pair_has_its_own_saving() {
    let mut books = Books::default();
    let samples = [(0, 100), (1, 200), (2, 400)].map(|(tier, latency)| Sample { latency, ..sample(tier) });
    books.begin(&batch(1, &samples), [Nanos(0); 3].into_iter());
    for sample in &samples {
        books.note(sample, None, books.part);
    }
    books.end(0.0);
    let [near, far, both] = [(0, 1), (1, 2), (0, 2)].map(|(a, b)| books.saving(TierId(a), TierId(b)));
    // A slow access takes 300 on average: what a step saves is a part of that.
    assert!((near - 100.0 / 300.0).abs() < 1e-12, "{near}");
    assert!((both - near - far).abs() < 1e-12);
    books.note(&samples[2], Some(TierId(1)), books.part);
    assert!((books.saved + 100.0 * 25.0 * far).abs() < 1e-6, "it fell by one: {}", books.saved);
}

#[test]
fn what_may_be_spent_is_a_share_of_the_time_and_of_proved_savings() {
    let mut books = Books::default();
    entered(&mut books, 1..=2, [false; 2]);
    assert_eq!(books.allowance(), 0.005 * 2e6 - 2800.0);
    entered(&mut books, 3..=20, [false; 2]);
    assert!(books.allowance() > 0.0, "{}", books.allowance());
    let before = books.allowance();
    books.saved -= 1e6;
    assert_eq!(books.allowance(), before - 1e6, "a loss counts in full");
    books.saved += 5e6;
    books.stake.prove(1e6);
    assert_eq!(books.allowance(), before + 0.5 * 4e6, "a saving by half");
}

/// Betweenness centrality was 1.8 % slower: samples claimed that a fifth of its time was saved, of which
/// counters confirmed a tenth, and 3 % of it were spent.
#[test]
fn regression_what_samples_claim_counts_up_to_eight_times_what_counters_confirm() {
    let mut books = Books::default();
    entered(&mut books, 1..=20, [false; 2]);
    let before = books.allowance();
    books.saved = 4e6;
    assert_eq!(books.allowance(), before, "nothing is confirmed");
    books.stake.prove(1e5);
    assert_eq!(books.allowance(), before + 0.5 * 8e5);
}

/// An entry of pages that are where they were first, half of whose stall is of the fast tier.
fn entered_at_home(books: &mut Books, entry: u64) {
    let mut batch = batch(entry, &[sample(0), sample(1)]);
    batch.counters.tiers[0] = batch.counters.tiers[1];
    books.begin(&batch, [Nanos(100), Nanos(250)].into_iter());
    books.note(&sample(0), None, books.part);
    books.end(0.0);
}

/// Betweenness centrality was 1.3 % slower on `jenga`: both what may be spent and what may be lost were used
/// up, and false claims had let more be spent.
#[test]
fn regression_what_was_spent_beyond_the_proof_is_not_at_stake_again() {
    let mut books = Books::default();
    (1..=20).for_each(|entry| entered_at_home(&mut books, entry));
    books.cost = 0.0;
    let may_go = books.demotable(0.0, 0.0);
    books.spend(0.0075 * books.elapsed());
    assert!((books.demotable(0.0, 0.0) - may_go / 2.0).abs() < 1e-9, "{may_go}");
    books.stake.prove(0.0025 * books.elapsed());
    assert!(books.demotable(0.0, 0.0) > may_go, "the proof covers it");
    books.spend(books.elapsed());
    assert!(books.demotable(0.0, 0.0) > 0.0, "a part of the proof may be lost");
}

/// That pages lose little is a claim of samples, too.
#[test]
fn regression_pages_that_lose_little_let_no_more_go_than_eight_times_what_may_be_lost() {
    let mut books = Books::default();
    (1..=20).for_each(|entry| entered_at_home(&mut books, entry));
    books.cost = 0.0;
    let may_go = books.demotable(0.0, 0.0);
    let went = 4.0 * may_go;
    assert!((books.demotable(went, 10.0 * may_go) - (8.0 * may_go - went)).abs() < 1e-9, "{may_go}");
    books.saved = TRUST * books.elapsed();
    books.stake.prove(books.saved);
    assert!((books.demotable(went, 10.0 * may_go) - (16.0 * may_go - went)).abs() < 1e-9, "savings count");
}

/// Losses so far leave less to be lost.
#[test]
fn regression_fewer_pages_may_go_where_others_have_lost() {
    let mut books = Books::default();
    (1..=20).for_each(|entry| entered_at_home(&mut books, entry));
    let may_go = books.demotable(0.0, 0.0);
    books.saved = -0.0025 * books.elapsed();
    assert!((books.demotable(0.0, 0.0) - may_go / 2.0).abs() < 1e-9, "{may_go}");
    books.saved = -0.01 * books.elapsed();
    assert_eq!(books.demotable(0.0, 0.0), 0.0);
}

#[test]
fn a_change_of_the_slow_share_is_noticed_once_it_is_unusual() {
    let mut books = Books::default();
    (0..100).for_each(|index| books.watch(0.5 + 0.001 * f64::from(index % 2)));
    books.changed();
    books.watch(0.5);
    assert!(!books.changed());
    books.watch(0.6);
    assert!(books.changed() && !books.changed());
    (0..200).for_each(|index| books.watch(f64::from(index % 2)));
    books.changed();
    books.watch(1.0);
    assert!(!books.changed(), "where it always swings, a swing is no news");
}

/// `flexkvs`: one thread waits for each of few accesses to fast pages, then sixteen read. Of the fast pages'
/// stall samples showed a quarter, of the slow ones' stall, by stores that wait for nothing, three times what
/// there was. The pages that the one waits for went down, and the program was 15 % slower.
#[test]
fn regression_samples_of_a_tier_come_to_what_its_counters_tell() {
    let mut books = Books::default();
    // An entry has 40 fast samples for 1,000 accesses of 90 ns, and 120 slow ones for 6,000 of 10.
    let samples: Vec<Sample> = [sample(0); 40].into_iter().chain([sample(1); 120]).collect();
    let told = |misses: u64, stall: u64| TierCounters {
        load_misses: misses,
        stall: Nanos(misses * stall),
        ..TierCounters::default()
    };
    let mut worth = [0.0; 2];
    for entry in 1..=40 {
        // Fast ones come in every fourth entry alone.
        let samples = if entry % 4 == 0 { &samples[..] } else { &samples[40..] };
        let mut batch = batch(entry, samples);
        batch.counters.tiers = vec![told(1000 * entry, 90), told(6000 * entry, 10)];
        books.begin(&batch, [Nanos(100), Nanos(250)].into_iter());
        for (sample, part) in samples.iter().zip(books.parts(samples)) {
            worth[sample.tier.index()] += books.worth(sample.tier) * part * f64::from(sample.weight);
            books.note(sample, None, part);
        }
        books.end(0.0);
    }
    // Of two threads each loses half.
    let [fast, slow] = [40.0 * 1000.0 * 90.0 * 2.5 / 2.0, 40.0 * 6000.0 * 10.0 / 2.0];
    assert!((worth[0] / fast - 1.0).abs() < 0.15, "{worth:?} for {fast}");
    assert!((worth[1] / slow - 1.0).abs() < 0.1, "{worth:?} for {slow}");
}

/// BFS in the lab: while it filled its memory few accesses missed, so samples were dense. That time weighed
/// ten times as much as that of its search, and its hot pages' rates were a tenth of the truth.
#[test]
fn regression_counts_stand_for_more_time_where_more_is_missed() {
    let share = |misses: u64| {
        let mut books = Books::default();
        let samples = [Sample { weight: misses as u32 / 4, ..sample(1) }; 4];
        for entry in 1..=8 {
            let mut batch = batch(entry, &samples);
            let slow = &mut batch.counters.tiers[1];
            (slow.load_misses, slow.stall) = (misses * entry, Nanos(50 * misses * entry));
            books.begin(&batch, [Nanos(100), Nanos(250)].into_iter());
            for (sample, part) in samples.iter().zip(books.parts(&samples)) {
                books.note(sample, None, part);
            }
            books.end(0.0);
        }
        books.share()
    };
    let ratio = share(10_000) / share(1000);
    assert!((9.0..11.0).contains(&ratio), "{ratio}");
}
