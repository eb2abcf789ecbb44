//! How fast the originals are, and what makes ours as fast: the one place of both.
//!
//! A row has the number of the original's instructions behind each one that the instrumented code reports
//! (real code has more of those that always hit the cache), and the measurements that it comes from or is
//! checked by. `make pace` measures ours anew and says which number each source asks for.

use isotherm_core::Bytes;
use isotherm_core::parameters::Spec;
use isotherm_core::parameters::build::number;

use crate::Values;

/// Name of the parameter that holds the factor.
pub(crate) const FACTOR: &str = "instruction_factor";

/// The pace of an original and of ours.
#[derive(Debug)]
pub struct Pace {
    workload: &'static str,
    /// The factor as a parameter; none if the workload counts a request's instructions itself.
    pub(crate) factor: &'static [Spec],
    /// Measurements of the original.
    pub sources: &'static [Source],
}

/// A measurement of an original, and ours beside it.
#[derive(Debug)]
pub struct Source {
    /// Its place: a paper's table, or a recorded program.
    pub place: &'static str,
    /// Settings of ours that stand for the original's run.
    pub set: Values,
    /// The parameter that counts units of work, in a short and a long run: their difference has no loading.
    pub units: (&'static str, u64, u64),
    /// The figure.
    pub original: Original,
    /// Our speed over the original's, as measured by `make pace`: above 1 if ours is too fast.
    pub ratio: f64,
}

/// A figure of an original's pace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Original {
    /// Recorded with `isotherm record --cache`.
    Recorded {
        /// The modelled last-level cache.
        cache: Bytes,
        /// Instructions from one miss of it to the next.
        instructions_a_miss: f64,
    },
    /// Printed by a paper.
    Printed {
        /// The paper's machine, of the registry of machines, and others with the same processor and DRAM.
        machines: &'static [&'static str],
        /// Units of work a second with all memory fast, at the size of `set`.
        units_a_second: f64,
    },
}

impl Original {
    fn tells_of(&self, machine: &str) -> bool {
        match self {
            Self::Recorded { .. } => true,
            Self::Printed { machines, .. } => machines.contains(&machine),
        }
    }
}

/// Why a workload's speeds are not compared with a paper's.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Incomparable {
    /// Nothing is known of the original's pace.
    #[error("not comparable: no source says how fast {0} is")]
    NoSource(&'static str),
    /// Ours has another pace.
    #[error(
        "not comparable: {workload} runs at {ratio:.2} times the pace of {place}; expected {MOST} at most either way"
    )]
    TooFar {
        /// The workload.
        workload: &'static str,
        /// Our speed over the original's.
        ratio: f64,
        /// The source of the original's.
        place: &'static str,
    },
}

/// Factor by which a comparable pace is off at most.
const MOST: f64 = 1.5;

impl Pace {
    /// # Panics
    /// A workload without a row: a mistake in the source, found by the first test that lists workloads.
    pub(crate) fn of(workload: &str) -> &'static Self {
        PACES.iter().find(|pace| pace.workload == workload).unwrap_or_else(|| panic!("no pace of {workload}"))
    }

    /// Checks that ours is near every source that says something of runs on `machine`.
    ///
    /// # Errors
    /// No source, or the first that is too far off.
    pub fn comparable(&self, machine: &str) -> Result<(), Incomparable> {
        let workload = self.workload;
        let mut sources = self.sources.iter().filter(|source| source.original.tells_of(machine)).peekable();
        if sources.peek().is_none() {
            return Err(Incomparable::NoSource(workload));
        }
        let far = sources.find(|source| source.ratio.max(1.0 / source.ratio) > MOST);
        far.map_or(Ok(()), |&Source { ratio, place, .. }| {
            Err(Incomparable::TooFar { workload, ratio, place })
        })
    }
}

const fn factor(default: &'static str, source: &'static str) -> Spec {
    number(0.01, 10_000.0, default)
        .unit("instructions")
        .source(source)
        .help("Instructions of the original for each one that the instrumented code reports.")
        .named(FACTOR, "")
}

