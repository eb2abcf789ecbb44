//! Defines the table of every policy and bound: help, documentation and construction derive from it.
//!
//! A new policy is its own file, one entry here and one row in `docs/policies.md` (a test compares the two).

use isotherm_core::parameters::{Parameters, Spec};
use isotherm_core::{PageSize, Pages, Policy};
use isotherm_trackers::ShapeError;

use crate::{colloid, first_touch, freqtier, lru, multi_clock, nbt, nomad, pte_scan, tpp};

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
    /// One or two sentences: what it does.
    pub help: &'static str,
}

impl Entry {
    /// Its parameters at their defaults.
    pub fn parameters(&self) -> Parameters {
        Parameters::new(self.name, self.specs)
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
        help: "Pages stay where they were allocated: in the fast tier while it has room.",
    },
    Entry {
        name: "lru",
        title: "LRU",
        paper: "textbook; here over sampled accesses",
        maturity: TESTED,
        kind: Kind::Policy(lru::build),
        specs: lru::SPECS,
        help: "Promotes every sampled page and demotes the least recently sampled ones.",
    },
    Entry {
        name: "freqtier",
        title: "FreqTier",
        paper: "FreqTier: frequency-based memory tiering for CXL (counting Bloom filter, userspace)",
        maturity: TESTED,
        kind: Kind::Policy(freqtier::build),
        specs: freqtier::SPECS,
        help: "Counts sampled accesses in a counting Bloom filter, promotes pages above a hot threshold that \
               follows the distribution, and stops sampling while the hit ratio is stable.",
    },
    Entry {
        name: "nbt",
        title: "NUMA balancing tiering",
        paper: "Linux 6.2, kernel.numa_balancing = 2 (AutoNUMA, NBT)",
        maturity: TESTED,
        kind: Kind::Policy(nbt::build),
        specs: nbt::SPECS,
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
        help: "Promotes a slow page at its second hint fault; the kernel's reclaim keeps room ahead of allocation.",
    },
    Entry {
        name: "pte-scan",
        title: "PTE-scan",
        paper: "baseline of NeoMem, MICRO 2024",
        maturity: TESTED,
        kind: Kind::Policy(pte_scan::build),
        specs: pte_scan::SPECS,
        help: "Promotes pages that were accessed in several page-table scans in a row, within a quota; the kernel's reclaim demotes.",
    },
    Entry {
        name: "nomad",
        title: "Nomad",
        paper: "Xiang et al., OSDI 2024",
        maturity: TESTED,
        kind: Kind::Policy(nomad::build),
        specs: nomad::SPECS,
        help: "TPP's detection, with promotions by a kernel thread that copies pages while they stay mapped and keeps the slow copy as a shadow.",
    },
    Entry {
        name: "colloid",
        title: "Colloid",
        paper: "Vuppalapati and Agarwal, SOSP 2024, on NUMA balancing",
        maturity: TESTED,
        kind: Kind::Policy(colloid::build),
        specs: colloid::SPECS,
        help: "Promotes hot pages while the fast tier's loaded latency is below the slow one's, else demotes them, until the two are equal.",
    },
    Entry {
        name: "multi-clock",
        title: "MULTI-CLOCK",
        paper: "Maruf et al., HPCA 2022",
        maturity: TESTED,
        kind: Kind::Policy(multi_clock::build),
        specs: multi_clock::SPECS,
        help: "Scans accessed bits; a page climbs from the inactive to the active to the promote list, and unreferenced inactive pages are demoted.",
    },
    Entry {
        name: "all-fast",
        title: "All fast",
        paper: "bound",
        maturity: COMPUTED,
        kind: Kind::Bound(Bound::AllFast),
        specs: &[],
        help: "Everything in a fast tier that is large enough: what slowdown is measured against.",
    },
    Entry {
        name: "all-slow",
        title: "All slow",
        paper: "bound",
        maturity: COMPUTED,
        kind: Kind::Bound(Bound::AllSlow),
        specs: &[],
        help: "Everything in the slowest tier.",
    },
    Entry {
        name: "oracle",
        title: "Interval oracle",
        paper: "bound",
        maturity: COMPUTED,
        kind: Kind::Bound(Bound::Oracle),
        specs: &[],
        help: "The best placement of each interval, known in advance and moved for free.",
    },
    Entry {
        name: "belady",
        title: "Belady's MIN with bypass",
        paper: "Belady 1966; bound",
        maturity: COMPUTED,
        kind: Kind::Bound(Bound::Belady),
        specs: &[],
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
    found.ok_or_else(|| UnknownPolicy { name: name.into(), advice: advice(name) })
}

fn advice(name: &str) -> String {
    let mut near: Vec<_> = ALL.iter().map(|entry| (edit_distance(name, entry.name), entry.name)).collect();
    near.sort_by_key(|&(distance, _)| distance);
    let names = |names: &[(usize, &str)]| names.iter().map(|near| near.1).collect::<Vec<_>>().join(", ");
    let close = near.iter().take_while(|&&(distance, known)| distance <= known.len() / 3).count().min(3);
    if close == 0 {
        format!("there are {}", names(&near))
    } else {
        format!("did you mean {}?", names(&near[..close]))
    }
}

/// The least number of insertions, deletions and replacements that turn one text into the other (Levenshtein).
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, left) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, &right) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
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
    fn edit_distances_are_levenshtein() {
        for (from, to, distance) in
            [("", "abc", 3), ("lru", "lru", 0), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            assert_eq!(edit_distance(from, to), distance, "{from} {to}");
            assert_eq!(edit_distance(to, from), distance, "{to} {from}");
        }
    }

    #[test]
    fn the_stable_names_are_all_there_once_and_in_kebab_case() {
        let mut names: Vec<_> = ALL.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "all-fast",
                "all-slow",
                "belady",
                "colloid",
                "first-touch",
                "freqtier",
                "lru",
                "multi-clock",
                "nbt",
                "nomad",
                "oracle",
                "pte-scan",
                "tpp"
            ]
        );
        assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
    }

    #[test]
    fn every_policy_is_built_from_its_defaults_and_says_where_each_comes_from() {
        let setup = Setup { pages: 4096, fast: Pages(512), page_size: PageSize::Base, tiers: 2, seed: 1 };
        for entry in ALL {
            let parameters = entry.parameters();
            for (spec, _) in parameters.iter() {
                assert!(!spec.source.is_empty() && !spec.help.is_empty(), "{}.{}", entry.name, spec.name);
            }
            if let Kind::Policy(build) = entry.kind {
                build(&parameters, &setup).expect(entry.name);
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
