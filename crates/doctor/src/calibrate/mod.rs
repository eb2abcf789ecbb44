//! Measures what a machine profile holds of a machine: latency and bandwidth of each tier, and what faults,
//! moves and samples cost. Each is repeated in rounds that lie apart ([`Series`]).
//!
//! A pointer chase on memory bound to a tier's nodes gives its latency, alone and beside other threads that
//! load and store at a pace. With a PMU, `k` is the cost of a miss that nothing overlaps (PACT section
//! 4.2.1): chases of 1 to 8 chains, with as many overlapping misses, and a stream give misses, MLP = T1 / T2
//! and stalls, and `k` is the slope of stalls over misses / MLP through the origin.

mod contention;
mod costs;
mod fit;
mod memory;
mod pattern;
mod samples;
mod steady;
mod traffic;

use std::path::Path;
use std::time::Duration;

use isotherm_core::{Bytes, Counters, Nanos};
use isotherm_linux::perf::counters::PmuCounters;
use isotherm_linux::source::AccessSource;
use isotherm_linux::{LinuxError, clock};

use contention::Contention;
use costs::Costs;
pub use fit::{Fit, Run, fit};
use memory::Arena;
pub use memory::usual_size;
pub use pattern::Pattern;
pub use steady::{STEADY, Series};
pub use traffic::{Curve, Point};

/// Measurements of every pattern for `k`.
const REPETITIONS: usize = 3;
const LINKS: usize = 1 << 20;

/// Rounds, the time between two of them, and chases in each.
const ROUNDS: usize = 6;
const PAUSE: Duration = Duration::from_millis(1000);
const CHASES: usize = 3;
/// Processors that others may keep busy meanwhile: this many, or this share of all.
const OTHERS: f64 = 0.25;
const OTHERS_SHARE: f64 = 0.02;

/// Unit of a measured number, as a profile writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Nanoseconds,
    Gigabytes,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Gigabytes => "GB/s",
        }
    }
}

/// A measured number of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// Its place in the profile, such as `tier.0.latency`.
    pub path: String,
    pub unit: Unit,
    /// How it was measured, in a few words.
    pub how: &'static str,
    pub series: Series,
}

impl Number {
    /// Returns the value as a profile writes it.
    pub fn text(&self) -> String {
        match self.unit {
            Unit::Nanoseconds => format!("{}ns", self.series.value().round().max(1.0)),
            Unit::Gigabytes => format!("{:.2}GB/s", self.series.value()),
        }
    }
}

/// Numbers measured so far, and those that cannot be measured here, each with the reason.
#[derive(Debug, Clone, Default, PartialEq)]
struct Numbers {
    found: Vec<Number>,
    lacking: Vec<(String, String)>,
}

impl Numbers {
    /// Adds the repetitions of one round.
    fn add(&mut self, path: &str, unit: Unit, how: &'static str, round: Vec<f64>) {
        if let Some(number) = self.found.iter_mut().find(|number| number.path == path) {
            return number.series.add(round);
        }
        let mut series = Series::default();
        series.add(round);
        self.found.push(Number { path: path.into(), unit, how, series });
    }

    fn lack(&mut self, path: &str, why: String) {
        if self.lacking.iter().all(|(known, _)| known != path) {
            self.lacking.push((path.into(), why));
        }
    }
}

/// Measurements of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    pub numbers: Vec<Number>,
    /// Latency under load of each tier; none where no second processor could make it.
    pub curves: Vec<Curve>,
    /// Fit of `k` for each tier; none without the counters, or where they stopped.
    pub fits: Vec<Option<Fit>>,
    /// Numbers that cannot be measured here, and why.
    pub lacking: Vec<(String, String)>,
    /// Processors that others kept busy meanwhile.
    pub others: f64,
}

impl Calibration {
    /// Returns why nothing measured is the machine's own, which has so many processors; `None` if it is.
    pub fn disturbed(&self, processors: usize) -> Option<String> {
        let most = OTHERS.max(OTHERS_SHARE * processors as f64);
        (self.others > most).then(|| {
            let others = self.others;
            format!("other programs kept {others:.1} processors busy meanwhile, expected at most {most:.2}")
        })
    }
}

/// Tools that a machine may lack, each with the reason if it does.
pub struct Tools<'a> {
    /// Counters of this thread.
    pub counters: Result<&'a mut PmuCounters, String>,
    /// Source that samples with the PMU.
    pub samples: Result<Box<dyn AccessSource>, String>,
}

