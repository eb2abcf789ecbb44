//! Compares the modelled memory with DRAMsim3, a cycle-accurate simulator, on the same stream: a chase of
//! pointers beside generators that load and store at a set pace. `make dram-judge` runs it and prints the
//! table of `docs/reference/model.md`.
//!
//! DRAMsim3 ends at the memory controller. What lies between it and a core is taken for constant: the
//! difference of the two idle latencies.

#[path = "../../crates/machine/tests/support/mod.rs"]
mod support;

use std::path::Path;

use dramsim3::MemorySystem;
use isotherm_machine::{Curve, LINE_BYTES};
use support::{Bench, Measured, gap};

/// Servers whose DDR4 was measured: curve, channels, DRAMsim3's configuration, GB/s of a channel.
const SERVERS: &[(&str, f64, &str, f64)] = &[
    ("xeon-5218-ddr4", 6.0, "DDR4_8Gb_x8_2933.ini", 23.46),
    ("epyc-7742-ddr4", 8.0, "DDR4_8Gb_x8_3200.ini", 25.6),
];
const READS: &[f64] = &[1.0, 0.75, 0.5];
/// Parts of a channel's peak that the generators ask for.
const LOADS: &[f64] = &[0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.2];
const BLOCKS: usize = 100;

/// One channel of DRAMsim3 under the stream.
struct Channel {
    memory: MemorySystem,
    generators: Vec<Generator>,
    /// Lines to be written back.
    dirty: Vec<u64>,
    random: u64,
    /// When the chase asked for its line, in nanoseconds; its address until the controller takes it.
    asked: f64,
    waiting: Option<u64>,
    links: u64,
    waited: f64,
    lines: u64,
    ticks: u64,
}

/// A thread that streams through memory of its own.
#[derive(Clone, Default)]
struct Generator {
    due: f64,
    in_flight: usize,
    line: u64,
    stores: f64,
}

const GENERATORS: usize = 16;
const MISSES: usize = 16;
const REGION_BITS: u32 = 26;
const REGION_LINES: u64 = (1 << REGION_BITS) / LINE_BYTES;
const DIRTY: usize = 64;

impl Channel {
    fn new(config: &Path, scratch: &Path) -> Self {
        let memory = MemorySystem::new(config, scratch).expect("a configuration");
        let mut channel = Self {
            memory,
            generators: Vec::new(),
            dirty: Vec::new(),
            random: 1,
            asked: 0.0,
            waiting: None,
            links: 0,
            waited: 0.0,
            lines: 0,
            ticks: 0,
        };
        for index in 0..GENERATORS {
            let line = channel.next_random() % REGION_LINES;
            let stores = index as f64 / GENERATORS as f64;
            channel.generators.push(Generator { line, stores, ..Generator::default() });
        }
        channel.waiting = Some(channel.chase());
        channel
    }

    fn next_random(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }

    /// Returns a random line of the chase's own memory.
    fn chase(&mut self) -> u64 {
        let line = self.next_random() % REGION_LINES;
        ((GENERATORS as u64) << REGION_BITS) + line * LINE_BYTES
    }

    /// Runs for `time` nanoseconds in which the generators ask for `bandwidth` GB/s.
    fn run(&mut self, reads: f64, bandwidth: f64, time: f64) -> Measured {
        (self.links, self.waited, self.lines) = (0, 0.0, 0);
        let distance = GENERATORS as f64 * LINE_BYTES as f64 / reads / bandwidth;
        let ticks = (time / self.memory.tck()) as u64;
        (0..ticks).for_each(|_| self.tick(reads, distance));
        let bytes = (self.lines * LINE_BYTES) as f64;
        let time = ticks as f64 * self.memory.tck();
        Measured { bandwidth: bytes / time, latency: self.waited / self.links as f64 }
    }

    fn tick(&mut self, reads: f64, distance: f64) {
        let mut done = Vec::new();
        self.memory.tick(|address, write| {
            if !write {
                done.push((address >> REGION_BITS) as usize);
            }
        });
        self.ticks += 1;
        let now = self.ticks as f64 * self.memory.tck();
        for index in done {
            if let Some(generator) = self.generators.get_mut(index) {
                generator.in_flight -= 1;
            } else {
                self.links += 1;
                self.waited += now - self.asked;
                self.asked = now;
                self.waiting = Some(self.chase());
            }
        }
        if let Some(address) = self.waiting.filter(|&address| self.memory.can_add(address, false)) {
            self.memory.add(address, false);
            self.waiting = None;
            self.lines += 1;
        }
        let first = self.ticks as usize % GENERATORS;
        (first..first + GENERATORS).for_each(|index| self.generate(index % GENERATORS, reads, distance, now));
        if let Some(&address) = self.dirty.first()
            && self.memory.can_add(address, true)
        {
            self.memory.add(self.dirty.remove(0), true);
            self.lines += 1;
        }
    }

