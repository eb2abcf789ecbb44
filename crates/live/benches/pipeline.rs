//! Measures the whole path of a sample on one thread: from the memory of perf rings through decoding, page
//! numbers and residency to a policy and its trackers, in the engine's loop over the live host.
//!
//! Each drain decodes rings of 128 KiB with 100,000 samples together, as at ten million samples a second. The
//! samples are loads with latency and data source in frequency mode (as Intel PEBS writes them), Zipf 0.9
//! over 4 GiB of scattered 4 KiB pages; tiers are shadows, 1:3. The time is the thread's processor time: a
//! policy that waits costs nothing. `decode` ends behind the decoder, `host` before the policy.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use criterion::{Criterion, Throughput};
use isotherm_core::parameters::Scale;
use isotherm_core::{
    Allocation, Bytes, FastLimit, Host, MoveStatus, Nanos, PageSize, Pages, Policy, SampleBatch, Sampling,
    SamplingRate, SamplingScope, Signal, Signals, TierId, View,
};
use isotherm_linux::LinuxError;
use isotherm_linux::clock;
use isotherm_linux::perf::data_source::TierMap;
use isotherm_linux::perf::decode::{Decoded, Decoder};
use isotherm_linux::perf::events::{EventSpec, Format};
use isotherm_linux::perf::record::{Content, SAMPLE, for_each};
use isotherm_linux::process::Pid;
use isotherm_linux::source::{Access, AccessSource, SourceStatistics};
use isotherm_live::host::{AddressSpaces, LiveHost, Options, PresentRun, ProcessEvent, Processes, Tier};
use isotherm_policies::{Kind, Setup};

/// The allocator of `isotherm`.
#[global_allocator]
static ALLOCATOR: isotherm_linux::HugePages = isotherm_linux::HugePages;

const PROCESS: Pid = Pid(4_242);
const BASE: u64 = 0x7f00_0000_0000;
/// Pages of 4 KiB, a power of two.
const PAGES: u64 = 1 << 20;
/// Bytes of a ring.
const RING: usize = 1 << 17;
/// Distinct samples, which repeat after the last ring.
const DISTINCT: u64 = 1 << 20;
/// Samples per drain, one every ten milliseconds. With fewer samples the thread would sleep most of the time,
/// and other programs would empty its caches.
const DRAIN: u64 = 100_000;
/// Samples of one repetition.
const SAMPLES: u64 = 2_000_000;

/// Policies that take samples.
const POLICIES: [&str; 10] =
    ["hybridtier", "freqtier", "memtis", "memtis-qc", "hemem", "pmu-sampling", "lru", "arc", "twoq", "jenga"];

/// Returns one record: header, task, time, address, period, latency, data source.
fn record(number: u64, page: u64) -> Vec<u8> {
    let task = u64::from(PROCESS.0) | 4_243 << 32;
    let address = BASE + page * 4096 + number % 64 * 64;
    // A load that hit local DRAM after 400 cycles.
    let words = [task, 10_000 * number, address, 199, 400, 2 | 2 << 5 | 0xd << 33];
    let header = u64::from(SAMPLE) | 2 << 32 | (8 + 8 * words.len() as u64) << 48;
    std::iter::once(header).chain(words).flat_map(u64::to_le_bytes).collect()
}

/// Returns rings full of samples.
fn rings() -> Vec<Vec<u8>> {
    let mut rings = vec![Vec::with_capacity(RING)];
    let mut random = 1u64;
    let mut all = 0.0;
    // The page of rank r is accessed in proportion to r^-0.9.
    let popularity: Vec<f64> = (1..=PAGES)
        .map(|rank| {
            all += (rank as f64).powf(-0.9);
            all
        })
        .collect();
    for number in 0..DISTINCT {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = (random >> 11) as f64 / (1u64 << 53) as f64;
        let rank = popularity.partition_point(|&below| below < uniform * all) as u64;
        let record = record(number, rank.wrapping_mul(0x9e37_79b9) % PAGES);
        if rings[rings.len() - 1].len() + record.len() > RING {
            rings.push(Vec::with_capacity(RING));
        }
        rings.last_mut().expect("one is there").extend(record);
    }
    rings
}

