//! Defines the events of each processor, each with its source.
//!
//! Intel's are those of the event lists at `github.com/intel/perfmon`, by file name: the same lists are in Linux below
//! `tools/perf/pmu-events/arch/x86`. AMD's IBS and Arm's SPE are PMUs of their own and need no events.

use Model::{CascadeLake, CooperLake, EmeraldRapids, GraniteRapids, IceLakeSp, SapphireRapids, SkylakeSp};

use super::data_source::Memory;
use super::events::{Quantity, Row};
use super::pmu::Terms;
use crate::topology::cpu::Model;

const ALL: &[Model] =
    &[SkylakeSp, CascadeLake, CooperLake, IceLakeSp, SapphireRapids, EmeraldRapids, GraniteRapids];
/// Those that took Optane memory.
const OPTANE: &[Model] = &[CascadeLake, CooperLake, IceLakeSp, SapphireRapids];
const SKYLAKE: &[Model] = &[SkylakeSp, CascadeLake, CooperLake];
const ICE_LAKE: &[Model] = &[IceLakeSp, SapphireRapids, EmeraldRapids, GraniteRapids];
const UP_TO_ICE_LAKE: &[Model] = &[SkylakeSp, CascadeLake, CooperLake, IceLakeSp];
const SINCE_SAPPHIRE_RAPIDS: &[Model] = &[SapphireRapids, EmeraldRapids, GraniteRapids];

const CORE: &str = "intel/perfmon skylakex_core.json, cascadelakex_core.json, icelakex_core.json, sapphirerapids_core.json, \
                    emeraldrapids_core.json, graniterapids_core.json";
const OPTANE_CORE: &str =
    "intel/perfmon cascadelakex_core.json, icelakex_core.json, sapphirerapids_core.json";
const GNR_CORE: &str = "intel/perfmon graniterapids_core.json";
const SKX_CHA: &str = "intel/perfmon skylakex_uncore.json and cascadelakex_uncore.json with the filters of Linux' \
                       arch/x86/events/intel/uncore_snbep.c; values as in PACT's artifact";
const ICX_CHA: &str = "intel/perfmon icelakex_uncore.json, sapphirerapids_uncore.json, emeraldrapids_uncore.json, \
                       graniterapids_uncore.json; COUNTER0_OCCUPANCY as in PACT's artifact";
const EMR_CXL: &str = "intel/perfmon emeraldrapids_uncore_experimental.json, as in Linux' \
                       tools/perf/pmu-events/arch/x86/emeraldrapids/uncore-cache.json; COUNTER0_OCCUPANCY as for DRAM";

/// An event of the core PMU whose samples carry addresses.
const fn core(
    models: &'static [Model],
    quantity: Quantity,
    name: &'static str,
    terms: Terms<'static>,
    source: &'static str,
) -> Row {
    Row { models, quantity, name, pmu: "cpu", terms, filter: &[], addresses: true, source }
}

/// An event that is only counted.
const fn counted(row: Row) -> Row {
    Row { addresses: false, ..row }
}

const CLOCK: &str = "UNC_CHA_CLOCKTICKS";
const UP_TO_ICE_LAKE_UNCORE: &str =
    "intel/perfmon skylakex_uncore.json, cascadelakex_uncore.json, icelakex_uncore.json";
const SINCE_SAPPHIRE_RAPIDS_UNCORE: &str =
    "intel/perfmon sapphirerapids_uncore.json, emeraldrapids_uncore.json, graniterapids_uncore.json";

/// An event of the caching and home agents: `filter` says of which requests.
const fn cha(
    models: &'static [Model],
    quantity: Quantity,
    name: &'static str,
    terms: Terms<'static>,
    filter: Terms<'static>,
    source: &'static str,
) -> Row {
    Row { models, quantity, name, pmu: "uncore_cha", terms, filter, addresses: false, source }
}

