//! Entries of `LD_PRELOAD` that programs of another C library pass by.
//!
//! musl's loader ends a program whose preloaded library needs glibc, and passes by one that does not exist.
//! glibc replaces `$LIB` by the name of its own folder, musl does not: so the path leads from glibc's folder
//! up to the root and down to the library, and nowhere for musl.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::folder::Folder;
use crate::LinuxError;

/// From glibc's folder, such as `/lib64` or `/usr/lib/x86_64-linux-gnu`, to the root, whose parent is itself.
const GLIBC_TO_ROOT: &str = "/$LIB/../../../../../..";
/// Where `$LIB` leads below the root, except on systems such as NixOS, which keep glibc elsewhere.
const GLIBC: &str = "/lib";

/// Bytes that end or change an entry.
const SPECIAL: &[u8] = b" :$";

/// An entry of `LD_PRELOAD`, valid while it exists.
#[derive(Debug)]
pub struct Entry {
    pub text: OsString,
    _link: Option<Folder>,
}

impl Entry {
    /// Names a library by its absolute path, or through a link where its path cannot stand in a list.
    ///
    /// # Errors
    /// If the link cannot be made.
    pub fn new(library: &Path) -> Result<Self, LinuxError> {
        let is_special = |path: &Path| path.as_os_str().as_bytes().iter().any(|byte| SPECIAL.contains(byte));
        if !is_special(library) {
            return Ok(Self { text: text(library), _link: None });
        }
        let folder = Folder::new()?;
        let link = folder.link("library.so", library)?;
        if is_special(&link) {
            return Err(LinuxError::Unsupported {
                what: "preloading a library",
                remedy: format!(
                    "{} and the path of the folder for temporary files hold a blank, a colon or \
                                 a dollar sign; move one of them",
                    library.display()
                ),
            });
        }
        Ok(Self { text: text(&link), _link: Some(folder) })
    }
}

fn text(library: &Path) -> OsString {
    let mut text = OsString::from(if Path::new(GLIBC).is_dir() { GLIBC_TO_ROOT } else { "" });
    text.push(library);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_no_blank_and_leads_to_the_library() {
        let plain = Entry::new(Path::new("/opt/isotherm/lib.so")).expect("a path");
        assert_eq!(plain.text, "/$LIB/../../../../../../opt/isotherm/lib.so");
        for path in ["/opt/my tools/lib.so", "/opt/a:b/lib.so", "/opt/$LIB/lib.so"] {
            let entry = Entry::new(Path::new(path)).expect("a link");
            let text = entry.text.into_string().expect("text");
            let link = text.strip_prefix(GLIBC_TO_ROOT).expect("from glibc's folder");
            assert!(!link.bytes().any(|byte| SPECIAL.contains(&byte)), "{link}");
            assert_eq!(std::fs::read_link(link).expect("a link"), Path::new(path));
        }
    }
}
