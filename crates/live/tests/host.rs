//! The live host with scripted sources and processes: real policies, shadow and real tiers.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use isotherm_core::{
    Bytes, DeviceRequest, FastLimit, Host, Move, MoveStatus, Nanos, Operation, Outcome, PageId, PageSize,
    Pages, Plan, Reclaim, SampleBatch, Sampling, SamplingRate, SamplingScope, Signal, Signals, TierId, View,
};
use isotherm_linux::LinuxError;
use isotherm_linux::clock;
use isotherm_linux::process::Pid;
use isotherm_linux::source::{
    Access, AccessSource, Cause, DeviceAnswer, ScannedMapping, SourceStatistics, Untouched,
};
use isotherm_live::host::{
    AddressSpaces, LiveHost, Options, Pause, PresentRun, ProcessEvent, Processes, Share, Tier,
};
use isotherm_live::policy_run::{PolicyRun, RunStats};

const BASE: u64 = 0x7f00_0000_0000;
const PROCESS: Pid = Pid(7);

/// The state that the test controls and inspects.
#[derive(Default)]
struct World {
    accesses: Vec<Access>,
    windows: Vec<Untouched>,
    mappings: Vec<ScannedMapping>,
    /// The last that was named settled.
    settled: Vec<Range<u64>>,
    requests: Vec<Sampling>,
    armed: Vec<u64>,
    /// Commands to devices, and the addresses that they report as hot.
    commands: Vec<DeviceRequest>,
    hot: Vec<u64>,
    events: Vec<ProcessEvent>,
    ended: bool,
    mapped: u64,
    /// How many of the first pages are unmapped again.
    freed: u64,
    /// The tier of each page from [`BASE`], with real tiers.
    tiers: Vec<u8>,
    answers: Vec<MoveStatus>,
    /// Pages in swap, and what the kernel was asked to move.
    swapped: Vec<u64>,
    asked: Vec<u64>,
    /// Numbers of the 2 MiB from [`BASE`] that huge pages map.
    huge: Vec<u64>,
    /// Pages that the kernel moves of the next huge page, which it splits, before the node is full.
    part: Option<usize>,
    /// Whether the kernel makes huge pages of base pages just before it moves them.
    collapsing: bool,
    /// Processes whose memory was forgotten.
    forgotten: Vec<Pid>,
    /// Memory that the kernel says to have on the fast tier.
    room: Option<Bytes>,
    /// The source's own clock.
    clock: Option<Nanos>,
    drains: u32,
    /// Runs before each drain.
    script: Option<fn(&mut World)>,
}

type Shared = Arc<Mutex<World>>;

struct Source(Shared);

impl AccessSource for Source {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn offers(&self) -> Signals {
        Signals::NONE.with(Signal::LoadSamples).with(Signal::HintFaults)
    }
    fn follow(&mut self, _: Pid) -> Result<(), LinuxError> {
        Ok(())
    }
    fn forget(&mut self, _: Pid) {}
    fn request(&mut self, sampling: &Sampling) -> Result<(), LinuxError> {
        self.0.lock().expect("lock").requests.push(*sampling);
        Ok(())
    }
    fn drain(&mut self, accesses: &mut Vec<Access>) -> Result<(), LinuxError> {
        let mut world = self.0.lock().expect("lock");
        world.drains += 1;
        if let Some(script) = world.script {
            script(&mut world);
        }
        accesses.append(&mut world.accesses);
        Ok(())
    }
    fn untouched(&mut self, windows: &mut Vec<Untouched>) {
        windows.append(&mut self.0.lock().expect("lock").windows);
    }
    fn mappings(&mut self, mappings: &mut Vec<ScannedMapping>) {
        mappings.append(&mut self.0.lock().expect("lock").mappings);
    }
    fn set_settled(&mut self, process: Pid, ranges: &[Range<u64>]) {
        assert_eq!(process, PROCESS);
        self.0.lock().expect("lock").settled = ranges.to_vec();
    }
    fn arm(&mut self, process: Pid, addresses: &[u64]) -> Result<(), LinuxError> {
        assert_eq!(process, PROCESS);
        self.0.lock().expect("lock").armed.extend(addresses);
        Ok(())
    }
    fn command(&mut self, request: DeviceRequest) -> Result<(), LinuxError> {
        self.0.lock().expect("lock").commands.push(request);
        Ok(())
    }
    fn read_devices(&mut self, answers: &mut Vec<DeviceAnswer>) -> Result<(), LinuxError> {
        let hot = std::mem::take(&mut self.0.lock().expect("lock").hot);
        answers.push(DeviceAnswer {
            hot: hot.into_iter().map(|address| (PROCESS, address)).collect(),
            again: false,
            report: None,
        });
        Ok(())
    }
    fn clock(&self) -> Option<Nanos> {
        self.0.lock().expect("lock").clock
    }
    fn statistics(&self) -> SourceStatistics {
        SourceStatistics::default()
    }
}

struct Spaces(Shared);