    /// Lets a generator have its next miss if it is due and may.
    fn generate(&mut self, index: usize, reads: f64, distance: f64, now: f64) {
        let generator = &mut self.generators[index];
        let address = ((index as u64) << REGION_BITS) + generator.line * LINE_BYTES;
        let may = generator.due <= now && generator.in_flight < MISSES && self.dirty.len() < DIRTY;
        if !may || !self.memory.can_add(address, false) {
            return;
        }
        self.memory.add(address, false);
        self.lines += 1;
        generator.in_flight += 1;
        generator.due = (generator.due + distance).max(now - distance);
        generator.line = (generator.line + 1) % REGION_LINES;
        generator.stores += (1.0 - reads) / reads;
        if generator.stores >= 1.0 {
            generator.stores -= 1.0;
            // The line that leaves the cache was stored to long ago.
            self.dirty.push(address ^ (LINE_BYTES * REGION_LINES / 2));
        }
    }
}

/// Returns the latency on the line between two points around a bandwidth.
fn at(points: &[Measured], bandwidth: f64) -> Option<f64> {
    let above = points.iter().position(|point| point.bandwidth >= bandwidth)?.max(1);
    let (low, high) = (points[above - 1], points[above]);
    let weight = ((bandwidth - low.bandwidth) / (high.bandwidth - low.bandwidth)).max(0.0);
    Some(low.latency + (high.latency - low.latency) * weight)
}

fn main() {
    let configs = std::env::args_os().nth(1).expect("usage: isotherm-dram-judge FOLDER_OF_CONFIGURATIONS");
    let scratch = tempfile::tempdir().expect("a folder");
    println!(
        "| curve, share of reads | end of the curve, GB/s a channel: modelled | DRAMsim3 | latency up to 90 % of the lower: mean distance | largest |"
    );
    println!("|---|---|---|---|---|");
    for &(name, channels, config, peak) in SERVERS {
        let (read, write) = Curve::builtin(name).expect("a curve").bandwidths();
        let [read, write] = [read, write].map(|rate| format!("{:.0}B/s", rate / channels));
        for &reads in READS {
            let config = Path::new(&configs).join(config);
            let judge = |load: &f64| {
                let mut channel = Channel::new(&config, scratch.path());
                channel.run(reads, load * peak, 20_000.0);
                channel.run(reads, load * peak, 200_000.0)
            };
            let model = |load: &f64| {
                let settings = [
                    ("tier.0.curve", name),
                    ("tier.0.read_bandwidth", &read),
                    ("tier.0.write_bandwidth", &write),
                ];
                let (mut bench, gap) = (Bench::new(&settings), gap(reads, load * peak));
                bench.run(reads, gap, BLOCKS);
                bench.run(reads, gap, BLOCKS)
            };
            let judged: Vec<_> = LOADS.iter().map(judge).collect();
            let modelled: Vec<_> = LOADS.iter().map(model).collect();
            let end = |points: &[Measured]| points.iter().map(|point| point.bandwidth).fold(0.0, f64::max);
            let ends = [end(&modelled), end(&judged)];
            let path = modelled[0].latency - judged[0].latency;
            let limit = 0.9 * ends[0].min(ends[1]);
            let distances: Vec<_> = modelled
                .iter()
                .filter(|point| point.bandwidth <= limit)
                .filter_map(|point| Some((point, at(&judged, point.bandwidth)? + path)))
                .map(|(point, other)| {
                    eprintln!(
                        "{name} {reads} {:.2} GB/s: {:.1} against {other:.1} ns",
                        point.bandwidth, point.latency
                    );
                    (point.latency / other - 1.0).abs()
                })
                .collect();
            let mean = distances.iter().sum::<f64>() / distances.len() as f64;
            let worst = distances.iter().copied().fold(0.0, f64::max);
            println!(
                "| `{name}`, {:.0} % | {:.1} | {:.1} | {:.0} % | {:.0} % |",
                reads * 100.0,
                ends[0],
                ends[1],
                mean * 100.0,
                worst * 100.0
            );
            eprintln!(
                "{name} {reads}: DRAMsim3 answers in {:.1} ns when idle, the path adds {path:.1} ns",
                judged[0].latency
            );
        }
    }
}
