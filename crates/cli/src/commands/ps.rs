//! `isotherm ps`: programs that are tiered now, and the engines that do it.

use clap::Parser;
use isotherm_linux::process::lock::{Tiered, tiered};
use isotherm_linux::process::{Pid, ProcRoot};

use crate::args::{Cli, LiveArgs, PsArgs, Verb};
use crate::failure::Failure;
use crate::output::{listing, one_line, print};

/// Characters of a program's command line in the table.
const PROGRAM: usize = 30;

pub(crate) fn run(args: &PsArgs) -> Result<(), Failure> {
    let root = ProcRoot::default();
    let running: Vec<Running> =
        tiered(&root).map_err(Failure::failed)?.iter().map(|one| Running::read(&root, one)).collect();
    if args.json {
        return print(&format!("{:#}\n", running.iter().map(Running::json).collect::<serde_json::Value>()));
    }
    if running.is_empty() {
        return print("no program is tiered\n");
    }
    let mut table = listing(&["process", "engine", "policy", "control", "program"]);
    for Running { process, engine, policy, control, program } in &running {
        let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
        let program: String = one_line(program).chars().take(PROGRAM).collect();
        table.add_row([process.to_string(), engine.to_string(), known(policy), known(control), program]);
    }
    print(&format!("{table}\n"))
}

struct Running {
    process: u32,
    engine: u32,
    /// As it was started; `None` where its command line or environment cannot be read.
    policy: Option<String>,
    /// Socket that takes requests; an engine inside a program has none.
    control: Option<String>,
    program: String,
}

impl Running {
    fn read(root: &ProcRoot, &Tiered { process, engine }: &Tiered) -> Self {
        let command = words(root, process, "cmdline");
        let (policy, control) =
            if engine == process { (inside(root, process), None) } else { outside(root, engine) };
        Self { process: process.0, engine: engine.0, policy, control, program: command.join(" ") }
    }

    fn json(&self) -> serde_json::Value {
        let Self { process, engine, policy, control, program } = self;
        serde_json::json!({
            "process": process, "engine": engine, "policy": policy, "control": control, "program": program,
        })
    }
}

/// Returns the policy of an engine inside a program, from its environment.
fn inside(root: &ProcRoot, process: Pid) -> Option<String> {
    words(root, process, "environ")
        .iter()
        .find_map(|one| one.strip_prefix("ISOTHERM_POLICY=").map(str::to_owned))
}

/// Returns policy and socket of a `run` or `attach`, from its command line.
fn outside(root: &ProcRoot, engine: Pid) -> (Option<String>, Option<String>) {
    let live = match Cli::try_parse_from(words(root, engine, "cmdline")).map(|cli| cli.verb) {
        Ok(Verb::Run(args)) => args.live,
        Ok(Verb::Attach(args)) => args.live,
        _ => return (None, None),
    };
    let LiveArgs { policy, control, .. } = live;
    (Some(policy), control.map(|socket| socket.display().to_string()))
}

/// Returns the texts of a process's file that end in 0 each; none where it cannot be read.
fn words(root: &ProcRoot, pid: Pid, file: &str) -> Vec<String> {
    let mut text = Vec::new();
    if root.read(pid, file, &mut text).is_err() {
        return Vec::new();
    }
    let words = text.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}
