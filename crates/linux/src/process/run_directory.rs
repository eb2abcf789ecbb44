//! The directory for state that outlives a killed engine.

use std::fs::{self, DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::LinuxError;
use crate::sys::process as sys;

/// Creates and returns the user's run directory: `/run/isotherm` for root, else `$XDG_RUNTIME_DIR/isotherm`,
/// else `/tmp/isotherm-UID`. Refuses one that others can write to, since its contents are trusted.
pub fn run_directory() -> Result<PathBuf, LinuxError> {
    let user = sys::effective_user();
    let session = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty());
    let path = match (user, session) {
        (0, _) => PathBuf::from("/run/isotherm"),
        (_, Some(session)) => PathBuf::from(session).join("isotherm"),
        _ => std::env::temp_dir().join(format!("isotherm-{user}")),
    };
    make_private(&path).map(|()| path)
}

/// Creates the directory for its user alone, or checks that it is private.
pub(crate) fn make_private(path: &Path) -> Result<(), LinuxError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| LinuxError::file(path, error))?;
    let metadata = fs::symlink_metadata(path).map_err(|error| LinuxError::file(path, error))?;
    match is_private(&metadata) {
        true => Ok(()),
        false => Err(LinuxError::Format {
            path: path.into(),
            expected: "a directory that belongs to you and that nobody else can write to",
            found: format!("mode {:o}, owner {}", metadata.mode() & 0o7777, metadata.uid()),
        }),
    }
}

fn is_private(metadata: &Metadata) -> bool {
    metadata.is_dir() && metadata.mode() & 0o022 == 0 && metadata.uid() == sys::effective_user()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn directories_that_others_can_write_to_are_refused() {
        let base = tempfile::tempdir().expect("a temporary directory");
        let path = base.path().join("run");
        make_private(&path).expect("made");
        assert_eq!(fs::metadata(&path).expect("metadata").mode() & 0o777, 0o700);
        make_private(&path).expect("accepted again");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("mode");
        let error = make_private(&path).expect_err("anybody could write to it");
        assert!(error.to_string().contains("mode 777"), "{error}");
        symlink(base.path(), base.path().join("link")).expect("a link");
        assert!(make_private(&base.path().join("link")).is_err());
    }
}
