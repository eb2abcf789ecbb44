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
    Row { models, quantity, name, pmu: "cpu", terms, addresses: true, source }
}

/// An event that is only counted.
const fn counted(row: Row) -> Row {
    Row { addresses: false, ..row }
}

/// An event of the caching and home agents.
const fn cha(
    models: &'static [Model],
    quantity: Quantity,
    name: &'static str,
    terms: Terms<'static>,
    source: &'static str,
) -> Row {
    Row { models, quantity, name, pmu: "uncore_cha", terms, addresses: false, source }
}

/// Every event.
pub(crate) const ROWS: &[Row] = &[
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
    cha(
        SKYLAKE,
        Quantity::Occupancy(Memory::LocalDram),
        "UNC_CHA_TOR_OCCUPANCY.IA_MISS_DRD, local",
        &[
            ("event", 0x36),
            ("umask", 0x21),
            ("filter_loc", 1),
            ("filter_nm", 1),
            ("filter_not_nm", 1),
            ("filter_opc0", 0x202),
        ],
        SKX_CHA,
    ),
    cha(
        SKYLAKE,
        Quantity::Occupancy(Memory::RemoteDram),
        "UNC_CHA_TOR_OCCUPANCY.IA_MISS_DRD, remote",
        &[
            ("event", 0x36),
            ("umask", 0x21),
            ("filter_rem", 1),
            ("filter_nm", 1),
            ("filter_not_nm", 1),
            ("filter_opc0", 0x202),
        ],
        SKX_CHA,
    ),
    cha(
        SKYLAKE,
        Quantity::Busy(Memory::LocalDram),
        "UNC_CHA_COUNTER0_OCCUPANCY, local",
        &[
            ("event", 0x1f),
            ("umask", 0x21),
            ("thresh", 1),
            ("filter_loc", 1),
            ("filter_nm", 1),
            ("filter_not_nm", 1),
            ("filter_opc0", 0x202),
        ],
        SKX_CHA,
    ),
    cha(
        SKYLAKE,
        Quantity::Busy(Memory::RemoteDram),
        "UNC_CHA_COUNTER0_OCCUPANCY, remote",
        &[
            ("event", 0x1f),
            ("umask", 0x21),
            ("thresh", 1),
            ("filter_rem", 1),
            ("filter_nm", 1),
            ("filter_not_nm", 1),
            ("filter_opc0", 0x202),
        ],
        SKX_CHA,
    ),
    cha(
        ICE_LAKE,
        Quantity::Occupancy(Memory::LocalDram),
        "UNC_CHA_TOR_OCCUPANCY.IA_MISS_DRD_LOCAL",
        &[("event", 0x36), ("umask", 0xc816_fe01)],
        ICX_CHA,
    ),
    cha(
        ICE_LAKE,
        Quantity::Occupancy(Memory::RemoteDram),
        "UNC_CHA_TOR_OCCUPANCY.IA_MISS_DRD_REMOTE",
        &[("event", 0x36), ("umask", 0xc817_7e01)],
        ICX_CHA,
    ),
    cha(
        ICE_LAKE,
        Quantity::Busy(Memory::LocalDram),
        "UNC_CHA_COUNTER0_OCCUPANCY, local",
        &[("event", 0x1f), ("umask", 0xc816_fe01), ("thresh", 1)],
        ICX_CHA,
    ),
    cha(
        ICE_LAKE,
        Quantity::Busy(Memory::RemoteDram),
        "UNC_CHA_COUNTER0_OCCUPANCY, remote",
        &[("event", 0x1f), ("umask", 0xc817_7e01), ("thresh", 1)],
        ICX_CHA,
    ),
    cha(
        SKYLAKE,
        Quantity::Inserts(Memory::LocalDram),
        "UNC_CHA_TOR_INSERTS.IA_MISS_DRD, local",
        &[
            ("event", 0x35),
            ("umask", 0x21),
            ("filter_loc", 1),
            ("filter_nm", 1),
            ("filter_not_nm", 1),
            ("filter_opc0", 0x202),
        ],
        SKX_CHA,
    ),
    cha(
        SKYLAKE,
        Quantity::Inserts(Memory::RemoteDram),
        "UNC_CHA_TOR_INSERTS.IA_MISS_DRD, remote",
        &[
            ("event", 0x35),
            ("umask", 0x21),
            ("filter_rem", 1),
            ("filter_nm", 1),
            ("filter_not_nm", 1),
            ("filter_opc0", 0x202),
        ],
        SKX_CHA,
    ),
    cha(
        ICE_LAKE,
        Quantity::Inserts(Memory::LocalDram),
        "UNC_CHA_TOR_INSERTS.IA_MISS_DRD_LOCAL",
        &[("event", 0x35), ("umask", 0xc816_fe01)],
        ICX_CHA,
    ),
    cha(
        ICE_LAKE,
        Quantity::Inserts(Memory::RemoteDram),
        "UNC_CHA_TOR_INSERTS.IA_MISS_DRD_REMOTE",
        &[("event", 0x35), ("umask", 0xc817_7e01)],
        ICX_CHA,
    ),
    // Memory expanders. Kernels whose agents take fewer bits of unit mask than this has cannot count them.
    cha(
        &[EmeraldRapids],
        Quantity::Occupancy(Memory::LocalCxl),
        "UNC_CHA_TOR_OCCUPANCY.IA_MISS_DRD_CXL_EXP_LOCAL",
        &[("event", 0x36), ("umask", 0x20_c816_8201)],
        EMR_CXL,
    ),
    cha(
        &[EmeraldRapids],
        Quantity::Busy(Memory::LocalCxl),
        "UNC_CHA_COUNTER0_OCCUPANCY, CXL",
        &[("event", 0x1f), ("umask", 0x20_c816_8201), ("thresh", 1)],
        EMR_CXL,
    ),
    cha(
        &[EmeraldRapids],
        Quantity::Inserts(Memory::LocalCxl),
        "UNC_CHA_TOR_INSERTS.IA_MISS_DRD_CXL_EXP_LOCAL",
        &[("event", 0x35), ("umask", 0x20_c816_8201)],
        EMR_CXL,
    ),
    cha(
        UP_TO_ICE_LAKE,
        Quantity::Clock,
        "UNC_CHA_CLOCKTICKS",
        &[("event", 0x00)],
        "intel/perfmon skylakex_uncore.json, cascadelakex_uncore.json, icelakex_uncore.json",
    ),
    cha(
        SINCE_SAPPHIRE_RAPIDS,
        Quantity::Clock,
        "UNC_CHA_CLOCKTICKS",
        &[("event", 0x01)],
        "intel/perfmon sapphirerapids_uncore.json, emeraldrapids_uncore.json, graniterapids_uncore.json",
    ),
];
