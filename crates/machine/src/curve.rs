//! Memory under load: a family of curves, each the latency by bandwidth at one share of reads.
//!
//! Problem: a loaded memory answers later, by an amount that depends on its bandwidth and on the share of
//! reads in it, and a program that waits longer asks for less. Near saturation the curve is so steep that
//! the latency of the last moment, applied to the next, swings between idle and full.
//!
//! Approach: the state is not the bandwidth but what is in flight, bandwidth x latency, which a program
//! that waits for its misses holds constant. Each curve gives exactly one point with so much in flight,
//! because bandwidth and latency grow together, and that point is the latency of the next moment. A step
//! never passes the fixed point.
//!
//! Between two shares of reads, the time per byte is linear in the share, as it is where each read and each
//! write takes a time of its own; the latency is linear at equal parts of the curves' ends. Beyond the
//! outermost shares the nearest curve holds.

use isotherm_core::names::advice;

use crate::profile::ProfileError;

/// A named family of curves, or one that a profile holds itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Name of a built-in curve, or the points as a profile writes them.
    pub(crate) text: String,
    points: Vec<Point>,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Share of reads in the bytes moved, in percent.
    pub read_percent: f64,
    /// Reads and writes together, in GB/s.
    pub bandwidth: f64,
    /// In nanoseconds.
    pub latency: f64,
}

macro_rules! curves {
    ($($name:literal),+) => {
        &[$(($name, include_str!(concat!("../../../machines/curves/", $name, ".csv")))),+]
    };
}

const BUILTIN: &[(&str, &str)] = curves![
    "cxl-model",
    "e3s-cxl",
    "epyc-7742-ddr4",
    "grace-lpddr5",
    "turin-ddr5",
    "vistara-cxl",
    "xeon-5218-ddr4",
    "xeon-8480-ddr5",
    "xeon-9480-hbm"
];
const HEADER: &str = "read_percent,bandwidth_gb_s,latency_ns";
const POINT: &str = "a share of reads in %, a bandwidth in GB/s and a latency in ns";
const MAX_POINTS: usize = 1000;
/// Share by which a measured latency may be below one at less bandwidth.
const NOISE: f64 = 0.02;
const GIGA: f64 = 1e9;
const PS_PER_NS: f64 = 1e3;
const PS_PER_S: f64 = 1e12;

impl Curve {
    /// Returns a built-in curve by its name, or one from points: `READ_PERCENT,GB_PER_S,NS; ...`.
    ///
    /// # Errors
    /// One line: an unknown name; a point that is no three numbers; bandwidths that do not grow, or a
    /// latency that falls with them.
    pub(crate) fn parse(text: &str, file: &str, path: &str) -> Result<Self, ProfileError> {
        let fault = |what: &str| ProfileError::curve(file, path, what);
        let text = text.trim();
        if text.contains([',', ';']) {
            let rows = text.split([';', '\n']).filter(|row| !row.trim().is_empty());
            let points = points(rows).map_err(|what| fault(&what))?;
            return Ok(Self { text: written(&points), points });
        }
        let Some((name, data)) = BUILTIN.iter().find(|(name, _)| *name == text) else {
            let advice = advice(text, Self::names());
            return Err(fault(&format!("there is no curve '{}'; {advice}", shortened(text))));
        };
        let rows = data.lines().filter(|line| !line.starts_with('#') && *line != HEADER);
        let points = points(rows).map_err(|what| fault(&format!("{name}: {what}")))?;
        Ok(Self { text: (*name).into(), points })
    }

    /// Returns the names of the built-in curves, in alphabetical order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// Returns a built-in curve's points; `None` if there is none of that name.
    pub fn builtin(name: &str) -> Option<Self> {
        BUILTIN.iter().any(|(known, _)| *known == name).then(|| Self::parse(name, name, "curve").ok())?
    }

    /// Returns the points, by share of reads and bandwidth.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Returns the least latency, in nanoseconds.
    pub fn idle_latency(&self) -> f64 {
        self.points.iter().map(|point| point.latency).fold(f64::INFINITY, f64::min)
    }

    /// Returns the highest rates of reads and of writes, in bytes per second. Where all accesses read, a
    /// write is taken for as fast as a read.
    pub fn bandwidths(&self) -> (f64, f64) {
        let highest = |part: fn(&Point) -> f64| self.points.iter().map(part).fold(0.0, f64::max) * GIGA;
        let reads = highest(|point| point.bandwidth * point.read_percent / 100.0);
        let writes = highest(|point| point.bandwidth * (1.0 - point.read_percent / 100.0));
        (if reads > 0.0 { reads } else { writes }, if writes > 0.0 { writes } else { reads })
    }
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{},{}", self.read_percent, self.bandwidth, self.latency)
    }
}

