//! Boots a virtual machine with the plugin and the `guest` example as its first process.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use isotherm_lab::cache::Cache;
use isotherm_lab::cpio::Archive;
use serde_json::Value;

/// Time limit of a virtual machine, which needs some seconds on an idle host.
const PATIENCE: Duration = Duration::from_secs(600);
/// Bytes of each node.
pub(crate) const NODE: u64 = 256 << 20;
/// Bytes of the modelled last-level cache.
pub(crate) const CACHE: u64 = 2 << 20;

/// Results of a run.
pub(crate) struct Run {
    /// Guest's lines after the prefix `LAB`.
    pub(crate) lines: Vec<String>,
    /// Plugin's result file.
    pub(crate) result: Vec<u8>,
}

/// Returns the files that `make lab-setup` unpacks, or prints that they are missing.
pub(crate) fn cache() -> Option<Cache> {
    match Cache::find() {
        Ok(cache) => Some(cache),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// Returns the path of a file in the folder of this build.
fn built(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("this test's path");
    own.ancestors().nth(2).expect("target/PROFILE").join(name)
}

/// Returns the plugin's path: cargo's place for what this test depends on. The one beside the test may be
/// older.
pub(crate) fn plugin() -> PathBuf {
    built("deps/libisotherm_lab_plugin.so")
}

/// Boots, runs the named scenarios (joined by commas) and waits for the end.
pub(crate) fn run(cache: &Cache, scenarios: &str, deterministic: bool) -> Run {
    let folder = tempfile::tempdir().expect("a directory");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("initrd"), initramfs()).expect("writable");
    let device = std::fs::File::create(at("bar")).expect("writable");
    device.set_len(16 << 20).expect("writable");
    let mut command = qemu(cache, &at("initrd"), &at("bar"), scenarios, deterministic);
    let mut plugin = plugin().into_os_string();
    plugin.push(arguments(folder.path()));
    command.arg("-plugin").arg(plugin);
    let output = finish(&mut command);
    let console = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<String> = console
        .split('\n')
        .filter_map(|line| Some(line.split_once("LAB ")?.1.trim_end().to_owned()))
        .collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(lines.last().map(String::as_str), Some("done"), "{console}{errors}");
    Run { lines, result: std::fs::read(at("result.json")).expect("the plugin's results") }
}

fn arguments(folder: &Path) -> OsString {
    let machine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines/pact.toml");
    let (folder, machine) = (folder.display(), machine.display());
    format!(
        ",bar={folder}/bar,result={folder}/result.json,machine={machine},llc={CACHE}B,ways=16,tier0=0x0-{NODE:#x},\
         tier1={NODE:#x}-{:#x}",
        2 * NODE
    )
    .into()
}

fn qemu(cache: &Cache, initrd: &Path, bar: &Path, scenarios: &str, deterministic: bool) -> Command {
    let mut command = Command::new(cache.qemu());
    command.env("LD_LIBRARY_PATH", cache.libraries());
    cache.firmware().iter().for_each(|folder| {
        command.arg("-L").arg(folder);
    });
    command
        .args("-nodefaults -no-user-config -no-reboot -display none -serial stdio -monitor none".split(' '));
    command.args(
        "-machine q35 -cpu qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt -smp 1 -accel tcg,thread=single".split(' '),
    );
    command.args(["-m", &format!("{}B", 2 * NODE)]);
    for node in ["nodeid=0,cpus=0", "nodeid=1"] {
        let number = &node[7..8];
        command.args(["-object", &format!("memory-backend-ram,id=memory{number},size={NODE}")]);
        command.args(["-numa", &format!("node,{node},memdev=memory{number}")]);
    }
    let bar = bar.display();
    command.args(["-object", &format!("memory-backend-file,id=bar,share=on,mem-path={bar},size=16M")]);
    command.args(["-device", "ivshmem-plain,memdev=bar,master=on"]);
    command.arg("-kernel").arg(cache.kernel()).arg("-initrd").arg(initrd);
    let mut words = format!(
        "console=ttyS0 quiet panic=-1 mitigations=off numa_balancing=disable transparent_hugepage=never lab={scenarios}"
    );
    if deterministic {
        words += " nokaslr norandmaps";
        command.args("-icount shift=0,sleep=off -rtc base=2026-01-01,clock=vm".split(' '));
    }
    command.args(["-append", &words]);
    command
}

/// Builds the first file system: the guest and its libraries.
fn initramfs() -> Vec<u8> {
    let guest = built("examples/guest");
    let listed = Command::new("ldd").arg(&guest).output().expect("ldd");
    let text = String::from_utf8_lossy(&listed.stdout);
    let libraries = text.split_whitespace().filter(|word| word.starts_with('/')).map(Path::new);
    let mut archive = Archive::default();
    ["dev", "proc", "sys"].iter().for_each(|folder| archive.directory(folder));
    archive.device("dev/console", 5, 1);
    let mut folders = std::collections::BTreeSet::new();
    for library in libraries {
        for folder in
            library.parent().into_iter().flat_map(Path::ancestors).collect::<Vec<_>>().into_iter().rev()
        {
            let name = folder.to_string_lossy().trim_start_matches('/').to_owned();
            if !name.is_empty() && folders.insert(name.clone()) {
                archive.directory(&name);
            }
        }
        add(&mut archive, library, library);
    }
    add(&mut archive, Path::new("/init"), &guest);
    archive.finish()
}

fn add(archive: &mut Archive, name: &Path, from: &Path) {
    let content = std::fs::read(from).expect("a readable file");
    let name = name.to_string_lossy();
    archive.file(name.trim_start_matches('/').as_bytes(), 0o755, &content).expect("a small file");
}

/// Runs QEMU until it ends or its time is over.
pub(crate) fn finish(command: &mut Command) -> Output {
    let started = Instant::now();
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("QEMU starts");
    let console = read_all(child.stdout.take().expect("piped"));
    let errors = read_all(child.stderr.take().expect("piped"));
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if started.elapsed() > PATIENCE {
            child.kill().expect("a child");
            break child.wait().expect("a child");
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let (stdout, stderr) = (console.join().expect("no panic"), errors.join().expect("no panic"));
    Output { status, stdout, stderr }
}

fn read_all(mut from: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

impl Run {
    /// Returns the numbers `NAME=VALUE` of the line that begins with these words.
    pub(crate) fn numbers(&self, words: &str) -> HashMap<&str, u64> {
        let line = self.lines.iter().find(|line| line.starts_with(words));
        let line = line.unwrap_or_else(|| panic!("no line '{words}' in {:#?}", self.lines));
        let number = |word: &'_ str| word.parse().unwrap_or_else(|_| u64::from(word == "true"));
        line.split(' ')
            .filter_map(|word| word.split_once('='))
            .map(|(name, value)| (name, number(value)))
            .collect()
    }

    /// Returns the plugin's results of a scenario's phase.
    pub(crate) fn phase(&self, scenario: &str) -> Value {
        let epoch = self.numbers(&format!("begin {scenario} "))["epoch"];
        let result: Value = serde_json::from_slice(&self.result).expect("JSON");
        let phases = result["phases"].as_array().expect("phases");
        phases.iter().find(|phase| phase["epoch"] == epoch).expect("the scenario's phase").clone()
    }

    /// Returns the load and store misses that a tier served, as the guest read them.
    pub(crate) fn misses(&self, scenario: &str, tier: usize) -> (u64, u64) {
        let numbers = self.numbers(&format!("tier {scenario} {tier} "));
        (numbers["loads"], numbers["stores"])
    }
}
