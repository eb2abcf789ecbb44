//! Latency beside load: threads load and store at a pace, and a chain of loads is timed meanwhile.
//!
//! A store to a line reads the line first and writes it back later, so a thread that stores to one line of
//! `n` moves `n` lines in and one out.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use isotherm_core::Nanos;
use isotherm_linux::clock;

use super::Series;
use super::memory::{Arena, LINE};
use super::pattern::Pattern;
use super::steady::STEADY;

const LINE_BYTES: f64 = 64.0;
/// Lines of a burst, between which a thread waits.
const BURST: usize = 512;
/// Links between two looks at the clock.
const LINKS: usize = 4096;
/// Repetitions of a point in a round, the time of each, and before it until the load is there.
const REPETITIONS: usize = 3;
const TIME: Duration = Duration::from_millis(30);
const SETTLE: Duration = Duration::from_millis(10);
/// Parts of the highest load at which latency is measured.
const PACES: [f64; 4] = [0.25, 0.5, 0.75, 1.0];
/// Share by which a point's bandwidth must exceed that of the one before it.
const APART: f64 = 0.02;

/// Mixes of reads and writes, by how many lines there are for each one stored to; none for 0.
const MIXES: [usize; 3] = [1, 3, 0];

/// Returns the share of reads in the bytes that a mix moves, in percent.
fn read_percent(lines_a_store: usize) -> f64 {
    match lines_a_store {
        0 => 100.0,
        lines => 100.0 * lines as f64 / (lines + 1) as f64,
    }
}

/// A latency, and the bandwidth beside which it was measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Point {
    /// Share of reads, in percent.
    pub read_percent: f64,
    /// In GB/s.
    pub bandwidth: Series,
    /// In nanoseconds.
    pub latency: Series,
}

/// Curves of one tier: for each mix the idle latency first, then by pace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    pub points: Vec<Point>,
    /// Threads that made the load.
    pub threads: usize,
    /// Time of a burst at each mix's highest load, measured first.
    bursts: Vec<Nanos>,
}

impl Curve {
    pub(super) fn new(threads: usize) -> Self {
        let of_mix = |mix: usize| {
            let point = Point { read_percent: read_percent(mix), ..Point::default() };
            std::iter::repeat_n(point, 1 + PACES.len())
        };
        Self { points: MIXES.into_iter().flat_map(of_mix).collect(), threads, bursts: Vec::new() }
    }

    /// Measures every point once.
    pub(super) fn round(&mut self, chase: &mut Arena, load: &mut Arena) {
        if self.bursts.is_empty() {
            let burst = |mix| {
                let (bandwidth, _) = measure(chase, load, self.threads, mix, Nanos(0));
                let bytes = bytes_of(BURST as f64 * self.threads as f64, mix);
                Nanos((bytes / bandwidth.max(f64::MIN_POSITIVE)) as u64)
            };
            self.bursts = MIXES.map(burst).to_vec();
        }
        let mut points = self.points.iter_mut();
        for (mix, burst) in MIXES.into_iter().zip(&self.bursts) {
            let idle = (0, Nanos(0));
            let paced = PACES.map(|pace| {
                // At the highest load nothing waits.
                let interval = if pace < 1.0 { (burst.0 as f64 / pace) as u64 } else { 0 };
                (self.threads, Nanos(interval))
            });
            for ((threads, interval), point) in std::iter::once(idle).chain(paced).zip(&mut points) {
                let measured = (0..REPETITIONS).map(|_| measure(chase, load, threads, mix, interval));
                let (bandwidths, latencies) = measured.unzip();
                point.bandwidth.add(bandwidths);
                point.latency.add(latencies);
            }
        }
    }

