//! Snapshots: guests that were saved after their boot, where their jobs begin. Guests of the same kind start
//! from them.

use std::ffi::OsString;
use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Error, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use twox_hash::XxHash64;

use crate::LabError;
use crate::machine::Machine;
use crate::plugin::escaped;
use crate::qemu::{self, Guest};

/// Bytes of all snapshots that are kept, of some 85 MB each for small machines.
const KEPT: u64 = 1 << 30;
/// Bytes of the checksum at a snapshot's end, which QEMU does not read.
const SUM: u64 = 8;
/// Number of this process's files, which makes their names differ.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Returns whether guests of a machine can be saved. QEMU does not save CXL devices, and on a deterministic
/// machine files and job are part of what is booted.
pub(crate) fn possible(machine: &Machine) -> bool {
    !machine.deterministic && !machine.has_cxl()
}

/// Place of the snapshot for guests of one kind.
#[derive(Debug)]
pub(crate) struct Snapshot {
    path: PathBuf,
}

impl Snapshot {
    /// Finds the place for guests like this one, whose first file system is given.
    ///
    /// # Errors
    /// If a file that enters the boot cannot be read.
    pub(crate) fn of(guest: &Guest<'_>, initramfs: &[u8]) -> Result<Self, LabError> {
        let name = format!("{:016x}", key(guest, initramfs)?);
        Ok(Self { path: guest.cache.snapshots().join(name) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether there is a snapshot, and marks it as used.
    ///
    /// # Errors
    /// If it cannot be read, or is not what was written.
    pub(crate) fn is_there(&self) -> io::Result<bool> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            file => file?,
        };
        let length = file.metadata()?.len().saturating_sub(SUM);
        let mut sum = [0; SUM as usize];
        let found = sum_of((&mut file).take(length))?;
        file.read_exact(&mut sum)?;
        if u64::from_le_bytes(sum) != found {
            return Err(Error::new(ErrorKind::InvalidData, "its checksum is wrong"));
        }
        // Which snapshot is dropped next matters little.
        let _ = file.set_modified(SystemTime::now());
        Ok(true)
    }

    /// Returns a path beside the snapshot, at which QEMU may write one.
    pub(crate) fn beside(&self) -> PathBuf {
        // If this fails, writing does.
        let _ = self.path.parent().map(std::fs::create_dir_all);
        let mut name = self.path.clone().into_os_string();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        name.push(format!(".{}-{number}", std::process::id()));
        name.into()
    }

    /// Makes the file at `written` the snapshot, and drops the snapshots that were not used for longest.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub(crate) fn keep(&self, written: &Path) -> io::Result<()> {
        let mut file = File::options().read(true).write(true).open(written)?;
        let sum = sum_of(&mut file)?;
        file.seek(SeekFrom::End(0))?;
        file.write_all(&sum.to_le_bytes())?;
        file.sync_all()?;
        std::fs::rename(written, &self.path)?;
        drop_old(self.path.parent().unwrap_or(Path::new(".")), KEPT);
        Ok(())
    }
}

/// Drops files but the newest of so many bytes, as far as the operating system allows; also those of labs
/// that were killed while they wrote them. The newest stays whatever its size.
fn drop_old(folder: &Path, mut bytes: u64) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let aged = |entry: std::fs::DirEntry| {
        let data = entry.metadata().ok()?;
        Some((data.modified().ok()?, data.len(), entry.path()))
    };
    let mut files: Vec<_> = entries.flatten().filter_map(aged).collect();
    files.sort();
    for (newer, (_, length, path)) in files.iter().rev().enumerate() {
        bytes = bytes.saturating_sub(*length);
        if newer > 0 && bytes == 0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn sum_of(mut file: impl Read) -> io::Result<u64> {
    let mut hash = XxHash64::with_seed(0);
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash.finish()),
            count => hash.write(&buffer[..count]),
        }
    }
}

/// Returns a number of all that enters the boot: QEMU's command line but for the run's own files, the files
/// that it names, and this host's processor, by whose clock the guest's kernel has set its own.
fn key(guest: &Guest<'_>, initramfs: &[u8]) -> Result<u64, LabError> {
    let mut hash = XxHash64::with_seed(0);
    let mut add = |bytes: &[u8]| {
        hash.write_usize(bytes.len());
        hash.write(bytes);
    };
    for word in kind(guest) {
        add(word.as_bytes());
    }
    add(initramfs);
    add(guest.machine.profile_toml().as_bytes());
    for path in [guest.plugin, guest.hardware].into_iter().flatten() {
        add(&std::fs::read(path).map_err(LabError::io(path, "read"))?);
    }
    // The packages' checksums cover firmware and libraries; the large files may have been replaced by hand.
    add(&std::fs::read(guest.cache.packages()).unwrap_or_default());
    for path in [guest.cache.kernel(), guest.cache.qemu()] {
        let data = std::fs::metadata(&path).map_err(LabError::io(&path, "read"))?;
        add(format!("{} {}.{}", data.len(), data.mtime(), data.mtime_nsec()).as_bytes());
    }
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    add(processor.lines().find(|line| line.starts_with("model name")).unwrap_or_default().as_bytes());
    Ok(hash.finish())
}