impl AddressSpaces for Spaces {
    fn present(&mut self, _: Pid, found: &mut Vec<PresentRun>) -> Result<(), LinuxError> {
        let world = self.0.lock().expect("lock");
        let kind = |page: &u64| (world.swapped.contains(page), world.huge.contains(&(page / 512)));
        let pages: Vec<u64> = (world.freed..world.mapped).collect();
        found.extend(pages.chunk_by(|one, next| kind(one) == kind(next)).map(|run| {
            let (swapped, huge) = kind(&run[0]);
            PresentRun {
                range: BASE + run[0] * 4096..BASE + (run[0] + run.len() as u64) * 4096,
                swapped,
                huge,
            }
        }));
        Ok(())
    }
    fn tiers(&mut self, _: Pid, pages: &[u64], tiers: &mut Vec<Option<TierId>>) -> Result<(), LinuxError> {
        let world = self.0.lock().expect("lock");
        let tier = |address: &u64| world.tiers.get(((address - BASE) / 4096) as usize).map(|&t| TierId(t));
        tiers.extend(pages.iter().map(tier));
        Ok(())
    }
    fn migrate(&mut self, _: Pid, moves: &[(u64, TierId)], statuses: &mut Vec<MoveStatus>) {
        let mut world = self.0.lock().expect("lock");
        for &(address, to) in moves {
            let page = (address - BASE) / 4096;
            world.asked.push(page);
            let status = match world.swapped.contains(&page) {
                true => MoveStatus::Gone,
                false => world.answers.pop().unwrap_or(MoveStatus::Moved),
            };
            if std::mem::take(&mut world.collapsing) {
                world.huge.push(page / 512);
            }
            let first = if world.huge.contains(&(page / 512)) { page / 512 * 512 } else { page } as usize;
            if let Some(part) = world.part.take() {
                world.huge.retain(|&one| one != page / 512);
                world.tiers[first..first + part].fill(to.0);
            } else if status == MoveStatus::Moved {
                let pages = if world.huge.contains(&(page / 512)) { 512 } else { 1 };
                world.tiers[first..first + pages].fill(to.0);
            }
            statuses.push(status);
        }
    }
    fn swapped(&mut self, _: Pid, addresses: &[u64], swapped: &mut Vec<bool>) {
        let world = self.0.lock().expect("lock");
        swapped.extend(addresses.iter().map(|address| world.swapped.contains(&((address - BASE) / 4096))));
    }
    fn is_huge(&mut self, _: Pid, start: u64) -> bool {
        self.0.lock().expect("lock").huge.contains(&((start - BASE) / (512 * 4096)))
    }
    fn split(&mut self, _: Pid, start: u64) -> bool {
        let chunk = (start - BASE) / (512 * 4096);
        self.0.lock().expect("lock").huge.retain(|&one| one != chunk);
        true
    }
    fn collapse(&mut self, _: Pid, start: u64) -> bool {
        let chunk = (start - BASE) / (512 * 4096);
        self.0.lock().expect("lock").huge.push(chunk);
        true
    }
    fn zswapped(&mut self, _: Pid) -> Option<(PathBuf, Bytes)> {
        Some((PathBuf::from("/a"), Bytes(4096)))
    }
    fn forget(&mut self, process: Pid) {
        self.0.lock().expect("lock").forgotten.push(process);
    }
    fn room(&mut self, _: TierId) -> Option<Bytes> {
        self.0.lock().expect("lock").room
    }
    fn reclaims(&self) -> bool {
        false
    }
    fn reclaim(&mut self, _: TierId, _: u64) -> u64 {
        0
    }
}

struct Tree(Shared);

impl Processes for Tree {
    fn update(&mut self, events: &mut Vec<ProcessEvent>) -> bool {
        let mut world = self.0.lock().expect("lock");
        events.append(&mut world.events);
        !world.ended
    }
}

fn options(fast: FastLimit, shadow: bool) -> Options {
    Options {
        page_size: PageSize::Base,
        tiers: [100, 300]
            .map(|latency| Tier { size: Bytes(1 << 30), latency: Nanos(latency), bandwidth: 0 })
            .to_vec(),
        fast,
        shadow,
        share: None,
        nodes: Vec::new(),
        inside: None,
        scan_interval: Nanos(0),
        scan_budget: 1.0,
        overhead: 0.02,
        model_counters: shadow,
    }
}

fn host(fast: FastLimit, shadow: bool, mapped: u64) -> (LiveHost, Shared) {
    let tiers = vec![1; mapped as usize];
    let events = vec![ProcessEvent::Started(PROCESS)];
    let world = Arc::new(Mutex::new(World { mapped, tiers, events, ..World::default() }));
    let host = LiveHost::new(
        options(fast, shadow),
        vec![Box::new(Source(world.clone()))],
        Box::new(Spaces(world.clone())),
        Box::new(Tree(world.clone())),
    );
    (host, world)
}

fn sampling(rate: SamplingRate, batch: usize) -> Sampling {
    let tick = Nanos(20 * Nanos::MILLISECOND.0);
    Sampling::loads(rate, SamplingScope::AllTiers, batch, tick)
}

fn access(page: u64, cause: Cause) -> Access {
    Access {
        time: clock::monotonic(),
        process: PROCESS,
        address: BASE + page * 4096 + 123,
        weight: 1,
        latency: 0,
        tier: None,
        operation: Operation::Load,
        cause,
    }
}

/// Makes one step of the engine without a policy.
fn step(host: &mut LiveHost) -> (SampleBatch, bool) {
    let mut batch = SampleBatch::default();
    let running = host.advance(&mut batch);
    (batch, running)
}

/// Three mappings of 4 MiB. Windows touched pages of the first one only; in the second more pages were
/// accessed than windows had armed, in the third no more than that.
#[test]
fn accessed_bits_name_memory_that_nobody_uses() {
    const MAPPING: u64 = 1024;
    let (mut host, world) = host(FastLimit::Bytes(Bytes(MAPPING * 4096)), true, 3 * MAPPING);
    host.sample(sampling(SamplingRate::Period(1), 1000));
    step(&mut host);
    for round in 0..40 {
        {
            let mut world = world.lock().expect("lock");
            let part = round % 16;
            for mapping in 0..3 {
                world.windows.push(Untouched {
                    process: PROCESS,
                    start: BASE + (mapping * MAPPING + part * 64) * 4096,
                    pages: if mapping == 0 { 0 } else { u64::MAX },
                    huge: false,
                    exposed: Nanos(1_000_000),
                });
            }
            let touched = Cause::Touched { exposed_ns: 500_000 };
            world.accesses.extend((0..64).map(|page| access(part * 64 + page, touched)));
            if round == 15 {
                let mapping = |at: u64, referenced| ScannedMapping {
                    process: PROCESS,
                    range: BASE + at * MAPPING * 4096..BASE + (at + 1) * MAPPING * 4096,
                    present: MAPPING,
                    referenced,
                    exposed: Nanos(1_000_000_000),
                };
                world.mappings = vec![mapping(0, 1024), mapping(1, 1024 + 1), mapping(2, 900)];
            }
        }
        step(&mut host);
        std::thread::sleep(std::time::Duration::from_millis(if round < 16 { 0 } else { 100 }));
    }
    let settled = world.lock().expect("lock").settled.clone();
    let pages: u64 = settled.iter().map(|range| (range.end - range.start) / 4096).sum();
    let third = BASE + 2 * MAPPING * 4096;
    assert!(pages == MAPPING && settled[0].start == third, "{settled:x?}");
}

