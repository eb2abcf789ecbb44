use super::super::data_source::Memory;
use super::super::pmu::Encoding;
use super::super::pmu::tests::{CORE, tree};
use super::super::sys::{kind, software};
use super::*;
use crate::topology::cpu::Model;

fn tiers() -> TierMap {
    TierMap::default().with(Memory::LocalDram, TierId(0)).with(Memory::RemoteDram, TierId(1))
}

/// Formats of the agents of Skylake and Cascade Lake: `skx_uncore_cha_formats_attr` in
/// `arch/x86/events/intel/uncore_snbep.c`.
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

/// Returns agents of later models, whose unit mask continues above bit 31.
fn later_agents(count: u32, umask: &str) -> Vec<(String, String)> {
    let agent = |index: u32| {
        let file = move |name: &str, text: &str| (format!("uncore_cha_{index}/{name}"), text.to_owned());
        [
            file("type", &(80 + index).to_string()),
            file("cpumask", "0,64"),
            file("format/event", "config:0-7"),
            file("format/umask", umask),
            file("format/thresh", "config:24-31"),
        ]
    };
    (0..count).flat_map(agent).collect()
}

/// `snr_uncore_chabox_format_group`, which Ice Lake uses, `spr_uncore_cha_formats_attr` up to Linux 6.9 and
/// after, all in `arch/x86/events/intel/uncore_snbep.c`.
const ICE_LAKE_UMASK: &str = "config:8-15,32-57";
const SAPPHIRE_UMASK: &str = "config:8-15,32-55";
const WIDE_UMASK: &str = "config:8-15,32-63";

fn events(model: Model, agent: &[(&str, &str)], tiers: TierMap) -> CounterEvents {
    let root = tree(&[CORE, agent].concat());
    CounterEvents::of(root.path(), model, tiers).expect("well-formed")
}

fn later(model: Model, count: u32, umask: &str, tiers: TierMap) -> CounterEvents {
    let agents = later_agents(count, umask);
    let agents: Vec<_> = agents.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    events(model, &agents, tiers)
}

fn configs(events: &[CountSpec]) -> Vec<(u64, u64)> {
    events.iter().map(|event| (event.encoding.config[0], event.encoding.config[1])).collect()
}

/// The raw numbers are those that PACT's artifact passes to the kernel. Requests are event 0x35 with the same
/// filters (skylakex_uncore.json and cascadelakex_uncore.json of intel/perfmon).
#[test]
fn skylake_and_cascade_lake_count_what_pact_counts_there() {
    for model in [Model::SkylakeSp, Model::CascadeLake, Model::CooperLake] {
        let events = events(model, SKYLAKE_AGENT, tiers());
        assert_eq!(configs(&events.threads[0]), [(0x1d3, 0), (0x2d3, 0), (0x0600_06a3, 0)]);
        assert_eq!(events.sockets.iter().map(|group| group.cpu).collect::<Vec<_>>(), [0, 28, 0, 28]);
        let agent = |filter| [(0x2136, filter), (0x0100_211f, filter), (0, 0), (0x2135, filter)];
        assert_eq!(configs(&events.sockets[0].events), agent(0x4_0432_0000_0000));
        assert_eq!(configs(&events.sockets[2].events), agent(0x4_0431_0000_0000));
        assert!(events.queues() && events.by_inserts().is_empty());
    }
}

/// Stalls: CYCLE_ACTIVITY.STALLS_L3_MISS up to Ice Lake, MEMORY_ACTIVITY.STALLS_L3_MISS since Sapphire
/// Rapids. Unit masks of IA_MISS_DRD_LOCAL and _REMOTE, as in intel/perfmon and, for Sapphire and Emerald
/// Rapids, PACT's artifact. The clock is event 0 up to Ice Lake and 1 since.
#[test]
fn later_models_count_what_their_event_lists_say() {
    for (model, umask, stalls, clock) in [
        (Model::IceLakeSp, ICE_LAKE_UMASK, 0x0600_06a3, 0),
        (Model::SapphireRapids, SAPPHIRE_UMASK, 0x0900_0947, 1),
        (Model::EmeraldRapids, SAPPHIRE_UMASK, 0x0900_0947, 1),
        (Model::EmeraldRapids, WIDE_UMASK, 0x0900_0947, 1),
        (Model::GraniteRapids, WIDE_UMASK, 0x0900_0947, 1),
    ] {
        let events = later(model, 2, umask, tiers());
        assert_eq!(configs(&events.threads[0]), [(0x1d3, 0), (0x2d3, 0), (stalls, 0)], "{model}");
        let agent =
            |filter: u64| [(filter | 0x136, 0), (filter | 0x0100_011f, 0), (clock, 0), (filter | 0x135, 0)];
        // Each of two agents counts one tier, on both sockets.
        let sockets: Vec<_> = events.sockets.iter().map(|group| (group.cpu, group.share)).collect();
        assert_eq!(sockets, [(0, (1, 2)), (64, (1, 2)), (0, (1, 2)), (64, (1, 2))], "{model}");
        assert_eq!(configs(&events.sockets[0].events), agent(0x00c8_16fe_0000_0000), "{model}");
        assert_eq!(configs(&events.sockets[2].events), agent(0x00c8_177e_0000_0000), "{model}");
        assert_eq!(events.sockets[2].events[0].encoding.kind, 81);
        assert!(events.queues(), "{model}");
    }
}