const fn recorded(kib: u64, instructions_a_miss: f64) -> Original {
    Original::Recorded { cache: Bytes(kib << 10), instructions_a_miss }
}

const NO_SOURCE: &str = "ours: instructions as estimated in the workload's own code; no source of the pace";

const GAPBS: &str = "recorded: GAPBS 1.5 (g++ -O3)";
const GAPBS_KRON: &str = "GAPBS 1.5, Kronecker graph, one thread, recorded";
const GAPBS_URAND: &str = "GAPBS 1.5, uniform graph, one thread, recorded";
/// The degree of FreqTier's and HybridTier's graphs, and of GAPBS' own.
const SPARSE: Values = &[("scale", "17"), ("degree", "4"), ("threads", "1")];
const DENSE: Values = &[("scale", "15"), ("degree", "16"), ("threads", "1")];
/// The graph of FreqTier's trials, 2^13 times smaller.
const FREQTIER_GRAPH: Values = &[("scale", "18")];
/// How many of these trials stand for one of FreqTier's.
const FREQTIER_TRIAL: f64 = 8192.0;
/// FreqTier's server, which is HybridTier's too.
const FREQTIER: &[&str] = &["freqtier-cxl1", "freqtier-cxl2", "hybridtier"];

const fn sparse(place: &'static str, trials: u64, instructions_a_miss: f64, ratio: f64) -> Source {
    let original = recorded(256, instructions_a_miss);
    Source { place, set: SPARSE, units: ("trials", 1, trials), original, ratio }
}

const fn dense(place: &'static str, instructions_a_miss: f64, ratio: f64) -> Source {
    let original = recorded(128, instructions_a_miss);
    Source { place, set: DENSE, units: ("trials", 1, 2), original, ratio }
}

const fn freqtier_trial(place: &'static str, trials: u64, seconds: f64, ratio: f64) -> Source {
    let original = Original::Printed { machines: FREQTIER, units_a_second: FREQTIER_TRIAL / seconds };
    Source { place, set: FREQTIER_GRAPH, units: ("trials", 1, trials), original, ratio }
}

