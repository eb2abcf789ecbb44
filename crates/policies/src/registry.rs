//! The table of every policy and bound: help, documentation and construction derive from it.
//!
//! A new policy is its own file, one entry here and its import; `make docs` writes the documents' tables.

use std::fmt;

use isotherm_core::parameters::{Parameters, Preset, Spec};
use isotherm_core::{Policy, names};

use crate::replacement::adapter::Tiered;
pub use crate::setup::{Build, BuildError, Setup};
use crate::{
    alto, colloid, first_touch, freqtier, hemem, hybridtier, isotherm, jenga, lru, memtis, multi_clock, nbt,
    neomem, nomad, pact, pmu_sampling, pte_scan, replacement, tpp,
};

/// A limit that the simulator computes: no policy, as it knows the future or has other tiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Everything in the fast tier.
    AllFast,
    /// Everything in the slowest tier.
    AllSlow,
    /// Each interval's best placement, known in advance, moved for free.
    Oracle,
    /// The same oracle with first touch to start from, which pays for its moves.
    PayingOracle,
    /// Objects placed once, by a profile of the run itself: computed, because it needs the run before.
    Soar,
    /// MIN with bypass over pages: the most hits that any placement can have.
    Belady,
}

impl Bound {
    /// Returns its stable kebab-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllFast => "all-fast",
            Self::AllSlow => "all-slow",
            Self::Oracle => "oracle",
            Self::PayingOracle => "paying-oracle",
            Self::Soar => "soar",
            Self::Belady => "belady",
        }
    }

    /// Returns whether other policies are measured against it; Soar is a system itself.
    pub const fn is_limit(self) -> bool {
        !matches!(self, Self::Soar)
    }
}

/// A set of hosts on which a test proves that a policy runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hosts(u8);

impl Hosts {
    /// No host.
    pub const NONE: Self = Self(0);
    /// The simulator: `crates/cli/tests/matrix.rs` runs every policy and bound on every workload.
    pub const SIMULATOR: Self = Self(1);
    /// The lab's virtual machine, where it moves pages between two nodes: `crates/cli/tests/lab`.
    pub const LAB: Self = Self(2);
    /// This machine, with a real program: `crates/cli/tests/cli/live.rs` and `crates/preload/tests`.
    pub const LIVE: Self = Self(4);

    const NAMES: [(Self, &'static str); 3] =
        [(Self::SIMULATOR, "simulator"), (Self::LAB, "lab"), (Self::LIVE, "live")];

    /// Returns the union of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether all hosts of `other` are in the set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the names of the hosts in the set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |&(host, _)| self.contains(host)).map(|(_, name)| name)
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.names().collect::<Vec<_>>().join(", "))
    }
}

/// The implementation behind an entry.
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
    /// The hosts on which a test proves that it runs.
    pub hosts: Hosts,
    /// Its implementation.
    pub kind: Kind,
    /// Its parameters.
    pub specs: &'static [Spec],
    /// Other sets of defaults for them, chosen by `NAME.preset`.
    pub presets: &'static [Preset],
    /// The parameter that is the stall of a miss to the second tier, which `isotherm calibrate` measures.
    pub calibrated: Option<&'static str>,
    /// One or two sentences: what it does.
    pub help: &'static str,
}

impl Entry {
    /// Returns a policy's entry, proved in the simulator.
    pub const fn policy(
        name: &'static str,
        title: &'static str,
        specs: &'static [Spec],
        build: Build,
    ) -> Self {
        let (hosts, kind) = (Hosts::SIMULATOR, Kind::Policy(build));
        Self { name, title, paper: "", hosts, kind, specs, presets: &[], calibrated: None, help: "" }
    }

    const fn bound(bound: Bound, title: &'static str, paper: &'static str) -> Self {
        let (name, hosts, kind) = (bound.name(), Hosts::SIMULATOR, Kind::Bound(bound));
        Self { name, title, paper, hosts, kind, specs: &[], presets: &[], calibrated: None, help: "" }
    }