    /// Returns the points as a profile writes a curve, without those between the idle latency and the highest
    /// load that were not steady.
    ///
    /// # Errors
    /// An end that was not steady, or points that are no curve: a latency that falls with load.
    pub fn text(&self) -> Result<String, String> {
        let mut rows: Vec<(f64, f64, f64)> = Vec::new();
        let shares = self.points.chunk_by(|a, b| a.read_percent == b.read_percent);
        let placed = shares.flat_map(|points| {
            let end = points.len() - 1;
            points.iter().enumerate().map(move |(place, point)| (place == 0 || place == end, point))
        });
        for (is_end, point) in placed {
            let (reads, bandwidth, latency) =
                (point.read_percent, point.bandwidth.value(), point.latency.value());
            let doubt = point.bandwidth.doubt("GB/s").or_else(|| point.latency.doubt("ns"));
            if let Some(doubt) = doubt {
                if !is_end {
                    continue;
                }
                return Err(format!("at {reads:.0} % reads and {bandwidth:.1} GB/s: {doubt}"));
            }
            match rows.last_mut().filter(|last| last.0 == reads) {
                Some(&mut (_, before, highest)) if latency < highest * (1.0 - STEADY) => {
                    return Err(format!(
                        "at {reads:.0} % reads the latency falls from {highest:.0} ns at {before:.1} GB/s to \
                         {latency:.0} ns at {bandwidth:.1}"
                    ));
                }
                // Less than the measurements' own error apart: one point.
                Some((_, before, highest)) if bandwidth < *before * (1.0 + APART) => {
                    *highest = highest.max(latency);
                }
                Some(&mut (.., highest)) => rows.push((reads, bandwidth, latency.max(highest))),
                None => rows.push((reads, bandwidth, latency)),
            }
        }
        if let Some(lone) = rows.chunk_by(|a, b| a.0 == b.0).find(|points| points.len() < 2) {
            return Err(format!("at {:.0} % reads the threads' load added no bandwidth", lone[0].0));
        }
        let row =
            |(reads, bandwidth, latency): &(f64, f64, f64)| format!("{reads:.0},{bandwidth:.2},{latency:.1}");
        Ok(rows.iter().map(row).collect::<Vec<_>>().join("; "))
    }

    /// Returns the largest spread and scatter of the steady points, of all where none is.
    pub fn agreement(&self) -> String {
        let steady = |point: &&Point| point.bandwidth.doubt("").or(point.latency.doubt("")).is_none();
        let none = !self.points.iter().any(|point| steady(&point));
        let all = || {
            let kept = self.points.iter().filter(|point| none || steady(point));
            kept.flat_map(|point| [&point.bandwidth, &point.latency])
        };
        let most = |of: fn(&Series) -> f64| 100.0 * all().map(of).fold(0.0, f64::max);
        format!(
            "{} repetitions of each point, rounds within {:.1} %, half of all within {:.1} %",
            self.points.first().map_or(0, |point| point.latency.repetitions()),
            most(Series::spread),
            most(Series::scatter)
        )
    }
}

/// Returns the bytes that reading so many lines moves, writes of the mix included.
fn bytes_of(lines: f64, mix: usize) -> f64 {
    LINE_BYTES * lines * if mix == 0 { 1.0 } else { 1.0 + 1.0 / mix as f64 }
}

/// Chases beside so many threads of load, each with an interval between the starts of two bursts; 0 for none.
/// Returns the bandwidth of all in GB/s, and the time of a link in nanoseconds.
fn measure(chase: &mut Arena, load: &mut Arena, threads: usize, mix: usize, interval: Nanos) -> (f64, f64) {
    let stop = AtomicBool::new(false);
    let done: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
    let words = load.used_words();
    let share = (words.len() / threads.max(1) / LINE).max(1) * LINE;
    std::thread::scope(|scope| {
        for (words, done) in words.chunks_mut(share).zip(&done) {
            scope.spawn(|| drive(words, mix, interval, done, &stop));
        }
        let mut until = |time: Duration| {
            let start = clock::monotonic();
            let mut links = 0;
            loop {
                links += Pattern::Chase(1).run(chase, LINKS);
                let elapsed = clock::monotonic() - start;
                if elapsed.0 >= time.as_nanos() as u64 {
                    return (links as f64, elapsed.0 as f64);
                }
            }
        };
        let lines = || done.iter().map(|done| done.load(Ordering::Relaxed)).sum::<u64>();
        until(SETTLE);
        let before = lines();
        let (links, time) = until(TIME);
        let loaded = (lines() - before) as f64;
        stop.store(true, Ordering::Relaxed);
        ((bytes_of(loaded, mix) + LINE_BYTES * links) / time, time / links)
    })
}