/// State that source and processes share.
#[derive(Default)]
struct World {
    given: AtomicU64,
    /// Number of samples after which the program ends.
    end: AtomicU64,
    started: AtomicBool,
}

struct Rings {
    world: Arc<World>,
    rings: Arc<Vec<Vec<u8>>>,
    decoder: Decoder,
    next: usize,
    scratch: Vec<u8>,
}

impl Rings {
    fn new(world: Arc<World>, rings: Arc<Vec<Vec<u8>>>) -> Self {
        let spec =
            EventSpec { format: Format::DataSource, tier: Some(TierId(1)), ..EventSpec::page_faults() };
        let decoder = Decoder::new(&spec, None, TierMap::default(), 2_400).expect("known fields");
        Self { world, rings, decoder, next: 0, scratch: Vec::new() }
    }

    fn read(&mut self, accesses: &mut Vec<Access>) {
        let memory = &self.rings[self.next];
        self.next = (self.next + 1) % self.rings.len();
        // A ring wraps anywhere: joins the parts of one record.
        let (first, second) = memory.split_at(memory.len() / 3 / 8 * 8 + 8);
        for_each(first, second, &mut self.scratch, |record| {
            if let Content::Sample(body) = record.content()
                && let Decoded::Access(access) = self.decoder.decode(body)
            {
                accesses.push(access);
            }
        });
    }
}

impl AccessSource for Rings {
    fn name(&self) -> &'static str {
        "rings"
    }
    fn offers(&self) -> Signals {
        [Signal::LoadSamples, Signal::StoreSamples, Signal::SampleLatency]
            .into_iter()
            .fold(Signals::NONE, Signals::with)
    }
    fn follow(&mut self, _: Pid) -> Result<(), LinuxError> {
        Ok(())
    }
    fn forget(&mut self, _: Pid) {}
    fn request(&mut self, _: &Sampling) -> Result<(), LinuxError> {
        Ok(())
    }
    fn drain(&mut self, accesses: &mut Vec<Access>) -> Result<(), LinuxError> {
        // A full ring waits for the engine.
        while (accesses.len() as u64) < DRAIN {
            let before = accesses.len();
            self.read(accesses);
            self.world.given.fetch_add((accesses.len() - before) as u64, Relaxed);
        }
        Ok(())
    }
    fn statistics(&self) -> SourceStatistics {
        SourceStatistics::default()
    }
}

/// An address space with one permanent mapping.
struct Spaces;

impl AddressSpaces for Spaces {
    fn present(&mut self, _: Pid, found: &mut Vec<PresentRun>) -> Result<(), LinuxError> {
        found.push(PresentRun { range: BASE..BASE + PAGES * 4096, swapped: false, huge: false });
        Ok(())
    }
    fn tiers(&mut self, _: Pid, _: &[u64], _: &mut Vec<Option<TierId>>) -> Result<(), LinuxError> {
        unreachable!("tiers are shadows")
    }
    fn migrate(&mut self, _: Pid, _: &[(u64, TierId)], _: &mut Vec<MoveStatus>) {
        unreachable!("tiers are shadows")
    }
    fn reclaims(&self) -> bool {
        false
    }
    fn reclaim(&mut self, _: TierId, _: u64) -> u64 {
        0
    }
}

struct Tree(Arc<World>);

impl Processes for Tree {
    fn update(&mut self, events: &mut Vec<ProcessEvent>) -> bool {
        if !self.0.started.swap(true, Relaxed) {
            events.push(ProcessEvent::Started(PROCESS));
        }
        self.0.given.load(Relaxed) < self.0.end.load(Relaxed)
    }
}

