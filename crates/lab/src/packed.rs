//! Files of the host that a deterministic guest gets in its first file system. Fetched while it runs, they
//! would arrive after a time that no clock of the guest predicts.
//!
//! They are the program, every file that its words name, the files that the tiering needs, and all libraries
//! of these.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::LabError;
use crate::cpio::Archive;
use crate::job::{Job, PolicyRun, Task};
use crate::machine::Machine;

/// Folder of the first file system that becomes the guest's root.
const ROOT: &str = "packed";
/// Folders that the guest has of its own.
const ITS_OWN: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];
/// Maximum chain of interpreters.
const DEPTH: usize = 4;

/// Returns whether the job's guest gets these files instead of all of the host's. A shell may look at all.
pub(crate) fn wanted(machine: &Machine, job: &Job) -> bool {
    machine.deterministic && matches!(job.task, Task::Program(_))
}

pub(crate) fn add(archive: &mut Archive, job: &Job) -> Result<(), LabError> {
    let mut folders = BTreeSet::new();
    add_folder(archive, &mut folders, &job.directory)?;
    for path in files(job) {
        add_folder(archive, &mut folders, path.parent().unwrap_or(Path::new("/")))?;
        let content = std::fs::read(&path).map_err(LabError::io(&path, "read"))?;
        archive.file(inside(&path)?.as_bytes(), 0o755, &content)?;
    }
    Ok(())
}

fn inside(path: &Path) -> Result<String, LabError> {
    path.to_str().map(|path| format!("{ROOT}{path}")).ok_or_else(|| LabError::Unfit {
        what: path.to_string_lossy().into_owned(),
        expected: "a path in UTF-8 on a deterministic machine".into(),
    })
}

/// Adds a folder after its parents, each once.
fn add_folder(archive: &mut Archive, known: &mut BTreeSet<PathBuf>, folder: &Path) -> Result<(), LabError> {
    if !known.insert(folder.into()) {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        add_folder(archive, known, parent)?;
    }
    archive.directory(inside(folder)?.trim_end_matches('/'));
    Ok(())
}

fn files(job: &Job) -> BTreeSet<PathBuf> {
    let its_own = |path: &PathBuf| ITS_OWN.iter().any(|folder| path.starts_with(folder));
    let named =
        |word: &OsString| Some(job.directory.join(word)).filter(|path| !its_own(path) && path.is_file());
    let mut files = BTreeSet::new();
    let mut programs = Vec::new();
    match &job.tiering {
        PolicyRun::Engine { isotherm, options, .. } => {
            programs.extend(isotherm.first().map(PathBuf::from));
            // A policy in a library.
            programs.extend(options.iter().filter_map(named));
        }
        PolicyRun::Inside { library, .. } => programs.push(library.clone()),
        PolicyRun::Kernel(_) => {}
    }
    programs.extend(job.counting.iter().filter_map(|counting| counting.isotherm.first().map(PathBuf::from)));
    if let Task::Program(words) = &job.task {
        programs.extend(words.first().and_then(|name| find(job, name)));
        files.extend(words.iter().skip(1).filter_map(named));
    }
    programs.iter().for_each(|program| add_program(&mut files, program, DEPTH));
    files
}

/// Returns the path where a shell would find a program.
fn find(job: &Job, name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(job.directory.join(name));
    }
    let path = job.environment.iter().find(|(variable, _)| variable == "PATH")?;
    std::env::split_paths(&path.1).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Adds a program with its libraries, or a script with its interpreter.
fn add_program(files: &mut BTreeSet<PathBuf>, program: &Path, depth: usize) {
    files.insert(program.into());
    let mut start = Vec::new();
    let _ = std::fs::File::open(program).map(|file| file.take(256).read_to_end(&mut start));
    match interpreter(&start) {
        Some(interpreter) if depth > 0 => add_program(files, Path::new(&interpreter), depth - 1),
        Some(_) => {}
        None => files.extend(libraries(program)),
    }
}