    /// Sets where it was published.
    #[must_use]
    pub const fn paper(mut self, paper: &'static str) -> Self {
        self.paper = paper;
        self
    }

    /// Sets what it does, in one or two sentences.
    #[must_use]
    pub const fn help(mut self, help: &'static str) -> Self {
        self.help = help;
        self
    }

    const fn presets(mut self, presets: &'static [Preset]) -> Self {
        self.presets = presets;
        self
    }

    const fn calibrated(mut self, parameter: &'static str) -> Self {
        self.calibrated = Some(parameter);
        self
    }

    const fn proved_on(mut self, hosts: Hosts) -> Self {
        self.hosts = self.hosts.and(hosts);
        self
    }

    /// Returns its parameters at their defaults.
    pub fn parameters(&self) -> Parameters {
        Parameters::with_presets(self.name, self.specs, self.presets)
    }
}

fn boxed(policy: impl Policy + 'static) -> Result<Box<dyn Policy>, BuildError> {
    Ok(Box::new(policy))
}

macro_rules! entry {
    ($name:literal, $title:literal, fallible $policy:ty, $settings:ty) => {
        Entry::policy($name, $title, <$settings>::SPECS, |p, s| {
            boxed(<$policy>::new(p, s).map_err(|source| BuildError::Filter { policy: $name, source })?)
        })
    };
    ($name:literal, $title:literal, $policy:ty, $settings:ty) => {
        Entry::policy($name, $title, <$settings>::SPECS, |p, s| boxed(<$policy>::new(p, s)))
    };
}

/// The policy that a live run has if the user names none.
pub const DEFAULT: &str = "hybridtier";
/// The policy without tiering, against which others are compared.
pub const BASELINE: &str = "first-touch";