/// UNC_CHA_TOR_*.IA_MISS_DRD_CXL_EXP_LOCAL of emeraldrapids_uncore_experimental.json: unit mask 0x20c8168201.
/// No event of the core counts loads from there, so the agents' requests do.
#[test]
fn emerald_rapids_counts_memory_expanders_where_the_kernel_takes_the_mask() {
    let tiers = TierMap::default().with(Memory::LocalDram, TierId(0)).with(Memory::LocalCxl, TierId(1));
    let events = later(Model::EmeraldRapids, 3, WIDE_UMASK, tiers);
    let filter: u64 = 0x20c8_1682 << 32;
    let agent = [(filter | 0x136, 0), (filter | 0x0100_011f, 0), (1, 0), (filter | 0x135, 0)];
    assert_eq!(configs(&events.sockets[2].events), agent);
    assert!(events.queues());
    assert_eq!(events.by_inserts(), [TierId(1)]);
    // Two of three agents count DRAM, one the expander.
    let shares: Vec<_> = events.sockets.iter().step_by(2).map(|group| group.share).collect();
    assert_eq!(shares, [(2, 3), (1, 3), (2, 3)]);
    // With the shorter mask nothing tells how much of it is in flight, and that is not offered.
    assert!(!later(Model::EmeraldRapids, 3, SAPPHIRE_UMASK, tiers).queues());
    assert!(!later(Model::SapphireRapids, 3, WIDE_UMASK, tiers).queues(), "its list had no expanders");
}

#[test]
fn what_a_share_of_the_agents_counts_stands_for_all() {
    let mut sums = Sums::default();
    let agent = [
        Measure::Occupancy(TierId(1)),
        Measure::Busy(TierId(1)),
        Measure::Clock,
        Measure::Inserts(TierId(1)),
    ];
    // 1 GHz, two agents of six.
    for _ in 0..2 {
        let reading = Reading { enabled: 1000, running: 1000, values: vec![900, 300, 1000, 6] };
        sums.add(&agent, (2, 6), &reading);
    }
    assert_eq!((sums.tiers[1].load_occupancy, sums.tiers[1].load_busy), (5400, 1800));
    assert_eq!(sums.tiers[1].load_misses, 0, "threads' events count them");
    sums.take_inserts(&[TierId(1)]);
    assert_eq!(sums.tiers[1].load_misses, 36);
}

#[test]
fn a_processor_that_is_not_in_the_table_has_no_counters() {
    let events = events(Model::Zen4, &[], tiers());
    assert!(events.threads.is_empty() && events.sockets.is_empty() && !events.queues());
    assert!(matches!(PmuCounters::new(events, 3000), Err(LinuxError::Unsupported { .. })));
}

#[test]
fn counts_of_groups_that_took_turns_are_extrapolated() {
    let mut sums = Sums::default();
    let reading = |enabled, running, values: &[u64]| Reading { enabled, running, values: values.to_vec() };
    let loads = [Measure::Loads(TierId(0)), Measure::Loads(TierId(1)), Measure::Stalls];
    sums.add(&loads, (1, 1), &reading(1000, 500, &[100, 30, 6]));
    sums.add(&loads, (1, 1), &reading(1000, 1000, &[100, 40, 6]));
    sums.add(&loads, (1, 1), &reading(1000, 0, &[0, 0, 0]));
    assert_eq!((sums.tiers[0].load_misses, sums.tiers[1].load_misses, sums.stall_cycles), (300, 100, 18));
    // 2,000 MHz: 9 ns, three quarters of them by misses.
    sums.share_stalls(2_000);
    assert_eq!((sums.tiers[0].stall, sums.tiers[1].stall), (Nanos(6), Nanos(2)));

    // An agent of 2.5 GHz that counted half of 2 us: 2,500 cycles.
    let agent = [Measure::Occupancy(TierId(1)), Measure::Busy(TierId(1)), Measure::Clock];
    sums.add(&agent, (1, 1), &reading(2_000, 1_000, &[5_000, 1_250, 2_500]));
    assert_eq!((sums.tiers[1].occupancy, sums.tiers[1].busy), (4_000, 1_000));
    sums.share_stalls(2_000);
    assert_eq!((sums.tiers[0].stall, sums.tiers[1].stall), (Nanos(0), Nanos(9)));
}

/// Software events replace a PMU's: the reading path is the same.
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
        PmuCounters::new(CounterEvents { threads, ..CounterEvents::default() }, 1_000).expect("two events");
    // Counts the calling thread, and one that it makes.
    own.attach(0).expect("granted");
    let mut before = Counters::default();
    own.count(&mut before).expect("readable");
    // Larger than the memory that malloc keeps: every page is new.
    let touched =
        std::thread::spawn(|| std::hint::black_box(vec![1u8; 64 << 20]).len()).join().expect("it ends");
    let mut after = Counters::default();
    own.count(&mut after).expect("readable");
    assert_eq!(touched, 64 << 20);
    assert!(after.tiers[1].load_misses > before.tiers[1].load_misses, "{before:?} {after:?}");
    assert!(after.tiers[1].stall > before.tiers[1].stall, "task-clock is in nanoseconds, 1,000 MHz");
    assert!((own.min_share() - 1.0).abs() < 1e-9, "software events are never multiplexed");
    assert!(own.offers(Signals::NONE).has(Signal::TierHits));
    assert!(!own.offers(Signals::NONE).has(Signal::TierStalls), "no occupancy is counted");
}