#[test]
fn samples_arrive_with_their_pages_virtual_tiers_and_hits_are_summed() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(2 * 4096)), true, 4);
    host.sample(sampling(SamplingRate::Period(1), 3));
    step(&mut host);
    let told = [0, 3, 3, 1].map(|page| access(page, Cause::Sampled));
    world.lock().expect("lock").accesses.extend(told);
    let (batch, running) = step(&mut host);
    assert!(running);
    let seen: Vec<(u32, u8)> = batch.samples.iter().map(|sample| (sample.page.0, sample.tier.0)).collect();
    assert_eq!(seen.len(), 3, "a batch is full at three");
    let first = seen[0].0;
    assert_eq!(seen, [(first, 0), (first + 3, 1), (first + 3, 1)], "the first two pages found room");
    let (batch, _) = step(&mut host);
    assert_eq!(batch.samples.len(), 1, "the rest comes with the next batch");
    assert_eq!(batch.counters.load_hits(), (2, 4));
    assert!(batch.spent.elapsed > Nanos(0), "what was spent comes along");
    let summary = host.summary();
    assert_eq!((summary.hit_ratio, summary.slowdown_at_most), (None, None), "four samples tell nothing");
    let missing = summary.missing.expect("evidence is missing");
    let [low, high] = missing.hit_ratio.expect("bounds");
    assert!(low < 0.2 && high > 0.8, "{missing:?}");
    assert!(missing.run_ns > Some(summary.duration_ns) && missing.huge_pages, "{missing:?}");
    assert_eq!((missing.samples, missing.source), (4, Some("pmu")));
}

/// Two windows of four pages, again and again: page 3, which is slow, is touched in each after a hundredth of
/// it; page 0, which is fast, in each tenth one.
#[test]
fn a_touch_in_a_window_stands_for_all_accesses_that_it_hides() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(2 * 4096)), true, 4);
    host.sample(sampling(SamplingRate::Period(1), 1000));
    step(&mut host);
    let mut copies = 0;
    for round in 0..20 {
        {
            let mut world = world.lock().expect("lock");
            for at in 0..20 {
                let cold = at % 10 == 9;
                world.accesses.push(access(3, Cause::Touched { exposed_ns: 10_000 }));
                world.accesses.extend(cold.then(|| access(0, Cause::Touched { exposed_ns: 500_000 })));
                world.windows.push(Untouched {
                    process: PROCESS,
                    start: BASE,
                    pages: if cold { 0b0110 } else { 0b0111 },
                    huge: false,
                    exposed: Nanos(1_000_000),
                });
            }
        }
        let (batch, _) = step(&mut host);
        for (counted, tier) in
            batch.counters.tiers.iter().zip(&options(FastLimit::Bytes(Bytes(0)), true).tiers)
        {
            assert_eq!(counted.load_occupancy, counted.load_misses * tier.latency.0, "of the same accesses");
        }
        if round == 19 {
            copies = batch.samples.iter().filter(|sample| sample.tier == TierId(1)).count();
        }
    }
    assert_eq!(copies, 20 * 64, "the policy gets as many samples as it may of a page that always faults");
    let summary = host.summary();
    // 100 accesses a window to 0.1; by the touches alone it would be 0.09 of the accesses.
    let hits = summary.hit_ratio.expect("it is known");
    assert!((0.0005..0.002).contains(&hits), "{hits}");
    let [low, high] = summary.intervals.hit_ratio.expect("bounds");
    assert!(low <= hits && hits <= high && high < 0.1, "{low} {high}");
}

/// Four slow pages are touched, then moved, then touched again: midway between the touches they turned fast.
#[test]
fn a_page_that_moves_after_its_touch_is_not_slow_for_the_whole_pass() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(4 * 4096)), true, 8);
    host.sample(sampling(SamplingRate::Period(1), 1000));
    step(&mut host);
    let touch = |host: &mut LiveHost| {
        {
            let mut world = world.lock().expect("lock");
            world.accesses.extend((4..8).map(|page| access(page, Cause::Touched { exposed_ns: 500_000 })));
            let exposed = Nanos(1_000_000);
            world.windows.push(Untouched {
                process: PROCESS,
                start: BASE,
                pages: 0b1111,
                huge: false,
                exposed,
            });
        }
        step(host).0.samples.iter().map(|sample| sample.page).collect::<Vec<PageId>>()
    };
    let touched = touch(&mut host);
    let to = |tier: u8| move |page: PageId| Move { page, to: TierId(tier) };
    let others = touched.iter().map(|page| PageId(page.0 - 4));
    let moves = others.map(to(1)).chain(touched.iter().copied().map(to(0))).collect();
    host.carry_out(&Plan { moves, ..Plan::default() }, &mut Outcome::default());
    touch(&mut host);
    let hits: Vec<u64> = host.summary().tiers.iter().map(|tier| tier.hits).collect();
    assert!(hits[1] > 0 && hits[0] == 3 * hits[1], "{hits:?}");
}

#[test]
fn while_the_policy_does_not_sample_hits_are_still_counted_at_a_sixteenth_of_its_rate() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(4096)), true, 2);
    host.sample(sampling(SamplingRate::Frequency(1600), 1));
    step(&mut host);
    host.sample(sampling(SamplingRate::Off, 1));
    world.lock().expect("lock").accesses.push(access(1, Cause::Sampled));
    let (batch, _) = step(&mut host);
    assert!(batch.samples.is_empty());
    assert_eq!(batch.counters.load_hits(), (0, 1));
    host.sample(sampling(SamplingRate::Frequency(800), 1));
    let rates: Vec<SamplingRate> = world.lock().expect("lock").requests.iter().map(|r| r.rate).collect();
    assert_eq!(rates, [1600, 100, 800].map(SamplingRate::Frequency));
}