/// What the agents count of the loads that one kind of memory serves: names of occupancy, busy cycles and inserts.
const fn loads(
    models: &'static [Model],
    memory: Memory,
    names: [&'static str; 3],
    filter: Terms<'static>,
    source: &'static str,
) -> [Row; 3] {
    let [occupancy, busy, inserts] = names;
    [
        cha(models, Quantity::Occupancy(memory), occupancy, &[("event", 0x36)], filter, source),
        cha(models, Quantity::Busy(memory), busy, &[("event", 0x1f), ("thresh", 1)], filter, source),
        cha(models, Quantity::Inserts(memory), inserts, &[("event", 0x35)], filter, source),
    ]
}

/// Every event.
pub(crate) const ROWS: &[&[Row]] = &[
    CORE_ROWS,
    &loads(
        SKYLAKE,
        Memory::LocalDram,
        [
            "UNC_CHA_TOR_OCCUPANCY.IA_MISS_DRD, local",
            "UNC_CHA_COUNTER0_OCCUPANCY, local",
            "UNC_CHA_TOR_INSERTS.IA_MISS_DRD, local",
        ],
        &[("umask", 0x21), ("filter_loc", 1), ("filter_nm", 1), ("filter_not_nm", 1), ("filter_opc0", 0x202)],
        SKX_CHA,
    ),
    &loads(
        SKYLAKE,
        Memory::RemoteDram,
        [
            "UNC_CHA_TOR_OCCUPANCY.IA_MISS_DRD, remote",
            "UNC_CHA_COUNTER0_OCCUPANCY, remote",
            "UNC_CHA_TOR_INSERTS.IA_MISS_DRD, remote",
        ],
        &[("umask", 0x21), ("filter_rem", 1), ("filter_nm", 1), ("filter_not_nm", 1), ("filter_opc0", 0x202)],
        SKX_CHA,
    ),
    &loads(
        ICE_LAKE,
        Memory::LocalDram,
        [
            "UNC_CHA_TOR_OCCUPANCY.IA_MISS_DRD_LOCAL",
            "UNC_CHA_COUNTER0_OCCUPANCY, local",
            "UNC_CHA_TOR_INSERTS.IA_MISS_DRD_LOCAL",
        ],
        &[("umask", 0xc816_fe01)],
        ICX_CHA,
    ),
    &loads(
        ICE_LAKE,
        Memory::RemoteDram,
        [
            "UNC_CHA_TOR_OCCUPANCY.IA_MISS_DRD_REMOTE",
            "UNC_CHA_COUNTER0_OCCUPANCY, remote",
            "UNC_CHA_TOR_INSERTS.IA_MISS_DRD_REMOTE",
        ],
        &[("umask", 0xc817_7e01)],
        ICX_CHA,
    ),
    // Memory expanders. Kernels whose agents take fewer bits of unit mask than this has cannot count them.
    &loads(
        &[EmeraldRapids],
        Memory::LocalCxl,
        [
            "UNC_CHA_TOR_OCCUPANCY.IA_MISS_DRD_CXL_EXP_LOCAL",
            "UNC_CHA_COUNTER0_OCCUPANCY, CXL",
            "UNC_CHA_TOR_INSERTS.IA_MISS_DRD_CXL_EXP_LOCAL",
        ],
        &[("umask", 0x20_c816_8201)],
        EMR_CXL,
    ),
    &[
        cha(UP_TO_ICE_LAKE, Quantity::Clock, CLOCK, &[("event", 0x00)], &[], UP_TO_ICE_LAKE_UNCORE),
        cha(
            SINCE_SAPPHIRE_RAPIDS,
            Quantity::Clock,
            CLOCK,
            &[("event", 0x01)],
            &[],
            SINCE_SAPPHIRE_RAPIDS_UNCORE,
        ),
    ],
];

/// The core's.
const CORE_ROWS: &[Row] = &[
    core(ALL, Quantity::Misses, "MEM_LOAD_RETIRED.L3_MISS", &[("event", 0xd1), ("umask", 0x20)], CORE),
    core(
        ALL,
        Quantity::Loads(Memory::LocalDram),
        "MEM_LOAD_L3_MISS_RETIRED.LOCAL_DRAM",
        &[("event", 0xd3), ("umask", 0x01)],
        CORE,
    ),
    core(
        ALL,
        Quantity::Loads(Memory::RemoteDram),
        "MEM_LOAD_L3_MISS_RETIRED.REMOTE_DRAM",
        &[("event", 0xd3), ("umask", 0x02)],
        CORE,
    ),
    core(
        OPTANE,
        Quantity::Loads(Memory::LocalPmem),
        "MEM_LOAD_RETIRED.LOCAL_PMM",
        &[("event", 0xd1), ("umask", 0x80)],
        OPTANE_CORE,
    ),
    core(
        OPTANE,
        Quantity::Loads(Memory::RemotePmem),
        "MEM_LOAD_L3_MISS_RETIRED.REMOTE_PMM",
        &[("event", 0xd3), ("umask", 0x10)],
        OPTANE_CORE,
    ),
    core(
        &[GraniteRapids],
        Quantity::Loads(Memory::LocalCxl),
        "MEM_LOAD_RETIRED.LOCAL_CXL_MEM",
        &[("event", 0xd1), ("umask", 0x80)],
        GNR_CORE,
    ),
    // The list gives this one no `Data_LA`: its samples have no address.
    counted(core(
        &[GraniteRapids],
        Quantity::Loads(Memory::RemoteCxl),
        "MEM_LOAD_L3_MISS_RETIRED.REMOTE_CXL_MEM",
        &[("event", 0xd3), ("umask", 0x10)],
        GNR_CORE,
    )),
    core(
        ALL,
        Quantity::SlowLoads,
        "MEM_TRANS_RETIRED.LOAD_LATENCY",
        &[("event", 0xcd), ("umask", 0x01)],
        CORE,
    ),
    core(ALL, Quantity::Stores, "MEM_INST_RETIRED.ALL_STORES", &[("event", 0xd0), ("umask", 0x82)], CORE),
    counted(core(
        UP_TO_ICE_LAKE,
        Quantity::Stalls,
        "CYCLE_ACTIVITY.STALLS_L3_MISS",
        &[("event", 0xa3), ("umask", 0x06), ("cmask", 6)],
        CORE,
    )),
    counted(core(
        SINCE_SAPPHIRE_RAPIDS,
        Quantity::Stalls,
        "MEMORY_ACTIVITY.STALLS_L3_MISS",
        &[("event", 0x47), ("umask", 0x09), ("cmask", 9)],
        CORE,
    )),
];
