//! Defines the table of every policy and bound: help, documentation and construction derive from it.
//!
//! A new policy is its own file, one entry here and one row in `docs/policies.md` (a test compares the two).

use isotherm_core::parameters::{Parameters, Preset, Spec};
use isotherm_core::{PageSize, Pages, Policy, names};
use isotherm_trackers::ShapeError;

use crate::{
    alto, arc, colloid, first_touch, freqtier, hemem, hybridtier, jenga, lru, memtis, multi_clock, nbt,
    neomem, nomad, pact, pmu_sampling, pte_scan, tpp, twoq,
};

/// What a policy may size its structures by.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// One more than the largest page there can be, as [`isotherm_core::View::pages`].
    pub pages: usize,
    /// The fast tier's capacity in pages of `page_size`.
    pub fast: Pages,
    /// The page size of the run.
    pub page_size: PageSize,
    /// The number of tiers; at least 1.
    pub tiers: usize,
    /// Seeds whatever the policy draws.
    pub seed: u64,
}

/// Why a policy could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Its filter does not fit the setup or the memory.
    #[error("{policy}: {source}")]
    Filter {
        /// The policy's name.
        policy: &'static str,
        /// What is wrong.
        source: ShapeError,
    },
}

/// A limit that the simulator computes: no policy, as it knows the future or has other tiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Everything in the fast tier.
    AllFast,
    /// Everything in the slowest tier.
    AllSlow,
    /// Each interval's best placement, known in advance, moved for free.
    Oracle,
    /// Objects placed once, by a profile of the run itself. No limit, but as a limit it needs the run before.
    Soar,
    /// MIN with bypass over pages: the most hits that any placement can have.
    Belady,
}

/// Builds a policy. Its parameters must come from the entry's specs.
pub type Build = fn(&Parameters, &Setup) -> Result<Box<dyn Policy>, BuildError>;

/// What an entry stands for.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A policy, which runs on every host.
    Policy(Build),
    /// A bound, which only the simulator computes.
    Bound(Bound),
}

/// One policy or bound.
#[derive(Debug)]
pub struct Entry {
    /// Its stable kebab-case name.
    pub name: &'static str,
    /// Its name in print.
    pub title: &'static str,
    /// Where it was published, or where it comes from.
    pub paper: &'static str,
    /// How far it can be trusted.
    pub maturity: &'static str,
    /// What stands behind it.
    pub kind: Kind,
    /// Its parameters.
    pub specs: &'static [Spec],
    /// Other sets of defaults for them, chosen by `NAME.preset`.
    pub presets: &'static [Preset],
    /// One or two sentences: what it does.
    pub help: &'static str,
}

impl Entry {
    /// Its parameters at their defaults.
    pub fn parameters(&self) -> Parameters {
        Parameters::with_presets(self.name, self.specs, self.presets)
    }
}

const TESTED: &str = "tested in the simulator";
const COMPUTED: &str = "computed by the simulator";

