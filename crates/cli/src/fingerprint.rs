//! Fingerprints for manifests: of this binary, and of programs.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use isotherm_core::manifest::Fingerprint;
use isotherm_trace::open_regular;
use object::{Object, ReadCache};
use twox_hash::XxHash64;

use crate::program;

/// Bytes read at once.
const CHUNK: usize = 1 << 16;

/// Returns the fingerprint of the file that holds this code.
pub(crate) fn own() -> Option<Fingerprint> {
    program::embedding().map_or_else(|| of(Path::new("/proc/self/exe")), |embedding| of(&embedding.file))
}

/// Returns a program's, looked up as a shell would.
pub(crate) fn of_program(name: &OsStr) -> Option<Fingerprint> {
    files_of(name).iter().find_map(|path| of(path))
}

/// Returns the files that a command may name: itself, or one in each folder of `PATH`.
pub(crate) fn files_of(name: &OsStr) -> Vec<PathBuf> {
    if name.to_string_lossy().contains('/') {
        return vec![name.into()];
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).collect()
}

/// Returns a file's: the build id, which costs the same for any size, or else a hash of the contents; `None`
/// if it cannot be read.
pub fn of(path: &Path) -> Option<Fingerprint> {
    let mut file = open_regular(path).ok()?;
    build_id(&file).or_else(|| contents(&mut file).ok())
}

fn build_id(file: &File) -> Option<Fingerprint> {
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache).ok()?;
    Some(Fingerprint::Build(object.build_id().ok()??.to_vec()))
}

fn contents(file: &mut File) -> io::Result<Fingerprint> {
    file.rewind()?;
    let (mut hash, mut chunk) = (XxHash64::with_seed(0), vec![0; CHUNK]);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(Fingerprint::Contents(hash.finish())),
            length => hash.write(&chunk[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_what_they_hold() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).expect("a file is written");
            of(&path).expect("a fingerprint").to_string()
        };
        // The algorithm's published value of no input.
        assert_eq!(file("empty", b""), "xxh64:ef46db3751d8e999");
        let long = vec![7; CHUNK + 1];
        assert_eq!(file("one", &long), file("copy", &long));
        assert_ne!(file("one", &long), file("other", &long[1..]));
        assert_eq!(of(&folder.path().join("missing")), None);
        assert_eq!(of(folder.path()), None);
    }

    #[test]
    fn a_programs_file_is_found_as_a_shell_finds_it() {
        assert!(own().is_some());
        assert_eq!(of_program(OsStr::new("sh")), of_program(OsStr::new("/bin/sh")));
        assert_eq!(of_program(OsStr::new("no-such-program")), None);
    }
}