/// Returns the interpreter in a line such as `#!/bin/sh -e`.
fn interpreter(start: &[u8]) -> Option<OsString> {
    let line = start.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let word = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())?;
    Some(OsStr::from_bytes(word).into())
}

/// Returns the files that the dynamic loader would load, including itself; none for a static program.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    // Lines such as `libc.so.6 => /lib/libc.so.6 (0x7f00)` and `/lib64/ld-linux-x86-64.so.2 (0x7f00)`.
    let text = String::from_utf8_lossy(&text);
    text.split_whitespace().filter(|word| word.starts_with('/')).map(Into::into).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Start;
    use crate::kernel_tiering::KernelTiering;

    fn job(words: &[&str], directory: &Path) -> Job {
        Job {
            task: Task::Program(words.iter().map(Into::into).collect()),
            tiering: PolicyRun::Kernel(KernelTiering::NONE),
            start: Start::FirstTouch,
            clock_ratio: 1,
            room: Vec::new(),
            counting: None,
            environment: vec![("PATH".into(), "/nowhere:/usr/bin:/bin".into())],
            directory: directory.into(),
        }
    }

    #[test]
    fn a_program_comes_with_its_libraries_and_the_files_it_is_given() -> Result<(), std::io::Error> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("input"), "3\n1\n")?;
        let found = files(&job(&["sort", "-n", "input", "missing"], folder.path()));
        assert!(found.contains(Path::new("/usr/bin/sort")) && found.contains(&folder.path().join("input")));
        let named = |part: &str| found.iter().any(|path| path.to_string_lossy().contains(part));
        assert!(named("libc.so") && named("ld-linux") && !named("missing"), "{found:?}");
        Ok(())
    }

    /// The guest's isotherm found no such file.
    #[test]
    fn regression_a_policy_in_a_library_comes_with_what_it_loads() -> Result<(), std::io::Error> {
        let folder = tempfile::tempdir()?;
        let policy = folder.path().join("policy.so");
        std::fs::copy("/usr/bin/sort", &policy)?;
        let options = ["--policy", "./policy.so", "--fast", "16M"].map(Into::into).into();
        let tiering = PolicyRun::Engine { isotherm: Vec::new(), options, demotion: false };
        let found = files(&Job { tiering, ..job(&["missing"], folder.path()) });
        let named = |part: &str| found.iter().any(|path| path.ends_with(part));
        assert!(named("policy.so") && named("libc.so.6") && !named("16M"), "{found:?}");
        Ok(())
    }

    #[test]
    fn what_the_hosts_kernel_says_stays_outside() {
        let found = files(&job(&["cat", "/proc/self/stat", "/etc/passwd"], Path::new("/")));
        assert!(
            found.contains(Path::new("/etc/passwd")) && !found.iter().any(|path| path.starts_with("/proc"))
        );
    }

    #[test]
    fn a_script_comes_with_its_interpreter() -> Result<(), std::io::Error> {
        let folder = tempfile::tempdir()?;
        let script = folder.path().join("script");
        std::fs::write(&script, "#! /bin/sh -e\necho\n")?;
        let found = files(&job(&["./script"], folder.path()));
        assert!(found.contains(Path::new("/bin/sh")), "{found:?}");
        assert_eq!(interpreter(b"\x7fELF"), None);
        assert_eq!(interpreter(b"#!"), None);
        Ok(())
    }

    #[test]
    fn folders_come_before_what_is_in_them() -> Result<(), LabError> {
        let mut archive = Archive::default();
        let mut known = BTreeSet::new();
        for folder in ["/a/b", "/a/c", "/a"] {
            add_folder(&mut archive, &mut known, Path::new(folder))?;
        }
        let text = String::from_utf8_lossy(&archive.finish()).into_owned();
        let places: Vec<_> =
            ["packed\0", "packed/a\0", "packed/a/b\0", "packed/a/c\0"].map(|name| text.find(name)).into();
        assert!(places.is_sorted() && places.iter().all(Option::is_some), "{places:?}");
        Ok(())
    }
}