#[test]
fn moves_of_shadow_tiers_need_room_and_reclaim_makes_it() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(2 * 4096)), true, 4);
    host.sample(sampling(SamplingRate::Period(1), 1));
    step(&mut host);
    world.lock().expect("lock").accesses.extend([access(0, Cause::Sampled), access(3, Cause::Sampled)]);
    let (hot, kept) = (step(&mut host).0.samples[0].page, step(&mut host).0.samples[0].page);
    let mut outcome = Outcome::default();
    let moves = vec![Move { page: kept, to: TierId::FAST }];
    host.carry_out(&Plan { moves: moves.clone(), ..Plan::default() }, &mut outcome);
    assert_eq!(outcome.moves, [MoveStatus::NoRoom]);
    outcome.clear();
    let reclaim = vec![Reclaim { from: TierId::FAST, pages: Pages(1) }];
    host.carry_out(&Plan { moves, reclaim, ..Plan::default() }, &mut outcome);
    assert_eq!((&outcome.reclaimed[..], &outcome.moves[..]), (&[Pages(1)][..], &[MoveStatus::Moved][..]));
    assert_eq!(host.tier_of(hot), Some(TierId::FAST), "what was accessed has a second chance");
    let summary = host.summary();
    assert_eq!((summary.traffic.promotions, summary.traffic.demotions), (1, 1));
    assert_eq!(summary.traffic.refused.no_room, 1);
    assert_eq!(summary.hot_set.fast_ranges.len(), 2);
}

#[test]
fn hint_faults_reach_the_policy_and_plans_arm_pages_by_address() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(2 * 4096)), true, 4);
    host.sample(sampling(SamplingRate::Off, 10));
    step(&mut host);
    let fault = access(2, Cause::Armed { since_us: 5 });
    world.lock().expect("lock").accesses.push(fault);
    let (batch, _) = step(&mut host);
    let [fault] = batch.faults[..] else { panic!("one fault") };
    assert_eq!(fault.latency, Nanos(5000));
    host.carry_out(&Plan { arm: vec![fault.page], ..Plan::default() }, &mut Outcome::default());
    assert_eq!(world.lock().expect("lock").armed, [BASE + 2 * 4096]);
}

#[test]
fn real_tiers_are_queried_and_the_kernels_answers_are_kept() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(2 * 4096)), false, 4);
    host.sample(sampling(SamplingRate::Period(1), 4));
    step(&mut host);
    let told = [0, 1, 2, 3].map(|page| access(page, Cause::Sampled));
    world.lock().expect("lock").accesses.extend(told);
    let pages: Vec<_> = step(&mut host).0.samples.iter().map(|sample| sample.page).collect();
    assert!(pages.iter().all(|&page| host.tier_of(page) == Some(TierId(1))));
    // Answers are taken from the end: the first page is busy, the second one moves.
    world.lock().expect("lock").answers = vec![MoveStatus::Moved, MoveStatus::Busy];
    let moves = pages.iter().map(|&page| Move { page, to: TierId::FAST }).collect();
    let mut outcome = Outcome::default();
    host.carry_out(&Plan { moves, ..Plan::default() }, &mut outcome);
    let (busy, moved, full) = (MoveStatus::Busy, MoveStatus::Moved, MoveStatus::NoRoom);
    assert_eq!(outcome.moves, [busy, moved, full, full], "two pages are the limit, whatever the node has");
    assert_eq!(host.tier_of(pages[1]), Some(TierId::FAST));
    assert_eq!(host.tier_of(pages[0]), Some(TierId(1)));
}

#[test]
fn demotions_of_a_plan_make_room_for_its_promotions() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(2 * 4096)), false, 6);
    world.lock().expect("lock").tiers = vec![0, 0, 1, 1, 1, 1];
    host.sample(sampling(SamplingRate::Period(1), 6));
    step(&mut host);
    let told = (0..6).map(|page| access(page, Cause::Sampled));
    world.lock().expect("lock").accesses.extend(told);
    let pages: Vec<_> = step(&mut host).0.samples.iter().map(|sample| sample.page).collect();
    let to = |page: usize, to| Move { page: pages[page], to: TierId(to) };
    let moves = vec![to(0, 1), to(1, 1), to(2, 0), to(3, 0), to(4, 0)];
    let mut outcome = Outcome::default();
    host.carry_out(&Plan { moves, ..Plan::default() }, &mut outcome);
    let (moved, full) = (MoveStatus::Moved, MoveStatus::NoRoom);
    assert_eq!(outcome.moves, [moved, moved, moved, moved, full]);
    assert_eq!(world.lock().expect("lock").tiers, [1, 1, 0, 0, 1, 1]);
}

#[test]
fn a_page_that_no_scan_has_seen_is_where_its_sample_was_served() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(100 * 4096)), false, 1);
    host.sample(sampling(SamplingRate::Period(1), 1));
    step(&mut host);
    // A page in a scanned chunk that was mapped after the scan.
    let new = Access { tier: Some(TierId(1)), ..access(5, Cause::Sampled) };
    world.lock().expect("lock").accesses.push(new);
    let page = step(&mut host).0.samples[0].page;
    assert_eq!(host.tier_of(page), Some(TierId(1)), "not where the fast tier has room");
}

#[test]
fn a_policy_that_falls_behind_leaves_new_accesses_to_the_source() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(1 << 20)), true, 4);
    host.sample(sampling(SamplingRate::Period(1), 3));
    step(&mut host);
    world.lock().expect("lock").accesses.extend((0..10).map(|_| access(1, Cause::Sampled)));
    assert_eq!(step(&mut host).0.samples.len(), 3);
    let drains = world.lock().expect("lock").drains;
    for left in [7, 4] {
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert_eq!(step(&mut host).0.samples.len(), 3, "{left} waited");
        assert_eq!(world.lock().expect("lock").drains, drains, "{left} waited");
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(step(&mut host).0.samples.len(), 1);
    assert!(world.lock().expect("lock").drains > drains);
}