/// Returns points as a profile writes them.
fn written(points: &[Point]) -> String {
    points.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Cuts foreign text to a message's length.
fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Reads points, checks each share's curve and sorts them by share.
fn points<'a>(rows: impl Iterator<Item = &'a str>) -> Result<Vec<Point>, String> {
    let mut points: Vec<Point> = Vec::new();
    for (index, row) in rows.enumerate() {
        let fault = |what: String| format!("point {}: {what}", index + 1);
        if index == MAX_POINTS {
            return Err(format!("a curve has at most {MAX_POINTS} points"));
        }
        let point = point(row).ok_or_else(|| fault(format!("'{}' is not {POINT}", shortened(row.trim()))))?;
        let same = |other: &&Point| other.read_percent == point.read_percent;
        let before = points.iter().filter(same);
        if let Some(last) = before.clone().next_back()
            && point.bandwidth <= last.bandwidth
        {
            return Err(fault(format!(
                "{} GB/s at {} % reads do not exceed the {} before",
                point.bandwidth, point.read_percent, last.bandwidth
            )));
        }
        let highest = before.map(|other| other.latency).fold(0.0, f64::max);
        if point.latency < highest * (1.0 - NOISE) {
            return Err(fault(format!(
                "{} ns at {} % reads are below the {highest} ns at less bandwidth",
                point.latency, point.read_percent
            )));
        }
        points.push(Point { latency: point.latency.max(highest), ..point });
    }
    points.sort_by(|a, b| a.read_percent.total_cmp(&b.read_percent));
    let lone = points.chunk_by(|a, b| a.read_percent == b.read_percent).find(|points| points.len() < 2);
    match lone {
        None if points.is_empty() => Err("a curve has at least two points".into()),
        None => Ok(points),
        Some(lone) => Err(format!("at {} % reads there is one point, a curve has two", lone[0].read_percent)),
    }
}

fn point(row: &str) -> Option<Point> {
    let mut numbers = row.split(',').map(|text| text.trim().parse::<f64>().ok());
    let point = [(); 3].map(|()| numbers.next().flatten());
    let [Some(read_percent), Some(bandwidth), Some(latency)] = point else { return None };
    let valid = (0.0..=100.0).contains(&read_percent)
        && (0.0..=1e6).contains(&bandwidth)
        && (1.0..=1e9).contains(&latency)
        && numbers.next().is_none();
    valid.then_some(Point { read_percent, bandwidth, latency })
}

/// A family of curves in the form that a tier computes with: rates in bytes per picosecond, latencies as
/// what load adds to the idle one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Family {
    /// In ascending order of the share of reads.
    shares: Vec<Share>,
    /// Parts of a curve's bandwidth at which all of them are given, from 0 to 1.
    loads: Vec<f64>,
}

#[derive(Debug, Clone)]
struct Share {
    /// Share of reads.
    reads: f64,
    /// Picoseconds a byte at the curve's end.
    time_per_byte: f64,
    /// Added latency in picoseconds at each of the family's loads.
    delays: Vec<f64>,
}

/// Knots of a curve that is not measured.
const STEPS: usize = 64;
/// Least distance between two knots, well above the error of a quotient.
const APART: f64 = 1e-6;

impl Family {
    /// Returns measured curves.
    pub(crate) fn measured(curve: &Curve) -> Self {
        let idle = curve.idle_latency();
        let shares: Vec<&[Point]> = curve.points.chunk_by(|a, b| a.read_percent == b.read_percent).collect();
        let end = |points: &[Point]| points.last().map_or(0.0, |point| point.bandwidth);
        let mut loads: Vec<f64> = shares
            .iter()
            .flat_map(|points| points.iter().map(|point| point.bandwidth / end(points)))
            .chain([0.0])
            .collect();
        loads.sort_by(|a, b| b.total_cmp(a));
        loads.dedup_by(|a, b| *b - *a < APART);
        loads.reverse();
        let share = |points: &&[Point]| Share {
            reads: points[0].read_percent / 100.0,
            time_per_byte: PS_PER_S / (end(points) * GIGA),
            delays: loads
                .iter()
                .map(|load| (latency_at(points, load * end(points)) - idle) * PS_PER_NS)
                .collect(),
        };
        Self { shares: shares.iter().map(share).collect(), loads }
    }