/// Every policy and bound, in the order in which they are listed.
pub static ALL: &[Entry] = &[
    Entry {
        name: "first-touch",
        title: "First touch",
        paper: "Linux' default placement",
        maturity: TESTED,
        kind: Kind::Policy(first_touch::build),
        specs: &[],
        presets: &[],
        help: "Pages stay where they were allocated: in the fast tier while it has room.",
    },
    Entry {
        name: "lru",
        title: "LRU",
        paper: "textbook; here over sampled accesses",
        maturity: TESTED,
        kind: Kind::Policy(lru::build),
        specs: lru::SPECS,
        presets: &[],
        help: "Promotes every sampled page and demotes the least recently sampled ones.",
    },
    Entry {
        name: "arc",
        title: "ARC",
        paper: "Megiddo and Modha, FAST 2003; over sampled accesses as in HybridTier 5.2",
        maturity: TESTED,
        kind: Kind::Policy(arc::build),
        specs: arc::SPECS,
        presets: &[],
        help: "Keeps what its recency and frequency lists hold in the fast tier, and shifts the border between them \
               by hits on pages it remembers having demoted.",
    },
    Entry {
        name: "twoq",
        title: "2Q",
        paper: "Johnson and Shasha, VLDB 1994; over sampled accesses as in HybridTier 5.2",
        maturity: TESTED,
        kind: Kind::Policy(twoq::build),
        specs: twoq::SPECS,
        presets: &[],
        help: "Promotes every sampled page into a queue of newcomers, and keeps those that are sampled again after \
               they left it.",
    },
    Entry {
        name: "freqtier",
        title: "FreqTier",
        paper: "FreqTier: frequency-based memory tiering for CXL (counting Bloom filter, userspace)",
        maturity: TESTED,
        kind: Kind::Policy(freqtier::build),
        specs: freqtier::SPECS,
        presets: &[],
        help: "Counts sampled accesses in a counting Bloom filter, promotes pages above a hot threshold that \
               follows the distribution, and stops sampling while the hit ratio is stable.",
    },
    Entry {
        name: "hybridtier",
        title: "HybridTier",
        paper: "HybridTier: an Adaptive and Lightweight CXL-Memory PolicyRun System (ASPLOS 2025)",
        maturity: TESTED,
        kind: Kind::Policy(hybridtier::build),
        specs: hybridtier::SPECS,
        presets: hybridtier::PRESETS,
        help: "Counts sampled accesses in two counting Bloom filters, one for the long term and one for the last \
               seconds: promotes what either calls hot, demotes what neither does, the rest after a second look.",
    },
    Entry {
        name: "memtis",
        title: "Memtis",
        paper: "Memtis, SOSP 2023 (in-kernel, access histogram)",
        maturity: TESTED,
        kind: Kind::Policy(memtis::build),
        specs: memtis::SPECS,
        presets: &[],
        help: "Counts sampled accesses of each page exactly, fits a hot threshold to the fast tier by a histogram of powers \
               of two, halves counts every 2 M samples and samples as densely as 3 % of a core allow.",
    },
    Entry {
        name: "memtis-qc",
        title: "Memtis-QC",
        paper: "Memtis as Jenga compares it, section 5",
        maturity: TESTED,
        kind: Kind::Policy(memtis::build),
        specs: memtis::QC_SPECS,
        presets: &[],
        help: "Memtis with quick cooling: counts are halved every 120,000 samples.",
    },
    Entry {
        name: "jenga",
        title: "Jenga",
        paper: "Jenga, SOSP 2025, section 5 (in-kernel, smooth hotness tracking)",
        maturity: TESTED,
        kind: Kind::Policy(jenga::build),
        specs: jenga::SPECS,
        presets: &[],
        help: "Memtis' histogram and thresholds over counts that decay a little at every access, so that they adapt as \
               quickly as with quick cooling and pages that stay hot stay in their bin.",
    },
    Entry {
        name: "hemem",
        title: "HeMem",
        paper: "HeMem, SOSP 2021 (userspace library, fixed thresholds)",
        maturity: TESTED,
        kind: Kind::Policy(hemem::build),
        specs: hemem::SPECS,
        presets: &[],
        help: "Promotes pages with four sampled reads or writes in turn against cold ones; halves counts when one page \
               reaches a threshold.",
    },
    Entry {
        name: "pmu-sampling",
        title: "PMU sampling",
        paper: "the baseline PEBS of NeoMem, sections II-C and VI",
        maturity: TESTED,
        kind: Kind::Policy(pmu_sampling::build),
        specs: pmu_sampling::SPECS,
        presets: &[],
        help: "Promotes sampled slow pages within a quota; the kernel's LRU demotes.",
    },
    Entry {
        name: "nbt",
        title: "NUMA balancing tiering",
        paper: "Linux 6.2, kernel.numa_balancing = 2 (AutoNUMA, NBT)",
        maturity: TESTED,
        kind: Kind::Policy(nbt::build),
        specs: nbt::SPECS,
        presets: &[],
        help: "Promotes slow pages that fault soon after they were made to; the hot threshold follows a rate limit, and \
               the kernel's reclaim demotes.",
    },
    Entry {
        name: "tpp",
        title: "TPP",
        paper: "Maruf et al., ASPLOS 2023",
        maturity: TESTED,
        kind: Kind::Policy(tpp::build),
        specs: tpp::SPECS,
        presets: &[],
        help: "Promotes a slow page at its second hint fault; the kernel's reclaim keeps room ahead of allocation.",
    },
    Entry {
        name: "neomem",
        title: "NeoMem",
        paper: "Zhou et al., MICRO 2024",
        maturity: TESTED,
        kind: Kind::Policy(neomem::build),
        specs: neomem::SPECS,
        presets: &[],
        help: "Promotes what a profiling device in the slow memory finds hot, above a quantile of the device's histogram that follows bandwidth, ping-pong, error bound and quota.",
    },
    Entry {
        name: "pte-scan",
        title: "PTE-scan",
        paper: "baseline of NeoMem, MICRO 2024",
        maturity: TESTED,
        kind: Kind::Policy(pte_scan::build),
        specs: pte_scan::SPECS,
        presets: &[],
        help: "Promotes pages that were accessed in several page-table scans in a row, within a quota; the kernel's reclaim demotes.",
    },
    Entry {
        name: "nomad",
        title: "Nomad",
        paper: "Xiang et al., OSDI 2024",
        maturity: TESTED,
        kind: Kind::Policy(nomad::build),
        specs: nomad::SPECS,
        presets: &[],
        help: "TPP's detection, with promotions by a kernel thread that copies pages while they stay mapped and keeps the slow copy as a shadow.",
    },
    Entry {
        name: "colloid",
        title: "Colloid",
        paper: "Vuppalapati and Agarwal, SOSP 2024, on NUMA balancing",
        maturity: TESTED,
        kind: Kind::Policy(colloid::build),
        specs: colloid::SPECS,
        presets: &[],
        help: "Promotes hot pages while the fast tier's loaded latency is below the slow one's, else demotes them, until the two are equal.",
    },
    Entry {
        name: "alto",
        title: "Alto",
        paper: "Liu et al., OSDI 2025, on Colloid",
        maturity: TESTED,
        kind: Kind::Policy(alto::build),
        specs: alto::SPECS,
        presets: &[],
        help: "Colloid that promotes the fewer of its pages the better loads overlap (amortised off-core latency).",
    },
    Entry {
        name: "soar",
        title: "Soar",
        paper: "Liu et al., OSDI 2025; computed by the simulator, as it needs a profile run",
        maturity: COMPUTED,
        kind: Kind::Bound(Bound::Soar),
        specs: &[],
        presets: &[],
        help: "Whole objects placed at allocation by what a profile of the same run says of their loads' cost; nothing moves.",
    },
    Entry {
        name: "multi-clock",
        title: "MULTI-CLOCK",
        paper: "Maruf et al., HPCA 2022",
        maturity: TESTED,
        kind: Kind::Policy(multi_clock::build),
        specs: multi_clock::SPECS,
        presets: &[],
        help: "Scans accessed bits; a page climbs from the inactive to the active to the promote list, and unreferenced inactive pages are demoted.",
    },
    Entry {
        name: "pact",
        title: "PACT",
        paper: "PACT, ASPLOS 2026 (stalls of each page from four counters)",
        maturity: TESTED,
        kind: Kind::Policy(pact::build),
        specs: pact::SPECS,
        presets: &[],
        help: "Shares the slow tier's stalls out among sampled pages by Equation 1, promotes what reaches the last of 20 adaptive \
               bins, and has the kernel demote as much.",
    },
    Entry {
        name: "all-fast",
        title: "All fast",
        paper: "bound",
        maturity: COMPUTED,
        kind: Kind::Bound(Bound::AllFast),
        specs: &[],
        presets: &[],
        help: "Everything in a fast tier that is large enough: what slowdown is measured against.",
    },
    Entry {
        name: "all-slow",
        title: "All slow",
        paper: "bound",
        maturity: COMPUTED,
        kind: Kind::Bound(Bound::AllSlow),
        specs: &[],
        presets: &[],
        help: "Everything in the slowest tier.",
    },
    Entry {
        name: "oracle",
        title: "Interval oracle",
        paper: "bound",
        maturity: COMPUTED,
        kind: Kind::Bound(Bound::Oracle),
        specs: &[],
        presets: &[],
        help: "The best placement of each interval, known in advance and moved for free.",
    },
    Entry {
        name: "belady",
        title: "Belady's MIN with bypass",
        paper: "Belady 1966; bound",
        maturity: COMPUTED,
        kind: Kind::Bound(Bound::Belady),
        specs: &[],
        presets: &[],
        help: "The most hits that any placement can have, moving a page at each access.",
    },
];