/// Measures the machine for some twenty seconds; tiers are given by their nodes, each with the size of
/// two pieces of memory to measure on. Calls `progress` before each round with its number and that of all.
///
/// # Errors
/// If memory cannot be had or bound, or the machine does not tell how busy it is.
pub fn measure(
    tiers: &[(Vec<u32>, Bytes)],
    tools: Tools<'_>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Calibration, LinuxError> {
    let root = Path::new("/");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut memory = Vec::new();
    for (nodes, size) in tiers {
        let mut chase = Arena::new(*size, Some(nodes))?;
        Pattern::Chase(1).prepare(&mut chase);
        memory.push((chase, Arena::new(*size, Some(nodes))?));
    }
    let mut curves = if processors > 1 { vec![Curve::new(processors - 1); tiers.len()] } else { Vec::new() };
    let (mut numbers, mut costs) = (Numbers::default(), Costs::new()?);
    let nodes: Vec<u32> = tiers.iter().filter_map(|(nodes, _)| nodes.first().copied()).collect();
    let two = nodes.get(..2).map(|nodes| (nodes[0], nodes[1]));
    let mut samples = tools.samples;
    let mut others = 0.0;
    for round in 0..ROUNDS {
        progress(round + 1, ROUNDS);
        if round > 0 {
            std::thread::sleep(PAUSE);
        }
        let contention = Contention::begin(root)?;
        for (index, (chase, load)) in memory.iter_mut().enumerate() {
            let how = "a chase through memory that no prefetcher follows";
            numbers.add(&format!("tier.{index}.latency"), Unit::Nanoseconds, how, latencies(chase));
            if let Some(curve) = curves.get_mut(index) {
                curve.round(chase, load);
            }
        }
        if let [(chase, load), rest @ ..] = &mut memory[..] {
            let from = rest.first_mut().map_or(chase, |(chase, _)| chase);
            costs.round(&mut numbers, (from, load), two)?;
        }
        if let (Ok(source), [(chase, _), ..]) = (&mut samples, &mut memory[..]) {
            samples::round(&mut numbers, chase, source.as_mut())?;
        }
        others += contention.end(root)? / ROUNDS as f64;
    }
    let fits = match tools.counters {
        Ok(counters) => memory
            .iter_mut()
            .enumerate()
            .map(|(tier, (chase, _))| Ok(fit(&runs(chase, tier, counters)?)))
            .collect::<Result<_, LinuxError>>()?,
        Err(why) => {
            (0..tiers.len()).for_each(|tier| numbers.lack(&format!("tier.{tier}.k"), why.clone()));
            vec![None; tiers.len()]
        }
    };
    if curves.is_empty() {
        let why = "it needs a second processor for the load";
        (0..tiers.len()).for_each(|tier| numbers.lack(&format!("tier.{tier}.curve"), why.into()));
    }
    if let Err(why) = samples {
        ["costs.sample", "costs.buffered_sample"]
            .into_iter()
            .for_each(|path| numbers.lack(path, why.clone()));
    }
    Ok(Calibration { numbers: numbers.found, curves, fits, lacking: numbers.lacking, others })
}

/// Returns the nanoseconds of a load that depends on the one before it, some times.
fn latencies(chase: &mut Arena) -> Vec<f64> {
    // Warms up the TLB and the processor's clock.
    Pattern::Chase(1).run(chase, LINKS / 4);
    let time = |_| {
        let start = clock::monotonic();
        let links = Pattern::Chase(1).run(chase, LINKS);
        (clock::monotonic() - start).0 as f64 / links as f64
    };
    (0..CHASES).map(time).collect()
}

/// Runs every pattern on the arena's memory, which lies on `tier`; `counters` follow the calling thread.
fn runs(arena: &mut Arena, tier: usize, counters: &mut PmuCounters) -> Result<Vec<Run>, LinuxError> {
    let mut runs = Vec::new();
    for pattern in Pattern::ALL {
        pattern.prepare(arena);
        pattern.run(arena, LINKS / 4);
        for _ in 0..REPETITIONS {
            let before = read(counters, tier)?;
            pattern.run(arena, LINKS);
            runs.push(read(counters, tier)? - before);
        }
    }
    Ok(runs)
}

/// Reads a tier's counts so far. All stalls of the thread are the tier's, as it uses no other memory.
fn read(counters: &mut PmuCounters, tier: usize) -> Result<Run, LinuxError> {
    let mut counted = Counters::default();
    counters.count(&mut counted)?;
    let stall = counted.tiers.iter().map(|tier| tier.stall).sum::<Nanos>();
    let tier = counted.tiers.get(tier).copied().unwrap_or_default();
    Ok(Run {
        misses: tier.load_misses,
        occupancy: tier.load_occupancy,
        busy: tier.load_busy,
        stall: stall.0,
        multiplexed: counted.multiplexed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_of_a_number_make_one_series() {
        let mut numbers = Numbers::default();
        for round in [vec![910.0], vec![905.5, 906.5]] {
            numbers.add("costs.fault", Unit::Nanoseconds, "how", round);
            numbers.lack("costs.sample", "no PMU".into());
        }
        numbers.add("costs.copy_bandwidth", Unit::Gigabytes, "how", vec![4.127]);
        let texts: Vec<_> = numbers.found.iter().map(Number::text).collect();
        assert_eq!(texts, ["908ns", "4.13GB/s"]);
        assert_eq!((numbers.found[0].series.repetitions(), numbers.lacking.len()), (3, 1));
    }

    /// Load that stays changes every repetition alike.
    #[test]
    fn what_is_not_measured_alone_is_doubted() {
        let of = |others| Calibration {
            numbers: Vec::new(),
            curves: Vec::new(),
            fits: Vec::new(),
            lacking: Vec::new(),
            others,
        };
        assert_eq!(of(0.1).disturbed(2), None);
        assert!(of(1.7).disturbed(2).is_some_and(|why| why.contains("1.7 processors")));
        assert_eq!(of(1.7).disturbed(104), None, "a large machine has others for that");
    }
}