#[test]
fn a_policy_uses_the_clock_of_a_source_that_has_one() {
    let (_, world) = host(FastLimit::Bytes(Bytes(1 << 20)), true, 4);
    world.lock().expect("lock").clock = Some(Nanos(5));
    let mut host = LiveHost::new(
        options(FastLimit::Bytes(Bytes(1 << 20)), true),
        vec![Box::new(Source(world.clone()))],
        Box::new(Spaces(world.clone())),
        Box::new(Tree(world.clone())),
    );
    host.sample(sampling(SamplingRate::Period(1), 3));
    let later = std::thread::spawn({
        let world = world.clone();
        move || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            let mut world = world.lock().expect("lock");
            world.accesses.push(Access { time: Nanos(7), ..access(1, Cause::Sampled) });
            world.clock = Some(Nanos(Nanos::SECOND.0));
        }
    });
    let started = std::time::Instant::now();
    let (batch, _) = step(&mut host);
    assert!(started.elapsed().as_millis() >= 200, "the tick is over by the source's clock only");
    assert_eq!((batch.samples[0].time, host.now()), (Nanos(7), Nanos::SECOND));
    later.join().expect("it ends");
}

#[test]
fn the_fast_tier_is_no_larger_than_what_the_kernel_can_give() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(100 * 4096)), false, 8);
    {
        let mut world = world.lock().expect("lock");
        world.tiers = vec![0, 0, 1, 1, 1, 1, 1, 1];
        world.room = Some(Bytes(3 * 4096));
    }
    host.sample(sampling(SamplingRate::Period(1), 1));
    step(&mut host);
    assert_eq!((host.capacity(TierId::FAST), host.free(TierId::FAST)), (Pages(5), Pages(3)));
    world.lock().expect("lock").room = Some(Bytes(1 << 30));
    while host.capacity(TierId::FAST) == Pages(5) {
        step(&mut host);
    }
    assert_eq!(host.capacity(TierId::FAST), Pages(100), "its limit");
}

/// In the lab, each refused page cost 17 ms of reclaim, and the policy asked for it in each step.
#[test]
fn regression_a_tier_that_the_kernel_calls_full_has_no_room_until_a_scan_asks_again() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(100 * 4096)), false, 8);
    world.lock().expect("lock").room = Some(Bytes(64 * 4096));
    host.sample(sampling(SamplingRate::Period(1), 1));
    step(&mut host);
    world.lock().expect("lock").answers = vec![MoveStatus::NoRoom, MoveStatus::Moved];
    let moves = [0, 1].map(|page| Move { page: PageId(page), to: TierId::FAST }).to_vec();
    let mut outcome = Outcome::default();
    host.carry_out(&Plan { moves, ..Plan::default() }, &mut outcome);
    assert_eq!(outcome.moves, [MoveStatus::Moved, MoveStatus::NoRoom]);
    assert_eq!(host.free(TierId::FAST), Pages(0));
    let mut seen = vec![];
    while seen.len() < 4 {
        step(&mut host);
        seen.extend(
            Some(host.free(TierId::FAST).0).filter(|free| ![Some(&0), seen.last()].contains(&Some(free))),
        );
    }
    assert_eq!(seen, [1, 33, 49, 57], "half of what the kernel denied is asked for again at each scan");
}

/// Two huge pages and 512 base pages behind them, all slow, and room for 1,100 pages on the fast tier.
#[test]
fn huge_pages_move_whole_until_they_are_split_and_again_when_they_are_made() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(1100 * 4096)), false, 3 * 512);
    world.lock().expect("lock").huge = vec![0, 1];
    host.sample(sampling(SamplingRate::Period(1), 1));
    step(&mut host);
    let page = |number: u32| PageId(number);
    let units = |host: &LiveHost| [0, 700, 1030].map(|number| host.unit(page(number)));
    assert_eq!(units(&host), [0..512, 512..1024, 1030..1031]);
    let up =
        |pages: &[u32]| pages.iter().map(|&number| Move { page: page(number), to: TierId::FAST }).collect();
    let mut outcome = Outcome::default();
    let mut carry_out = |host: &mut LiveHost, plan: Plan| {
        outcome.clear();
        host.carry_out(&plan, &mut outcome);
        outcome.moves.clone()
    };
    let moved = carry_out(&mut host, Plan { moves: up(&[7, 9, 1030]), ..Plan::default() });
    assert_eq!(moved, [MoveStatus::Moved, MoveStatus::AlreadyThere, MoveStatus::Moved]);
    assert_eq!(std::mem::take(&mut world.lock().expect("lock").asked), [0, 1030], "a huge page by its first");
    assert_eq!((host.summary().traffic.promotions, host.free(TierId::FAST)), (513, Pages(1100 - 513)));
    assert_eq!(host.tier_of(page(500)), Some(TierId::FAST));
    // 75 pages more are free than a second huge page needs.
    let moved = carry_out(&mut host, Plan { moves: up(&[1031; 1]), ..Plan::default() });
    assert_eq!(moved, [MoveStatus::Moved]);
    let fill: Vec<u32> = (1032..1032 + 100).collect();
    carry_out(&mut host, Plan { moves: up(&fill), ..Plan::default() });
    let moved = carry_out(&mut host, Plan { moves: up(&[700]), ..Plan::default() });
    assert_eq!((moved, host.free(TierId::FAST)), (vec![MoveStatus::NoRoom], Pages(0)), "486 are too few");
    let moved = carry_out(&mut host, Plan { split: vec![page(700)], moves: up(&[700]), ..Plan::default() });
    assert_eq!((moved, host.unit(page(700))), (vec![MoveStatus::Moved], 700..701));
    assert_eq!(host.tier_of(page(701)), Some(TierId(1)));
    carry_out(&mut host, Plan { split: vec![page(701)], collapse: vec![page(1100)], ..Plan::default() });
    assert_eq!((host.unit(page(1100)), host.unit(page(701))), (1024..1536, 701..702));
    let traffic = host.summary().traffic;
    assert_eq!((traffic.splits, traffic.collapses), (1, 1), "what is no huge page is not split");
}