/// A name that no entry has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no policy '{name}'; {advice}")]
pub struct UnknownPolicy {
    /// What was asked for.
    pub name: String,
    /// The nearest names, or all of them where none is near.
    pub advice: String,
}

/// The entry of that name.
pub fn find(name: &str) -> Result<&'static Entry, UnknownPolicy> {
    let found = ALL.iter().find(|entry| entry.name == name);
    found.ok_or_else(|| UnknownPolicy {
        name: name.into(),
        advice: names::advice(name, ALL.iter().map(|entry| entry.name)),
    })
}

#[cfg(test)]
mod tests {
    use isotherm_core::parameters::PRESET_KEY;

    use super::*;

    #[test]
    fn an_entry_is_found_by_its_name_and_a_misspelt_one_gets_advice() {
        assert_eq!(find("freqtier").expect("registered").title, "FreqTier");
        let text = |name| find(name).expect_err("no such policy").to_string();
        assert_eq!(text("freqteir"), "there is no policy 'freqteir'; did you mean freqtier?");
        assert_eq!(text("all-fats"), "there is no policy 'all-fats'; did you mean all-fast?");
        assert!(text("clairvoyance").contains("there are "), "nothing is near: all are listed");
        assert!(ALL.iter().all(|entry| text("").contains(entry.name)));
    }