/// Returns QEMU's words without what differs between two guests of a kind: the run's folder, and where
/// streams lead.
fn kind(guest: &Guest<'_>) -> Vec<String> {
    let run = [escaped(guest.run.path()), guest.run.path().into()];
    let mut words = qemu::arguments(guest);
    let backends: Vec<_> = (1..words.len()).filter(|&index| words[index - 1] == "-chardev").collect();
    backends.into_iter().for_each(|index| words[index].clear());
    words.iter().map(|word| run.iter().fold(word.to_string_lossy().into(), without)).collect()
}

fn without(text: String, part: &OsString) -> String {
    text.replace(&*part.to_string_lossy(), "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{Cache, tests::filled};
    use crate::qemu::Port;
    use crate::run_directory::RunDirectory;

    type Result = std::result::Result<(), Box<dyn std::error::Error>>;

    /// Makes a snapshot of these bytes.
    fn make(snapshot: &Snapshot, bytes: &[u8]) -> io::Result<()> {
        let written = snapshot.beside();
        std::fs::write(&written, bytes)?;
        snapshot.keep(&written)
    }

    fn guest<'a>(
        machine: &'a Machine,
        cache: &'a Cache,
        run: &'a RunDirectory,
        plugin: &'a Path,
    ) -> Guest<'a> {
        let ports = vec![("stdout", Port::Socket(7))];
        let plugin = Some(plugin);
        Guest {
            machine,
            cache,
            run,
            ports,
            plugin,
            hardware: None,
            interactive: false,
            monitor: None,
            snapshot: None,
        }
    }

    #[test]
    fn all_that_enters_the_boot_changes_the_key_and_nothing_else_does() -> Result {
        let folder = tempfile::tempdir()?;
        let cache = filled(&folder.path().join("cache"))?;
        let run = RunDirectory::at(folder.path().join("run,1"))?;
        let plugin = folder.path().join("plugin.so");
        std::fs::write(&plugin, "one")?;
        let machine = Machine::builtin("small")?;
        let usual = || guest(&machine, &cache, &run, &plugin);
        let first = key(&usual(), b"files")?;
        let other_run = RunDirectory::at(folder.path().join("run,2"))?;
        let ports = vec![("stdout", Port::File("/a/file".into()))];
        assert_eq!(first, key(&Guest { run: &other_run, ports, ..usual() }, b"files")?);

        let mut larger = machine.clone();
        larger.nodes[1].size.0 *= 2;
        let mut slower = machine.clone();
        slower.profile.tiers[1].write_bandwidth /= 2;
        let mut keys = vec![first, key(&usual(), b"other files")?];
        keys.push(key(&Guest { machine: &larger, ..usual() }, b"files")?);
        keys.push(key(&Guest { machine: &slower, ..usual() }, b"files")?);
        keys.push(key(&Guest { plugin: None, ..usual() }, b"files")?);
        keys.push(key(&Guest { interactive: true, ..usual() }, b"files")?);
        keys.push(key(&Guest { ports: Vec::new(), ..usual() }, b"files")?);
        for path in [plugin.clone(), cache.packages(), cache.kernel(), cache.qemu()] {
            std::fs::write(&path, "another")?;
            keys.push(key(&usual(), b"files")?);
        }
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count, "two of these have one key");
        Ok(())
    }

    #[test]
    fn a_snapshot_is_there_once_it_is_whole_and_a_spoiled_one_is_an_error() -> Result {
        let folder = tempfile::tempdir()?;
        let snapshot = Snapshot { path: folder.path().join("snapshots/0") };
        assert!(!snapshot.is_there()?);
        std::fs::write(snapshot.beside(), "half")?;
        assert!(!snapshot.is_there()?);
        make(&snapshot, b"a guest")?;
        assert!(snapshot.is_there()?);
        let whole = std::fs::read(snapshot.path())?;
        for spoiled in [&whole[..whole.len() - 1], &[b"A", &whole[1..]].concat(), b"short", b""] {
            std::fs::write(snapshot.path(), spoiled)?;
            assert!(snapshot.is_there().is_err(), "{spoiled:?}");
        }
        Ok(())
    }

    #[test]
    fn what_was_not_used_for_longest_is_dropped_and_the_newest_stays() -> Result {
        let folder = tempfile::tempdir()?;
        let named = |name: &str| Snapshot { path: folder.path().join(name) };
        let used = |name: &str, seconds| {
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            File::options().write(true).open(folder.path().join(name))?.set_modified(time)
        };
        let left = || -> io::Result<Vec<_>> {
            let mut names: Vec<_> =
                std::fs::read_dir(folder.path())?.flatten().map(|entry| entry.file_name()).collect();
            names.sort();
            Ok(names)
        };
        for (seconds, name) in ["a", "b", "c", "d.9-0"].into_iter().enumerate() {
            make(&named(name), &[0; 92])?;
            used(name, seconds as u64)?;
        }
        // Used again.
        assert!(named("a").is_there()?);
        drop_old(folder.path(), 250);
        assert_eq!(left()?, ["a", "d.9-0"]);
        drop_old(folder.path(), 1);
        assert_eq!(left()?, ["a"]);
        Ok(())
    }
}