/// In the lab the engine counted up to a fifth fewer pages than the kernel.
#[test]
fn regression_pages_are_counted_where_the_kernel_made_or_split_a_huge_page_since_the_last_scan() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(1100 * 4096)), false, 2 * 512);
    host.sample(sampling(SamplingRate::Period(1), 1));
    step(&mut host);
    let mut outcome = Outcome::default();
    let mut up = |host: &mut LiveHost, pages: &[u32]| {
        let moves = pages.iter().map(|&page| Move { page: PageId(page), to: TierId::FAST }).collect();
        outcome.clear();
        host.carry_out(&Plan { moves, ..Plan::default() }, &mut outcome);
        (outcome.moves.clone(), host.summary().traffic.promotions)
    };
    world.lock().expect("lock").huge = vec![0, 1];
    assert_eq!(up(&mut host, &[7, 9]), (vec![MoveStatus::Moved, MoveStatus::AlreadyThere], 512));
    {
        let mut world = world.lock().expect("lock");
        (world.part, world.answers) = (Some(100), vec![MoveStatus::NoRoom]);
    }
    assert_eq!(up(&mut host, &[700]), (vec![MoveStatus::NoRoom], 612));
    let places = [611, 612].map(|page| host.tier_of(PageId(page)));
    assert_eq!((places, host.unit(PageId(700))), ([Some(TierId(0)), Some(TierId(1))], 700..701));
    {
        let mut world = world.lock().expect("lock");
        (world.huge, world.collapsing) = (vec![], true);
    }
    let down = Plan { moves: vec![Move { page: PageId(3), to: TierId(1) }], ..Plan::default() };
    host.carry_out(&down, &mut outcome);
    assert_eq!(host.summary().traffic.demotions, 512, "split after the scan, and made while it was moved");
}

/// Of two huge pages one is in use, by one of its pages, and the kernel moves the other to the fast tier too.
#[test]
fn a_huge_page_beyond_the_limit_goes_whole_unless_a_part_is_in_use() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(512 * 4096)), false, 2 * 512);
    {
        let mut world = world.lock().expect("lock");
        (world.huge, world.tiers) = (vec![0, 1], [vec![0; 512], vec![1; 512]].concat());
    }
    host.sample(sampling(SamplingRate::Period(1), 1));
    step(&mut host);
    world.lock().expect("lock").accesses = vec![access(100, Cause::Sampled)];
    step(&mut host);
    world.lock().expect("lock").tiers = vec![0; 2 * 512];
    while host.summary().traffic.demotions == 0 {
        step(&mut host);
    }
    assert_eq!(world.lock().expect("lock").tiers, [vec![0; 512], vec![1; 512]].concat());
    assert_eq!(host.summary().traffic.demotions, 512);
}

#[test]
fn a_share_that_falls_leaves_the_huge_page_with_the_hottest_part() {
    let share = Share::new(Bytes(1024 * 4096));
    let events = vec![ProcessEvent::Started(PROCESS)];
    let (tiers, huge) = (vec![0; 1024], vec![0, 1]);
    let world = Arc::new(Mutex::new(World { mapped: 1024, tiers, huge, events, ..World::default() }));
    let mut host = LiveHost::new(
        Options { share: Some(share.clone()), ..options(FastLimit::Bytes(share.fast()), false) },
        vec![Box::new(Source(world.clone()))],
        Box::new(Spaces(world.clone())),
        Box::new(Tree(world.clone())),
    );
    host.sample(sampling(SamplingRate::Period(1), 1));
    step(&mut host);
    world.lock().expect("lock").accesses = (0..40).map(|_| access(100, Cause::Sampled)).collect();
    step(&mut host);
    share.set_fast(Bytes(512 * 4096));
    while host.summary().traffic.demotions == 0 {
        step(&mut host);
    }
    assert_eq!(world.lock().expect("lock").tiers, [vec![0; 512], vec![1; 512]].concat());
}

#[test]
fn pages_in_swap_are_told_apart_and_not_asked_for_again() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(100 * 4096)), false, 4);
    host.sample(sampling(SamplingRate::Period(1), 1));
    step(&mut host);
    // Page 0 has left since the scan, page 1 is unmapped.
    world.lock().expect("lock").swapped = vec![0];
    world.lock().expect("lock").answers = vec![MoveStatus::Gone];
    let moves = [0, 1].map(|page| Move { page: PageId(page), to: TierId::FAST }).to_vec();
    let plan = Plan { moves, ..Plan::default() };
    let mut outcome = Outcome::default();
    host.carry_out(&plan, &mut outcome);
    assert_eq!(outcome.moves, [MoveStatus::Gone; 2]);
    let refused = host.summary().traffic.refused;
    assert_eq!((refused.gone, refused.swapped), (1, 1));
    assert_eq!((host.tier_of(PageId(0)), host.tier_of(PageId(1))), (None, Some(TierId(1))));
    host.carry_out(&plan, &mut outcome);
    assert_eq!(world.lock().expect("lock").asked, [0, 1, 1]);
    // A scan sees what is in swap at once.
    world.lock().expect("lock").swapped = vec![0, 2];
    while host.tier_of(PageId(2)).is_some() {
        step(&mut host);
    }
    let summary = host.summary();
    assert_eq!((summary.swapped_bytes, summary.zswapped_bytes), (Bytes(2 * 4096), Some(Bytes(4096))));
    world.lock().expect("lock").swapped = vec![];
    while host.tier_of(PageId(0)).is_none() {
        step(&mut host);
    }
    assert_eq!((host.summary().swapped_bytes, host.summary().zswapped_bytes), (Bytes(0), None));
}

#[test]
fn pages_that_the_kernel_places_above_the_limit_are_demoted() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(4096)), false, 4);
    world.lock().expect("lock").tiers = vec![0; 4];
    host.sample(sampling(SamplingRate::Period(1), 1));
    step(&mut host);
    assert_eq!(world.lock().expect("lock").tiers.iter().filter(|&&tier| tier == 0).count(), 1);
    assert_eq!(host.summary().traffic.demotions, 3);
}

#[test]
fn regression_memory_that_was_freed_and_got_again_is_not_above_the_limit() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(2 * 4096)), false, 2);
    world.lock().expect("lock").tiers = vec![0; 4];
    host.sample(sampling(SamplingRate::Period(1), 1));
    step(&mut host);
    (world.lock().expect("lock").freed, world.lock().expect("lock").mapped) = (2, 4);
    for _ in 0..5 {
        step(&mut host);
    }
    assert_eq!((host.footprint(), host.summary().traffic.demotions), (Pages(2), 0));
    assert_eq!(world.lock().expect("lock").asked, [0; 0]);
}