/// Loads lines in order until it is stopped, and stores to some of them.
fn drive(words: &mut [u64], mix: usize, interval: Nanos, done: &AtomicU64, stop: &AtomicBool) {
    let lines = words.len() / LINE;
    let (mut line, mut sum, mut next) = (0, 0_u64, clock::monotonic());
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..BURST {
            let word = &mut words[line * LINE];
            sum = sum.wrapping_add(*word);
            if mix > 0 && line.is_multiple_of(mix) {
                *word = sum;
            }
            line = if line + 1 < lines { line + 1 } else { 0 };
        }
        done.fetch_add(BURST as u64, Ordering::Relaxed);
        if interval.0 > 0 {
            next.0 += interval.0;
            let now = clock::monotonic();
            // What was missed is not caught up with: it would be a burst at the highest load.
            next = Nanos(next.0.max(now.0.saturating_sub(interval.0)));
            while clock::monotonic() < next && !stop.load(Ordering::Relaxed) {
                spin_loop();
            }
        }
    }
    black_box(sum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm_core::Bytes;

    fn point(read_percent: f64, bandwidth: f64, latency: f64) -> Point {
        let mut point = Point { read_percent, ..Point::default() };
        for factor in [0.99, 1.0, 1.01] {
            point.bandwidth.add(vec![bandwidth * factor]);
            point.latency.add(vec![latency * factor]);
        }
        point
    }

    #[test]
    fn steady_points_become_a_curve() {
        let mut points = vec![
            point(50.0, 0.5, 100.0),
            point(50.0, 5.0, 98.0),
            point(50.0, 9.0, 140.0),
            point(50.0, 9.1, 150.0),
        ];
        points.extend([point(100.0, 0.5, 100.0), point(100.0, 8.0, 120.0)]);
        let curve = Curve { points, threads: 1, bursts: Vec::new() };
        // A latency within the error below the idle one is the idle one; two points at one bandwidth are one.
        let expected = "50,0.50,100.0; 50,5.00,100.0; 50,9.00,150.0; 100,0.50,100.0; 100,8.00,120.0";
        assert_eq!(curve.text().as_deref(), Ok(expected));
    }

    #[test]
    fn points_that_make_no_curve_are_refused() {
        let text =
            |points: &[Point]| Curve { points: points.to_vec(), threads: 1, bursts: Vec::new() }.text();
        let falls = text(&[point(100.0, 0.5, 100.0), point(100.0, 8.0, 80.0)]);
        assert!(falls.is_err_and(|why| why.contains("falls from 100 ns")));
        let same = text(&[point(100.0, 0.5, 100.0), point(100.0, 0.5, 101.0)]);
        assert!(same.is_err_and(|why| why.contains("added no bandwidth")));
        let mut unsteady = point(100.0, 8.0, 100.0);
        unsteady.latency.add(vec![300.0]);
        let between = [point(100.0, 0.5, 100.0), unsteady.clone(), point(100.0, 9.0, 120.0)];
        assert_eq!(text(&between).as_deref(), Ok("100,0.50,100.0; 100,9.00,120.0"));
        let refused = text(&[point(100.0, 0.5, 100.0), unsteady]);
        assert!(refused.is_err_and(|why| why.starts_with("at 100 % reads and 8.0 GB/s: ")));
    }

    #[test]
    fn a_paced_thread_loads_at_its_pace() {
        let arena = || Arena::new(Bytes(1 << 20), None).expect("memory");
        let (mut chase, mut load) = (arena(), arena());
        Pattern::Chase(1).prepare(&mut chase);
        // 512 lines a millisecond are 33 MB/s, and with a write for each line twice that.
        let of = |chase: &mut Arena, load: &mut Arena, threads, mix| {
            let (bandwidth, latency) = measure(chase, load, threads, mix, Nanos(1_000_000));
            bandwidth - LINE_BYTES / latency
        };
        assert!(of(&mut chase, &mut load, 0, 0).abs() < 1e-9);
        // Other tests run beside this one, and may take all of its time.
        let mut seen = |mix| {
            let mut rates = (0..200).map(|_| of(&mut chase, &mut load, 1, mix));
            rates.find(|&rate| rate > 1e-9).unwrap_or_default()
        };
        let (reads, mixed) = (seen(0), seen(1));
        assert!(reads > 0.0 && reads < 0.04, "{reads}");
        assert!(mixed > 0.0 && mixed < 0.08, "{mixed}");
        let stored = load.used_words().iter().step_by(LINE).filter(|&&word| word != 1).count();
        assert!(stored > 0, "a mix stores");
    }
}