fn host(world: &Arc<World>, rings: &Arc<Vec<Vec<u8>>>) -> LiveHost {
    let options = Options {
        page_size: PageSize::Base,
        tiers: [100, 300]
            .map(|latency| Tier { size: Bytes(1 << 40), latency: Nanos(latency), bandwidth: 0 })
            .to_vec(),
        fast: FastLimit::Share(0.25),
        shadow: true,
        share: None,
        nodes: Vec::new(),
        inside: None,
        scan_interval: Nanos(100 * Nanos::MILLISECOND.0),
        scan_budget: 0.01,
        overhead: 0.02,
        model_counters: false,
    };
    world.end.store(u64::MAX, Relaxed);
    let source = Rings::new(world.clone(), rings.clone());
    let mut host =
        LiveHost::new(options, vec![Box::new(source)], Box::new(Spaces), Box::new(Tree(world.clone())));
    assert!(host.settle(Duration::from_millis(10)), "the program runs");
    assert_eq!(host.footprint(), Pages(PAGES));
    // Otherwise the memory would outgrow the missing policy.
    host.begin_policy(Allocation::FastFirst);
    host
}

fn policy(name: &str, host: &LiveHost) -> Box<dyn Policy> {
    let entry = isotherm_policies::find(name).expect("registered");
    let Kind::Policy(build) = entry.kind else { panic!("{name} is a bound") };
    let setup =
        Setup { pages: host.pages(), fast: host.fast(), page_size: PageSize::Base, tiers: 2, seed: 1 };
    let mut parameters = entry.parameters();
    parameters.scale(Scale::NONE);
    build(&parameters, &setup).expect("built")
}

/// Returns the processor time of `work` per sample, times the samples of `repetitions`.
fn timed(repetitions: u64, work: impl FnOnce() -> u64) -> Duration {
    let start = clock::thread_cpu();
    let samples = work();
    let cost = clock::thread_cpu() - start;
    Duration::from_nanos((cost.0 as f64 * (repetitions * SAMPLES) as f64 / samples.max(1) as f64) as u64)
}

/// Decodes samples without numbering them.
fn decode(rings: &Arc<Vec<Vec<u8>>>, samples: u64) -> u64 {
    let mut source = Rings::new(Arc::default(), rings.clone());
    let (mut accesses, mut given) = (Vec::new(), 0);
    while given < samples {
        accesses.clear();
        source.read(&mut accesses);
        given += black_box(&accesses).len() as u64;
    }
    given
}

/// Makes the host number samples without a policy.
fn number(host: &mut LiveHost, samples: u64) -> u64 {
    let mut batch = SampleBatch::default();
    let mut given = 0;
    while given < samples {
        assert!(host.advance(&mut batch), "the program runs");
        given += black_box(&batch).samples.len() as u64;
    }
    given
}

fn pipeline(criterion: &mut Criterion) {
    let rings = Arc::new(rings());
    let mut group = criterion.benchmark_group("pipeline");
    group.throughput(Throughput::Elements(SAMPLES)).sample_size(10);
    group.bench_function("decode", |bencher| {
        bencher.iter_custom(|times| timed(times, || decode(&rings, times * SAMPLES)));
    });
    group.bench_function("host", |bencher| {
        let mut host = host(&Arc::default(), &rings);
        let tick = Nanos(100 * Nanos::MILLISECOND.0);
        let (rate, scope) = (SamplingRate::Frequency(100_000), SamplingScope::AllTiers);
        host.sample(Sampling::loads(rate, scope, 100_000, tick));
        bencher.iter_custom(|times| timed(times, || number(&mut host, times * SAMPLES)));
    });
    for name in POLICIES {
        group.bench_function(name, |bencher| {
            let world = Arc::new(World::default());
            let mut host = host(&world, &rings);
            let mut policy = policy(name, &host);
            host.begin_policy(policy.allocation());
            bencher.iter_custom(|times| {
                world.end.store(world.given.load(Relaxed) + times * SAMPLES, Relaxed);
                timed(times, || {
                    let ran = isotherm_core::run(&mut host, policy.as_mut(), |_, _| {});
                    assert_eq!(host.pause(), isotherm_live::host::Pause::Ended);
                    ran.expect("the host offers what the policy needs").samples
                })
            });
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    pipeline(&mut criterion);
    criterion.final_summary();
}
