//! A session's private folder for its socket and its link to a library.
//!
//! It is removed on drop. What a killed process left is removed by the next that makes one: the owner holds a
//! lock on the folder, which the kernel frees.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::LinuxError;
use crate::sys::process::user;

/// Folders are named by this and 16 random hexadecimal digits.
const PREFIX: &str = "isotherm-";
const DIGITS: usize = 16;
/// Longest path of the folder around: a socket's path has at most 107 bytes.
const LONGEST: usize = 64;
const ATTEMPTS: u32 = 8;

const GROUP_OR_OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Its lock says that the owner lives.
    _held: File,
}

impl Folder {
    /// Makes a folder that nobody else may enter: below `/run` for root, else below `$XDG_RUNTIME_DIR`, or
    /// below the folder for temporary files.
    ///
    /// # Errors
    /// If another user could replace folders there, or none can be made.
    pub fn new() -> Result<Self, LinuxError> {
        let runtime = if user() == 0 { Some("/run".into()) } else { std::env::var_os("XDG_RUNTIME_DIR") };
        let mut failed = None;
        for around in runtime.map(PathBuf::from).into_iter().chain([std::env::temp_dir()]) {
            match around.canonicalize().map(|around| Self::below(&around)) {
                Ok(Ok(folder)) => return Ok(folder),
                Ok(Err(error)) => failed = Some(error),
                Err(error) => failed = Some(LinuxError::file(around, error)),
            }
        }
        Err(failed.unwrap_or(LinuxError::of_call("mkdir")(io::ErrorKind::NotFound.into())))
    }

    fn below(around: &Path) -> Result<Self, LinuxError> {
        let failed = |error| LinuxError::file(around, error);
        if !is_safe(&fs::metadata(around).map_err(failed)?) || around.as_os_str().len() > LONGEST {
            return Err(LinuxError::Unsupported {
                what: "a private folder",
                remedy: format!(
                    "{} must be a short path, belong to you or root, and be sticky if others may write to it; \
                     set TMPDIR to such a folder",
                    around.display()
                ),
            });
        }
        remove_abandoned(around);
        let mut last = io::ErrorKind::AlreadyExists.into();
        for _ in 0..ATTEMPTS {
            let number = RandomState::new().build_hasher().finish();
            let path = around.join(format!("{PREFIX}{number:0DIGITS$x}"));
            match make(&path) {
                Ok(held) => return Ok(Self { path, _held: held }),
                Err(error) => last = error,
            }
        }
        Err(failed(last))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Links to a file, which every user may then reach through this folder, and returns the link.
    pub fn link(&self, name: &str, to: &Path) -> Result<PathBuf, LinuxError> {
        let link = self.path(name);
        let failed = |error| LinuxError::file(&link, error);
        symlink(to, &link).map_err(failed)?;
        fs::set_permissions(&self.path, fs::Permissions::from_mode(0o711)).map_err(failed)?;
        Ok(link)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Whether no other user but root can rename or remove this user's folders in a folder.
fn is_safe(around: &fs::Metadata) -> bool {
    let guarded = around.mode() & GROUP_OR_OTHERS_WRITE == 0 || around.mode() & STICKY != 0;
    around.is_dir() && guarded && (around.uid() == 0 || around.uid() == user())
}

/// Makes a folder and takes its lock.
fn make(path: &Path) -> io::Result<File> {
    DirBuilder::new().mode(0o700).create(path)?;
    let held = open(path)?;
    held.lock()?;
    // A process that began before the lock was taken may have removed it.
    fs::symlink_metadata(path).map(|_| held)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(path)
}

/// Removes this user's folders whose owners have died.
fn remove_abandoned(around: &Path) {
    let Ok(entries) = fs::read_dir(around) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).unwrap_or_default();
        if digits.len() != DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            continue;
        }
        let Ok(held) = open(&entry.path()) else { continue };
        if held.metadata().is_ok_and(|folder| folder.uid() == user()) && held.try_lock().is_ok() {
            remove(&entry.path());
        }
    }
}

/// Removes a folder with the kinds of files that a session makes; it stays if it holds others.
fn remove(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_socket() || kind.is_symlink()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn around() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("a folder").mode() & 0o777
    }

    #[test]
    fn a_folder_is_private_and_goes_with_its_owner() {
        let around = around();
        let folder = Folder::below(around.path()).expect("made");
        let other = Folder::below(around.path()).expect("beside it");
        let _listener = UnixListener::bind(folder.path("socket")).expect("bound");
        assert_eq!(mode(&folder.path), 0o700);
        let link = folder.link("lib.so", Path::new("/a b/lib.so")).expect("linked");
        assert_eq!(fs::read_link(link).expect("a link"), Path::new("/a b/lib.so"));
        assert_eq!(mode(&folder.path), 0o711);
        drop(folder);
        drop(other);
        assert_eq!(fs::read_dir(around.path()).expect("readable").count(), 0);
    }

    /// Leftovers of killed processes stayed in the temporary folder.
    #[test]
    fn what_a_killed_owner_left_is_removed_and_nothing_else() {
        let around = around();
        let living = Folder::below(around.path()).expect("made");
        let path = |name: &str| around.path().join(name);
        for name in ["isotherm-0123456789abcdef", "isotherm-0123456789abcde0", "isotherm-results"] {
            fs::create_dir(path(name)).expect("made");
        }
        drop(UnixListener::bind(path("isotherm-0123456789abcdef/socket")).expect("bound"));
        fs::write(path("isotherm-0123456789abcde0/data"), "a user's").expect("written");
        symlink("isotherm-results", path("isotherm-0123456789abcde1")).expect("linked");
        let next = Folder::below(around.path()).expect("made");
        assert!(!path("isotherm-0123456789abcdef").exists(), "its owner is dead");
        assert!(path("isotherm-0123456789abcde0/data").exists(), "no session makes such files");
        assert!(path("isotherm-0123456789abcde1").exists() && path("isotherm-results").exists());
        assert!(living.path.exists() && next.path.exists());
    }

    #[test]
    fn a_folder_where_others_could_replace_it_is_refused() {
        let around = around();
        let set = |mode| fs::set_permissions(around.path(), fs::Permissions::from_mode(mode)).expect("ours");
        set(0o777);
        assert!(Folder::below(around.path()).expect_err("refused").to_string().contains("sticky"));
        set(0o1777);
        Folder::below(around.path()).expect("as /tmp");
    }
}