/// Every policy and bound, in the order in which they are listed.
pub static ALL: &[Entry] = &[
    Entry::policy("first-touch", "First touch", &[], |_, _| boxed(first_touch::FirstTouch))
        .paper("Linux' default placement")
        .help("Pages stay where they were allocated: in the fast tier while it has room.")
        .proved_on(Hosts::LIVE),
    Entry::policy("isotherm", "Isotherm", &[], |p, s| boxed(isotherm::Isotherm::new(p, s)))
        .paper("ours: docs/papers/isotherm.md")
        .help(
            "Moves a page only when what it will save exceeds the measured cost, keeps books of both, and \
             samples and moves no more than its proved savings pay for. It has no parameters.",
        ),
    entry!("lru", "LRU", lru::Lru, lru::Settings)
        .paper("textbook; here over sampled accesses")
        .help("Promotes every sampled page and demotes the least recently sampled ones.")
        .proved_on(Hosts::LAB),
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
        ),
    entry!("freqtier", "FreqTier", fallible freqtier::FreqTier, freqtier::Settings)
        .paper("FreqTier: frequency-based memory tiering for CXL (counting Bloom filter, userspace)")
        .help(
            "Counts sampled accesses in a counting Bloom filter, promotes pages above a hot threshold that \
             follows the distribution, and stops sampling while the hit ratio is stable.",
        )
        .proved_on(Hosts::LAB),
    entry!("hybridtier", "HybridTier", fallible hybridtier::HybridTier, hybridtier::Settings)
        .paper("HybridTier: an Adaptive and Lightweight CXL-Memory Tiering System (ASPLOS 2025)")
        .help(
            "Counts sampled accesses in two counting Bloom filters, one for the long term and one for the \
             last seconds: promotes what either calls hot, demotes what neither does, the rest after a \
             second look.",
        )
        .presets(hybridtier::PRESETS)
        .proved_on(Hosts::LAB)
        .proved_on(Hosts::LIVE),
    entry!("memtis", "Memtis", memtis::Memtis, memtis::Settings)
        .paper("Memtis, SOSP 2023 (in-kernel, access histogram)")
        .help(
            "Counts sampled accesses of each page exactly, fits a hot threshold to the fast tier by a \
             histogram of powers of two, halves counts every 2 M samples and samples as densely as 3 % of a \
             core allow.",
        ),
    entry!("memtis-qc", "Memtis-QC", memtis::Memtis, memtis::QuickSettings)
        .paper("Memtis as Jenga compares it, section 5")
        .help("Memtis with quick cooling: counts are halved every 120,000 samples."),
    entry!("jenga", "Jenga", jenga::Jenga, jenga::Settings)
        .paper("Jenga, SOSP 2025, section 5 (in-kernel, smooth hotness tracking)")
        .help(
            "Memtis' histogram and thresholds over counts that decay a little at every access, so that they \
             adapt as quickly as with quick cooling and pages that stay hot stay in their bin.",
        ),
    entry!("hemem", "HeMem", hemem::Hemem, hemem::Settings)
        .paper("HeMem, SOSP 2021 (userspace library, fixed thresholds)")
        .help(
            "Promotes pages with four sampled reads or writes in turn against cold ones; halves counts when \
             one page reaches a threshold.",
        ),
    entry!("pmu-sampling", "PMU sampling", pmu_sampling::PmuSampling, pmu_sampling::Settings)
        .paper("the baseline PEBS of NeoMem, sections II-C and VI")
        .help("Promotes sampled slow pages within a quota; the kernel's LRU demotes."),
    entry!("nbt", "NUMA balancing tiering", nbt::Nbt, nbt::Settings)
        .paper("Linux 6.2, kernel.numa_balancing = 2 (AutoNUMA, NBT)")
        .help(
            "Promotes slow pages that fault soon after they were made to; the hot threshold follows a rate \
             limit, and the kernel's reclaim demotes.",
        )
        .presets(nbt::PRESETS),
    entry!("tpp", "TPP", tpp::Tpp, tpp::Settings).paper("Maruf et al., ASPLOS 2023").help(
        "Promotes a slow page at its second hint fault; the kernel's reclaim keeps room ahead of \
             allocation.",
    ),
    entry!("neomem", "NeoMem", neomem::NeoMem, neomem::Settings)
        .paper("Zhou et al., MICRO 2024")
        .help(
            "Promotes what a profiling device in the slow memory finds hot, above a quantile of the device's \
             histogram that follows bandwidth, ping-pong, error bound and quota.",
        )
        .proved_on(Hosts::LAB),
    entry!("pte-scan", "PTE-scan", pte_scan::PteScan, pte_scan::Settings)
        .paper("baseline of NeoMem, MICRO 2024")
        .help(
            "Promotes pages that were accessed in several page-table scans in a row, within a quota; the \
             kernel's reclaim demotes.",
        ),
    entry!("nomad", "Nomad", nomad::Nomad, nomad::Settings).paper("Xiang et al., OSDI 2024").help(
        "TPP's detection, with promotions by a kernel thread that copies pages while they stay mapped \
             and keeps the slow copy as a shadow.",
    ),
    entry!("colloid", "Colloid", colloid::Colloid, colloid::Settings)
        .paper("Vuppalapati and Agarwal, SOSP 2024, on NUMA balancing")
        .help(
            "Promotes hot pages while the fast tier's loaded latency is below the slow one's, else demotes \
             them, until the two are equal.",
        ),
    entry!("alto", "Alto", alto::Alto, alto::Settings).paper("Liu et al., OSDI 2025, on Colloid").help(
        "Colloid that promotes the fewer of its pages the better loads overlap (amortised off-core \
             latency).",
    ),
    Entry::bound(
        Bound::Soar,
        "Soar",
        "Liu et al., OSDI 2025; computed by the simulator, as it needs a profile run",
    )
    .help(
        "Whole objects placed at allocation by what a profile of the same run says of their loads' cost; \
             nothing moves.",
    ),
    entry!("multi-clock", "MULTI-CLOCK", multi_clock::MultiClock, multi_clock::Settings)
        .paper("Maruf et al., HPCA 2022")
        .help(
            "Scans accessed bits; a page climbs from the inactive to the active to the promote list, and \
             unreferenced inactive pages are demoted.",
        ),
    entry!("pact", "PACT", pact::Pact, pact::Settings)
        .paper("PACT, ASPLOS 2026 (stalls of each page from four counters)")
        .help(
            "Shares the slow tier's stalls out among sampled pages by Equation 1, promotes what reaches the \
             last of 20 adaptive bins, and has the kernel demote as much.",
        )
        .calibrated("k")
        .proved_on(Hosts::LIVE),
    Entry::bound(Bound::AllFast, "All fast", "bound")
        .help("Everything in a fast tier that is large enough: what slowdown is measured against."),
    Entry::bound(Bound::AllSlow, "All slow", "bound").help("Everything in the slowest tier."),
    Entry::bound(Bound::Oracle, "Interval oracle", "bound")
        .help("The best placement of each interval, known in advance and moved for free."),
    Entry::bound(Bound::PayingOracle, "Paying oracle", "bound, which a policy can beat").help(
        "Knows each interval's accesses in advance, and moves what pays for the move at its full cost.",
    ),
    Entry::bound(Bound::Belady, "Belady's MIN with bypass", "Belady 1966; bound")
        .help("The most hits that any placement can have, moving a page at each access."),
];

