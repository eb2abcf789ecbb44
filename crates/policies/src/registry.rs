//! The form of the table of every policy and bound, and the search in it. The table itself, of which help,
//! documentation and construction derive, is the list at the crate's root.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use isotherm_core::manifest::Fingerprint;
use isotherm_core::parameters::{Parameters, Preset, Spec};
use isotherm_core::{Policy, names};

use crate::ALL;
pub use crate::build::{Build, BuildError};

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
#[derive(Clone, Copy)]
pub enum Kind {
    /// A policy, which runs on every host.
    Policy(Build),
    /// A bound, which only the simulator computes.
    Bound(Bound),
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(_) => f.write_str("Policy"),
            Self::Bound(bound) => bound.fmt(f),
        }
    }
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
    /// The library that it was loaded from; `None` for those of this crate.
    pub library: Option<Library>,
}

/// The file that a policy was loaded from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Its path, absolute and without links.
    pub path: PathBuf,
    /// Its fingerprint when it was loaded.
    pub fingerprint: Fingerprint,
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
        Self {
            name,
            title,
            paper: "",
            hosts,
            kind,
            specs,
            presets: &[],
            calibrated: None,
            help: "",
            library: None,
        }
    }

    pub(crate) const fn bound(bound: Bound, title: &'static str, paper: &'static str) -> Self {
        let (name, hosts, kind) = (bound.name(), Hosts::SIMULATOR, Kind::Bound(bound));
        Self {
            name,
            title,
            paper,
            hosts,
            kind,
            specs: &[],
            presets: &[],
            calibrated: None,
            help: "",
            library: None,
        }
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

    pub(crate) const fn presets(mut self, presets: &'static [Preset]) -> Self {
        self.presets = presets;
        self
    }

    pub(crate) const fn calibrated(mut self, parameter: &'static str) -> Self {
        self.calibrated = Some(parameter);
        self
    }

    pub(crate) const fn proved_on(mut self, hosts: Hosts) -> Self {
        self.hosts = self.hosts.and(hosts);
        self
    }

    /// Returns its parameters at their defaults.
    pub fn parameters(&self) -> Parameters {
        Parameters::with_presets(self.name, self.specs, self.presets)
    }
}

pub(crate) fn boxed(policy: impl Policy + 'static) -> Result<Box<dyn Policy>, BuildError> {
    Ok(Box::new(policy))
}

/// Declares the modules of policies and, from their entries, the table [`ALL`], with the bounds behind them.
macro_rules! policies {
    ($($vis:vis mod $module:ident: $($entry:expr),+;)*) => {
        $($vis mod $module;)*

        /// Every policy and bound, in the order in which they are listed.
        pub static ALL: &[Entry] = &[
            $($($entry,)+)*
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
    };
}

/// Writes the entry of a policy for two tiers whose `new` takes its parameters and the run.
macro_rules! entry {
    ($name:literal, $title:literal, fallible $policy:ty, $settings:ty) => {
        Entry::policy($name, $title, <$settings>::SPECS, &|p, s| {
            adjacent_pairs::build(p, s, |p, s| {
                boxed(<$policy>::new(p, s).map_err(|source| BuildError::Filter { policy: $name, source })?)
            })
        })
    };
    ($name:literal, $title:literal, $policy:ty, $settings:ty) => {
        Entry::policy($name, $title, <$settings>::SPECS, &|p, s| {
            adjacent_pairs::build(p, s, |p, s| boxed(<$policy>::new(p, s)))
        })
    };
}

/// The policy that a live run has if the user names none.
pub const DEFAULT: &str = "isotherm";
/// The policy without tiering, against which others are compared.
pub const BASELINE: &str = "first-touch";

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

/// The entries of policies that were loaded from libraries.
static LOADED: Mutex<Vec<&'static Entry>> = Mutex::new(Vec::new());

fn loaded() -> Vec<&'static Entry> {
    LOADED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Adds the entry of a policy that was loaded from a library, for the rest of the process.
///
/// # Errors
/// If another entry has its name: that entry.
pub fn add(entry: Entry) -> Result<&'static Entry, &'static Entry> {
    if let Ok(taken) = find(entry.name) {
        return Err(taken);
    }
    let entry = Box::leak(Box::new(entry));
    LOADED.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    Ok(entry)
}

/// Adds the entry of a policy as [`add`] does, in place of one that was added under its name before: a user
/// who works interactively writes a policy again and again.
///
/// # Errors
/// If an entry of this crate has its name: that entry.
pub fn replace(entry: Entry) -> Result<&'static Entry, &'static Entry> {
    if let Some(taken) = ALL.iter().find(|other| other.name == entry.name) {
        return Err(taken);
    }
    let entry: &'static Entry = Box::leak(Box::new(entry));
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    loaded.retain(|other| other.name != entry.name);
    loaded.push(entry);
    Ok(entry)
}

/// Returns the entry of that name, loaded ones included. Fails if no entry has it.
pub fn find(name: &str) -> Result<&'static Entry, UnknownPolicy> {
    let all = || ALL.iter().chain(loaded());
    let found = all().find(|entry| entry.name == name);
    found.ok_or_else(|| UnknownPolicy {
        name: name.into(),
        advice: names::advice(name, all().map(|entry| entry.name)),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use isotherm_core::parameters::PRESET_KEY;
    use isotherm_core::{PageSize, Pages, Setup};

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
    fn every_name_is_there_once_and_in_kebab_case() {
        let names: BTreeSet<_> = ALL.iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), ALL.len(), "a name twice");
        assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
    }

    #[test]
    fn a_loaded_policy_is_found_by_its_name_unless_the_name_is_taken() {
        let entry = |name| Entry::policy(name, "Loaded", &[], &|_, _| boxed(crate::first_touch::FirstTouch));
        assert_eq!(add(entry("lru")).expect_err("taken").title, "LRU");
        assert_eq!(add(entry("loaded-by-a-test")).expect("free").title, "Loaded");
        assert_eq!(find("loaded-by-a-test").expect("it was added").title, "Loaded");
        assert!(find("loaded-by-a-tst").expect_err("misspelt").advice.contains("loaded-by-a-test"));
        assert!(add(entry("loaded-by-a-test")).is_err(), "taken by the one before");
        assert!(ALL.iter().all(|entry| entry.name != "loaded-by-a-test"));
    }

    #[test]
    fn a_replaced_policy_is_found_anew_and_none_of_this_crate_is_replaced() {
        let entry =
            |name, title| Entry::policy(name, title, &[], &|_, _| boxed(crate::first_touch::FirstTouch));
        assert_eq!(replace(entry("lru", "Another")).expect_err("taken").title, "LRU");
        replace(entry("replaced-by-a-test", "First")).expect("free");
        replace(entry("replaced-by-a-test", "Second")).expect("replaced");
        assert_eq!(find("replaced-by-a-test").expect("it was added").title, "Second");
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