    /// Returns the curves of a memory of which only the ends are known: reads and writes with a bandwidth
    /// each, a latency that rises to `factor` times the idle one, in picoseconds, with the cube of the
    /// load. Measured curves are flat up to half the bandwidth and steep near its end, as a cube is.
    pub(crate) fn analytic(read_bandwidth: f64, write_bandwidth: f64, idle: f64, factor: f64) -> Self {
        let [read, write] = [read_bandwidth, write_bandwidth].map(|rate| PS_PER_S / rate.max(1.0));
        let loads: Vec<f64> = (0..=STEPS).map(|step| step as f64 / STEPS as f64).collect();
        let delays: Vec<f64> = loads.iter().map(|load| idle * (factor - 1.0) * load.powi(3)).collect();
        // The busier direction limits; both are busy where reads have their bandwidth's share.
        let both = write / (read + write);
        let share = |reads: f64| Share {
            reads,
            time_per_byte: (read * reads).max(write * (1.0 - reads)),
            delays: delays.clone(),
        };
        Self { shares: [0.0, both, 1.0].map(share).into(), loads }
    }

    /// Returns the picoseconds that a byte takes at the end of the curve for this share of reads.
    pub(crate) fn time_per_byte(&self, reads: f64) -> f64 {
        let (low, high, weight) = self.around(reads);
        mix(low.time_per_byte, high.time_per_byte, weight)
    }

    /// Returns the latency that load adds to the `idle` one, in picoseconds, where bytes x latency / time is
    /// `in_flight` and `reads` is the share of reads in it.
    pub(crate) fn delay(&self, reads: f64, in_flight: f64, idle: f64) -> f64 {
        let (low, high, weight) = self.around(reads);
        let wanted = in_flight * mix(low.time_per_byte, high.time_per_byte, weight);
        let delay = |knot: usize| mix(low.delays[knot], high.delays[knot], weight);
        let held = |knot: usize| self.loads[knot] * (idle + delay(knot));
        let (mut below, mut above) = (0, self.loads.len() - 1);
        if wanted >= held(above) {
            return delay(above);
        }
        while above - below > 1 {
            let middle = (below + above) / 2;
            if held(middle) <= wanted { below = middle } else { above = middle }
        }
        // Between two knots the delay is linear in the load, so load x latency is a parabola.
        let (start, first) = (self.loads[below], delay(below));
        let slope = (delay(above) - first) / (self.loads[above] - start);
        let linear = idle + first - slope * start;
        let root = (linear * linear + 4.0 * slope * wanted).sqrt();
        // Two forms of one solution, each without a difference of near equals.
        let load =
            if linear > 0.0 { 2.0 * wanted / (linear + root) } else { (root - linear) / (2.0 * slope) };
        first + slope * (load - start).max(0.0)
    }

    /// Returns the two curves around a share of reads, and the weight of the second.
    fn around(&self, reads: f64) -> (&Share, &Share, f64) {
        let next = self.shares.partition_point(|share| share.reads < reads);
        let high = &self.shares[next.min(self.shares.len() - 1)];
        let low = &self.shares[next.saturating_sub(1)];
        let apart = high.reads - low.reads;
        let weight = if apart > 0.0 { (reads - low.reads) / apart } else { 0.0 };
        (low, high, weight)
    }
}

fn mix(low: f64, high: f64, weight: f64) -> f64 {
    low + (high - low) * weight
}

