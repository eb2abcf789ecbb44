//! Helpers that run the lab's verbs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_isotherm");
/// Time for a guest to boot before a test interrupts it.
const BOOTED: Duration = Duration::from_secs(4);

/// Variables that a run keeps: they say where the lab's files are.
const OURS: [&str; 5] =
    ["HOME", "ISOTHERM_CACHE", "ISOTHERM_LAB_PLUGIN", "ISOTHERM_NEOPROF_RTL", "XDG_CACHE_HOME"];

/// Result of a run.
pub(crate) struct RunStats {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

/// The lab, if it is set up and its tests are requested.
pub(crate) struct Lab {
    runs: tempfile::TempDir,
}

impl Lab {
    /// Returns `None`, with a note on standard error, if no guest can or should be booted.
    pub(crate) fn find() -> Option<Self> {
        if std::env::var_os("LAB_TEST").is_none() {
            eprintln!("skipped: LAB_TEST is not set; scripts/lab-test.sh boots guests");
            return None;
        }
        if let Err(error) = isotherm_lab::cache::Cache::find() {
            eprintln!("skipped: {error}");
            return None;
        }
        Some(Self { runs: tempfile::tempdir().expect("a folder") })
    }

    /// The same, but only if this set of tests is requested (scripts/lab-test.sh).
    pub(crate) fn find_for(set: &str) -> Option<Self> {
        if std::env::var_os("LAB_TEST").is_some_and(|which| which != set) {
            eprintln!("skipped: it is of the set LAB_TEST={set}");
            return None;
        }
        Self::find()
    }

    /// The same, but only if all tests are requested.
    pub(crate) fn find_all() -> Option<Self> {
        Self::find_for("all")
    }

    /// Runs `isotherm lab run OPTIONS -- PROGRAM` without input.
    pub(crate) fn run(&self, options: &[&str], program: &[&str]) -> RunStats {
        self.feed(options, program, &[])
    }

    /// The same with input.
    pub(crate) fn feed(&self, options: &[&str], program: &[&str], input: &[u8]) -> RunStats {
        let folder = self.new_folder();
        let folder = ["--folder", folder.to_str().expect("a path in UTF-8")];
        Self::verb("run", &[options, &folder].concat(), program, input)
    }

    /// Returns a folder for a run, which does not exist yet.
    pub(crate) fn new_folder(&self) -> PathBuf {
        let number = std::fs::read_dir(self.runs.path()).expect("the folder").count();
        self.runs.path().join(number.to_string())
    }

    /// Runs the command `isotherm lab VERB OPTIONS -- PROGRAM`.
    pub(crate) fn verb(verb: &str, options: &[&str], program: &[&str], input: &[u8]) -> RunStats {
        fed(&mut Self::command(verb, options, program), input)
    }

    /// Returns the command `isotherm lab VERB OPTIONS -- PROGRAM`.
    pub(crate) fn command(verb: &str, options: &[&str], program: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command
            .args(["lab", verb])
            .args(options)
            .arg("--")
            .args(program)
            .current_dir(root())
            // The guest gets the environment, and with it those of make and cargo.
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| OURS.iter().any(|&own| name == own)))
            .env("PATH", "/usr/bin:/bin");
        command
    }

    /// Starts a guest, interrupts `isotherm` as Ctrl-C does, and counts the remaining guests of this run.
    pub(crate) fn interrupt(&self, options: &[&str], program: &[&str]) -> (Option<i32>, usize) {
        let folder = self.runs.path().join("interrupted");
        let mut command = Command::new(BINARY);
        command.args(["lab", "run"]).args(options).arg("--folder").arg(&folder).arg("--").args(program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the binary runs");
        std::thread::sleep(BOOTED);
        assert_eq!(guests(&folder), 1, "the guest runs");
        let told = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(told.is_ok_and(|status| status.success()));
        let code = child.wait().expect("it ends").code();
        (code, guests(&folder))
    }
}

/// Runs a command with input.
pub(crate) fn fed(command: &mut Command, input: &[u8]) -> RunStats {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let (mut stdin, input) = (child.stdin.take().expect("piped"), input.to_vec());
    let feeder = std::thread::spawn(move || {
        // A program that does not read its input ends first.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("it ends");
    feeder.join().expect("input was given");
    RunStats {
        code: output.status.code(),
        out: output.stdout,
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Counts the QEMU processes that use this folder.
fn guests(folder: &Path) -> usize {
    let needle = folder.to_str().expect("a path in UTF-8");
    let commands = std::fs::read_dir("/proc").expect("/proc").flatten().filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).into_owned())
    });
    commands.filter(|line| line.contains("qemu-system") && line.contains(needle)).count()
}

/// Returns the repository's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Returns the program that tests tier; cargo builds it with them.
pub(crate) fn target() -> String {
    let path = Path::new(BINARY).with_file_name("examples").join("live-target");
    path.to_str().expect("a path in UTF-8").into()
}

/// Returns standard output of a command that succeeds.
#[track_caller]
pub(crate) fn ok(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// Returns the lines that the binary prints.
#[track_caller]
pub(crate) fn lines(arguments: &[&str]) -> Vec<String> {
    let text = String::from_utf8(ok(Command::new(BINARY).args(arguments))).expect("UTF-8");
    text.lines().map(Into::into).collect()
}