/// A row for each workload.
static PACES: &[Pace] = &[
    Pace {
        workload: "masim",
        factor: &[factor("4", "recorded: masim (gcc -O3)")],
        sources: &[Source {
            place: "DAMON's masim, sequential reads, recorded",
            set: &[("pattern", "sequential"), ("threads", "1"), ("footprint", "32M")],
            units: ("operations", 1_000_000, 2_000_000),
            original: recorded(256, 16.0),
            ratio: 1.0,
        }],
    },
    Pace {
        workload: "gups",
        factor: &[factor("5.12", "recorded: HeMem's gups-hotset-move (gcc -O3)")],
        sources: &[Source {
            place: "HeMem's GUPS with a hot set, one thread, recorded",
            set: &[("footprint", "16M"), ("threads", "1"), ("hot_region", "0.125"), ("moves", "0")],
            units: ("operations", 300_000, 1_200_000),
            original: recorded(256, 57.1),
            ratio: 1.0,
        }],
    },
    Pace {
        workload: "cachelib-cdn",
        factor: &[],
        sources: &[Source {
            place: "FreqTier Table II: 1.015 Mop/s all local, 16 threads",
            set: &[("footprint", "32M")],
            units: ("operations", 20_000, 60_000),
            original: Original::Printed { machines: FREQTIER, units_a_second: 1.015e6 },
            ratio: 1.0,
        }],
    },
    Pace {
        workload: "cachelib-social",
        factor: &[],
        sources: &[Source {
            place: "FreqTier Table III: 5.9 Mop/s all local, 16 threads",
            set: &[("footprint", "32M")],
            units: ("operations", 400_000, 800_000),
            original: Original::Printed { machines: FREQTIER, units_a_second: 5.9e6 },
            ratio: 0.89,
        }],
    },
    Pace {
        workload: "btree",
        factor: &[factor("1.3", "recorded: Mitosis' btree (gcc -O3)")],
        sources: &[Source {
            place: "Mitosis' btree with distinct keys, one thread, recorded",
            set: &[("footprint", "9600K"), ("threads", "1")],
            units: ("operations", 100_000, 300_000),
            original: recorded(256, 33.4),
            ratio: 1.0,
        }],
    },
    Pace { workload: "silo", factor: &[factor("1", NO_SOURCE)], sources: &[] },
    Pace { workload: "flexkvs", factor: &[factor("1", NO_SOURCE)], sources: &[] },
    Pace {
        workload: "redis",
        factor: &[factor("4.48", "recorded: redis-server 7.0 (Debian)")],
        sources: &[Source {
            place: "redis-server 7.0 under YCSB-C's HGETALL, recorded (user mode)",
            set: &[("footprint", "19M")],
            units: ("operations", 5_000, 15_000),
            original: recorded(256, 654.0),
            ratio: 1.0,
        }],
    },
    Pace { workload: "social-network", factor: &[factor("1", NO_SOURCE)], sources: &[] },
    Pace {
        workload: "gapbs-bfs-kron",
        factor: &[factor("4.3", GAPBS)],
        sources: &[
            sparse(GAPBS_KRON, 5, 58.2, 1.0),
            freqtier_trial("FreqTier Table IV: 6.57 s a trial all local, 16 threads", 4, 6.57, 2.12),
        ],
    },
    Pace {
        workload: "gapbs-bfs-urand",
        factor: &[factor("3.27", GAPBS)],
        sources: &[sparse(GAPBS_URAND, 5, 59.2, 1.0)],
    },
    Pace {
        workload: "gapbs-cc-kron",
        factor: &[factor("4.07", GAPBS)],
        sources: &[
            sparse(GAPBS_KRON, 5, 56.3, 1.0),
            freqtier_trial("FreqTier Table IV: 10.87 s a trial all local, 16 threads", 4, 10.87, 2.09),
        ],
    },
    Pace {
        workload: "gapbs-cc-urand",
        factor: &[factor("3.76", GAPBS)],
        sources: &[sparse(GAPBS_URAND, 5, 55.6, 1.0)],
    },
    Pace {
        workload: "gapbs-pr-kron",
        factor: &[factor("1.47", GAPBS)],
        sources: &[sparse(GAPBS_KRON, 2, 20.7, 1.0)],
    },
    Pace {
        workload: "gapbs-pr-urand",
        factor: &[factor("1.48", GAPBS)],
        sources: &[sparse(GAPBS_URAND, 2, 13.1, 1.0)],
    },
    Pace {
        workload: "gapbs-bc-kron",
        factor: &[factor("2.88", GAPBS)],
        sources: &[
            sparse(GAPBS_KRON, 2, 22.8, 1.0),
            freqtier_trial("FreqTier Table IV: 417.7 s a trial all local, 16 threads", 2, 417.7, 1.17),
        ],
    },
    Pace {
        workload: "gapbs-bc-urand",
        factor: &[factor("3.05", GAPBS)],
        sources: &[sparse(GAPBS_URAND, 2, 15.3, 1.0)],
    },
    Pace {
        workload: "gapbs-sssp-kron",
        factor: &[factor("3.23", GAPBS)],
        sources: &[dense(GAPBS_KRON, 44.1, 1.0)],
    },
    Pace {
        workload: "gapbs-sssp-urand",
        factor: &[factor("3.51", GAPBS)],
        sources: &[dense(GAPBS_URAND, 37.2, 1.0)],
    },
    Pace {
        workload: "gapbs-tc-kron",
        factor: &[factor("1.83", GAPBS)],
        sources: &[dense(GAPBS_KRON, 168.0, 1.0)],
    },
    Pace {
        workload: "gapbs-tc-urand",
        factor: &[factor("2.04", GAPBS)],
        sources: &[dense(GAPBS_URAND, 89.1, 1.0)],
    },
    Pace {
        workload: "graph500",
        factor: &[factor("1.61", "recorded: Graph500 2.1.4, omp-csr (gcc -O3)")],
        sources: &[Source {
            place: "Graph500 2.1.4 (omp-csr), one thread, recorded",
            set: &[("scale", "15"), ("threads", "1")],
            units: ("roots", 4, 12),
            original: recorded(256, 28.0),
            ratio: 1.0,
        }],
    },
    Pace {
        workload: "xsbench",
        factor: &[factor("1.72", "recorded: XSBench 20 (gcc -O3)")],
        sources: &[Source {
            place: "XSBench 20, 24 grid points a nuclide, one thread, recorded",
            set: &[("footprint", "12600K"), ("threads", "1")],
            units: ("operations", 3_400, 10_200),
            original: recorded(256, 62.1),
            ratio: 1.0,
        }],
    },
    Pace {
        // FreqTier's Table V prints seconds a round, but not of how many rows.
        workload: "xgboost",
        factor: &[factor("4.03", "recorded: XGBoost 3.2 (PyPI)")],
        sources: &[Source {
            place: "XGBoost 3.2 (hist, 32 bins) on 20,000 rows of Criteo's form, one thread, recorded",
            set: &[("footprint", "9940K"), ("threads", "1")],
            units: ("operations", 2, 5),
            original: recorded(256, 146.3),
            ratio: 1.0,
        }],
    },
    Pace {
        workload: "liblinear",
        factor: &[factor("2.31", "recorded: liblinear 2.50 (g++ -O3)")],
        sources: &[Source {
            place: "liblinear 2.50 (-s 6) on 20,000 samples of KDD12's form, recorded",
            set: &[("footprint", "8830K"), ("threads", "1"), ("tolerance", "0")],
            units: ("operations", 3, 7),
            original: recorded(256, 19.7),
            ratio: 1.0,
        }],
    },
    Pace { workload: "bwaves", factor: &[factor("1", NO_SOURCE)], sources: &[] },
    Pace { workload: "roms", factor: &[factor("1", NO_SOURCE)], sources: &[] },
    Pace { workload: "gpt2", factor: &[factor("1", NO_SOURCE)], sources: &[] },
    Pace { workload: "dlrm", factor: &[factor("1", NO_SOURCE)], sources: &[] },
    Pace { workload: "deepsjeng", factor: &[], sources: &[] },
    Pace {
        workload: "xz",
        factor: &[factor("27.2", "recorded: xz 5.4 (Debian)")],
        sources: &[Source {
            place: "xz 5.4 -8 with a dictionary of 128 KiB on source code, one thread, recorded",
            set: &[("footprint", "18200K"), ("threads", "1")],
            units: ("operations", 1, 2),
            original: recorded(256, 839.0),
            ratio: 1.0,
        }],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ALL;

    #[test]
    fn every_workload_has_one_row_and_every_row_a_workload() {
        let rows: Vec<&str> = PACES.iter().map(|pace| pace.workload).collect();
        let names: Vec<&str> = ALL.iter().map(|workload| workload.name).collect();
        assert_eq!(rows, names);
    }

    #[test]
    fn settings_of_sources_are_valid() {
        for (workload, source) in
            ALL.iter().flat_map(|&one| one.pace().sources.iter().map(move |of| (one, of)))
        {
            let mut parameters = workload.parameters();
            source.set.iter().for_each(|(key, value)| parameters.set(key, value).expect(workload.name));
            let (units, short, long) = source.units;
            assert!(short < long, "{}", workload.name);
            parameters.set(units, &long.to_string()).expect(workload.name);
            workload.build(&parameters, 1).expect(workload.name);
        }
    }

    #[test]
    fn a_pace_too_far_from_a_source_or_without_one_is_not_comparable() {
        let source = |ratio| Source { ratio, ..dense("a place", 1.0, 1.0) };
        let check = |sources| Pace { workload: "x", factor: &[], sources }.comparable("pact");
        let near: &'static [Source] = Box::leak(Box::new([source(1.5), source(0.67)]));
        let far: &'static [Source] = Box::leak(Box::new([source(1.0), source(0.66)]));
        assert_eq!(check(near), Ok(()));
        let words = |sources| check(sources).expect_err("not comparable").to_string();
        assert_eq!(words(&[]), "not comparable: no source says how fast x is");
        assert!(
            words(far).starts_with("not comparable: x runs at 0.66 times the pace of a place"),
            "{}",
            words(far)
        );
    }
}
