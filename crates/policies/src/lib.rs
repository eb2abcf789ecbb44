//! Tiering policies, one module a published system, and the [`registry`] that names them.
//!
//! Nothing here performs I/O, reads a clock or starts a thread: see [`isotherm_core::Policy`].
//!
//! ```
//! use isotherm_core::{PageSize, Pages};
//! use isotherm_policies::{Kind, Setup, find};
//!
//! let entry = find("freqtier").unwrap();
//! let mut parameters = entry.parameters();
//! parameters.set("batch", "5000").unwrap();
//! let setup = Setup { pages: 4096, fast: Pages(512), page_size: PageSize::Base, tiers: 2, seed: 1 };
//! let Kind::Policy(build) = entry.kind else { panic!("a bound") };
//! let policy = build(&parameters, &setup).unwrap();
//! assert_eq!(policy.sampling().batch, 5000);
//! ```

#![forbid(unsafe_code)]

#[macro_use]
pub mod registry;

mod adjacent_pairs;
mod build;
mod support;

use crate::registry::boxed;
use crate::replacement::adapter::Tiered;

// A policy is one file and its entry here, from which its module, its place in help and completions and its
// row in the documents come.
policies! {
    mod first_touch:
        Entry::policy("first-touch", "First touch", &[], &|_, _| boxed(first_touch::FirstTouch))
            .paper("Linux' default placement")
            .help("Pages stay where they were allocated: in the fast tier while it has room.")
            .proved_on(Hosts::LIVE);
    mod isotherm:
        Entry::policy("isotherm", "Isotherm", &[], &|p, s| boxed(isotherm::Isotherm::new(p, s)))
            .paper("ours: docs/papers/isotherm.md")
            .help(
                "Moves a page only when what it will save exceeds the measured cost, keeps books of both, and \
                 samples and moves no more than its proved savings pay for. It has no parameters.",
            )
            .proved_on(Hosts::LAB);
    mod lru:
        entry!("lru", "LRU", lru::Lru, lru::Settings)
            .paper("textbook; here over sampled accesses")
            .help("Promotes every sampled page and demotes the least recently sampled ones.")
            .proved_on(Hosts::LAB);
    pub mod replacement:
        entry!("arc", "ARC", Tiered<replacement::Arc>, replacement::settings::Settings)
            .paper("Megiddo and Modha, FAST 2003; over sampled accesses as in HybridTier 5.2")
            .help(
                "Keeps what its recency and frequency lists hold in the fast tier, and shifts the border between \
                 them by hits on pages it remembers having demoted.",
            ),
        entry!("twoq", "2Q", Tiered<replacement::TwoQ>, replacement::settings::TwoQSettings)
            .paper("Johnson and Shasha, VLDB 1994; over sampled accesses as in HybridTier 5.2")
            .help(
                "Promotes every sampled page into a queue of newcomers, and keeps those that are sampled again \
                 after they left it.",
            );
    mod freqtier:
        entry!("freqtier", "FreqTier", fallible freqtier::FreqTier, freqtier::Settings)
            .paper("FreqTier: frequency-based memory tiering for CXL (counting Bloom filter, userspace)")
            .help(
                "Counts sampled accesses in a counting Bloom filter, promotes pages above a hot threshold that \
                 follows the distribution, and stops sampling while the hit ratio is stable.",
            )
            .proved_on(Hosts::LAB);
    mod hybridtier:
        entry!("hybridtier", "HybridTier", fallible hybridtier::HybridTier, hybridtier::Settings)
            .paper("HybridTier: an Adaptive and Lightweight CXL-Memory Tiering System (ASPLOS 2025)")
            .help(
                "Counts sampled accesses in two counting Bloom filters, one for the long term and one for the \
                 last seconds: promotes what either calls hot, demotes what neither does, the rest after a \
                 second look.",
            )
            .presets(hybridtier::PRESETS)
            .proved_on(Hosts::LAB)
            .proved_on(Hosts::LIVE);
    mod memtis:
        entry!("memtis", "Memtis", memtis::Memtis, memtis::Settings)
            .paper("Memtis, SOSP 2023 (in-kernel, access histogram)")
            .help(
                "Counts sampled accesses of each page exactly, fits a hot threshold to the fast tier by a \
                 histogram of powers of two, halves counts every 2 M samples and samples as densely as 3 % of a \
                 core allow.",
            )
            .proved_on(Hosts::LAB),
        entry!("memtis-qc", "Memtis-QC", memtis::Memtis, memtis::QuickSettings)
            .paper("Memtis as Jenga compares it, section 5")
            .help("Memtis with quick cooling: counts are halved every 120,000 samples.");
    mod jenga:
        entry!("jenga", "Jenga", jenga::Jenga, jenga::Settings)
            .paper("Jenga, SOSP 2025, section 5 (in-kernel, smooth hotness tracking)")
            .help(
                "Memtis' histogram and thresholds over counts that decay a little at every access, so that they \
                 adapt as quickly as with quick cooling and pages that stay hot stay in their bin.",
            );
    mod hemem:
        entry!("hemem", "HeMem", hemem::Hemem, hemem::Settings)
            .paper("HeMem, SOSP 2021 (userspace library, fixed thresholds)")
            .help(
                "Promotes pages with four sampled reads or writes in turn against cold ones; halves counts when \
                 one page reaches a threshold.",
            );
    mod pmu_sampling:
        entry!("pmu-sampling", "PMU sampling", pmu_sampling::PmuSampling, pmu_sampling::Settings)
            .paper("the baseline PEBS of NeoMem, sections II-C and VI")
            .help("Promotes sampled slow pages within a quota; the kernel's LRU demotes.");
    mod nbt:
        entry!("nbt", "NUMA balancing tiering", nbt::Nbt, nbt::Settings)
            .paper("Linux 6.2, kernel.numa_balancing = 2 (AutoNUMA, NBT)")
            .help(
                "Promotes slow pages that fault soon after they were made to; the hot threshold follows a rate \
                 limit, and the kernel's reclaim demotes.",
            )
            .presets(nbt::PRESETS);
    mod tpp:
        entry!("tpp", "TPP", tpp::Tpp, tpp::Settings).paper("Maruf et al., ASPLOS 2023").help(
            "Promotes a slow page at its second hint fault; the kernel's reclaim keeps room ahead of \
                 allocation.",
        );
    mod neomem:
        entry!("neomem", "NeoMem", neomem::NeoMem, neomem::Settings)
            .paper("Zhou et al., MICRO 2024")
            .help(
                "Promotes what a profiling device in the slow memory finds hot, above a quantile of the device's \
                 histogram that follows bandwidth, ping-pong, error bound and quota.",
            )
            .proved_on(Hosts::LAB);
    mod pte_scan:
        entry!("pte-scan", "PTE-scan", pte_scan::PteScan, pte_scan::Settings)
            .paper("baseline of NeoMem, MICRO 2024")
            .help(
                "Promotes pages that were accessed in several page-table scans in a row, within a quota; the \
                 kernel's reclaim demotes.",
            );
    mod nomad:
        entry!("nomad", "Nomad", nomad::Nomad, nomad::Settings).paper("Xiang et al., OSDI 2024").help(
            "TPP's detection, with promotions by a kernel thread that copies pages while they stay mapped \
                 and keeps the slow copy as a shadow.",
        );
    mod colloid:
        entry!("colloid", "Colloid", colloid::Colloid, colloid::Settings)
            .paper("Vuppalapati and Agarwal, SOSP 2024, on NUMA balancing")
            .help(
                "Promotes hot pages while the fast tier's loaded latency is below the slow one's, else demotes \
                 them, until the two are equal.",
            );
    mod alto:
        entry!("alto", "Alto", alto::Alto, alto::Settings).paper("Liu et al., OSDI 2025, on Colloid").help(
            "Colloid that promotes the fewer of its pages the better loads overlap (amortised off-core \
                 latency).",
        );
    pub mod soar:
        Entry::bound(
            Bound::Soar,
            "Soar",
            "Liu et al., OSDI 2025; computed by the simulator, as it needs a profile run",
        )
        .help(
            "Whole objects placed at allocation by what a profile of the same run says of their loads' cost; \
                 nothing moves.",
        );
    mod multi_clock:
        entry!("multi-clock", "MULTI-CLOCK", multi_clock::MultiClock, multi_clock::Settings)
            .paper("Maruf et al., HPCA 2022")
            .help(
                "Scans accessed bits; a page climbs from the inactive to the active to the promote list, and \
                 unreferenced inactive pages are demoted.",
            );
    mod pact:
        entry!("pact", "PACT", pact::Pact, pact::Settings)
            .paper("PACT, ASPLOS 2026 (stalls of each page from four counters)")
            .help(
                "Shares the slow tier's stalls out among sampled pages by Equation 1, promotes what reaches the \
                 last of 20 adaptive bins, and has the kernel demote as much.",
            )
            .calibrated("k")
            .proved_on(Hosts::LIVE);
    mod weighted_interleave:
        Entry::policy(
            "weighted-interleave",
            "Weighted interleaving",
            weighted_interleave::Settings::SPECS,
            &|p, s| boxed(weighted_interleave::WeightedInterleave::new(p, s)),
        )
        .paper("Linux 6.9, weighted interleave; weights from bandwidths as since 6.16")
        .help(
            "Spreads new pages over all tiers in the ratio of their bandwidths, for programs that one tier's \
                 bandwidth limits; nothing moves.",
        )
        .proved_on(Hosts::LAB);
}

mod prelude {
    pub(crate) use isotherm_core::parameters::Parameters;
    pub(crate) use isotherm_core::*;
}

pub use build::BuildError;
pub use isotherm_core::Setup;
pub use pact::Pact;
pub use registry::{Bound, Entry, Hosts, Kind, Library, UnknownPolicy, add, find, replace};
