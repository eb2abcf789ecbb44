//! Events of each processor, each with its source.
//!
//! Intel's are those of the event lists at `github.com/intel/perfmon`, by file name: the same lists are in
//! Linux below `tools/perf/pmu-events/arch/x86`. AMD's IBS and Arm's SPE are PMUs of their own and need no
//! events.

use Memory::{LocalCxl, LocalDram, LocalPmem, RemoteCxl, RemoteDram, RemotePmem};
use Model::{CascadeLake, CooperLake, EmeraldRapids, GraniteRapids, IceLakeSp, SapphireRapids, SkylakeSp};
use Quantity::{Busy, Clock, Inserts, Loads, Misses, Occupancy, SlowLoads, Stalls, Stores};

use super::data_source::Memory;
use super::pmu::Terms;
use crate::topology::cpu::Model;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    Loads(Memory),
    /// Loads that missed the last-level cache, whatever served them.
    Misses,
    /// Loads slower than a threshold, sampled with latency and data source.
    SlowLoads,
    Stores,
    /// Cycles in which nothing was executed while a load missed the last-level cache.
    Stalls,
    /// Reads of one kind of memory in flight, summed over cycles.
    Occupancy(Memory),
    /// Cycles with at least one such read in flight.
    Busy(Memory),
    /// Reads of one kind of memory, as seen by the agents.
    Inserts(Memory),
    /// Cycles of the agent that counts occupancy.
    Clock,
}

