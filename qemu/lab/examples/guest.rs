//! The first process of the tests' virtual machine: runs programs with known accesses and prints what the
//! virtual PMU reports of them. It is also those programs: `guest touch ...` makes the accesses.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use isotherm_linux::virtual_pmu::VirtualPmu;
use isotherm_virtual_pmu::{Control, Process, Record};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Address of every toucher's buffer.
const BASE: u64 = 0x10_0000_0000;
const LINE: u64 = 64;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((verb, rest)) if verb == "touch" => touch(rest),
        Some((verb, rest)) if verb == "fork" => fork(rest),
        Some((verb, _)) if verb == "nothing" => Ok(()),
        _ => {
            let outcome = first_process();
            if let Err(error) = &outcome {
                println!("LAB failed {error}");
            }
            power_off()
        }
    };
    if let Err(error) = outcome {
        eprintln!("guest: {error}");
        std::process::exit(1);
    }
}

fn power_off() -> ! {
    // SAFETY: accesses no memory of this process.
    unsafe {
        libc::sync();
        libc::reboot(libc::LINUX_REBOOT_CMD_POWER_OFF);
    }
    unreachable!("the machine is off")
}

fn mount(kind: &CStr, target: &CStr) {
    let _ = std::fs::create_dir(Path::new(target.to_str().unwrap_or_default()));
    // SAFETY: terminated strings; no data.
    let done = unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

fn first_process() -> Outcome {
    mount(c"proc", c"/proc");
    mount(c"sysfs", c"/sys");
    let line = std::fs::read_to_string("/proc/cmdline")?;
    let wanted = line.split_whitespace().find_map(|word| word.strip_prefix("lab=")).unwrap_or("");
    if let Some(arguments) = wanted.strip_prefix("plain:") {
        // Without a virtual PMU, for comparison.
        let mut toucher = Toucher::new("touch", &arguments.split(':').collect::<Vec<_>>())?;
        let begun = Instant::now();
        toucher.begin()?;
        toucher.end()?;
        println!("LAB took {arguments} {} ms", begun.elapsed().as_millis());
        return Ok(());
    }
    let mut pmu = VirtualPmu::open(Path::new("/"))?;
    println!("LAB open tiers={} vcpus={} capacity={}", pmu.tiers(), pmu.vcpus(), pmu.capacity());
    if let Some(arguments) = wanted.strip_prefix("counted:") {
        alone(&mut pmu, "counted", &arguments.split(':').collect::<Vec<_>>())?;
    }
    for word in wanted.split(',').filter(|word| !word.starts_with("counted:")) {
        let found = SCENARIOS.iter().find(|(name, _)| *name == word);
        let (name, scenario) =
            found.ok_or_else(|| format!("no scenario {word}: build this example again"))?;
        scenario(&mut pmu, name)?;
    }
    println!("LAB done");
    Ok(())
}

type Scenario = fn(&mut VirtualPmu, &str) -> Outcome;

const SCENARIOS: &[(&str, Scenario)] = &[
    ("sequential", |pmu, name| alone(pmu, name, &["load", "16", "4", "0"])),
    ("fits", |pmu, name| alone(pmu, name, &["load", "1", "8", "0"])),
    ("stores", |pmu, name| alone(pmu, name, &["store", "8", "3", "1"])),
    ("random", |pmu, name| alone(pmu, name, &["random", "64", "2", "1"])),
    ("samples", samples),
    ("overflow", overflow),
    ("pair", pair),
    ("children", children),
    ("twins", twins),
];

/// Process that makes known accesses, ready to begin.
struct Toucher {
    child: Child,
    start: ChildStdin,
}

impl Toucher {
    fn new(verb: &str, arguments: &[&str]) -> Result<Self, Box<dyn std::error::Error>> {
        let mut command = Command::new("/proc/self/exe");
        command.arg(verb).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (start, ready) = (child.stdin.take().ok_or("no input")?, child.stdout.take().ok_or("no output")?);
        let mut line = String::new();
        BufReader::new(ready).read_line(&mut line)?;
        // Its last steps to sleep belong to no epoch: one open when it comes into scope would count them.
        while !asleep(child.id())? {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Self { child, start })
    }

    fn tgid(&self) -> u32 {
        self.child.id()
    }

    fn begin(&mut self) -> Outcome {
        Ok(self.start.write_all(b"\n")?)
    }

    fn end(mut self) -> Outcome {
        drop(self.start);
        if self.child.wait()?.success() { Ok(()) } else { Err("a toucher failed".into()) }
    }
}

/// Returns whether the process waits: its state follows its name in brackets.
fn asleep(pid: u32) -> Result<bool, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    Ok(stat.rsplit(") ").next().is_some_and(|fields| fields.starts_with('S')))
}