/// Returns the latency at a bandwidth up to the curve's end, in nanoseconds; below the first point, its own.
fn latency_at(points: &[Point], bandwidth: f64) -> f64 {
    let next = points.partition_point(|point| point.bandwidth < bandwidth).min(points.len() - 1);
    let (low, high) = (points[next.saturating_sub(1)], points[next]);
    let apart = high.bandwidth - low.bandwidth;
    let weight = if apart > 0.0 { ((bandwidth - low.bandwidth) / apart).clamp(0.0, 1.0) } else { 0.0 };
    mix(low.latency, high.latency, weight)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> String {
        Curve::parse(text, "mine.toml", "tier.0.curve").expect_err(text).to_string()
    }

    #[test]
    fn every_builtin_is_valid_and_says_where_it_comes_from() {
        for (name, data) in BUILTIN {
            let curve = Curve::builtin(name).expect(name);
            assert!(data.starts_with("# ") && data.contains("\n# ") && curve.points().len() > 10, "{name}");
            let again = Curve::parse(&written(&curve.points), "", "").expect(name);
            assert_eq!(again.points, curve.points, "{name}");
        }
        assert_eq!(Curve::builtin("none"), None);
    }

    #[test]
    fn the_directory_holds_the_builtins_and_nothing_else() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/curves");
        let entries = std::fs::read_dir(directory).expect("it is there");
        let name_of = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.expect("readable").file_name().to_string_lossy().into_owned()
        };
        let mut files: Vec<_> = entries.map(name_of).collect();
        files.sort();
        assert_eq!(files, Curve::names().map(|name| format!("{name}.csv")).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_no_curve_is_refused_in_one_line() {
        for (text, expected) in [
            ("cxl-modle", "there is no curve 'cxl-modle'; did you mean cxl-model?"),
            ("", "there is no curve ''; there are cxl-model, e3s-cxl, epyc-7742-ddr4,"),
            (
                "50,0,100; 50,ten,110",
                "point 2: '50,ten,110' is not a share of reads in %, a bandwidth in GB/s",
            ),
            ("50,0,100; 50,10", "point 2: '50,10' is not"),
            ("50,0,100,1", "point 1: '50,0,100,1' is not"),
            ("101,0,100", "point 1: '101,0,100' is not"),
            ("50,-1,100", "point 1: '50,-1,100' is not"),
            ("50,0,0", "point 1: '50,0,0' is not"),
            ("50,0,nan", "point 1: '50,0,nan' is not"),
            ("50,0,100; 50,10,110; 50,10,120", "point 3: 10 GB/s at 50 % reads do not exceed the 10 before"),
            (
                "50,0,100; 60,5,100; 50,9,97",
                "point 3: 97 ns at 50 % reads are below the 100 ns at less bandwidth",
            ),
            ("50,0,100; 50,10,110; 60,0,100", "at 60 % reads there is one point, a curve has two"),
            (";", "a curve has at least two points"),
        ] {
            let error = error(text);
            assert!(error.starts_with(&format!("mine.toml: tier.0.curve: {expected}")), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
        assert!(error(&"50,1,1;".repeat(1 << 20)).contains("point 2"));
        let long: Vec<_> = (0..=MAX_POINTS).map(|at| format!("50,{at},100")).collect();
        assert!(error(&long.join(";")).contains("at most 1000 points"));
    }

    #[test]
    fn a_latency_that_falls_within_the_noise_is_taken_for_the_one_before() {
        let curve = Curve::parse("50,0,100; 50,10,99; 50,20,98; 50,30,120", "", "").expect("noise");
        let latencies: Vec<_> = curve.points.iter().map(|point| point.latency).collect();
        assert_eq!(latencies, [100.0, 100.0, 100.0, 120.0]);
    }

    #[test]
    fn two_directions_are_exact_at_every_share() {
        let family = Family::analytic(30e9, 20e9, 100e3, 2.0);
        for percent in 0..=100 {
            let reads = f64::from(percent) / 100.0;
            let expected = (reads / 30e9).max((1.0 - reads) / 20e9) * PS_PER_S;
            assert!((family.time_per_byte(reads) / expected - 1.0).abs() < 1e-12, "{percent}");
        }
    }

    proptest! {
        #[test]
        fn the_delay_is_that_of_the_load_whose_bytes_are_in_flight(reads in 0.0..1.0_f64, load in 0.001..1.0_f64) {
            for name in Curve::names() {
                let curve = Curve::builtin(name).expect("its own name");
                let family = Family::measured(&curve);
                let idle = curve.idle_latency() * PS_PER_NS;
                // The delay at a load, found again from what this load and delay hold in flight.
                let end = family.loads.iter().position(|&knot| knot >= load).expect("up to 1");
                let (low, high, weight) = family.around(reads);
                let at = |knot: usize| mix(low.delays[knot], high.delays[knot], weight);
                let part = (load - family.loads[end - 1]) / (family.loads[end] - family.loads[end - 1]);
                let delay = mix(at(end - 1), at(end), part);
                let in_flight = load * (idle + delay) / family.time_per_byte(reads);
                let found = family.delay(reads, in_flight, idle);
                prop_assert!((found - delay).abs() <= 1e-6 * idle, "{name}: {found} against {delay}");
            }
        }
    }
}
