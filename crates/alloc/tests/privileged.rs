//! A program with more rights than its user is linked with the library: the user's variables do nothing.

mod support;

use std::fs::{Permissions, read_dir, set_permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use support::{both, compile, has, library, output};

const NOBODY: u32 = 65534;

/// A regression: `ISOTHERM_ALLOC_PROFILE` wrote a file in a folder of root's.
#[test]
fn a_setuid_program_ignores_every_variable() {
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !root || !has("gcc") {
        println!("skipped: only root can make a setuid program that is another user's");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("libisotherm_alloc.so");
    std::fs::copy(library(), &own).expect("a copy that every user can read");
    let search = format!("-Wl,-rpath,{}", folder.path().display());
    let linked = ["-Wl,--no-as-needed", &search, own.to_str().expect("UTF-8")];
    let program = compile(folder.path(), "privileged.c", &linked);
    let private = folder.path().join("private");
    std::fs::create_dir(&private).expect("a folder");
    for (path, mode) in [(folder.path(), 0o755), (&own, 0o755), (&program, 0o4755), (&private, 0o700)] {
        set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
    }
    let run = |user: u32| {
        let mut command = Command::new(&program);
        command.uid(user).env("ISOTHERM_ALLOC_PROFILE", &private).env("ISOTHERM_ALLOC_REGIONS", "no number");
        let output = output(&mut command);
        assert_eq!(&*output.stdout, b"1\n", "the library serves it: {}", both(&output));
        let files = read_dir(&private).expect("a folder").count();
        (String::from_utf8_lossy(&output.stderr).into_owned(), files)
    };
    assert_eq!(run(NOBODY), (String::new(), 0), "for another user");
    let (report, files) = run(0);
    assert!(report.contains("REGIONS=no number") && files == 1, "for its owner: {report}, {files} files");
}