fn run(pmu: &mut VirtualPmu, name: &str, mut touchers: Vec<Toucher>) -> Outcome {
    let tgids: Vec<u32> = touchers.iter().map(Toucher::tgid).collect();
    pmu.set_scope(&tgids)?;
    let epoch = pmu.begin_epoch()?;
    println!("LAB begin {name} epoch={epoch} tgids={tgids:?}");
    let begun = Instant::now();
    touchers.iter_mut().try_for_each(Toucher::begin)?;
    touchers.into_iter().try_for_each(Toucher::end)?;
    println!("LAB took {name} {} ms", begun.elapsed().as_millis());
    let counters = pmu.counters()?;
    for (tier, count) in counters.tiers.iter().enumerate().take(pmu.tiers()) {
        println!("LAB tier {name} {tier} loads={} stores={}", count.load_misses, count.store_misses);
    }
    println!("LAB counters {name} accesses={} time={}", counters.accesses, counters.time);
    Ok(())
}

fn alone(pmu: &mut VirtualPmu, name: &str, arguments: &[&str]) -> Outcome {
    let toucher = Toucher::new("touch", arguments)?;
    run(pmu, name, vec![toucher])
}

fn drain(pmu: &mut VirtualPmu) -> Vec<Record> {
    std::iter::from_fn(|| pmu.pop()).collect()
}

fn sample(pmu: &mut VirtualPmu, period: u64) -> Outcome {
    Ok(pmu.sample([period; 8], Control::all_events(true), false, true)?)
}

/// Samples known accesses: their addresses are exactly a period of lines apart.
fn samples(pmu: &mut VirtualPmu, name: &str) -> Outcome {
    const PERIOD: u64 = 100;
    let bytes = 16u64 << 20;
    let toucher = Toucher::new("touch", &["load", "16", "2", "1"])?;
    let tgid = toucher.tgid();
    drain(pmu);
    sample(pmu, PERIOD)?;
    run(pmu, name, vec![toucher])?;
    sample(pmu, 0)?;
    let records = drain(pmu);
    let inside: Vec<&Record> =
        records.iter().filter(|record| (BASE..BASE + bytes).contains(&record.address)).collect();
    let apart = |pair: &[&Record]| (pair[1].address + bytes - pair[0].address) % bytes == PERIOD * LINE;
    let right = inside.iter().filter(|record| {
        record.process == Process::Tgid(tgid) && record.tier == 1 && !record.store && record.weight == 100
    });
    println!(
        "LAB samples {name} all={} inside={} right={} apart={} ordered={}",
        records.len(),
        inside.len(),
        right.count(),
        inside.windows(2).filter(|pair| apart(pair)).count(),
        records.is_sorted_by_key(|record| record.time)
    );
    Ok(())
}

/// Takes more samples than the ring holds.
fn overflow(pmu: &mut VirtualPmu, name: &str) -> Outcome {
    drain(pmu);
    let toucher = Toucher::new("touch", &["load", "16", "2", "0"])?;
    let before = pmu.lost();
    sample(pmu, 1)?;
    run(pmu, name, vec![toucher])?;
    sample(pmu, 0)?;
    let lost = pmu.lost() - before;
    println!("LAB overflow {name} kept={} lost={lost}", drain(pmu).len());
    Ok(())
}

/// Runs two processes at the same addresses at the same time, and one that is not followed.
fn pair(pmu: &mut VirtualPmu, name: &str) -> Outcome {
    let fast = Toucher::new("touch", &["load", "8", "4", "0"])?;
    let slow = Toucher::new("touch", &["store", "4", "6", "1"])?;
    let mut other = Toucher::new("touch", &["load", "8", "4", "1"])?;
    let (a, b) = (fast.tgid(), slow.tgid());
    drain(pmu);
    sample(pmu, 50)?;
    other.begin()?;
    run(pmu, name, vec![fast, slow])?;
    other.end()?;
    sample(pmu, 0)?;
    let mut seen: BTreeMap<(u32, u8, bool), u64> = BTreeMap::new();
    for record in drain(pmu) {
        let Process::Tgid(tgid) = record.process else { return Err("a sample without a process".into()) };
        if (BASE..BASE + (8 << 20)).contains(&record.address) {
            *seen.entry((tgid, record.tier, record.store)).or_default() += 1;
        }
    }
    let of = |tgid, tier, store| seen.get(&(tgid, tier, store)).copied().unwrap_or(0);
    println!(
        "LAB pair {name} fast={a} slow={b} a={} b={} kinds={}",
        of(a, 0, false),
        of(b, 1, true),
        seen.len()
    );
    Ok(())
}

/// Runs two processes at the same addresses, whose buffers fit the cache together: neither hits the other's
/// lines.
fn twins(pmu: &mut VirtualPmu, name: &str) -> Outcome {
    let toucher = || Toucher::new("touch", &["load", "1", "1", "0"]);
    run(pmu, name, vec![toucher()?, toucher()?])
}

