//! Error bound of a device's sketch against its true error, over the run of a workload (NeoMem, Fig. 15c).
//!
//! `cargo run --release -p isotherm-sim --example sketch_error -- FILE.svg [WORKLOAD [KEY=VALUE]...]`;
//! `gapbs-pr-kron scale=24` by default. All memory lies behind the device, which counts the reads that miss
//! the last-level cache, as in the simulator. A clear interval is 40 million of them; an incomplete one at
//! the end is left out. Each width has its own device, cleared with the interval.

mod picture;

use std::collections::HashMap;
use std::error::Error;
use std::ops::ControlFlow;

use isotherm_core::parameters::Parameters as WorkloadParameters;
use isotherm_neoprof::registers::RESET;
use isotherm_neoprof::{Accuracy, Device, Model, Parameters, Registers, Request, accuracy};
use isotherm_sim::run_workload;
use isotherm_trace::Rows;
use isotherm_workloads::Workload;

/// Reads between two clears.
const INTERVAL: u64 = 40_000_000;
/// Maximum number of intervals.
const INTERVALS: u64 = 25;
const DELTA: f64 = 0.25;
const WIDTHS: [u32; 5] = [32, 64, 128, 256, 512];
/// Cache lines of a page, as a power of two.
const LINES: u32 = 6;

/// Reads that the devices have counted, and their errors at the end of each interval.
struct Run {
    devices: Vec<Model>,
    results: Vec<Vec<Accuracy>>,
    /// Frame of each page.
    numbers: HashMap<u64, u32>,
    /// The page last looked up, and its frame.
    last: (u64, u32),
    /// Reads of each frame in this interval.
    counts: Vec<u32>,
    /// Pages read in each interval.
    touched: Vec<usize>,
    reads: u64,
    requests: Vec<Request>,
}

impl Run {
    fn new() -> Result<Self, Box<dyn Error>> {
        let device = |kilo: &u32| Model::new(Parameters { width: kilo << 10, ..Parameters::default() });
        Ok(Self {
            devices: WIDTHS.iter().map(device).collect::<Result<_, _>>()?,
            results: vec![Vec::new(); WIDTHS.len()],
            numbers: HashMap::new(),
            last: (u64::MAX, 0),
            counts: Vec::new(),
            touched: Vec::new(),
            reads: 0,
            requests: Vec::new(),
        })
    }

    /// Passes misses to the devices. Ends the run after enough intervals.
    fn pass(&mut self, rows: &Rows) -> ControlFlow<()> {
        for &line in &rows.line {
            let page = self.number(line >> LINES);
            self.counts[page as usize] += 1;
            self.requests.push(Request { page: page.into(), write: false });
            self.reads += 1;
            if self.reads.is_multiple_of(INTERVAL) {
                self.end_interval();
            }
        }
        self.send();
        if self.touched.len() as u64 >= INTERVALS {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Returns the frame of a page: frames are given in the order of first access.
    fn number(&mut self, page: u64) -> u32 {
        if page != self.last.0 {
            let next = self.counts.len() as u32;
            let number = *self.numbers.entry(page).or_insert(next);
            if number == next {
                self.counts.push(0);
            }
            self.last = (page, number);
        }
        self.last.1
    }

    fn send(&mut self) {
        for device in &mut self.devices {
            device.accesses(&self.requests);
        }
        self.requests.clear();
    }

    fn end_interval(&mut self) {
        self.send();
        for (device, results) in self.devices.iter_mut().zip(&mut self.results) {
            results.push(accuracy(device, &self.counts, DELTA));
            device.write(RESET, 1);
        }
        self.touched.push(self.counts.iter().filter(|&&count| count > 0).count());
        self.counts.fill(0);
    }

    fn print(&self, name: &str) {
        let gibibytes = |pages: usize| pages as f64 / f64::from(1 << 18);
        let touched = self.touched.iter().copied();
        let mean = touched.clone().sum::<usize>() / self.touched.len().max(1);
        println!(
            "{name}: {} intervals; {:.2} GiB, of which {:.2} to {:.2} GiB are read in an interval, {:.2} \
                in the mean\n",
            self.touched.len(),
            gibibytes(self.counts.len()),
            gibibytes(touched.clone().min().unwrap_or(0)),
            gibibytes(touched.max().unwrap_or(0)),
            gibibytes(mean),
        );
        println!("| W | bound: least, mean, greatest | mean error | pages beyond the bound: mean, most |");
        println!("|---|---|---|---|");
        for (kilo, results) in WIDTHS.iter().zip(&self.results) {
            let mean = |of: &dyn Fn(&Accuracy) -> f64| {
                results.iter().map(of).sum::<f64>() / results.len().max(1) as f64
            };
            let bounds = results.iter().map(|result| result.bound);
            let most = results.iter().map(|result| result.beyond).fold(0.0, f64::max);
            println!(
                "| {kilo}K | {}, {:.0}, {} | {:.2} | {:.2} %, {:.2} % |",
                bounds.clone().min().unwrap_or(0),
                mean(&|result| f64::from(result.bound)),
                bounds.max().unwrap_or(0),
                mean(&|result| result.mean_error),
                100.0 * mean(&|result| result.beyond),
                100.0 * most,
            );
        }
    }

    /// Returns each width with its bound after each interval.
    fn series(&self) -> Vec<(String, Vec<u32>)> {
        let bounds = |results: &Vec<Accuracy>| results.iter().map(|result| result.bound).collect();
        WIDTHS
            .iter()
            .zip(&self.results)
            .map(|(kilo, results)| (format!("{kilo}K"), bounds(results)))
            .collect()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("expected a file for the picture")?;
    let named = arguments.next();
    let workload = isotherm_workloads::find(named.as_deref().unwrap_or("gapbs-pr-kron"))?;
    let settings: Vec<String> = if named.is_some() { arguments.collect() } else { vec!["scale=24".into()] };
    let parameters = set(workload, &settings)?;
    let mut run = Run::new()?;
    run_workload(workload, &parameters, 1, u64::MAX, None, |rows| run.pass(rows))?;
    run.print(&format!("{} {}", workload.name, settings.join(" ")));
    std::fs::write(file, picture::draw(&run.series())?)?;
    Ok(())
}

fn set(workload: &Workload, settings: &[String]) -> Result<WorkloadParameters, Box<dyn Error>> {
    let mut parameters = workload.parameters();
    for setting in settings {
        let (key, value) = setting.split_once('=').ok_or("expected KEY=VALUE")?;
        parameters.set(key, value)?;
    }
    Ok(parameters)
}