/// A name that no entry has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no policy '{name}'; {advice}")]
pub struct UnknownPolicy {
    /// The unknown name.
    pub name: String,
    /// The nearest names, or all of them where none is near.
    pub advice: String,
}

/// Returns the entries of all bounds.
pub fn bounds() -> impl Iterator<Item = (&'static Entry, Bound)> {
    ALL.iter().filter_map(|entry| match entry.kind {
        Kind::Bound(bound) => Some((entry, bound)),
        Kind::Policy(_) => None,
    })
}

/// Returns the entry of that name. Fails if no entry has it.
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
    use isotherm_core::{PageSize, Pages};

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
            "isotherm",
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
            "paying-oracle",
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
    fn a_filter_that_cannot_be_built_is_an_error_and_no_panic() {
        for name in ["freqtier", "hybridtier"] {
            let entry = find(name).expect("registered");
            let Kind::Policy(build) = entry.kind else { panic!("no bound") };
            let mut parameters = entry.parameters();
            parameters.set("hashes", "8").expect("in range");
            parameters.set("false_positive_rate", "1e-9").expect("in range");
            let (pages, fast) = (1 << 40, Pages(u64::MAX >> 12));
            let absurd = Setup { pages, fast, page_size: PageSize::Base, tiers: 2, seed: 1 };
            let error = build(&parameters, &absurd).err().expect("too large").to_string();
            assert!(error.starts_with(&format!("{name}: ")), "{error}");
        }
    }

    #[test]
    fn names_that_other_crates_take_from_here_are_registered() {
        assert!([DEFAULT, BASELINE].iter().all(|name| find(name).is_ok()));
        let limits: Vec<_> =
            bounds().filter(|(_, bound)| bound.is_limit()).map(|(entry, _)| entry.name).collect();
        assert_eq!(limits, ["all-fast", "all-slow", "oracle", "paying-oracle", "belady"]);
        for (entry, name) in ALL.iter().filter_map(|entry| Some((entry, entry.calibrated?))) {
            assert!(entry.specs.iter().any(|spec| spec.name == name), "{}.{name}", entry.name);
        }
    }

    #[test]
    fn hosts_are_listed_by_name() {
        assert_eq!(find("hybridtier").expect("registered").hosts.to_string(), "simulator, lab, live");
        assert_eq!(find("belady").expect("registered").hosts.to_string(), "simulator");
        assert_eq!(Hosts::NONE.to_string(), "");
    }
}