#[test]
fn each_tier_keeps_to_its_part_of_the_memory() {
    let events = vec![ProcessEvent::Started(PROCESS)];
    let world = Arc::new(Mutex::new(World { mapped: 80, tiers: vec![0; 80], events, ..World::default() }));
    let two = options(FastLimit::Parts(vec![1.0, 2.0, 5.0]), false);
    let tiers = vec![two.tiers[0], two.tiers[1], two.tiers[1]];
    let mut host = LiveHost::new(
        Options { tiers, ..two },
        vec![Box::new(Source(world.clone()))],
        Box::new(Spaces(world.clone())),
        Box::new(Tree(world.clone())),
    );
    host.sample(sampling(SamplingRate::Period(1), 1));
    step(&mut host);
    let on = |tier| world.lock().expect("lock").tiers.iter().filter(|&&one| one == tier).count();
    let begun = std::time::Instant::now();
    while [on(0), on(1), on(2)] != [10, 20, 50] {
        assert!(begun.elapsed().as_secs() < 20, "{:?}", [on(0), on(1), on(2)]);
        step(&mut host);
    }
    assert_eq!([TierId(0), TierId(1)].map(|tier| host.capacity(tier)), [Pages(10), Pages(20)]);
}

#[test]
fn a_share_that_falls_leaves_the_hottest_pages_fast() {
    let share = Share::new(Bytes(8 * 4096));
    let events = vec![ProcessEvent::Started(PROCESS)];
    let world = Arc::new(Mutex::new(World { mapped: 8, tiers: vec![0; 8], events, ..World::default() }));
    let mut host = LiveHost::new(
        Options { share: Some(share.clone()), ..options(FastLimit::Bytes(share.fast()), false) },
        vec![Box::new(Source(world.clone()))],
        Box::new(Spaces(world.clone())),
        Box::new(Tree(world.clone())),
    );
    host.sample(sampling(SamplingRate::Period(1), 1));
    step(&mut host);
    // All are accessed, and two of them often.
    let often = [2, 5].into_iter().cycle().take(40);
    world.lock().expect("lock").accesses =
        (0..8).chain(often).map(|page| access(page, Cause::Sampled)).collect();
    step(&mut host);
    share.set_fast(Bytes(2 * 4096));
    while world.lock().expect("lock").tiers.iter().filter(|&&tier| tier == 0).count() > 2 {
        step(&mut host);
    }
    assert_eq!(world.lock().expect("lock").tiers, [1, 1, 0, 1, 1, 0, 1, 1]);
}

#[test]
fn unmapped_memory_is_forgotten_and_the_end_is_reported() {
    let (mut host, world) = host(FastLimit::Share(0.25), true, 1000);
    assert!(host.settle(std::time::Duration::from_millis(50)));
    host.begin_policy(isotherm_core::Allocation::FastFirst);
    host.sample(sampling(SamplingRate::Period(1), 1));
    step(&mut host);
    assert_eq!(host.footprint(), Pages(1000));
    let fast =
        (0..host.pages() as u32).filter(|&page| host.tier_of(PageId(page)) == Some(TierId::FAST)).count();
    assert_eq!(fast, 250, "new pages fill the share of the fast tier that they make");
    world.lock().expect("lock").mapped = 10;
    (0..3).for_each(|_| drop(step(&mut host)));
    assert_eq!(host.footprint(), Pages(10));
    world.lock().expect("lock").accesses.push(access(500, Cause::Sampled));
    world.lock().expect("lock").ended = true;
    assert!(!step(&mut host).1);
    assert_eq!(host.pause(), Pause::Ended);
    assert_eq!(host.summary().footprint_bytes, Bytes(1000 * 4096), "the most that was mapped");
}

#[test]
fn a_process_that_executes_another_program_is_still_one_and_its_old_memory_is_gone() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(1 << 20)), true, 1000);
    host.sample(sampling(SamplingRate::Period(1), 1));
    step(&mut host);
    {
        let mut world = world.lock().expect("lock");
        world.events.push(ProcessEvent::Executed(PROCESS));
        world.mapped = 7;
    }
    step(&mut host);
    assert_eq!((host.footprint(), host.summary().processes), (Pages(7), 1));
    assert_eq!(world.lock().expect("lock").forgotten, [PROCESS]);
}

#[test]
fn the_memory_of_an_ended_process_is_forgotten_even_if_its_number_is_reused() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(1 << 20)), true, 1000);
    host.sample(sampling(SamplingRate::Period(1), 1));
    let other = Pid(8);
    world.lock().expect("lock").events.push(ProcessEvent::Started(other));
    step(&mut host);
    assert_eq!(host.footprint(), Pages(2000));
    world.lock().expect("lock").events.push(ProcessEvent::Ended(other));
    // The memory stays known until the next scan.
    (0..30).take_while(|_| step(&mut host).1 && host.footprint() != Pages(1000)).for_each(drop);
    assert_eq!(host.footprint(), Pages(1000));
    {
        let mut world = world.lock().expect("lock");
        world.events.extend([ProcessEvent::Ended(PROCESS), ProcessEvent::Started(PROCESS)]);
        world.mapped = 7;
    }
    step(&mut host);
    assert_eq!(host.footprint(), Pages(7));
    assert_eq!(world.lock().expect("lock").forgotten, [other, PROCESS]);
}

#[test]
fn a_doubled_footprint_resizes_the_policy() {
    let (mut host, world) = host(FastLimit::Share(0.5), true, 100);
    assert!(host.settle(std::time::Duration::from_millis(50)));
    host.begin_policy(isotherm_core::Allocation::FastFirst);
    host.sample(sampling(SamplingRate::Period(1), 1));
    assert!(step(&mut host).1);
    world.lock().expect("lock").mapped = 201;
    assert!(!step(&mut host).1);
    assert_eq!((host.pause(), host.fast()), (Pause::Outgrown, Pages(100)));
}

