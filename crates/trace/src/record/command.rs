//! The command line that records a command. Finds the program, QEMU and the plugin, and checks them first.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{RecordError, RecordOptions, avx512};
use isotherm_recorder_protocol::{Executable, Resolved, resolve};

const QEMU: &str = "qemu-x86_64";
const PRELOAD: &str = "LD_PRELOAD";
/// Variable by which the allocator gives sites memory of their own.
const SITES: &str = "ISOTHERM_ALLOC_SITES";
const PLUGIN: &str = "libisotherm_recorder_plugin.so";

#[derive(Debug)]
pub(super) struct Prepared {
    qemu: PathBuf,
    plugin: PathBuf,
    setarch: Option<PathBuf>,
    allocator: Option<PathBuf>,
    resolved: Resolved,
}

pub(super) fn prepare(options: &RecordOptions) -> Result<Prepared, RecordError> {
    let name = options.command.first().ok_or(RecordError::NoCommand)?;
    let path = find_command(name)?;
    let resolved = match resolve(&path, &options.command) {
        Ok(Ok(resolved)) => resolved,
        Ok(Err((path, Executable::Foreign(kind)))) => return Err(RecordError::Foreign { path, kind }),
        Ok(Err((path, _))) => {
            let kind = "neither an ELF program nor a script with #!".into();
            return Err(RecordError::Foreign { path, kind });
        }
        Err(_) => {
            let expected = "expected it and its #! interpreter to be readable";
            return Err(RecordError::NotExecutable { path, expected });
        }
    };
    check_executable(&resolved.program)?;
    if let Some(path) = avx512::needed_by(&resolved.program) {
        return Err(RecordError::Avx512 { path });
    }
    let find = |tool, package| search(OsStr::new(tool)).ok_or(RecordError::MissingTool { tool, package });
    let qemu = find(QEMU, "qemu-user")?;
    let setarch = if options.aslr { None } else { Some(find("setarch", "util-linux")?) };
    let allocator = options.allocator.clone();
    if let Some(path) = allocator.as_ref().filter(|path| has_separator(path)) {
        return Err(RecordError::Allocator { path: path.clone() });
    }
    Ok(Prepared { qemu, plugin: find_plugin(options)?, setarch, allocator, resolved })
}

impl Prepared {
    /// Returns the command that records into the pool at the absolute path `pool`.
    pub(super) fn command(&self, pool: &Path) -> Command {
        let mut command = match &self.setarch {
            None => Command::new(&self.qemu),
            Some(setarch) => {
                let mut command = Command::new(setarch);
                command.arg("-R").arg(&self.qemu);
                command
            }
        };
        let mut plugin = escaped(self.plugin.as_os_str());
        plugin.push(",pool=");
        plugin.push(escaped(pool.as_os_str()));
        command.arg("-plugin").arg(plugin);
        pass_loader_variables(&mut command);
        if let Some(allocator) = &self.allocator {
            // The last `-E` of a name counts.
            let others = std::env::var_os(PRELOAD).filter(|others| !others.is_empty());
            let all: Vec<_> =
                [Some(allocator.clone().into_os_string()), others].into_iter().flatten().collect();
            let entry = [OsStr::new(PRELOAD), &all.join(OsStr::new(":"))].join(OsStr::new("="));
            command.arg("-E").arg(entry).env(SITES, "1");
        }
        command.envs(avx512::settings().map(|setting| (setting.variable, setting.safe)));
        let mut words = self.resolved.arguments.iter();
        command.arg("-0").args(words.next()).arg(&self.resolved.program).args(words);
        command
    }

    pub(super) fn recorder(&self) -> String {
        let text = version(&self.qemu).unwrap_or_default();
        text.lines().next().map_or_else(|| QEMU.into(), |line| line.trim().into())
    }
}

/// Returns what QEMU says of its version. [`Command::output`] would panic where reading fails.
fn version(qemu: &Path) -> io::Result<String> {
    let mut command = Command::new(qemu);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut text = String::new();
    let read = child.stdout.take().map(|mut output| output.read_to_string(&mut text)).transpose();
    child.wait()?;
    read.map(|_| text)
}

/// Passes `LD_*` variables to the program's loader, not QEMU's, except values with commas: QEMU splits there.
fn pass_loader_variables(command: &mut Command) {
    for (name, value) in std::env::vars_os() {
        if name.as_bytes().starts_with(b"LD_") && !value.as_bytes().contains(&b',') {
            let entry = [name.as_os_str(), value.as_os_str()].join(OsStr::new("="));
            command.env_remove(&name).arg("-E").arg(entry);
        }
    }
}

/// Returns whether QEMU or the loader would take a path for two.
fn has_separator(path: &Path) -> bool {
    path.as_os_str().as_bytes().iter().any(|byte| b",: ".contains(byte))
}

/// Doubles the commas, at which QEMU's options would end.
fn escaped(text: &OsStr) -> OsString {
    let parts: Vec<_> = text.as_bytes().split(|&byte| byte == b',').collect();
    OsStr::from_bytes(&parts.join(&b",,"[..])).to_owned()
}

fn find_command(name: &OsStr) -> Result<PathBuf, RecordError> {
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return check_executable(&path).map(|()| path);
    }
    search(name).ok_or_else(|| RecordError::NotFound { command: name.to_string_lossy().into_owned() })
}

/// Returns the first executable file of this name in `PATH`.
fn search(name: &OsStr) -> Option<PathBuf> {
    let directories = std::env::var_os("PATH")?;
    let mut paths = std::env::split_paths(&directories).map(|directory| directory.join(name));
    paths.find(|path| check_executable(path).is_ok())
}

fn check_executable(path: &Path) -> Result<(), RecordError> {
    let Ok(file) = path.metadata() else {
        return Err(RecordError::NotFound { command: path.display().to_string() });
    };
    if !file.is_file() || file.permissions().mode() & 0o111 == 0 {
        let expected = "expected a file with permission to execute";
        return Err(RecordError::NotExecutable { path: path.into(), expected });
    }
    Ok(())
}

/// Returns the plugin: as given, or beside the executable, where cargo and installations put it.
fn find_plugin(options: &RecordOptions) -> Result<PathBuf, RecordError> {
    let told =
        options.plugin.clone().or_else(|| std::env::var_os("ISOTHERM_RECORDER_PLUGIN").map(PathBuf::from));
    let executable = std::env::current_exe().unwrap_or_default();
    let directory = executable.parent().unwrap_or(Path::new(".")).to_owned();
    let places = ["", "../lib/isotherm", "..", "deps"];
    let beside = || places.map(|place| directory.join(place).join(PLUGIN)).to_vec();
    let candidates = told.map_or_else(beside, |path| vec![path]);
    let found = candidates.iter().find_map(|path| path.canonicalize().ok());
    found.ok_or(RecordError::MissingPlugin { name: PLUGIN, directory })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_paths_are_doubled() {
        assert_eq!(escaped(OsStr::new("/a,b/c")), "/a,,b/c");
    }

    #[test]
    fn commands_are_searched_and_checked() {
        assert!(find_command(OsStr::new("sh")).is_ok());
        let code = |name: &str| find_command(OsStr::new(name)).map_err(|error| error.exit_code());
        assert_eq!(code("no-such-command"), Err(127));
        assert_eq!(code("./no/such/path"), Err(127));
        assert_eq!(code("/etc/passwd"), Err(126));
        assert_eq!(code("/etc"), Err(126));
    }
}