#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub models: &'static [Model],
    pub quantity: Quantity,
    pub name: &'static str,
    /// PMU, or prefix of its instances' names.
    pub pmu: &'static str,
    /// Event, as terms of the PMU; terms of value 0 are left out.
    pub terms: [(&'static str, u64); 3],
    /// Further terms that select what is counted.
    pub filter: Terms<'static>,
    /// Whether its samples carry a data address.
    pub addresses: bool,
    pub source: &'static str,
}

impl Row {
    pub fn all_terms(&self) -> Vec<(&'static str, u64)> {
        self.terms.iter().chain(self.filter).copied().filter(|&(_, value)| value > 0).collect()
    }
}

const ALL: &[Model] =
    &[SkylakeSp, CascadeLake, CooperLake, IceLakeSp, SapphireRapids, EmeraldRapids, GraniteRapids];
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
const OLD_CLOCK: &str = "intel/perfmon skylakex_uncore.json, cascadelakex_uncore.json, icelakex_uncore.json";
const NEW_CLOCK: &str =
    "intel/perfmon sapphirerapids_uncore.json, emeraldrapids_uncore.json, graniterapids_uncore.json";

/// Returns an event of the core PMU whose samples carry addresses. `code` has the event in bits 0 to 7, the
/// unit mask in bits 8 to 15 and the counter mask from bit 24, as in the processor's register.
const fn core(
    models: &'static [Model],
    quantity: Quantity,
    name: &'static str,
    code: u64,
    source: &'static str,
) -> Row {
    let terms = [("event", code & 0xff), ("umask", code >> 8 & 0xff), ("cmask", code >> 24)];
    Row { models, quantity, name, pmu: "cpu", terms, filter: &[], addresses: true, source }
}

const fn counted(row: Row) -> Row {
    Row { addresses: false, ..row }
}

/// Returns an event of the caching and home agents; `filter` selects requests.
const fn cha(
    models: &'static [Model],
    quantity: Quantity,
    name: &'static str,
    (event, thresh): (u64, u64),
    filter: Terms<'static>,
    source: &'static str,
) -> Row {
    let terms = [("event", event), ("thresh", thresh), ("", 0)];
    Row { models, quantity, name, pmu: "uncore_cha", terms, filter, addresses: false, source }
}

/// The agents' names for occupancy, busy cycles and inserts of demand reads.
macro_rules! names {
    ($suffix:literal, $place:literal) => {
        [
            concat!("UNC_CHA_TOR_OCCUPANCY.IA_MISS_DRD", $suffix),
            concat!("UNC_CHA_COUNTER0_OCCUPANCY, ", $place),
            concat!("UNC_CHA_TOR_INSERTS.IA_MISS_DRD", $suffix),
        ]
    };
}

const fn loads(
    models: &'static [Model],
    memory: Memory,
    [occupancy, busy, inserts]: [&'static str; 3],
    filter: Terms<'static>,
    source: &'static str,
) -> [Row; 3] {
    [
        cha(models, Occupancy(memory), occupancy, (0x36, 0), filter, source),
        cha(models, Busy(memory), busy, (0x1f, 1), filter, source),
        cha(models, Inserts(memory), inserts, (0x35, 0), filter, source),
    ]
}

#[rustfmt::skip]
pub(crate) const ROWS: &[&[Row]] = &[
    CORE_ROWS,
    &loads(SKYLAKE, LocalDram, names!(", local", "local"), &[("umask", 0x21), ("filter_loc", 1),
        ("filter_nm", 1), ("filter_not_nm", 1), ("filter_opc0", 0x202)], SKX_CHA),
    &loads(SKYLAKE, RemoteDram, names!(", remote", "remote"), &[("umask", 0x21), ("filter_rem", 1),
        ("filter_nm", 1), ("filter_not_nm", 1), ("filter_opc0", 0x202)], SKX_CHA),
    &loads(ICE_LAKE, LocalDram, names!("_LOCAL", "local"), &[("umask", 0xc816_fe01)], ICX_CHA),
    &loads(ICE_LAKE, RemoteDram, names!("_REMOTE", "remote"), &[("umask", 0xc817_7e01)], ICX_CHA),
    // Memory expanders. Kernels whose agents accept a shorter unit mask cannot count them.
    &loads(&[EmeraldRapids], LocalCxl, names!("_CXL_EXP_LOCAL", "CXL"),
        &[("umask", 0x20_c816_8201)], EMR_CXL),
    &[
        cha(UP_TO_ICE_LAKE, Clock, "UNC_CHA_CLOCKTICKS", (0x00, 0), &[], OLD_CLOCK),
        cha(SINCE_SAPPHIRE_RAPIDS, Clock, "UNC_CHA_CLOCKTICKS", (0x01, 0), &[], NEW_CLOCK),
    ],
];

#[rustfmt::skip]
const CORE_ROWS: &[Row] = &[
    core(ALL, Misses, "MEM_LOAD_RETIRED.L3_MISS", 0x20d1, CORE),
    core(ALL, Loads(LocalDram), "MEM_LOAD_L3_MISS_RETIRED.LOCAL_DRAM", 0x01d3, CORE),
    core(ALL, Loads(RemoteDram), "MEM_LOAD_L3_MISS_RETIRED.REMOTE_DRAM", 0x02d3, CORE),
    core(OPTANE, Loads(LocalPmem), "MEM_LOAD_RETIRED.LOCAL_PMM", 0x80d1, OPTANE_CORE),
    core(OPTANE, Loads(RemotePmem), "MEM_LOAD_L3_MISS_RETIRED.REMOTE_PMM", 0x10d3, OPTANE_CORE),
    core(&[GraniteRapids], Loads(LocalCxl), "MEM_LOAD_RETIRED.LOCAL_CXL_MEM", 0x80d1, GNR_CORE),
    // The list gives this one no `Data_LA`: its samples have no address.
    counted(core(&[GraniteRapids], Loads(RemoteCxl), "MEM_LOAD_L3_MISS_RETIRED.REMOTE_CXL_MEM", 0x10d3,
        GNR_CORE)),
    core(ALL, SlowLoads, "MEM_TRANS_RETIRED.LOAD_LATENCY", 0x01cd, CORE),
    core(ALL, Stores, "MEM_INST_RETIRED.ALL_STORES", 0x82d0, CORE),
    counted(core(UP_TO_ICE_LAKE, Stalls, "CYCLE_ACTIVITY.STALLS_L3_MISS", 0x0600_06a3, CORE)),
    counted(core(SINCE_SAPPHIRE_RAPIDS, Stalls, "MEMORY_ACTIVITY.STALLS_L3_MISS", 0x0900_0947, CORE)),
];