#[test]
fn a_policy_sized_while_memory_grew_is_resized_once_it_settles() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(1 << 20)), true, 1000);
    host.resize_policy(true);
    host.sample(sampling(SamplingRate::Period(1), 1));
    // One scan, and one access that ends the step.
    let mut goes_on = |pages: u64| {
        world.lock().expect("lock").mapped = pages;
        world.lock().expect("lock").accesses.push(access(0, Cause::Sampled));
        std::thread::sleep(std::time::Duration::from_millis(60));
        let goes_on = step(&mut host).1;
        if !goes_on {
            assert_eq!(host.pause(), Pause::Outgrown);
            host.begin_policy(isotherm_core::Allocation::FastFirst);
        }
        goes_on
    };
    assert!(!goes_on(1000), "nothing was mapped before");
    assert!(goes_on(1500), "it grows, and has not doubled");
    assert!(!goes_on(1510), "it has settled, more than an eighth above");
    assert_eq!(
        [2000, 2000, 2900, 3100].map(goes_on),
        [true, true, true, false],
        "only doubling counts from now on"
    );
}

/// Runs a policy over 10,000 pages, of which 1,000 get nine of ten accesses for 40 rounds. Then memory grows
/// to 25,000 pages and nothing is sampled.
fn run_and_grow(policy: &str) -> (RunStats, Vec<(&'static str, f64)>) {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(1100 * 4096)), true, 10_000);
    world.lock().expect("lock").script = Some(|world| {
        let round = u64::from(world.drains);
        if round <= 40 {
            let page = |n: u64| if n.is_multiple_of(10) { n * 7 % 10_000 } else { 7000 + n * 3 % 1000 };
            world.accesses.extend((0..20_000).map(|n| access(page(n + round), Cause::Sampled)));
        } else {
            world.mapped = 25_000;
        }
        world.ended = round > 100;
    });
    assert!(host.settle(Duration::from_millis(50)));
    let entry = isotherm_policies::find(policy).expect("a policy");
    let ran = PolicyRun::new(entry).run(&mut host, None).expect("the source offers what is needed");
    let mut moments = host.summary().timeline.into_iter().map(|moment| moment.gauges);
    (ran, moments.rfind(|gauges| !gauges.is_empty()).expect("a moment"))
}

/// It began with empty counts.
#[test]
fn a_policy_rebuilt_for_more_memory_knows_what_is_hot() {
    let (ran, gauges) = run_and_grow("hybridtier");
    let gauge = |name| gauges.iter().find(|gauge| gauge.0 == name).expect("its gauge").1;
    assert!(ran.resized > 0);
    assert!(gauge("hot-pages") >= 900.0, "{gauges:?}");
    assert_eq!(gauge("monitoring"), 0.0, "what it is shown are no promotions that stopped");
}

/// It forgot what it had spent and saved.
#[test]
fn a_policy_that_grows_is_never_rebuilt() {
    assert_eq!(run_and_grow("isotherm").0.resized, 0);
}

#[test]
fn hybridtier_finds_the_hot_pages_of_shadow_tiers() {
    let (mut host, world) = host(FastLimit::Bytes(Bytes(1100 * 4096)), true, 10_000);
    let entry = isotherm_policies::find("hybridtier").expect("a policy");
    let isotherm_policies::Kind::Policy(build) = entry.kind else { panic!("no bound") };
    let mut parameters = entry.parameters();
    // The scale of a footprint of 40 MB instead of 267 GB, and of seconds instead of hours.
    parameters.scale(isotherm_core::parameters::Scale { footprint: 6500.0, time: 1000.0 });
    let setup = isotherm_policies::Setup {
        pages: 10_000,
        fast: Pages(1100),
        page_size: PageSize::Base,
        tiers: 2,
        seed: 1,
    };
    let mut policy = build(&parameters, &setup).expect("a setup");
    let mut rounds = 0;
    let feeder = world.clone();
    isotherm_core::run(&mut host, policy.as_mut(), |_, _| {
        let mut world = feeder.lock().expect("lock");
        if !world.accesses.is_empty() {
            return;
        }
        rounds += 1;
        // Pages 7000 to 7999 take nine of ten accesses.
        let page = |n: u64| {
            if n.is_multiple_of(10) { n / 10 * 7 % 10_000 } else { 7000 + (n / 10 * 9 + n % 10) % 1000 }
        };
        world.accesses.extend((0..20_000).map(|n| access(page(n + rounds * 20_000), Cause::Sampled)));
        world.ended = rounds >= 60;
    })
    .expect("the source offers what is needed");
    let hot: u64 = host
        .summary()
        .hot_set
        .fast_ranges
        .iter()
        .map(|range| {
            let (start, end) = ((range.start - BASE) / 4096, (range.start + range.bytes.0 - BASE) / 4096);
            end.min(8000).saturating_sub(start.max(7000))
        })
        .sum();
    assert!(hot >= 950, "{hot} of 1000 hot pages are fast");
}

#[test]
fn devices_receive_a_plans_commands_and_their_hot_pages_get_numbers() {
    let (mut host, world) = host(FastLimit::Share(0.5), true, 100);
    assert!(host.settle(std::time::Duration::from_millis(50)));
    host.begin_policy(isotherm_core::Allocation::FastFirst);
    host.sample(sampling(SamplingRate::Off, 1));
    let request = DeviceRequest { threshold: Some(7), clear: true, report: false };
    host.carry_out(&Plan { device: Some(request), ..Plan::default() }, &mut Outcome::default());
    assert_eq!(world.lock().expect("lock").commands, [request]);
    world.lock().expect("lock").hot = vec![BASE + 3 * 4096, BASE + 99 * 4096, 0x1000];
    let (batch, running) = step(&mut host);
    assert!(running);
    let first = batch.devices[0].hot[0].0;
    let hot: Vec<u32> = batch.devices[0].hot.iter().map(|page| page.0 - first).collect();
    assert_eq!(
        (hot, batch.devices[0].tier),
        (vec![0, 96], TierId(1)),
        "what is not the program's is left out"
    );
}