    #[test]
    fn the_stable_names_are_all_there_once_and_in_kebab_case() {
        let mut names: Vec<_> = ALL.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        let expected = [
            "all-fast",
            "all-slow",
            "alto",
            "arc",
            "belady",
            "colloid",
            "first-touch",
            "freqtier",
            "hemem",
            "hybridtier",
            "jenga",
            "lru",
            "memtis",
            "memtis-qc",
            "multi-clock",
            "nbt",
            "neomem",
            "nomad",
            "oracle",
            "pact",
            "pmu-sampling",
            "pte-scan",
            "soar",
            "tpp",
            "twoq",
        ];
        assert_eq!(names, expected);
        assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
    }

    #[test]
    fn every_policy_is_built_from_its_defaults_and_says_where_each_comes_from() {
        let setup = Setup { pages: 4096, fast: Pages(512), page_size: PageSize::Base, tiers: 2, seed: 1 };
        let with_preset = |entry: &Entry, preset| {
            let mut parameters = entry.parameters();
            parameters.set(PRESET_KEY, preset).expect("it is listed");
            parameters
        };
        for entry in ALL {
            let parameters = entry.parameters();
            for (spec, _) in parameters.iter() {
                assert!(!spec.source.is_empty() && !spec.help.is_empty(), "{}.{}", entry.name, spec.name);
            }
            if let Kind::Policy(build) = entry.kind {
                build(&parameters, &setup).expect(entry.name);
                for preset in entry.presets {
                    assert!(
                        !preset.source.is_empty() && !preset.help.is_empty() && !preset.values.is_empty()
                    );
                    build(&with_preset(entry, preset.name), &setup).expect(preset.name);
                }
            }
        }
    }

    #[test]
    fn every_entry_has_its_row_in_the_documentation() {
        let document = include_str!("../../../docs/policies.md");
        for entry in ALL {
            let row = format!("| `{}` |", entry.name);
            let rows = document.lines().filter(|line| line.starts_with(&row)).count();
            assert_eq!(rows, 1, "docs/policies.md needs one row that begins with {row}");
        }
    }
}
