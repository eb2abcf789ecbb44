use super::super::data_source::Memory;
use super::super::pmu::tests::{CORE, tree};
use super::super::sys::{kind, software};
use super::*;

fn tiers() -> TierMap {
    TierMap::default().with(Memory::LocalDram, TierId(0)).with(Memory::RemoteDram, TierId(1))
}

/// Formats of Skylake's agents: `skx_uncore_cha_formats_attr` in `arch/x86/events/intel/uncore_snbep.c`.
const SKYLAKE_AGENT: &[(&str, &str)] = &[
    ("uncore_cha_0/type", "30"),
    ("uncore_cha_0/cpumask", "0,28"),
    ("uncore_cha_0/format/event", "config:0-7"),
    ("uncore_cha_0/format/umask", "config:8-15"),
    ("uncore_cha_0/format/thresh", "config:24-31"),
    ("uncore_cha_0/format/filter_rem", "config1:32"),
    ("uncore_cha_0/format/filter_loc", "config1:33"),
    ("uncore_cha_0/format/filter_nm", "config1:36"),
    ("uncore_cha_0/format/filter_not_nm", "config1:37"),
    ("uncore_cha_0/format/filter_opc0", "config1:41-50"),
];

/// Formats of Sapphire Rapids' agents: `spr_uncore_cha` there, whose unit mask goes on above bit 31.
const SAPPHIRE_AGENT: &[(&str, &str)] = &[
    ("uncore_cha_0/type", "80"),
    ("uncore_cha_0/cpumask", "0"),
    ("uncore_cha_0/format/event", "config:0-7"),
    ("uncore_cha_0/format/umask", "config:8-15,32-55"),
    ("uncore_cha_0/format/thresh", "config:24-31"),
    ("uncore_cha_1/type", "81"),
    ("uncore_cha_1/cpumask", "0"),
    ("uncore_cha_1/format/event", "config:0-7"),
    ("uncore_cha_1/format/umask", "config:8-15,32-55"),
    ("uncore_cha_1/format/thresh", "config:24-31"),
];

fn events(model: Model, agent: &[(&str, &str)]) -> CounterEvents {
    let root = tree(&[CORE, agent].concat());
    CounterEvents::of(root.path(), model, tiers()).expect("well-formed")
}

fn configs(events: &[CountSpec]) -> Vec<(u64, u64)> {
    events.iter().map(|event| (event.encoding.config[0], event.encoding.config[1])).collect()
}

/// The raw numbers are those that PACT's artifact passes to the kernel.
#[test]
fn skylake_counts_what_pact_counts_there() {
    let events = events(Model::SkylakeSp, SKYLAKE_AGENT);
    assert_eq!(configs(&events.threads[0]), [(0x1d3, 0), (0x2d3, 0), (0x0600_06a3, 0)]);
    assert_eq!(events.sockets.iter().map(|group| group.cpu).collect::<Vec<_>>(), [0, 28, 0, 28]);
    let (local, remote) = (0x4_0432_0000_0000, 0x4_0431_0000_0000);
    assert_eq!(configs(&events.sockets[0].events), [(0x2136, local), (0x0100_211f, local), (0, 0)]);
    assert_eq!(configs(&events.sockets[2].events), [(0x2136, remote), (0x0100_211f, remote), (0, 0)]);
}

#[test]
fn sapphire_and_emerald_rapids_count_what_pact_counts_there() {
    for model in [Model::SapphireRapids, Model::EmeraldRapids, Model::GraniteRapids] {
        let events = events(model, SAPPHIRE_AGENT);
        assert_eq!(configs(&events.threads[0])[2], (0x0900_0947, 0));
        assert_eq!(events.sockets.len(), 4);
        let local = [(0x00c8_16fe_0000_0136, 0), (0x00c8_16fe_0100_011f, 0), (1, 0)];
        let remote = [(0x00c8_177e_0000_0136, 0), (0x00c8_177e_0100_011f, 0), (1, 0)];
        assert_eq!(configs(&events.sockets[0].events), local);
        assert_eq!(configs(&events.sockets[1].events), remote);
        assert_eq!(events.sockets[2].events[0].encoding.kind, 81);
    }
}

#[test]
fn a_processor_that_is_not_in_the_table_has_no_counters() {
    let events = events(Model::Zen4, &[]);
    assert_eq!(events, CounterEvents::default());
    assert!(matches!(PmuCounters::new(events, 3000), Err(LinuxError::Unsupported { .. })));
}

#[test]
fn counts_of_groups_that_took_turns_are_extrapolated() {
    let mut sums = Sums::default();
    let reading = |enabled, running, values: &[u64]| Reading { enabled, running, values: values.to_vec() };
    let loads = [Measure::Loads(TierId(0)), Measure::Loads(TierId(1)), Measure::Stalls];
    sums.add(&loads, &reading(1000, 500, &[100, 30, 6]));
    sums.add(&loads, &reading(1000, 1000, &[100, 40, 6]));
    sums.add(&loads, &reading(1000, 0, &[0, 0, 0]));
    assert_eq!((sums.tiers[0].load_misses, sums.tiers[1].load_misses, sums.stall_cycles), (300, 100, 18));
    // 2,000 MHz: 9 ns, three quarters of them by misses.
    sums.share_stalls(2_000);
    assert_eq!((sums.tiers[0].stall, sums.tiers[1].stall), (Nanos(6), Nanos(2)));

    // An agent of 2.5 GHz that counted half of 2 us: 2,500 cycles.
    let agent = [Measure::Occupancy(TierId(1)), Measure::Busy(TierId(1)), Measure::Clock];
    sums.add(&agent, &reading(2_000, 1_000, &[5_000, 1_250, 2_500]));
    assert_eq!((sums.tiers[1].occupancy, sums.tiers[1].busy), (4_000, 1_000));
    sums.share_stalls(2_000);
    assert_eq!((sums.tiers[0].stall, sums.tiers[1].stall), (Nanos(0), Nanos(9)));
}

/// Software events stand in for a PMU's: the reading path is the same.
#[test]
fn groups_are_read_at_once_on_this_kernel() {
    let event = |name: &str, config, measure| {
        let encoding = Encoding { kind: kind::SOFTWARE, config: [config, 0, 0, 0] };
        CountSpec { name: name.into(), encoding, measure }
    };
    let threads = vec![vec![
        event("page-faults", software::PAGE_FAULTS, Measure::Loads(TierId(1))),
        event("task-clock", software::TASK_CLOCK, Measure::Stalls),
    ]];
    let mut own =
        PmuCounters::new(CounterEvents { threads, sockets: Vec::new() }, 1_000).expect("two events");
    // Of the calling thread, and of one that it makes.
    own.attach(0).expect("granted");
    let mut before = Counters::default();
    own.count(&mut before).expect("readable");
    // Larger than what malloc keeps: every page is new.
    let touched =
        std::thread::spawn(|| std::hint::black_box(vec![1u8; 64 << 20]).len()).join().expect("it ends");
    let mut after = Counters::default();
    own.count(&mut after).expect("readable");
    assert_eq!(touched, 64 << 20);
    assert!(after.tiers[1].load_misses > before.tiers[1].load_misses, "{before:?} {after:?}");
    assert!(after.tiers[1].stall > before.tiers[1].stall, "task-clock is in nanoseconds, 1,000 MHz");
    assert!((own.least_share() - 1.0).abs() < 1e-9, "software events never take turns");
    assert!(own.offers(Signals::NONE).has(Signal::TierHits));
    assert!(!own.offers(Signals::NONE).has(Signal::TierStalls), "no occupancy is counted");
}