/// Runs a process whose child makes the accesses; the child is counted from its first one.
fn children(pmu: &mut VirtualPmu, name: &str) -> Outcome {
    let toucher = Toucher::new("fork", &["load", "8", "2", "1"])?;
    run(pmu, name, vec![toucher])
}

/// Waits for the parent, then lets a child make the accesses.
fn fork(arguments: &[String]) -> Outcome {
    println!("ready");
    std::io::stdin().read_exact(&mut [0])?;
    let rest: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut toucher = Toucher::new("touch", &rest)?;
    toucher.begin()?;
    toucher.end()
}

/// Maps memory at [`BASE`] on a node, fills it, waits for the parent, and touches it. Arguments: how, MiB,
/// rounds, node.
fn touch(arguments: &[String]) -> Outcome {
    let [how, megabytes, rounds, node] = arguments else { return Err("touch HOW MIB ROUNDS NODE".into()) };
    let (bytes, rounds) = (megabytes.parse::<u64>()? << 20, rounds.parse::<u64>()?);
    let memory = map(bytes as usize, node.parse()?)?;
    memory.iter_mut().step_by(512).for_each(|word| *word = 1);
    if how == "gather" {
        grow_tlb(memory)?;
    }
    println!("ready");
    std::io::stdout().flush()?;
    std::io::stdin().read_exact(&mut [0])?;
    let sum = match how.as_str() {
        "load" => (0..rounds).map(|_| loads(memory)).sum(),
        "dense" => (0..rounds).map(|_| dense(memory)).sum(),
        "store" => (0..rounds).map(|round| stores(memory, round)).sum(),
        "random" => random(memory, rounds * bytes / LINE),
        "gather" => gather(memory, rounds * bytes / LINE),
        other => return Err(format!("no way to touch: {other}").into()),
    };
    std::hint::black_box::<u64>(sum);
    Ok(())
}

const WORDS: usize = (LINE / 8) as usize;

#[inline(never)]
fn loads(memory: &[u64]) -> u64 {
    memory.iter().step_by(WORDS).fold(0, |sum, word| sum + std::hint::black_box(*word))
}

#[inline(never)]
fn dense(memory: &[u64]) -> u64 {
    // SAFETY: inside the slice; volatile, so that each word is one load.
    (0..memory.len()).fold(0, |sum, at| sum + unsafe { memory.as_ptr().add(at).read_volatile() })
}

#[inline(never)]
fn stores(memory: &mut [u64], value: u64) -> u64 {
    memory.iter_mut().step_by(WORDS).for_each(|word| *word = std::hint::black_box(value));
    value
}

/// Loads lines in the order of a generator that visits each once before it repeats, since their number is a
/// power of two.
#[inline(never)]
fn random(memory: &[u64], count: u64) -> u64 {
    let lines = (memory.len() / WORDS) as u64;
    let (mut at, mut sum) = (1u64, 0);
    for _ in 0..count {
        at = at.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f) & (lines - 1);
        sum += std::hint::black_box(memory[at as usize * WORDS]);
    }
    sum
}

/// Loads as [`random`] does, without any other access.
#[inline(never)]
fn gather(memory: &[u64], count: u64) -> u64 {
    let lines = (memory.len() / WORDS) as u64;
    let (mut at, mut sum) = (1u64, 0u64);
    for _ in 0..count {
        at = at.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let line = (at >> 20) & (lines - 1);
        // SAFETY: a line inside the slice; volatile, so that it is one load.
        sum = sum.wrapping_add(unsafe { memory.as_ptr().add(line as usize * WORDS).read_volatile() });
    }
    sum
}

/// Makes QEMU's software TLB grow to hold all pages: it considers that when it is flushed, as other processes
/// run.
fn grow_tlb(memory: &[u64]) -> Outcome {
    for _ in 0..24 {
        std::hint::black_box(memory.iter().step_by(512).fold(0u64, |sum, word| sum.wrapping_add(*word)));
        Command::new("/proc/self/exe").arg("nothing").status()?;
    }
    Ok(())
}

fn map(bytes: usize, node: u64) -> Result<&'static mut [u64], std::io::Error> {
    const BIND: i32 = 2;
    let (access, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
    );
    // SAFETY: a new mapping that only this function knows; the node mask is only read.
    unsafe {
        let memory = libc::mmap(BASE as *mut _, bytes, access, flags, -1, 0);
        if memory == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let nodes = 1u64 << node;
        if libc::syscall(libc::SYS_mbind, memory, bytes, BIND, &raw const nodes, 64, 0) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(std::slice::from_raw_parts_mut(memory.cast(), bytes / 8))
    }
}
